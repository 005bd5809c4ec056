"""Mahalanobis distance without any A: tensors."""

import torch


def mahalanobis(x, y, S):
    """√((x − y)ᵀ S⁻¹ (x − y))."""
    apart = x - y
    # S⁻¹ (x − y), without ever writing S⁻¹
    solved = torch.linalg.solve(S, apart)
    return torch.sqrt(apart @ solved)
