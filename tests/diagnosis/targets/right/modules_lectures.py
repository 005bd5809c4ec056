"""Modules from courses and annotated papers: queries, keys and values come in apart, heads are split in many ways."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadedAttention(nn.Module):
    """Four projections in one ModuleList; mask (batch, queries, keys), 0 hides; the last weights are kept."""

    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        assert d_model % h == 0
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        batch = query.size(0)
        query, key, value = [
            project(x).view(batch, -1, self.h, self.d_k).transpose(1, 2)
            for project, x in zip(self.linears[:3], (query, key, value), strict=True)
        ]
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        self.attn = scores.softmax(dim=-1)
        x = (self.dropout(self.attn) @ value).transpose(1, 2).contiguous()
        return self.linears[-1](x.view(batch, -1, self.h * self.d_k))


def _split(x, num_heads):
    """(b, n, h·d) → (b·h, n, d)."""
    b, n, _ = x.shape
    return x.reshape(b, n, num_heads, -1).permute(0, 2, 1, 3).reshape(b * num_heads, n, -1)


class LengthsAttention(nn.Module):
    """Heads folded into the batch; valid_lens says how many keys count; no bias."""

    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for linear in (self.W_q, self.W_k, self.W_v, self.W_o):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, queries, keys, values, valid_lens=None):
        b = queries.shape[0]
        q = _split(self.W_q(queries), self.num_heads)
        k = _split(self.W_k(keys), self.num_heads)
        v = _split(self.W_v(values), self.num_heads)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        if valid_lens is not None:
            lens = torch.repeat_interleave(valid_lens, self.num_heads, dim=0)
            scores = scores.masked_fill(torch.arange(k.shape[1]) >= lens[:, None, None], -1e6)
        mixed = torch.bmm(self.dropout(F.softmax(scores, dim=-1)), v)
        mixed = mixed.reshape(b, self.num_heads, -1, mixed.shape[-1]).permute(0, 2, 1, 3)
        return self.W_o(mixed.reshape(b, -1, self.num_heads * mixed.shape[-1]))


class _Prepare(nn.Module):
    def __init__(self, d_model, heads, d_k, bias):
        super().__init__()
        self.linear = nn.Linear(d_model, heads * d_k, bias=bias)
        self.heads, self.d_k = heads, d_k

    def forward(self, x):
        return self.linear(x).view(*x.shape[:-1], self.heads, self.d_k)


class SequenceFirst(nn.Module):
    """(tokens, batch, width), keyword arguments only; softmax over axis 1, which is the keys'; mask (i, j, batch)."""

    def __init__(self, heads, d_model, dropout_prob=0.1, bias=True):
        super().__init__()
        self.d_k = d_model // heads
        self.query = _Prepare(d_model, heads, self.d_k, bias)
        self.key = _Prepare(d_model, heads, self.d_k, bias)
        self.value = _Prepare(d_model, heads, self.d_k, True)
        self.softmax = nn.Softmax(dim=1)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout_prob)
        self.scale = 1 / math.sqrt(self.d_k)

    def forward(self, *, query, key, value, mask=None):
        query, key, value = self.query(query), self.key(key), self.value(value)
        scores = torch.einsum("ibhd,jbhd->ijbh", query, key) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(-1) == 0, float("-inf"))
        weights = self.dropout(self.softmax(scores))
        x = torch.einsum("ijbh,jbhd->ibhd", weights, value)
        return self.output(x.reshape(x.shape[0], x.shape[1], -1))


class HeadMajor(nn.Module):
    """Queries, keys and values of one head lie side by side in the fused projection."""

    def __init__(self, input_dim, embed_dim, num_heads):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.qkv_proj = nn.Linear(input_dim, 3 * embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.qkv_proj.weight)
        nn.init.zeros_(self.qkv_proj.bias)

    def forward(self, x, mask=None, return_attention=False):
        b, n, _ = x.size()
        qkv = self.qkv_proj(x).reshape(b, n, self.num_heads, -1).permute(0, 2, 1, 3)
        q, k, v = qkv.chunk(3, dim=-1)
        logits = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        if mask is not None:
            logits = logits.masked_fill(mask == 0, -9e15)
        attention = F.softmax(logits, dim=-1)
        values = torch.matmul(attention, v).permute(0, 2, 1, 3).reshape(b, n, self.embed_dim)
        out = self.o_proj(values)
        return (out, attention) if return_attention else out


class AddAndNorm(nn.Module):
    """Residual and layer norm are inside; widths d_k and d_v are free; the scale is a temperature of q."""

    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.temperature = d_k**0.5
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        b, residual = q.size(0), q
        q = self.w_qs(q).view(b, -1, self.n_head, self.d_k).transpose(1, 2)
        k = self.w_ks(k).view(b, -1, self.n_head, self.d_k).transpose(1, 2)
        v = self.w_vs(v).view(b, -1, self.n_head, self.d_v).transpose(1, 2)
        attn = torch.matmul(q / self.temperature, k.transpose(2, 3))
        if mask is not None:
            attn = attn.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        attn = self.dropout(F.softmax(attn, dim=-1))
        out = torch.matmul(attn, v).transpose(1, 2).flatten(2)
        return self.layer_norm(self.dropout(self.fc(out)) + residual), attn


class CourseworkAttention(nn.Module):
    """key, query, value, proj; attn_mask (queries, keys), 0 hides."""

    def __init__(self, embed_dim, num_heads, dropout=0.1):
        super().__init__()
        self.key = nn.Linear(embed_dim, embed_dim)
        self.query = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.attn_drop = nn.Dropout(dropout)
        self.n_head, self.head_dim = num_heads, embed_dim // num_heads

    def forward(self, query, key, value, attn_mask=None):
        n, s, e = query.shape
        t = value.shape[1]
        keys = self.key(key).reshape(n, t, self.n_head, self.head_dim).permute(0, 2, 3, 1)
        queries = self.query(query).reshape(n, s, self.n_head, self.head_dim).permute(0, 2, 1, 3)
        values = self.value(value).reshape(n, t, self.n_head, self.head_dim).permute(0, 2, 1, 3)
        scores = queries @ keys / math.sqrt(self.head_dim)
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask == 0, -math.inf)
        out = self.attn_drop(F.softmax(scores, dim=3)) @ values
        return self.proj(out.permute(0, 2, 1, 3).reshape(n, s, e))
