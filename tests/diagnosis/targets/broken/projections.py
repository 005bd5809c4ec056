import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(Q, K, V):
    scores = np.dot(Q, K) / np.sqrt(K.shape[1])
    return np.dot(_softmax(scores), V)


def batched_attention(q, k, v):
    b, n, d = k.shape
    scores = torch.bmm(q, k.reshape(b, d, n)) / math.sqrt(d)
    return torch.bmm(scores.softmax(-1), v)


class DotAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, v = self.query(x), self.value(x)
        k = self.key(x).view(x.size(0), x.size(2), x.size(1))
        return torch.softmax(q @ k / math.sqrt(x.size(-1)), -1) @ v


class SelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = k @ q.transpose(-2, -1) / math.sqrt(k.size(-1))
        return scores.softmax(dim=-1) @ v


def self_attention(x, W_q, W_k, W_v):
    K, Q, V = x @ W_q, x @ W_k, x @ W_v
    return _softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) @ V


class CausalHead(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        T = x.size(1)
        k, q, v = self.key(x), self.query(x), self.value(x)
        wei = torch.einsum("bid,bjd->bji", q, k) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(-1)
        return wei @ v


class SimpleSelfAttention(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.scale = embed_dim**-0.5

    def forward(self, x):
        weights = torch.softmax(self.q_proj(x) @ self.k_proj(x).transpose(1, 2) * self.scale, dim=-1)
        return torch.matmul(weights, x)


def attention_layer(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    attn = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(v.size(-1)), dim=-1)
    return attn @ x


def attend(query, key, value):
    weights = _softmax(query @ key.T / np.sqrt(key.shape[-1]))
    return weights @ key


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def _heads(self, t):
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self._heads(self.w_q(x)), self._heads(self.w_k(x)), self._heads(self.w_k(x))
        return self.w_o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def project_and_attend(x, wq, wk, wv):
    q = np.einsum("...ni,ij->...nj", x, wq)
    k = np.einsum("...ni,ij->...nj", x, wk)
    v = np.einsum("...ni,ij->...nj", x, wk)
    s = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("...ij,...jd->...id", _softmax(s), v)


class AttentionHead(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)

    def forward(self, x):
        queries = self.W_query(x)
        keys = self.W_query(x)
        values = self.W_value(x)
        scores = queries @ keys.mT
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


def single_head(X, WQ, WK, WV):
    Q = X @ WQ
    K = X @ WQ
    V = X @ WV
    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1) @ V


class MHA(nn.Module):
    def __init__(self, hidden_dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.fc_q = nn.Linear(hidden_dim, hidden_dim)
        self.fc_k = nn.Linear(hidden_dim, hidden_dim)
        self.fc_v = nn.Linear(hidden_dim, hidden_dim)
        self.fc_o = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (f(x).view(b, n, self.n_heads, -1).permute(0, 2, 1, 3) for f in (self.fc_q, self.fc_k, self.fc_v))
        energy = q @ k.permute(0, 1, 3, 2) / math.sqrt(q.size(-1))
        y = (energy.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(b, n, d)
        return y


def attention_with_output(x, Wq, Wk, Wv, Wo):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    y = _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v
    y @ Wo
    return y


class HeadwiseAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(self.head_dim, self.head_dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (p(x).view(b, n, self.num_heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        out = F.scaled_dot_product_attention(q, k, v)
        out = self.out_proj(out)
        return out.transpose(1, 2).reshape(b, n, d)


BUGS: dict[str, list[str]] = {
    "attention": ["key not transposed"],
    "batched_attention": ["key not transposed"],
    "DotAttention": ["key not transposed"],
    "SelfAttention": ["queries and keys swapped"],
    "self_attention": ["queries and keys swapped"],
    "CausalHead": ["queries and keys swapped"],
    "SimpleSelfAttention": ["values from the input"],
    "attention_layer": ["values from the input"],
    "attend": ["values from the keys"],
    "MultiHeadAttention": ["values from the keys"],
    "project_and_attend": ["values from the keys"],
    "AttentionHead": ["keys from the queries"],
    "single_head": ["keys from the queries"],
    "MHA": ["output projection forgotten"],
    "attention_with_output": ["output projection forgotten"],
    "HeadwiseAttention": ["output projection per head"],
}
OPTIONS: dict[str, dict] = {}
