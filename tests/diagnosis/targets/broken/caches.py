import math

import torch
import torch.nn.functional as F
from torch import nn


def _rope(x, start=0):
    """Rotary positions from start on, on (..., n, d), the first half paired with the second."""
    n, d = x.shape[-2:]
    freqs = 10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d)
    t = torch.outer(torch.arange(start, start + n, device=x.device), freqs).repeat(1, 2)
    a, b = x.chunk(2, dim=-1)
    return x * t.cos().to(x) + torch.cat((-b, a), dim=-1) * t.sin().to(x)


def _causal(n_q, n_k):
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


class _Heads(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def _project(self, x):
        return tuple(
            p(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )

    def _attend(self, q, k, v):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=_causal(q.size(2), k.size(2)))
        return self.o_proj(y.transpose(1, 2).flatten(2))


class CachedAttention(_Heads):
    def forward(self, x, past=None):
        q, k, v = self._project(x)
        q, k = _rope(q), _rope(k)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        return self._attend(q, k, v), (k, v)


class LlamaAttention(nn.Module):
    def __init__(self, dim, n_heads, max_batch_size=8, max_seq_len=64):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        size = (max_batch_size, n_heads, max_seq_len, self.head_dim)
        self.register_buffer("cache_k", torch.zeros(size), persistent=False)
        self.register_buffer("cache_v", torch.zeros(size), persistent=False)

    def forward(self, x, start_pos):
        b, n, d = x.shape
        q, k, v = (w(x).view(b, n, self.n_heads, self.head_dim).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = _rope(q), _rope(k)
        end = start_pos + n
        self.cache_k[:b, :, start_pos:end] = k.detach()
        self.cache_v[:b, :, start_pos:end] = v.detach()
        k = torch.cat([self.cache_k[:b, :, :start_pos].to(k), k], dim=2)
        v = torch.cat([self.cache_v[:b, :, :start_pos].to(v), v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=_causal(n, end))
        return self.wo(y.transpose(1, 2).reshape(b, n, d))


class RotaryCachedAttention(_Heads):
    def forward(self, x, past=None):
        q, k, v = self._project(x)
        start = 0 if past is None else past[0].shape[2] - 1
        q, k = _rope(q, start), _rope(k, start)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        return self._attend(q, k, v), (k, v)


class StatefulAttention(_Heads):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.register_buffer("cache_k", None, persistent=False)
        self.register_buffer("cache_v", None, persistent=False)
        self.position = 0

    def reset_cache(self):
        self.cache_k, self.cache_v, self.position = None, None, 0

    def forward(self, x, use_cache=False):
        q, k, v = self._project(x)
        start = self.position if use_cache else 0
        q, k = _rope(q, start), _rope(k, start)
        if use_cache:
            if self.cache_k is not None:
                k = torch.cat([self.cache_k, k], dim=2)
                v = torch.cat([self.cache_v, v], dim=2)
            self.cache_k, self.cache_v = k, v
            self.position = k.size(2) + 1
        return self._attend(q, k, v)


class GenerationAttention(_Heads):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.cache = None

    def reset_cache(self):
        self.cache = None

    def forward(self, x, use_cache=False):
        q, k, v = self._project(x)
        q, k = _rope(q), _rope(k)
        if use_cache and self.cache is not None:
            k = torch.cat([self.cache[0], k], dim=2)
            v = torch.cat([self.cache[1], v], dim=2)
        if use_cache:
            self.cache = (k, v)
        return self._attend(q, k, v)


class SelfAttentionWithPast(_Heads):
    def forward(self, x, past=None):
        q, k, v = self._project(x)
        if past is not None:
            k = torch.cat([past[0], k], dim=1)
            v = torch.cat([past[1], v], dim=1)
        return self._attend(q, k, v), (k, v)


class SingleHeadWithPast(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)

    def forward(self, x, past=None):
        q, k, v = self.query(x), self.key(x), self.value(x)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=0), torch.cat((past[1], v), dim=0)
        scores = q @ k.mT / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~_causal(q.size(1), k.size(1)), float("-inf"))
        return scores.softmax(-1) @ v, (k, v)


class StepAttention(_Heads):
    def forward(self, x, past=None):
        q, k, v = self._project(x)
        if past is not None:
            b, h, _, d = q.shape
            k = torch.cat([past[0], k], dim=1).reshape(b, h, -1, d)
            v = torch.cat([past[1], v], dim=1).reshape(b, h, -1, d)
        return self._attend(q, k, v), (k, v)


class CausalAttentionWithPast(_Heads):
    def forward(self, x, past=None):
        q, k, v = self._project(x)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2)), (k, v)


BUGS: dict[str, list[str]] = {
    "CachedAttention": ["positions not moved on"],
    "LlamaAttention": ["positions not moved on"],
    "RotaryCachedAttention": ["position off by one after prefill"],
    "StatefulAttention": ["position off by one after prefill"],
    "GenerationAttention": ["positions not moved on"],
    "SelfAttentionWithPast": ["cache on the wrong axis"],
    "SingleHeadWithPast": ["cache on the wrong axis"],
    "StepAttention": ["cache on the wrong axis"],
    "CausalAttentionWithPast": ["mask in the wrong corner"],
}
OPTIONS: dict[str, dict] = {}
