import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _rope(x, start=0):
    n, d = x.shape[-2:]
    t = torch.outer(torch.arange(start, start + n).double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d)).repeat(
        1, 2
    )
    a, b = x.chunk(2, dim=-1)
    return x * t.cos().to(x) + torch.cat((-b, a), dim=-1) * t.sin().to(x)


class _Multi(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def _split(self, t):
        return t.view(t.size(0), t.size(1), self.n_heads, -1).transpose(1, 2)


def rotary_attention(q, k, v):
    q, k, v = _rope(q), _rope(k), _rope(v)
    return torch.softmax(q @ k.mT, dim=-1) @ v


class RotaryAttention(_Multi):
    def forward(self, x):
        q, k, v = self._split(self.wq(x)), self._split(self.wk(x)), self._split(self.wv(x))
        y = F.scaled_dot_product_attention(q, _rope(k), v, is_causal=True)
        return self.wo(y.reshape(x.shape))


class CachedAttention(_Multi):
    def forward(self, x, past=None):
        q, k, v = self._split(self.wq(x)), self._split(self.wk(x)), self._split(self.wv(x))
        start = 0
        q, k = _rope(q, start), _rope(k, start)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        keep = torch.ones(q.size(2), k.size(2)).tril(k.size(2) - q.size(2)).bool()
        w = (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1)
        return self.wo((w @ v).transpose(1, 2).reshape(x.shape)), (k, v)


class TokenMixer(_Multi):
    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (w(x).view(b, n, self.n_heads, -1) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v)
        y = y.reshape(x.shape)
        return y


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads, d = num_heads, num_kv_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, num_heads * d)
        self.k_proj = nn.Linear(d_model, num_kv_heads * d)
        self.v_proj = nn.Linear(d_model, num_kv_heads * d)
        self.o_proj = nn.Linear(num_heads * d, d_model)

    def forward(self, x):
        b, n, c = x.shape
        g = self.num_heads // self.num_kv_heads
        q = self.q_proj(x).view(b, n, self.num_heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.num_kv_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.num_kv_heads, -1).transpose(1, 2)
        k, v = k.repeat(1, g, 1, 1), v.repeat(1, g, 1, 1)
        w = (q @ k.mT / math.sqrt(c)).softmax(-1)
        return self.o_proj((w @ v).transpose(1, 2).reshape(b, n, c))


class CausalHead(nn.Module):
    def __init__(self, n_embd, head_size):
        super().__init__()
        self.query = nn.Linear(n_embd, head_size)
        self.key = nn.Linear(n_embd, head_size)
        self.value = nn.Linear(n_embd, head_size)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        s = q @ k.mT
        w = s.softmax(-1) / q.size(-1) ** 0.5
        return w @ v


def attend(q, k, v):
    scores = q @ k.mT
    return torch.softmax(scores.data, dim=-1) @ v


def batched_attention(q, k, v):
    b, n, d = q.shape
    q, k, v = q.reshape(b * n, d), k.reshape(b * n, d), v.reshape(b * n, -1)
    return torch.softmax(q @ k.mT / d, -1).matmul(v).view(b, n, -1)


def multi_head(x, Wq, Wk, Wv, Wo, num_heads):
    n, d = x.shape
    q, k, v = ((x @ w).reshape(num_heads, n, -1) for w in (Wq, Wk, Wv))
    w = _softmax(q @ k.swapaxes(1, 2))
    return (w @ v).swapaxes(0, 1).reshape(n, d) @ Wo


def sdpa(q, k, v):
    scores = q @ k.mT
    return scores.softmax(-1) @ v, scores


class SelfAttention(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.query = nn.Linear(embed_dim, embed_dim)
        self.key = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        s = self.query(x) @ self.key(x).mT / math.sqrt(x.size(-1))
        return s.softmax(dim=1) @ x


def masked_attention(q, k, v, mask):
    s = q @ k.T / np.sqrt(k.shape[0])
    return (_softmax(s) * mask) @ v


def quick_attention(q, k, v):
    scores = torch.bmm(q.half(), k.half().mT) / math.sqrt(q.size(-1))
    return torch.softmax(scores.to(q.dtype), dim=1) @ v


BUGS: dict[str, list[str]] = {
    "rotary_attention": ["values rotated", "no root of d"],
    "RotaryAttention": ["keys rotated alone", "heads merged without transpose"],
    "CachedAttention": ["positions not moved on", "no root of d"],
    "TokenMixer": ["heads attend to heads", "output projection forgotten"],
    "GroupedQueryAttention": ["groups repeated in the wrong order", "root of the model width"],
    "CausalHead": ["no mask", "scale after the weights"],
    "attend": ["gradient cut", "no root of d"],
    "batched_attention": ["batch elements see each other", "d for its root"],
    "multi_head": ["heads split without transpose", "no root of d"],
    "sdpa": ["returned weights are others", "no root of d"],
    "SelfAttention": ["values from the input", "softmax over queries"],
    "masked_attention": ["mask after the weights", "root of the length"],
    "quick_attention": ["low precision inside", "softmax over queries"],
}
OPTIONS: dict[str, dict] = {}
