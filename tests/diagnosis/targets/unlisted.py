import math

import numpy as np
import torch
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v):
    w = _softmax(q @ k.T / np.sqrt(q.shape[1]))
    return w @ v + q


def batched_attention(q, k, v):
    k, v = k[:, :-1], v[:, :-1]
    return torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.size(-1)), dim=-1) @ v


def sdpa(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return torch.tanh(scores) @ v


def attend(q, k, v):
    w = _softmax(q @ k.T / np.sqrt(k.shape[-1]))
    return (w * w) @ v


def dot_product_attention(q, k, v):
    scores = (q @ k.mT).abs() / math.sqrt(q.size(-1))
    return scores.softmax(-1) @ v


def scaled_attention(q, k, v):
    w = _softmax(q @ k.T / np.sqrt(q.shape[-1]))
    return w @ v[::-1]


class SelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        w = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        return torch.relu(w @ v)


def self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    k = k - 0.5 * np.roll(k, 1, axis=-1)
    return _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def smooth_attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
    w = 0.9 * w + 0.1 / w.size(-1) * w.cumsum(-1)
    return w @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        v = v.flip(1)
        w = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        return self.out((w @ v).transpose(1, 2).reshape(b, n, d))


def masked_attention(q, k, v, mask):
    scores = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(mask == 0, -1e9)
    w = scores.softmax(-1)
    return w @ (v - v.mean(1, keepdim=True))


def numpy_attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    return _softmax(scores + np.arange(scores.shape[1]) % 3) @ v


BUGS: dict[str, list[str]] = {
    "attention": [],
    "batched_attention": [],
    "sdpa": [],
    "attend": [],
    "dot_product_attention": [],
    "scaled_attention": [],
    "SelfAttention": [],
    "self_attention": [],
    "smooth_attention": [],
    "MultiHeadAttention": [],
    "masked_attention": [],
    "numpy_attention": [],
}
OPTIONS: dict[str, dict] = {}
