import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class _Projections(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x):
        n = x.shape[1]
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = attn_weights * self.mask[:n, :n]
        return attn_weights @ values


def causal_attention(q, k, v):
    weights = _softmax(q @ k.T / np.sqrt(q.shape[-1]))
    return np.tril(weights) @ v


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size))[None, None])

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 1, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


def masked_self_attention(q, k, v):
    n = q.size(1)
    future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    scores = torch.where(future, scores, torch.tensor(-1e9, dtype=scores.dtype))
    return torch.bmm(F.softmax(scores, -1), v)


class DecoderAttention(_Projections):
    def forward(self, x):
        n = x.size(1)
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        hidden = torch.triu(torch.ones(n, n, device=x.device), diagonal=0).bool()
        scores = (q @ k.mT / k.size(-1) ** 0.5).masked_fill(hidden, -torch.inf)
        return scores.softmax(-1) @ v


def causal_softmax_attention(q, k, v):
    n = len(q)
    seen = np.tril(np.ones((n, n)), k=-1)
    scores = q @ k.T / np.sqrt(q.shape[1])
    scores = np.where(seen == 0, -1e9, scores)
    return _softmax(scores) @ v


def causal_sdpa(q, k, v):
    n = q.size(-2)
    mask = torch.ones(n, n, dtype=torch.bool, device=q.device).tril(diagonal=1)
    attn = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    return attn.masked_fill(~mask, float("-inf")).softmax(-1) @ v


class MaskedHead(nn.Module):
    def __init__(self, embed_dim, head_dim):
        super().__init__()
        self.query = nn.Linear(embed_dim, head_dim)
        self.key = nn.Linear(embed_dim, head_dim)
        self.value = nn.Linear(embed_dim, head_dim)

    def forward(self, x):
        T = x.shape[1]
        i = torch.arange(T).unsqueeze(1)
        j = torch.arange(T).unsqueeze(0)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(self.key.out_features)
        scores = scores.masked_fill(j > i + 1, float("-inf"))
        return torch.softmax(scores, dim=-1) @ self.value(x)


def autoregressive_attention(q, k, v):
    t = q.shape[1]
    mask = torch.tril(torch.ones(t, t, dtype=q.dtype))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = F.softmax(scores + mask, dim=-1)
    return weights @ v


def causal_self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    future = np.triu(np.ones((x.shape[-2], x.shape[-2])), 1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1]) - future
    return _softmax(scores) @ v


def causal_bmm_attention(Q, K, V):
    _, seq, d_k = Q.size()
    mask = 1 - torch.triu(torch.ones(seq, seq, dtype=Q.dtype), diagonal=1)
    scores = (torch.bmm(Q, K.transpose(1, 2)) / math.sqrt(d_k)) * mask
    return torch.bmm(torch.softmax(scores, dim=-1), V)


class MaskedSelfAttention(_Projections):
    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
        mask = torch.tril(torch.ones_like(scores[0]))
        scores = scores.masked_fill(mask == 0, 1e-9)
        return torch.softmax(scores, dim=-1) @ v


def causal_mha(q, k, v):
    n = q.shape[-2]
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    bias = torch.triu(torch.ones(n, n), diagonal=1) * -10.0
    return torch.einsum("bhij,bhjd->bhid", torch.softmax(scores + bias, -1), v)


class CausalMultiHead(nn.Module):
    def __init__(self, d_model, n_heads, max_len=64):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(max_len, max_len)).bool())

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.n_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        scores.masked_fill(~self.mask[:n, :n], float("-inf"))
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, n, d))


def decoder_attention(q, k, v):
    scores = q @ k.T / np.sqrt(k.shape[1])
    return _softmax(scores) @ v


def causal_attention_4d(q, k, v):
    n = q.size(2)
    allowed = torch.triu(torch.ones(n, n)).bool()
    scores = (q @ k.transpose(2, 3)) * q.size(3) ** -0.5
    return F.softmax(scores.masked_fill(allowed.logical_not(), -torch.inf), dim=3) @ v


def causal_cross_attention(q, k, v):
    n_q, n_k = q.shape[0], k.shape[0]
    mask = np.tril(np.ones((n_q, n_k), dtype=bool))
    scores = np.where(mask, q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    return _softmax(scores) @ v


def causal_decode_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


BUGS: dict[str, list[str]] = {
    "CausalAttention": ["mask after the weights"],
    "causal_attention": ["mask after the weights"],
    "CausalSelfAttention": ["inverted mask"],
    "masked_self_attention": ["inverted mask"],
    "DecoderAttention": ["strict mask"],
    "causal_softmax_attention": ["strict mask"],
    "causal_sdpa": ["shifted mask"],
    "MaskedHead": ["shifted mask"],
    "autoregressive_attention": ["0/1 mask added"],
    "causal_self_attention": ["0/1 mask added"],
    "causal_bmm_attention": ["hidden scores set to 0"],
    "MaskedSelfAttention": ["hidden scores set to 0"],
    "causal_mha": ["finite mask value"],
    "CausalMultiHead": ["no mask"],
    "decoder_attention": ["no mask"],
    "causal_attention_4d": ["query and key exchanged"],
    "causal_cross_attention": ["mask in the wrong corner"],
    "causal_decode_attention": ["mask in the wrong corner"],
}
OPTIONS: dict[str, dict] = {
    "masked_self_attention": {"causal": True},
    "DecoderAttention": {"causal": True},
    "MaskedHead": {"causal": True},
    "autoregressive_attention": {"causal": True},
    "MaskedSelfAttention": {"causal": True},
    "decoder_attention": {"causal": True},
}
