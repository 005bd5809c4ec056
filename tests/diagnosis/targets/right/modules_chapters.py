"""Modules as a book builds them chapter by chapter: parameters, linear layers, a causal buffer, a wrapper, heads."""

import torch
from torch import nn

OPTIONS = {
    "FromSettings": {
        "init": {"cfg": {"emb_dim": 12, "n_heads": 3, "context_length": 64, "drop_rate": 0.0, "qkv_bias": False}}
    },
}


class ParametersAttention(nn.Module):
    """nn.Parameter matrices, a single sentence (tokens, width)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        keys, queries, values = x @ self.W_key, x @ self.W_query, x @ self.W_value
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values


class LinearAttention(nn.Module):
    """The same with nn.Linear."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


class CausalAttention(nn.Module):
    """A batch, and a triangle of the longest context as a buffer."""

    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        tokens = x.shape[1]
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores.masked_fill_(self.mask.bool()[:tokens, :tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        return weights @ values


class MultiHeadAttentionWrapper(nn.Module):
    """A list of single heads side by side; d_out is the width of one; no projection afterwards."""

    def __init__(self, d_in, d_out, context_length, dropout=0.0, num_heads=2, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


class MultiHeadAttention(nn.Module):
    """Heads by view and transpose; d_out is the width of all; a projection afterwards."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, tokens, _ = x.shape
        keys = self.W_key(x).view(b, tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, tokens, self.num_heads, self.head_dim).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:tokens, :tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        context = (weights @ values).transpose(1, 2).contiguous().view(b, tokens, self.d_out)
        return self.out_proj(context)


class FusedQKV(nn.Module):
    """One projection for all three, laid out (3, heads, depth), and PyTorch's own kernel."""

    def __init__(self, d_in, d_out, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.num_heads, self.head_dim, self.d_out = num_heads, d_out // num_heads, d_out
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.proj = nn.Linear(d_out, d_out)
        self.dropout = dropout

    def forward(self, x):
        b, tokens, _ = x.shape
        qkv = self.qkv(x).view(b, tokens, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        queries, keys, values = qkv
        p = self.dropout if self.training else 0.0
        context = nn.functional.scaled_dot_product_attention(queries, keys, values, dropout_p=p, is_causal=True)
        return self.proj(context.transpose(1, 2).contiguous().view(b, tokens, self.d_out))


class TorchsOwn(nn.Module):
    """nn.MultiheadAttention inside, causal, weights asked away."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(d_out, num_heads, dropout=dropout, batch_first=True)
        self.proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def forward(self, x):
        tokens = x.shape[1]
        mask = self.mask[:tokens, :tokens]
        out, _ = self.multihead_attn(x, x, x, attn_mask=mask, need_weights=False)
        return self.proj(out)


class FromSettings(nn.Module):
    """All of the settings in one dictionary."""

    def __init__(self, cfg):
        super().__init__()
        width = cfg["emb_dim"]
        self.heads = cfg["n_heads"]
        self.query = nn.Linear(width, width, bias=cfg["qkv_bias"])
        self.key = nn.Linear(width, width, bias=cfg["qkv_bias"])
        self.value = nn.Linear(width, width, bias=cfg["qkv_bias"])
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(cfg["drop_rate"])
        self.register_buffer("seen", torch.tril(torch.ones(cfg["context_length"], cfg["context_length"])).bool())

    def forward(self, x):
        n = x.shape[1]
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).movedim(2, 1) for f in (self.query, self.key, self.value))
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~self.seen[:n, :n], -torch.inf)
        return self.out((self.drop(scores.softmax(-1)) @ v).movedim(1, 2).flatten(2))
