"""What is found from q, k and totals: weights of any part, tiles, measures, one pair explained, what if."""
