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


class _Single(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)


class _Multi(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def _split(self, t):
        return t.view(t.size(0), t.size(1), self.n_heads, -1).transpose(1, 2)


def causal_attention(q, k, v):
    scores = q @ k.T
    scores = np.where(np.tri(len(q), k=-1) > 0, scores, -1e9)
    return _softmax(scores) @ v


class MultiHeadAttention(_Multi):
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, self.n_heads, n, -1) for t in (self.q_proj(x), self.k_proj(x), self.v_proj(x)))
        w = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-2)
        return self.out_proj((w @ v).transpose(1, 2).reshape(b, n, d))


class DropAttention(_Single):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        w = torch.softmax(q @ k.mT, dim=-1)
        return F.dropout(w, 0.1) @ v


class CausalSelfAttention(_Single):
    def forward(self, x):
        q, k = self.W_q(x), self.W_k(x)
        s = q @ k.mT / math.sqrt(q.size(-1))
        w = torch.tril(torch.softmax(s, dim=-1))
        return w @ x


class InteractionAttention(_Multi):
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (
            t.view(b * self.n_heads, -1, d // self.n_heads) for t in (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        )
        return self.out_proj(_attend(q, k, v).reshape(b, n, d))


class MHA(_Multi):
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self._split(self.q_proj(x)), self._split(self.k_proj(x)), self._split(self.v_proj(x))
        w = (q @ k.transpose(2, 3) / math.sqrt(d)).softmax(-1)
        return self.out_proj((w @ v).reshape(b, n, d))


class MultiHead(_Multi):
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self._split(self.q_proj(x)), self._split(self.k_proj(x)), self._split(self.v_proj(x))
        w = (q @ k.mT * d**-0.5).softmax(-1)
        y = (w @ v).transpose(1, 2).reshape(b, n, d)
        return y


def attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / q.size(-1)
    return torch.bmm(F.softmax(scores, dim=1), v)


def attend(q, k, v):
    w = _softmax(q @ k.T / np.sqrt(k.shape[0]))
    return _softmax(w) @ v


def masked_attention(q, k, v, mask):
    scores = (q @ k.mT).masked_fill(mask == 1, -1e9)
    return scores.softmax(-1) @ v


def attention_with_mask(q, k, v, mask):
    scores = q @ k.mT * math.sqrt(q.size(-1))
    return scores.masked_fill(mask == 0, 0.0).softmax(-1) @ v


def causal_multi_head(q, k, v):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    keep = torch.ones_like(scores).tril(1).bool()
    return torch.softmax(scores.masked_fill(~keep, -1e9), dim=1) @ v


def self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wq, x @ Wv
    return torch.softmax(q @ k.mT, -1) @ v


def causal_self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wk
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    hidden = np.triu(np.ones(s.shape[-2:]), 0) > 0
    return _softmax(np.where(hidden, -1e9, s)) @ v


class CausalHead(_Single):
    def forward(self, x):
        n = x.size(1)
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        s = k @ q.mT / math.sqrt(q.size(-1))
        return s.masked_fill(torch.ones(n, n).triu(2).bool(), float("-inf")).softmax(-1) @ v


def numpy_attention(Q, K, V):
    e = np.exp(Q @ K.T)
    return (e / e.sum(axis=1, keepdims=True)) @ V


def scaled_attention(q, k, v):
    q /= q.size(-1)
    return (q @ k.transpose(1, 2)).softmax(-1) @ v


BUGS: dict[str, list[str]] = {
    "causal_attention": ["no root of d", "strict mask"],
    "MultiHeadAttention": ["heads split without transpose", "softmax over queries"],
    "DropAttention": ["dropout in evaluation", "no root of d"],
    "CausalSelfAttention": ["values from the input", "mask after the weights"],
    "InteractionAttention": ["heads split without transpose", "heads merged without transpose"],
    "MHA": ["root of the model width", "heads merged without transpose"],
    "MultiHead": ["output projection forgotten", "root of the model width"],
    "attention": ["d for its root", "softmax over queries"],
    "attend": ["root of the length", "softmax twice"],
    "masked_attention": ["no root of d", "inverted mask"],
    "attention_with_mask": ["times the root of d", "hidden scores set to 0"],
    "causal_multi_head": ["shifted mask", "softmax over heads"],
    "self_attention": ["keys from the queries", "no root of d"],
    "causal_self_attention": ["values from the keys", "strict mask"],
    "CausalHead": ["queries and keys swapped", "shifted mask"],
    "numpy_attention": ["no root of d", "no maximum subtracted"],
    "scaled_attention": ["inputs changed in place", "d for its root"],
}
OPTIONS: dict[str, dict] = {}
