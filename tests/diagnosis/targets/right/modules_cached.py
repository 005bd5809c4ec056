"""Causal modules that remember keys and values: handed back and forth, held inside, or in an object of their own."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def _heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _attend(q, k, v):
    """Causal; the last query is at the last key."""
    n, m = q.shape[-2], k.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    later = torch.ones(n, m, dtype=torch.bool, device=q.device).triu(m - n + 1)
    return (scores.masked_fill(later, float("-inf")).softmax(-1) @ v).transpose(1, 2).flatten(2)


class PastInAndOut(nn.Module):
    """past_key_value comes in, and goes out longer: (output, (keys, values))."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, x, past_key_value=None):
        q, k, v = (_heads(f(x), self.num_heads) for f in (self.q_proj, self.k_proj, self.v_proj))
        if past_key_value is not None:
            k = torch.cat([past_key_value[0], k], dim=2)
            v = torch.cat([past_key_value[1], v], dim=2)
        return self.out_proj(_attend(q, k, v)), (k, v)


class OnlyWhenAsked(nn.Module):
    """The output alone, unless use_cache asks for the keys and values."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, past_kv=None, use_cache=False):
        q, k, v = (_heads(t, self.n_heads) for t in self.qkv_proj(x).chunk(3, dim=-1))
        if past_kv is not None:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(past_kv, (k, v), strict=True))
        out = self.o_proj(_attend(q, k, v))
        return (out, (k, v)) if use_cache else out


class HeldInside(nn.Module):
    """Buffers that begin empty and grow while use_cache is true; reset_cache empties them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads = d_out, num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        later = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", later.bool(), persistent=False)
        self.register_buffer("cache_k", None, persistent=False)
        self.register_buffer("cache_v", None, persistent=False)
        self.ptr_current_pos = 0

    def reset_cache(self):
        self.cache_k, self.cache_v, self.ptr_current_pos = None, None, 0

    def forward(self, x, use_cache=False):
        n, start = x.shape[1], 0
        queries, keys, values = (_heads(f(x), self.num_heads) for f in (self.W_query, self.W_key, self.W_value))
        if use_cache:
            if self.cache_k is not None:
                keys, values = torch.cat([self.cache_k, keys], dim=2), torch.cat([self.cache_v, values], dim=2)
            self.cache_k, self.cache_v = keys, values
            start, self.ptr_current_pos = self.ptr_current_pos, self.ptr_current_pos + n
        scores = queries @ keys.transpose(2, 3) / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[start : start + n, : keys.shape[2]], -torch.inf)
        context = self.dropout(torch.softmax(scores, dim=-1)) @ values
        return self.out_proj(context.transpose(1, 2).flatten(2))


class StartPosition(nn.Module):
    """Room for all keys is made once; start_pos says where the new ones go."""

    def __init__(self, dim, n_heads, max_batch_size=8, max_seq_len=64):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.cache_k = torch.zeros(max_batch_size, max_seq_len, n_heads, self.head_dim)
        self.cache_v = torch.zeros(max_batch_size, max_seq_len, n_heads, self.head_dim)

    def forward(self, x, start_pos=0):
        b, n, _ = x.shape
        q, k, v = (f(x).view(b, n, self.n_heads, self.head_dim) for f in (self.wq, self.wk, self.wv))
        with torch.no_grad():
            self.cache_k[:b, start_pos : start_pos + n] = k
            self.cache_v[:b, start_pos : start_pos + n] = v
        k = torch.cat((self.cache_k[:b, :start_pos], k), dim=1)
        v = torch.cat((self.cache_v[:b, :start_pos], v), dim=1)
        return self.wo(_attend(*(t.transpose(1, 2) for t in (q, k, v))))


class _Cache:
    """Keys and values of the tokens so far."""

    def __init__(self):
        self.keys = self.values = None

    def update(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=2)
        return self.keys, self.values

    def __len__(self):
        return 0 if self.keys is None else self.keys.shape[2]


class RotaryWithPast(nn.Module):
    """Rotary by halves, with positions that go on from the length of the past; (output, past) comes back."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.register_buffer("speeds", 10000.0 ** (-torch.arange(0, self.d_head, 2).float() / self.d_head))

    def _rotate(self, x, start):
        angles = torch.outer(torch.arange(start, start + x.shape[-2]).float(), self.speeds)
        first, second = x.chunk(2, dim=-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(self, x, past_key_values=None):
        cache = _Cache() if past_key_values is None else past_key_values
        q, k, v = (_heads(f(x), self.n_heads) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = self._rotate(q, len(cache)), self._rotate(k, len(cache))
        k, v = cache.update(k, v)
        return self.o_proj(_attend(q, k, v)), cache


class KernelWithPast(nn.Module):
    """PyTorch's kernel: causal for the prompt, everything for one token; past as a stacked tensor (2, b, h, n, d)."""

    def __init__(self, hidden_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(hidden_dim, hidden_dim)
        self.key = nn.Linear(hidden_dim, hidden_dim)
        self.value = nn.Linear(hidden_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, x, layer_past=None):
        q, k, v = (_heads(f(x), self.num_heads) for f in (self.query, self.key, self.value))
        if layer_past is not None:
            k, v = torch.cat((layer_past[0], k), dim=-2), torch.cat((layer_past[1], v), dim=-2)
        n, m = q.shape[-2], k.shape[-2]
        seen = torch.ones(n, m, dtype=torch.bool, device=x.device).tril(m - n)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.output(y.transpose(1, 2).flatten(2)), torch.stack((k, v))
