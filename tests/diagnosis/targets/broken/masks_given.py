import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v, mask=None):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    weights = _softmax(scores)
    if mask is not None:
        weights = weights * mask
    return weights @ v


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    p_attn = scores.softmax(dim=-1)
    if mask is not None:
        p_attn = p_attn.masked_fill(mask == 0, 0.0)
    return torch.matmul(p_attn, value), p_attn


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask == 1, -1e9)
    return F.softmax(scores, dim=-1) @ v


def attend_with_mask(q, k, v, mask=None):
    scores = torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask.bool(), torch.full_like(scores, -1e9), scores)
    return torch.einsum("bqk,bkd->bqd", scores.softmax(-1), v)


def numpy_masked_attention(q, k, v, mask):
    scores = q @ k.T / np.sqrt(k.shape[-1])
    scores = scores * mask
    return _softmax(scores) @ v


def attention_with_mask(q, k, v, mask=None):
    scores = q @ k.mT * q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), 0)
    return scores.softmax(-1) @ v


def soft_masked_attention(q, k, v, mask=None):
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e4)
    return scores.softmax(-1) @ v


def additive_attention_mask(q, k, v, mask):
    extended = (1.0 - mask.to(q.dtype)) * -100.0
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + extended
    return torch.matmul(scores.softmax(-1), v)


def sdpa(q, k, v, mask=None):
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    if mask is not None:
        scores.masked_fill(mask == 0, -1e9)
    attn = F.softmax(scores, dim=-1)
    return attn @ v, attn


def simple_attention(q, k, v, mask=None):
    return _softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def masked_bmm_attention(q, k, v, mask=None):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask.bool().transpose(-2, -1), -1e9)
    return torch.bmm(scores.softmax(-1), v)


def masked_attend(q, k, v, mask):
    d = q.shape[-1]
    scores = k @ q.T / np.sqrt(d)
    scores = np.where(mask, scores, -1e9).T
    return _softmax(scores) @ v


def padded_attention(q, k, v, mask):
    """mask: (batch, positions), 1 for a token and 0 for padding."""
    scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask.unsqueeze(-1) == 0, -1e9)
    return F.softmax(scores, dim=-1) @ v


class EncoderAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size)
        self.k_proj = nn.Linear(hidden_size, hidden_size)
        self.v_proj = nn.Linear(hidden_size, hidden_size)
        self.o_proj = nn.Linear(hidden_size, hidden_size)

    def _split(self, t):
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, attention_mask=None):
        q, k, v = self._split(self.q_proj(x)), self._split(self.k_proj(x)), self._split(self.v_proj(x))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.size(-1))
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, :, None] == 0, -1e9)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def batch_padded_attention(q, k, v, mask=None):
    """q, k, v: (batch, positions, width); mask: (batch, positions)."""
    scores = torch.matmul(q, k.transpose(-2, -1)) / q.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(scores.softmax(-1), v)


class PaddedSelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.q = nn.Linear(d_model, d_model)
        self.k = nn.Linear(d_model, d_model)
        self.v = nn.Linear(d_model, d_model)

    def forward(self, x, attention_mask=None):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if attention_mask is not None:
            scores = scores + (1 - attention_mask.to(x.dtype)) * -1e9
        return scores.softmax(-1) @ v


def attention_layer(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def numpy_attention(q, k, v, mask):
    scores = np.where(mask, q @ k.T / np.sqrt(k.shape[-1]), -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - top)
    return e / e.sum(axis=-1, keepdims=True) @ v


BUGS: dict[str, list[str]] = {
    "attention": ["mask after the weights"],
    "scaled_dot_product_attention": ["mask after the weights"],
    "masked_attention": ["inverted mask"],
    "attend_with_mask": ["inverted mask"],
    "numpy_masked_attention": ["hidden scores set to 0"],
    "attention_with_mask": ["hidden scores set to 0"],
    "soft_masked_attention": ["finite mask value"],
    "additive_attention_mask": ["finite mask value"],
    "sdpa": ["no mask"],
    "simple_attention": ["no mask"],
    "masked_bmm_attention": ["query and key exchanged"],
    "masked_attend": ["query and key exchanged"],
    "padded_attention": ["padding on queries"],
    "EncoderAttention": ["padding on queries"],
    "batch_padded_attention": ["mask broadcast by accident"],
    "PaddedSelfAttention": ["mask broadcast by accident"],
    "attention_layer": ["empty rows are NaN"],
    "numpy_attention": ["empty rows are NaN"],
}
OPTIONS: dict[str, dict] = {}
