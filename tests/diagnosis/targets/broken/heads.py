import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _attend(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def _split(self, t):
        b, n, _ = t.shape
        return t.view(b, self.num_heads, n, self.d_k)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self._split(self.W_q(x)), self._split(self.W_k(x)), self._split(self.W_v(x))
        out = _attend(q, k, v)
        return self.W_o(out.transpose(1, 2).contiguous().view(b, n, d))


def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads):
    n, d = x.shape
    q, k, v = ((x @ w).reshape(num_heads, n, d // num_heads) for w in (W_q, W_k, W_v))
    w = _softmax(q @ k.transpose(0, 2, 1) / np.sqrt(d // num_heads))
    out = (w @ v).transpose(1, 0, 2).reshape(n, d)
    return out @ W_o


class FusedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q = q.reshape(b * self.heads, -1, c // self.heads)
        k = k.reshape(b * self.heads, -1, c // self.heads)
        v = v.reshape(b * self.heads, -1, c // self.heads)
        out = _attend(q, k, v).view(b, self.heads, n, -1).permute(0, 2, 1, 3)
        return self.to_out(out.reshape(b, n, c))


class MHA(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        b, n, d = x.size()
        qkv = self.qkv_proj(x).reshape(b, n, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        values = _attend(qkv[0], qkv[1], qkv[2])
        values = values.reshape(b, n, d)
        return self.o_proj(values)


def mha(x, Wq, Wk, Wv, Wo, n_heads):
    T, D = x.shape
    q, k, v = ((x @ w).reshape(T, n_heads, D // n_heads).transpose(0, 1) for w in (Wq, Wk, Wv))
    out = _attend(q, k, v)
    return out.reshape(T, D) @ Wo


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, -1).transpose(1, 2)
        k = k.view(B, T, self.n_head, -1).transpose(1, 2)
        v = v.view(B, T, self.n_head, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.contiguous().view(B, T, C))


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, d = x.shape
        q = self.query(x).view(b, n, self.n_heads, -1)
        k = self.key(x).view(b, n, self.n_heads, -1)
        v = self.value(x).view(b, n, self.n_heads, -1)
        return self.out(_attend(q, k, v).reshape(b, n, d))


class LlamaStyleAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (self.n_heads, -1)) for w in (self.wq, self.wk, self.wv))
        scores = torch.einsum("bthd,btgd->bthg", q, k) / math.sqrt(q.shape[-1])
        out = torch.einsum("bthg,btgd->bthd", scores.softmax(-1), v)
        return self.wo(out.flatten(-2))


def grouped_query_attention(q, k, v):
    """q: (batch, heads, n, d); k, v: (batch, kv_heads, n, d)."""
    groups = q.size(1) // k.size(1)
    k = k.repeat(1, groups, 1, 1)
    v = v.repeat(1, groups, 1, 1)
    return _attend(q, k, v)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(d_model, num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(d_model, num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        rep = self.num_heads // self.num_kv_heads
        q = self.q_proj(x).view(b, n, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.num_kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.num_kv_heads, self.head_dim).transpose(1, 2)
        k = torch.cat([k] * rep, dim=1)
        v = torch.cat([v] * rep, dim=1)
        return self.o_proj(_attend(q, k, v).transpose(1, 2).reshape(b, n, d))


class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        return _attend(q, k, v).mean(dim=1)


def multi_head(x, Wq, Wk, Wv, num_heads):
    n = x.shape[0]
    q, k, v = ((x @ w).reshape(n, num_heads, -1).swapaxes(0, 1) for w in (Wq, Wk, Wv))
    heads = _softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])) @ v
    return heads.mean(axis=0)


class _Head(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        return _attend(self.W_query(x), self.W_key(x), self.W_value(x))


class MultiHeadWrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([_Head(d_in, d_out) for _ in range(num_heads)])

    def forward(self, x):
        return sum(head(x) for head in self.heads)


BUGS: dict[str, list[str]] = {
    "MultiHeadAttention": ["heads split without transpose"],
    "multi_head_attention": ["heads split without transpose"],
    "FusedAttention": ["heads split without transpose"],
    "MHA": ["heads merged without transpose"],
    "mha": ["heads merged without transpose"],
    "CausalSelfAttention": ["heads merged without transpose"],
    "SelfAttention": ["heads attend to heads"],
    "LlamaStyleAttention": ["heads attend to heads"],
    "grouped_query_attention": ["groups repeated in the wrong order"],
    "GroupedQueryAttention": ["groups repeated in the wrong order"],
    "MultiHead": ["heads averaged"],
    "multi_head": ["heads averaged"],
    "MultiHeadWrapper": ["heads averaged"],
}
OPTIONS: dict[str, dict] = {}
