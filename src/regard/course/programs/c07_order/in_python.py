"""Rotary positions in plain Python."""

import math


def turn(x, base=10000.0):
    """Row i: numbers 2m and 2m + 1 are turned by the angle i · base^(−2m / d)."""
    d = len(x[0])
    turned = []
    for i, row in enumerate(x):
        new = list(row)
        for m in range(d // 2):
            angle = i * base ** (-2 * m / d)
            a, b = row[2 * m], row[2 * m + 1]
            new[2 * m] = a * math.cos(angle) - b * math.sin(angle)
            new[2 * m + 1] = a * math.sin(angle) + b * math.cos(angle)
        turned.append(new)
    return turned


def scores(q, k):
    """Every query with every key, both turned."""
    q, k = turn(q), turn(k)
    d = len(q[0])
    return [[sum(a * b for a, b in zip(one, other, strict=True)) / math.sqrt(d) for other in k] for one in q]
