"""m, Z and y for what was read so far; each block rescales them. All queries at once, a block of keys at a time."""

import numpy as np


def attend(q, k, v, block):
    root = np.sqrt(q.shape[-1])
    m = np.full((len(q), 1), -np.inf)
    Z = np.zeros((len(q), 1))
    y = np.zeros((len(q), v.shape[-1]))
    for first in range(0, len(k), block):
        part = slice(first, first + block)
        scores = q @ k[part].T / root  # n × block, and no more

        new = np.maximum(m, scores.max(axis=-1, keepdims=True))
        factor = np.exp(m - new)  # exp(-inf) = 0 before the first block
        weights = np.exp(scores - new)

        Z = factor * Z + weights.sum(axis=-1, keepdims=True)
        y = factor * y + weights @ v[part]
        m = new
    return y / Z
