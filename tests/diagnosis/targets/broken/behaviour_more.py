import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class SelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, batch_size):
        super().__init__()
        self.num_heads, self.head_dim, self.batch_size = num_heads, d_model // num_heads, batch_size
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def _heads(self, t):
        return t.view(self.batch_size, t.size(1), self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        q, k, v = self._heads(self.W_q(x)), self._heads(self.W_k(x)), self._heads(self.W_v(x))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.W_o(y.transpose(1, 2).reshape(x.shape))


def attention(q, k, v):
    q, k, v = q.squeeze(0), k.squeeze(0), v.squeeze(0)
    scores = q @ k.transpose(0, 1) / math.sqrt(q.size(-1))
    return (torch.softmax(scores, dim=-1) @ v).unsqueeze(0)


def smoothed_attention(q, k, v):
    scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
    scores = scores + 0.1 * torch.randn_like(scores)
    return scores.softmax(dim=-1) @ v


class LazyProjection(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.d_model = d_model
        self.qkv = nn.Linear(d_model, 3 * d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        out = torch.softmax(q @ k.mT / math.sqrt(self.d_model), -1) @ v
        return nn.Linear(self.d_model, self.d_model, dtype=x.dtype)(out)


def sdpa_with_weights(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.softmax(-1)
    return weights @ v, scores


def causal_attention(q, k, v):
    scores = q @ k.T / np.sqrt(k.shape[1])
    hidden = np.triu(np.ones_like(scores), 1) > 0
    weights = _softmax(scores)
    out = _softmax(np.where(hidden, -np.inf, scores)) @ v
    return out, weights


def attention_and_map(q, k, v):
    w = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1)), dim=-1)
    return torch.bmm(w, v), w.transpose(1, 2)


class AttentionWithMap(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (p(x).view(b, n, self.n_heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(q, k, v)
        weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, d)), weights


BUGS: dict[str, list[str]] = {
    "SelfAttention": ["batch size baked in"],
    "attention": ["batch size baked in"],
    "smoothed_attention": ["not deterministic"],
    "LazyProjection": ["not deterministic"],
    "sdpa_with_weights": ["returned weights are others"],
    "causal_attention": ["returned weights are others"],
    "attention_and_map": ["returned weights are others"],
    "AttentionWithMap": ["returned weights are others"],
}
OPTIONS: dict[str, dict] = {}
