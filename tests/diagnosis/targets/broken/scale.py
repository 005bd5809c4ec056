import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(Q, K, V):
    scores = Q @ K.T
    weights = _softmax(scores)
    return weights @ V


def dot_product_attention(query, key, value):
    scores = torch.matmul(query, key.transpose(-2, -1))
    p_attn = F.softmax(scores, dim=-1)
    return torch.matmul(p_attn, value), p_attn


class SelfAttention(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=False)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=False)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=False)

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        att = torch.bmm(q, k.transpose(1, 2))
        att = torch.softmax(att, dim=2)
        return torch.bmm(att, v)


def self_attention(x, Wq, Wk, Wv):
    q = x @ Wq
    k = x @ Wk
    v = x @ Wv
    w = torch.softmax(torch.einsum("bid,bjd->bij", q, k), dim=-1)
    return torch.einsum("bij,bjd->bid", w, v)


def scaled_attention(q, k, v):
    """Scaled dot-product attention on matrices."""
    d_k = q.shape[1]
    scores = np.matmul(q, k.transpose()) / d_k
    return np.matmul(_softmax(scores), v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = d_model // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q = q * self.scale
        attn = (q @ k.transpose(-2, -1)) * self.scale
        x = (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


def attend(q, k, v):
    d = q.size(-1)
    q, k = q / math.sqrt(d), k / math.sqrt(d)
    return torch.bmm(torch.softmax(torch.bmm(q, k.mT), -1), v)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.query = nn.Linear(embed_dim, embed_dim)
        self.key = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, embed_dim)
        self.fc_out = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        N, L, _ = x.shape
        q = self.query(x).reshape(N, L, self.num_heads, self.head_dim)
        k = self.key(x).reshape(N, L, self.num_heads, self.head_dim)
        v = self.value(x).reshape(N, L, self.num_heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        attention = torch.softmax(energy / (self.embed_dim ** (1 / 2)), dim=3)
        out = torch.einsum("nhql,nlhd->nqhd", attention, v).reshape(N, L, self.embed_dim)
        return self.fc_out(out)


class Head(nn.Module):
    """One head of causal self-attention."""

    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        _, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * C**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        return wei @ self.value(x)


def multi_head(x, W_q, W_k, W_v, W_o, num_heads):
    n, d_model = x.shape
    d_head = d_model // num_heads
    q, k, v = (np.reshape(x @ w, (n, num_heads, d_head)).swapaxes(0, 1) for w in (W_q, W_k, W_v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(d_model)
    heads = _softmax(scores) @ v
    return heads.swapaxes(0, 1).reshape(n, d_model) @ W_o


class MHA(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.d_model, self.h = d_model, h
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.q_proj(x).view(b, n, self.h, -1).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.h, -1).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.h, -1).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / self.d_model
        out = scores.softmax(-1) @ v
        return self.out_proj(out.transpose(1, 2).contiguous().view(b, n, self.d_model))


def numpy_attention(q, k, v):
    scores = q @ k.T / np.sqrt(k.shape[0])
    return _softmax(scores) @ v


def batched_attention(queries, keys, values):
    d = keys.size(1)
    scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
    return torch.bmm(F.softmax(scores, dim=-1), values)


def sdpa(q, k, v):
    scale = math.sqrt(q.shape[-1])
    weights = torch.softmax(q @ k.transpose(-1, -2) * scale, dim=-1)
    return weights @ v


def attention_layer(Q, K, V):
    d_k = K.shape[-1]
    weights = _softmax(Q @ K.T)
    return (weights / np.sqrt(d_k)) @ V


class SingleHead(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scale = keys.shape[-1] ** 0.5
        attn = torch.softmax(queries @ keys.transpose(-2, -1), dim=-1)
        return (attn @ values) / scale


def dot_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / 8.0
    return torch.softmax(scores, dim=-1) @ v


def scaled_dot_product(q, k, v):
    temperature = q.size(-1) ** 0.25
    attn = torch.matmul(q / temperature, k.transpose(2, 3))
    return torch.matmul(F.softmax(attn, dim=-1), v)


def projected_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(x.shape[-1])
    return _softmax(scores) @ v


BUGS: dict[str, list[str]] = {
    "projected_attention": ["root of the model width"],
    "attention": ["no root of d"],
    "dot_product_attention": ["no root of d"],
    "SelfAttention": ["no root of d"],
    "self_attention": ["no root of d"],
    "scaled_attention": ["d for its root"],
    "MultiHeadAttention": ["d for its root"],
    "attend": ["d for its root"],
    "MultiHeadSelfAttention": ["root of the model width"],
    "Head": ["root of the model width"],
    "multi_head": ["root of the model width"],
    "MHA": ["model width for its root"],
    "numpy_attention": ["root of the length"],
    "batched_attention": ["root of the length"],
    "sdpa": ["times the root of d"],
    "attention_layer": ["scale after the weights"],
    "SingleHead": ["scale after the weights"],
    "dot_attention": ["wrong scale"],
    "scaled_dot_product": ["wrong scale"],
}
OPTIONS: dict[str, dict] = {}
