import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V


def manual_softmax_attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    e = torch.exp(scores)
    return torch.bmm(e / e.sum(dim=-1, keepdim=True), v)


class SelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        s = q @ k.mT / math.sqrt(q.size(-1))
        unnormalised = (s).exp()
        return (unnormalised @ v) / unnormalised.sum(-1, keepdim=True)


def self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    return np.exp(s - np.log(np.exp(s).sum(-1, keepdims=True))) @ v


def stable_attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(scores - np.max(scores))
    return (e / np.sum(e, axis=1, keepdims=True)) @ v


def safe_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    scores = scores - scores.max()
    weights = scores.exp()
    return weights @ v / weights.sum(-1, keepdim=True)


def fast_attention(q, k, v):
    scores = (q.half() @ k.half().transpose(1, 2)).to(q.dtype) / math.sqrt(q.size(-1))
    return F.softmax(scores, dim=-1) @ v


def compact_attention(q, k, v):
    scores = (q @ k.T / np.sqrt(k.shape[1])).astype(np.float16)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return (weights @ v).astype(q.dtype)


class MixedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = F.softmax(scores, dim=-1, dtype=torch.bfloat16).to(v.dtype)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


BUGS: dict[str, list[str]] = {
    "attention": ["no maximum subtracted"],
    "manual_softmax_attention": ["no maximum subtracted"],
    "SelfAttention": ["no maximum subtracted"],
    "self_attention": ["no maximum subtracted"],
    "stable_attention": ["one maximum for all rows"],
    "safe_attention": ["one maximum for all rows"],
    "fast_attention": ["low precision inside"],
    "compact_attention": ["low precision inside"],
    "MixedAttention": ["low precision inside"],
}
OPTIONS: dict[str, dict] = {}
