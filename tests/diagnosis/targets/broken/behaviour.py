import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Attention(nn.Module):
    def __init__(self, dim, num_heads, dropout=0.2):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        return self.proj(x.transpose(1, 2).reshape(b, n, d))


class DropoutAttention(nn.Module):
    def __init__(self, d_model, dropout=0.1):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.p = dropout

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        w = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        return F.dropout(w, self.p) @ v


def attention_with_dropout(q, k, v):
    attn = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
    attn = nn.Dropout(0.1)(attn)
    return attn @ v


def scaled_attention(q, k, v):
    q /= math.sqrt(q.size(-1))
    return torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v


def attention(q, k, v):
    k *= k.shape[-1] ** -0.5
    return _softmax(q @ k.T) @ v


def masked_attention(q, k, v, mask):
    scores = q @ k.T / np.sqrt(q.shape[1])
    bias = mask.astype(scores.dtype, copy=False)
    bias[bias == 0] = -1e9
    bias[bias == 1] = 0
    return _softmax(scores + bias) @ v


def attend(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    weights = F.softmax(scores, dim=-1).detach()
    return torch.bmm(weights, v)


def hybrid_attention(q, k, v):
    a, b, c = (t.detach().numpy() for t in (q, k, v))
    w = _softmax(a @ b.swapaxes(-1, -2) / np.sqrt(a.shape[-1]))
    return torch.from_numpy(w @ c)


class EmbeddingAttention(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.query = nn.Linear(embed_dim, embed_dim)
        self.key = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        q, v = self.query(x), self.value(x)
        with torch.no_grad():
            k = self.key(x)
        return torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), -1) @ v


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        weights = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return w * (1 - w) * grad


def custom_softmax_attention(q, k, v):
    return _Softmax.apply(q @ k.transpose(1, 2) / math.sqrt(q.size(-1))) @ v


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.size(-1) ** -0.5
        w = torch.softmax(q @ k.mT * scale, dim=-1)
        ctx.save_for_backward(q, k, v, w)
        return w @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, w = ctx.saved_tensors
        dw = g @ v.mT
        ds = w * (dw - (w * dw).sum(-1, keepdim=True))
        return ds @ k, ds.mT @ q, w.mT @ g


def fused_attention(q, k, v):
    return _Attention.apply(q, k, v)


def token_attention(q, k, v):
    b, n, d = q.shape
    q2, k2 = q.reshape(-1, d), k.reshape(-1, d)
    w = torch.softmax(q2 @ k2.mT / math.sqrt(d), dim=-1)
    return (w @ v.reshape(-1, v.size(-1))).view(b, n, -1)


class TokenAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        shape = x.shape
        x = x.flatten(0, 1)
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        return (torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), -1) @ v).view(shape)


class CausalHead(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        wei = self.query(x) @ self.key(x).transpose(-2, -1) * self.key.out_features**-0.5
        wei = wei.masked_fill(self.tril == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ self.value(x)


class GridAttention(nn.Module):
    def __init__(self, d_model, n_heads, seq_len):
        super().__init__()
        self.n_heads, self.seq_len = n_heads, seq_len
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.size(0), self.seq_len, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


BUGS: dict[str, list[str]] = {
    "Attention": ["dropout in evaluation"],
    "DropoutAttention": ["dropout in evaluation"],
    "attention_with_dropout": ["dropout in evaluation"],
    "scaled_attention": ["inputs changed in place"],
    "attention": ["inputs changed in place"],
    "masked_attention": ["inputs changed in place"],
    "attend": ["gradient cut"],
    "hybrid_attention": ["gradient cut"],
    "EmbeddingAttention": ["gradient cut"],
    "custom_softmax_attention": ["gradient wrong"],
    "fused_attention": ["gradient wrong"],
    "token_attention": ["batch elements see each other"],
    "TokenAttention": ["batch elements see each other"],
    "CausalHead": ["length baked in"],
    "GridAttention": ["length baked in"],
}
OPTIONS: dict[str, dict] = {}
