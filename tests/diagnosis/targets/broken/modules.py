import math

import torch
import torch.nn.functional as F
from torch import nn


class _Base(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def _split(self, t):
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _merge(self, y):
        return self.w_o(y.transpose(1, 2).flatten(2))


class MultiHeadAttention(_Base):
    def forward(self, query, key, value, mask=None):
        q, k, v = self._split(self.w_q(query)), self._split(self.w_k(key)), self._split(self.w_v(value))
        scores = torch.matmul(q, k.transpose(-2, -1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self._merge(torch.matmul(scores.softmax(dim=-1), v))


class MaskedMultiHeadAttention(_Base):
    def forward(self, query, key, value, mask=None):
        q, k, v = self._split(self.w_q(query)), self._split(self.w_k(key)), self._split(self.w_v(value))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask.bool(), -1e9)
        return self._merge(scores.softmax(dim=-1) @ v)


class CrossAttention(_Base):
    def forward(self, query, key, value):
        q, k = self._split(self.w_q(query)), self._split(self.w_k(key))
        v = self._split(self.w_v(key))
        return self._merge(F.scaled_dot_product_attention(q, k, v))


class EncoderDecoderAttention(_Base):
    def forward(self, q, k, v):
        q, k, v = self._split(self.w_q(q)), self._split(self.w_k(k)), self._split(self.w_v(v))
        weights = torch.softmax(q @ k.mT * q.size(-1) ** -0.5, dim=2)
        return self._merge(weights @ v)


class TransformerAttention(_Base):
    def forward(self, x):
        q, k, v = self._split(self.w_q(x)), self._split(self.w_k(x)), self._split(self.w_v(x))
        q = q / x.size(-1)
        return self._merge((q @ k.mT).softmax(-1) @ v)


class ScaledAttention(_Base):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.scale = 0.05

    def forward(self, x):
        q, k, v = self._split(self.w_q(x)), self._split(self.w_k(x)), self._split(self.w_v(x))
        return self._merge((q @ k.mT * self.scale).softmax(-1) @ v)


class HeadProjection(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd // n_head, n_embd // n_head, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.c_proj(y).reshape(B, T, C)


class _CausalHead(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        T = x.size(1)
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(-1)
        return wei @ self.value(x)


class CausalHeads(nn.Module):
    def __init__(self, n_embd, n_head, head_size, block_size):
        super().__init__()
        self.heads = nn.ModuleList([_CausalHead(n_embd, head_size, block_size) for _ in range(n_head)])

    def forward(self, x):
        return torch.stack([h(x) for h in self.heads]).mean(dim=0)


class CausalMultiHead(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.heads = nn.ModuleList([_CausalHead(n_embd, n_embd // n_head, block_size) for _ in range(n_head)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        out = torch.cat([h(x) for h in self.heads], dim=-1)
        self.proj(out)
        return out


def causal_attention(q, k, v):
    mask = torch.triu(torch.ones(8, 8), diagonal=1).bool()
    scores = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(mask, float("-inf"))
    return scores.softmax(-1) @ v


class RelativeAttention(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.bias = nn.Parameter(torch.zeros(max_len, max_len))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / math.sqrt(x.size(-1)) + self.bias
        return scores.softmax(-1) @ self.value(x)


class PairAttention(_Base):
    def forward(self, query, key, value, mask=None):
        q, k, v = self._split(self.w_q(query)), self._split(self.w_k(key)), self._split(self.w_v(value))
        scores = torch.einsum("bhqd,bhkd->bhkq", q, k) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        scores = scores.transpose(-1, -2)
        return self._merge(scores.softmax(-1) @ v)


BUGS: dict[str, list[str]] = {
    "MultiHeadAttention": ["no root of d"],
    "MaskedMultiHeadAttention": ["inverted mask"],
    "CrossAttention": ["values from the keys"],
    "EncoderDecoderAttention": ["softmax over queries"],
    "TransformerAttention": ["model width for its root"],
    "ScaledAttention": ["wrong scale"],
    "HeadProjection": ["output projection per head"],
    "CausalHeads": ["heads averaged"],
    "CausalMultiHead": ["output projection forgotten"],
    "causal_attention": ["length baked in"],
    "RelativeAttention": ["length baked in"],
    "PairAttention": ["query and key exchanged"],
}
OPTIONS: dict[str, dict] = {}
