"""m, Z and y for what was read so far; each block rescales them. One query at a time, one key at a time."""

from math import exp, sqrt


def attend(q, k, v, block):
    return [stream(asked, k, v, block) for asked in q]


def stream(asked, k, v, block):
    root = sqrt(len(asked))
    m, Z, y = float("-inf"), 0.0, [0.0] * len(v[0])
    for first in range(0, len(k), block):
        keys, values = k[first : first + block], v[first : first + block]
        scores = [sum(a * b for a, b in zip(asked, key, strict=True)) / root for key in keys]

        new = max(m, *scores)
        factor = exp(m - new)  # exp(-inf) = 0 before the first block
        Z *= factor
        y = [factor * part for part in y]
        m = new

        for score, value in zip(scores, values, strict=True):
            weight = exp(score - m)
            Z += weight
            y = [part + weight * one for part, one in zip(y, value, strict=True)]
    return [part / Z for part in y]
