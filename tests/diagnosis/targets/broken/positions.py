import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _angles(n, d, base=10000.0):
    freqs = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.outer(torch.arange(n, dtype=torch.float64), freqs)


def _rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def _rope(x):
    """Rotary positions on (..., n, d), the first half paired with the second."""
    t = _angles(x.size(-2), x.size(-1)).repeat(1, 2)
    return x * t.cos().to(x) + _rotate_half(x) * t.sin().to(x)


def _rope_pairs(x):
    """Rotary positions on (..., n, d), neighbours paired."""
    t = _angles(x.size(-2), x.size(-1))
    turned = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones_like(t), t)
    return torch.view_as_real(turned).flatten(-2).to(x)


def _np_rope(x):
    n, d = x.shape
    t = np.outer(np.arange(n), 10000.0 ** (-np.arange(0, d, 2) / d))
    a, b = x[:, : d // 2], x[:, d // 2 :]
    return np.concatenate([a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)], axis=1)


def rotary_attention(q, k, v):
    q, k, v = _rope(q), _rope(k), _rope(v)
    return F.scaled_dot_product_attention(q, k, v)


class RotaryAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (w(x).view(b, n, self.n_heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k, v = (_rope_pairs(t) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.wo(out.transpose(1, 2).reshape(b, n, d))


def rope_attention(q, k, v):
    k = _np_rope(k)
    scores = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True) @ v


class RoPEAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        k = _rope(k)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(b, n, d))


def rotary_dot_product(q, k, v):
    q_rot = _rope_pairs(q)
    scores = torch.bmm(q_rot, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    return torch.bmm(scores.softmax(-1), v)


class RotaryHead(nn.Module):
    def __init__(self, d_model, head_dim):
        super().__init__()
        self.q = nn.Linear(d_model, head_dim)
        self.k = nn.Linear(d_model, head_dim)
        self.v = nn.Linear(d_model, head_dim)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q = _rope(q)
        _rope(k)
        return torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1) @ v


def apply_rope_and_attend(q, k, v):
    t = _angles(q.size(-2), q.size(-1)).repeat_interleave(2, dim=-1)
    cos, sin = t.cos().to(q), t.sin().to(q)
    q = q * cos + _rotate_half(q) * sin
    k = k * cos + _rotate_half(k) * sin
    return F.scaled_dot_product_attention(q, k, v)


class RotarySelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        q, k, v = (
            p(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(_rope_pairs(q), _rope(k), v)
        return self.out_proj(y.transpose(1, 2).flatten(2))


BUGS: dict[str, list[str]] = {
    "rotary_attention": ["values rotated"],
    "RotaryAttention": ["values rotated"],
    "rope_attention": ["keys rotated alone"],
    "RoPEAttention": ["keys rotated alone"],
    "rotary_dot_product": ["queries rotated alone"],
    "RotaryHead": ["queries rotated alone"],
    "apply_rope_and_attend": ["pairs of two kinds"],
    "RotarySelfAttention": ["pairs of two kinds"],
}
OPTIONS: dict[str, dict] = {}
