"""An attention with two mistakes, which docs/check.md looks for."""

import numpy as np


def attend(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2)
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True) @ v
