"""What a lens is made of: a model and its inputs, texts, images; and what stands along the axes of its calls."""
