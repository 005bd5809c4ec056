"""Turning a pair of numbers by its place: rotary positions, three times."""
