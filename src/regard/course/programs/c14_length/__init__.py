"""Softmax attention over blocks of keys, in three languages."""
