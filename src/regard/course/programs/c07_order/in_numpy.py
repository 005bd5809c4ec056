"""Rotary positions in NumPy."""

import numpy as np


def turn(x, base=10000.0):
    """Row i: numbers 2m and 2m + 1 are turned by the angle i · base^(−2m / d)."""
    n, d = x.shape
    speeds = base ** (-2 * np.arange(d // 2) / d)
    angle = np.arange(n)[:, None] * speeds
    a, b = x[:, 0::2], x[:, 1::2]
    turned = np.empty_like(x)
    turned[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    turned[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return turned


def scores(q, k):
    """Every query with every key, both turned."""
    return turn(q) @ turn(k).T / np.sqrt(k.shape[-1])
