"""Attention over pairs, in three languages, and one layer that learns to match cards."""
