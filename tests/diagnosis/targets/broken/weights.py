import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    scores = scores - np.max(scores, axis=0, keepdims=True)
    weights = np.exp(scores) / np.sum(np.exp(scores), axis=0, keepdims=True)
    return weights @ V


def batch_attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    return torch.bmm(F.softmax(scores, dim=1), v)


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.softmax = nn.Softmax(dim=1)
        self.scale = 1.0 / math.sqrt(dim)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return self.softmax(q @ k.transpose(1, 2) * self.scale) @ v


class AttentionBlock(nn.Module):
    def __init__(self, n_channels, n_heads):
        super().__init__()
        self.n_heads, self.d_k = n_heads, n_channels // n_heads
        self.qkv = nn.Linear(n_channels, 3 * n_channels)
        self.output = nn.Linear(n_channels, n_channels)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (t.view(batch, length, self.n_heads, self.d_k) for t in self.qkv(x).chunk(3, dim=-1))
        attn = torch.einsum("bihd,bjhd->bijh", q, k) * self.d_k**-0.5
        attn = attn.softmax(dim=1)
        res = torch.einsum("bijh,bjhd->bihd", attn, v)
        return self.output(res.reshape(batch, length, -1))


def multi_head_attention(q, k, v):
    attn = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    attn = torch.softmax(attn, dim=1)
    return attn @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def _heads(self, t):
        return t.view(t.size(0), t.size(1), self.n_heads, self.d_head)

    def forward(self, x):
        q, k, v = self._heads(self.W_q(x)), self._heads(self.W_k(x)), self._heads(self.W_v(x))
        scores = torch.einsum("bqhd,bkhd->bqkh", q, k) / self.d_head**0.5
        weights = scores.softmax(dim=-1)
        return self.W_o(torch.einsum("bqkh,bkhd->bqhd", weights, v).flatten(2))


def luong(query, keys, values):
    energy = torch.matmul(query, keys.transpose(1, 2)) / math.sqrt(keys.size(2))
    alpha = F.softmax(energy, dim=0)
    return torch.matmul(alpha, values)


class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k)
        self.w_k = nn.Linear(d_model, d_k)
        self.w_v = nn.Linear(d_model, d_k)
        self.d_k = d_k

    def forward(self, x):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.d_k**0.5
        probs = torch.exp(scores - scores.amax(0))
        return torch.matmul(probs / probs.sum(0), v)


def attend(q, k, v):
    scores = q @ k.T / np.sqrt(k.shape[1])
    e = np.exp(scores - np.max(scores))
    return (e / np.sum(e)) @ v


def spatial_attention(q, k, v):
    scores = torch.einsum("bhqc,bhkc->bhqk", q * q.shape[-1] ** -0.5, k)
    weights = F.softmax(scores.flatten(2), dim=-1).view(scores.shape)
    return weights @ v


def scaled_dot_product_attention(query, key, value):
    attn_weight = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)))
    attn_weight = torch.softmax(attn_weight, dim=-1)
    attn_weight = F.softmax(attn_weight, dim=-1)
    return attn_weight @ value


class AttentionHead(nn.Module):
    def __init__(self, hidden_size, head_size):
        super().__init__()
        self.q_proj = nn.Linear(hidden_size, head_size)
        self.k_proj = nn.Linear(hidden_size, head_size)
        self.v_proj = nn.Linear(hidden_size, head_size)

    def _similarity(self, x):
        q, k = self.q_proj(x), self.k_proj(x)
        s = q @ k.mT / q.size(-1) ** 0.5
        return s.softmax(-1)

    def forward(self, x):
        return torch.softmax(self._similarity(x), dim=-1) @ self.v_proj(x)


def attention_v3(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return F.log_softmax(scores, dim=-1) @ v


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s = s - s.max(axis=-1, keepdims=True)
    p = s - np.log(np.exp(s).sum(axis=-1, keepdims=True))
    return p @ v


def attention_v2(q, k, v):
    scores = (q @ k.T) / np.sqrt(q.shape[-1])
    weights = np.exp(scores)
    return weights @ v


def stable_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return weights @ v


def attention_v4(q, k, v):
    weights = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    return torch.matmul(weights, v)


def single_head(x, Wq, Wk, Wv):
    Q, K, V = x @ Wq, x @ Wk, x @ Wv
    A = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    return A @ V


def weighted_values(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
    return torch.einsum("bij,bid->bjd", w, v)


def mix(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    w = np.exp(s - s.max(axis=1, keepdims=True))
    w = w / w.sum(axis=1, keepdims=True)
    return w.T @ v


def safe_attention(q, k, v):
    scores = q @ k.T / np.sqrt(k.shape[-1])
    e = np.exp(scores - np.max(scores, axis=0))
    return e / e.sum(axis=1, keepdims=True) @ v


def stable_softmax_attention(q, k, v):
    logits = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[2])
    logits = logits - logits.max(dim=1, keepdim=True)[0]
    weights = logits.exp()
    weights = weights / weights.sum(dim=2, keepdim=True)
    return torch.bmm(weights, v)


BUGS: dict[str, list[str]] = {
    "attention": ["softmax over queries"],
    "batch_attention": ["softmax over queries"],
    "SelfAttention": ["softmax over queries"],
    "AttentionBlock": ["softmax over queries"],
    "multi_head_attention": ["softmax over heads"],
    "MultiHeadAttention": ["softmax over heads"],
    "luong": ["softmax over the batch"],
    "ScaledDotProductAttention": ["softmax over the batch"],
    "attend": ["softmax over all pairs"],
    "spatial_attention": ["softmax over all pairs"],
    "scaled_dot_product_attention": ["softmax twice"],
    "AttentionHead": ["softmax twice"],
    "attention_v3": ["logarithm of the weights"],
    "self_attention": ["logarithm of the weights"],
    "attention_v2": ["no total"],
    "stable_attention": ["no total"],
    "attention_v4": ["scores as weights"],
    "single_head": ["scores as weights"],
    "weighted_values": ["weights transposed"],
    "mix": ["weights transposed"],
    "safe_attention": ["maximum over queries"],
    "stable_softmax_attention": ["maximum over queries"],
}
OPTIONS: dict[str, dict] = {}
