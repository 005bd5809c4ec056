"""Several heads in PyTorch: one product for all of them."""

import torch


def attend(q, k, v):
    """Any number of heads: (..., N, width)."""
    scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ v


def split(a, heads):
    """(N, D) → (heads, N, D / heads)"""
    return a.unflatten(-1, (heads, -1)).transpose(0, 1)


def multihead(x, Wq, Wk, Wv, Wo, heads):
    """Split, attend once, and put side by side again: first exchange the axes, then flatten."""
    q, k, v = (split(x @ W, heads) for W in (Wq, Wk, Wv))
    y = attend(q, k, v)
    return y.transpose(0, 1).flatten(1) @ Wo
