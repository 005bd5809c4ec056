"""Several heads in plain Python: a loop over them."""

import math


def product(a, b):
    """The product of two matrices."""
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


def attend(q, k, v):
    """One head."""
    y = []
    for query in q:
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(key)) for key in k]
        shares = [math.exp(score - max(scores)) for score in scores]
        weights = [share / sum(shares) for share in shares]
        y.append([sum(w * one for w, one in zip(weights, column, strict=True)) for column in zip(*v, strict=True)])
    return y


def multihead(x, Wq, Wk, Wv, Wo, heads):
    """Each head has its own columns; their results stand side by side."""
    q, k, v = product(x, Wq), product(x, Wk), product(x, Wv)
    width = len(q[0]) // heads
    joined = [[] for _ in x]
    for h in range(heads):
        part = [[row[h * width : (h + 1) * width] for row in rows] for rows in (q, k, v)]
        for row, found in zip(joined, attend(*part), strict=True):
            row.extend(found)
    return product(joined, Wo)
