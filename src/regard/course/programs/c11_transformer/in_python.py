"""A block with one head, number by number."""

from math import exp, sqrt


def block(x, wq, wk, wv, w1, w2):
    """Rows in, rows out."""
    z = [norm(row) for row in x]
    q, k, v = (product(z, w) for w in (wq, wk, wv))
    x = added(x, [attended(row, k, v) for row in q])
    z = [norm(row) for row in x]
    hidden = [[max(a, 0.0) for a in row] for row in product(z, w1)]
    return added(x, product(hidden, w2))


def norm(row):
    """Mean 0 and spread 1."""
    mean = sum(row) / len(row)
    spread = sqrt(sum((a - mean) ** 2 for a in row) / len(row))
    return [(a - mean) / spread for a in row]


def attended(q, k, v):
    """One query reads all rows."""
    s = [dot(q, key) / sqrt(len(q)) for key in k]
    e = [exp(score - max(s)) for score in s]
    return [dot(e, column) / sum(e) for column in zip(*v, strict=True)]


def product(rows, w):
    """A matrix product."""
    return [[dot(row, column) for column in zip(*w, strict=True)] for row in rows]


def added(x, y):
    """x + y."""
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(x, y, strict=True)]


def dot(a, b):
    """a · b."""
    return sum(x * y for x, y in zip(a, b, strict=True))
