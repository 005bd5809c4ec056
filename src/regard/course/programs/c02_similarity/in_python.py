"""Four measures of two vectors: lists and loops."""

import math


def dot(x, y):
    """Σ x_a y_a"""
    return sum(a * b for a, b in zip(x, y, strict=True))


def cosine(x, y):
    """The dot product of the directions."""
    return dot(x, y) / math.sqrt(dot(x, x) * dot(y, y))


def centred(x):
    """x without its mean."""
    mean = sum(x) / len(x)
    return [a - mean for a in x]


def measures(x, y):
    """Distance, dot product, cosine, correlation."""
    apart = [a - b for a, b in zip(x, y, strict=True)]
    distance = math.sqrt(dot(apart, apart))
    correlation = cosine(centred(x), centred(y))
    return [distance, dot(x, y), cosine(x, y), correlation]
