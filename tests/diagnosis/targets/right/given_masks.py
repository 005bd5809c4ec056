"""Masks whose meaning only the arithmetic says: 1 is multiplied by −1e9 and hides; what is added is added."""

import math

import numpy as np
import torch


def _softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attend(q, k, v, mask):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = scores + mask * -1e9
    return _softmax(scores) @ v


def dot_product_attention(q, k, v, mask=None):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(2))
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    return torch.bmm(torch.softmax(scores, -1), v)
