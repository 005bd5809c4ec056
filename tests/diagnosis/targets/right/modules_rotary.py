"""Causal modules with rotary positions, by halves, by neighbours and by complex numbers, and with grouped heads."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def _rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Halves(nn.Module):
    """Component c is paired with c + d/2; q_proj, k_proj, v_proj, o_proj; neighbours share keys and values."""

    def __init__(self, hidden_size, num_heads, num_key_value_heads=None, rope_theta=10000.0):
        super().__init__()
        self.num_heads, self.num_key_value_heads = num_heads, num_key_value_heads or num_heads
        self.head_dim = hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, self.num_key_value_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, self.num_key_value_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * self.head_dim, hidden_size, bias=False)
        inv_freq = 1.0 / rope_theta ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, hidden_states, attention_mask=None, position_ids=None):
        b, n, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        if position_ids is None:
            position_ids = torch.arange(n, device=hidden_states.device)[None]
        angles = position_ids[..., None].float() * self.inv_freq
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        q = q * angles.cos() + _rotate_half(q) * angles.sin()
        k = k * angles.cos() + _rotate_half(k) * angles.sin()
        times = self.num_heads // self.num_key_value_heads
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        later = torch.full_like(scores, torch.finfo(scores.dtype).min).triu(1)
        scores = scores + later if attention_mask is None else scores + attention_mask
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(b, n, -1))


class Neighbours(nn.Module):
    """Components 2c and 2c + 1 are a pair; tables of cosines and sines for the longest context."""

    def __init__(self, d_model, n_heads, max_seq_len=64, theta=10000.0):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        speeds = theta ** (-torch.arange(0, self.d_head, 2) / self.d_head)
        angles = torch.outer(torch.arange(max_seq_len), speeds)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def _rotate(self, x):
        cos, sin = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(self._rotate(q), self._rotate(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


def _repeat_kv(x, n_rep):
    """(b, n, kv, d) → (b, n, kv · n_rep, d), copies next to each other."""
    b, n, kv, d = x.shape
    return x[:, :, :, None, :].expand(b, n, kv, n_rep, d).reshape(b, n, kv * n_rep, d)


class ComplexNumbers(nn.Module):
    """wq, wk, wv, wo; pairs are complex numbers; keys and values stay in buffers from start_pos on."""

    def __init__(self, dim, n_heads, n_kv_heads=None, max_batch_size=8, max_seq_len=64):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads or n_heads, dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)
        cache = torch.zeros(max_batch_size, max_seq_len, self.n_kv_heads, self.head_dim)
        self.register_buffer("cache_k", cache, persistent=False)
        self.register_buffer("cache_v", cache.clone(), persistent=False)
        speeds = 10000.0 ** (-torch.arange(0, self.head_dim, 2).float() / self.head_dim)
        angles = torch.outer(torch.arange(max_seq_len).float(), speeds)
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def _rotate(self, x, start_pos):
        turned = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        turned = turned * self.freqs_cis[start_pos : start_pos + x.shape[1], None, :]
        return torch.view_as_real(turned).flatten(3).type_as(x)

    def forward(self, x, start_pos=0):
        b, n, _ = x.shape
        xq = self._rotate(self.wq(x).view(b, n, self.n_heads, self.head_dim), start_pos)
        xk = self._rotate(self.wk(x).view(b, n, self.n_kv_heads, self.head_dim), start_pos)
        xv = self.wv(x).view(b, n, self.n_kv_heads, self.head_dim)
        end = start_pos + n
        self.cache_k[:b, start_pos:end] = xk.detach()
        self.cache_v[:b, start_pos:end] = xv.detach()
        keys = torch.cat((self.cache_k[:b, :start_pos], xk), dim=1)
        values = torch.cat((self.cache_v[:b, :start_pos], xv), dim=1)
        times = self.n_heads // self.n_kv_heads
        q, k, v = (t.transpose(1, 2) for t in (xq, _repeat_kv(keys, times), _repeat_kv(values, times)))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        later = torch.full((n, n), float("-inf"), device=x.device).triu(1)
        scores = scores + torch.hstack([torch.zeros(n, start_pos, device=x.device), later])
        out = F.softmax(scores.float(), dim=-1).type_as(q) @ v
        return self.wo(out.transpose(1, 2).reshape(b, n, -1))


class GroupedByEinsum(nn.Module):
    """Groups of query heads as an axis of their own; no positions; both ways."""

    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.d_head = num_heads, num_kv_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.v_proj = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.o_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (self.num_kv_heads, -1, self.d_head))
        k = self.k_proj(x).unflatten(-1, (self.num_kv_heads, self.d_head))
        v = self.v_proj(x).unflatten(-1, (self.num_kv_heads, self.d_head))
        weights = (torch.einsum("bikgd,bjkd->bkgij", q, k) / self.d_head**0.5).softmax(-1)
        return self.o_proj(torch.einsum("bkgij,bjkd->bikgd", weights, v).flatten(2))


class GroupedByKernel(nn.Module):
    """PyTorch's kernel repeats the heads; causal."""

    def __init__(self, d_model, n_heads, n_kv_groups):
        super().__init__()
        self.d_head = d_model // n_heads
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, n_kv_groups * self.d_head, bias=False)
        self.W_value = nn.Linear(d_model, n_kv_groups * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        layers = (self.W_query, self.W_key, self.W_value)
        q, k, v = (layer(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2) for layer in layers)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out_proj(y.transpose(1, 2).flatten(2))
