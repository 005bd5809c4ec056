"""Causal modules of small GPTs: single heads in a list, fused projections, 1×1 convolutions, settings in an object."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

n_embd = 12  # names of the whole file, as in scripts that are one file
block_size = 64
dropout = 0.1

_SETTINGS = SimpleNamespace(
    n_embd=12, n_head=3, block_size=64, bias=True, dropout=0.1, attn_pdrop=0.1, resid_pdrop=0.1, n_positions=64
)
OPTIONS = {
    "CausalSelfAttention": {"init": {"config": _SETTINGS}},
    "SeparateProjections": {"init": {"config": _SETTINGS}},
    "ConvolutionAttention": {"init": {"config": _SETTINGS}},
}


class Head(nn.Module):
    """One head; the width of the model is a name of the file."""

    def __init__(self, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        _, T, _ = x.shape
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = self.dropout(F.softmax(wei, dim=-1))
        return wei @ self.value(x)


class MultiHeadAttention(nn.Module):
    """A list of heads, side by side, and a projection back to the model's width."""

    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = nn.ModuleList([Head(head_size) for _ in range(num_heads)])
        self.proj = nn.Linear(head_size * num_heads, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.proj(torch.cat([h(x) for h in self.heads], dim=-1)))


class CausalSelfAttention(nn.Module):
    """Fused projection split in three; PyTorch's kernel."""

    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head, self.n_embd, self.dropout = config.n_head, config.n_embd, config.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class SeparateProjections(nn.Module):
    """key, query, value apart; the triangle is a buffer (1, 1, n, n); an argument for a past that nobody uses."""

    def __init__(self, config):
        super().__init__()
        self.key = nn.Linear(config.n_embd, config.n_embd)
        self.query = nn.Linear(config.n_embd, config.n_embd)
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.attn_drop, self.resid_drop = nn.Dropout(config.attn_pdrop), nn.Dropout(config.resid_pdrop)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        triangle = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("mask", triangle[None, None])
        self.n_head = config.n_head

    def forward(self, x, layer_past=None):
        B, T, C = x.size()
        k = self.key(x).view(B, T, self.n_head, -1).transpose(1, 2)
        q = self.query(x).view(B, T, self.n_head, -1).transpose(1, 2)
        v = self.value(x).view(B, T, self.n_head, -1).transpose(1, 2)
        att = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_drop(F.softmax(att, dim=-1)) @ v
        return self.resid_drop(self.proj(y.transpose(1, 2).reshape(B, T, C)))


class _Conv1D(nn.Module):
    """A linear layer whose weight is (in, out)."""

    def __init__(self, out_width, in_width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_width, out_width) * 0.2)
        self.bias = nn.Parameter(torch.zeros(out_width))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).reshape(*x.shape[:-1], -1)


class ConvolutionAttention(nn.Module):
    """Weights (in, out); an additive attention_mask (batch, 1, 1, keys); keys and values of the past come and go."""

    def __init__(self, config):
        super().__init__()
        n = config.n_positions
        self.register_buffer("bias", torch.tril(torch.ones((n, n), dtype=torch.bool)).view(1, 1, n, n))
        self.num_heads, self.split_size = config.n_head, config.n_embd
        self.head_dim = self.split_size // self.num_heads
        self.c_attn = _Conv1D(3 * self.split_size, self.split_size)
        self.c_proj = _Conv1D(self.split_size, self.split_size)
        self.attn_dropout, self.resid_dropout = nn.Dropout(config.attn_pdrop), nn.Dropout(config.resid_pdrop)

    def _attn(self, query, key, value, attention_mask):
        scores = torch.matmul(query, key.transpose(-1, -2)) / value.size(-1) ** 0.5
        queries, keys = query.size(-2), key.size(-2)
        seen = self.bias[:, :, keys - queries : keys, :keys]
        scores = torch.where(seen, scores, torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype))
        if attention_mask is not None:
            scores = scores + attention_mask
        weights = self.attn_dropout(F.softmax(scores, dim=-1).type(value.dtype))
        return torch.matmul(weights, value), weights

    def forward(self, hidden_states, layer_past=None, attention_mask=None, use_cache=False, output_attentions=False):
        heads = (*hidden_states.shape[:-1], self.num_heads, self.head_dim)
        query, key, value = (
            t.view(heads).permute(0, 2, 1, 3) for t in self.c_attn(hidden_states).split(self.split_size, dim=2)
        )
        if layer_past is not None:
            key, value = torch.cat((layer_past[0], key), dim=-2), torch.cat((layer_past[1], value), dim=-2)
        present = (key, value) if use_cache else None
        out, weights = self._attn(query, key, value, attention_mask)
        out = self.resid_dropout(self.c_proj(out.permute(0, 2, 1, 3).reshape(hidden_states.shape)))
        return (out, present, weights) if output_attentions else (out, present)


class NoSettings(nn.Module):
    """The same idea with plain arguments, no bias, one mask for the call."""

    def __init__(self, d_model, n_heads, max_len=64):
        super().__init__()
        self.n_heads = n_heads
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("causal", torch.ones(max_len, max_len, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        n = x.size(1)
        q, k, v = self.Wqkv(x).unflatten(-1, (3, self.n_heads, -1)).unbind(dim=2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(self.causal[:n, :n], float("-inf"))
        return self.out_proj(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(2))
