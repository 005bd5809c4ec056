"""Four measures of two vectors: arrays."""

import numpy as np


def cosine(x, y):
    """The dot product of the directions."""
    return x @ y / (np.linalg.norm(x) * np.linalg.norm(y))


def measures(x, y):
    """Distance, dot product, cosine, correlation."""
    distance = np.linalg.norm(x - y)
    correlation = cosine(x - x.mean(), y - y.mean())
    return [distance, x @ y, cosine(x, y), correlation]
