"""Rotary positions in PyTorch."""

import torch


def turn(x, base=10000.0):
    """Row i: numbers 2m and 2m + 1 are turned by the angle i · base^(−2m / d)."""
    n, d = x.shape
    speeds = base ** (-2 * torch.arange(d // 2, dtype=x.dtype) / d)
    angle = torch.arange(n, dtype=x.dtype)[:, None] * speeds
    a, b = x[:, 0::2], x[:, 1::2]
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, dim=-1).reshape(n, d)


def scores(q, k):
    """Every query with every key, both turned."""
    return turn(q) @ turn(k).T / k.shape[-1] ** 0.5
