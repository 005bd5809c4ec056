"""Mahalanobis distance along the axes: arrays."""

import numpy as np


def mahalanobis(x, y, S):
    """‖A (x − y)‖ with A = Λ^(−½) Qᵀ."""
    # S = Q Λ Qᵀ: the axes, and the variance along each
    variances, Q = np.linalg.eigh(S)
    along = (x - y) @ Q
    white = along / np.sqrt(variances)
    return np.linalg.norm(white)
