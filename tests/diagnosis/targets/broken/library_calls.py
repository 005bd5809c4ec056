import math

import torch
import torch.nn.functional as F
from torch import nn


class _Projected(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def _heads(self, x):
        return (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))

    def _merge(self, y):
        return self.out(y.transpose(1, 2).flatten(2))


class CausalBlock(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, x):
        n = x.size(1)
        mask = torch.tril(torch.ones(n, n)).bool()
        out, _ = self.attn(x, x, x, attn_mask=mask, need_weights=False)
        return out


class CausalDecoderLayer(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)

    def forward(self, x):
        n = x.size(1)
        mask = torch.tril(torch.ones(n, n, dtype=x.dtype))
        return self.self_attn(x, x, x, attn_mask=mask)[0]


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, num_heads)

    def forward(self, x):
        """x: (batch, positions, d_model)."""
        out, _ = self.attention(x, x, x)
        return out


class PaddedEncoder(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.mha = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, x, attention_mask=None):
        pad = None if attention_mask is None else attention_mask.bool()
        return self.mha(x, x, x, key_padding_mask=pad)[0]


class CausalSelfAttention(_Projected):
    def forward(self, x):
        q, k, v = self._heads(x)
        n = x.size(1)
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self._merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class CausalMultiHead(_Projected):
    def forward(self, x):
        q, k, v = self._heads(x)
        mask = torch.ones(x.size(1), x.size(1), dtype=x.dtype).tril()
        return self._merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class FlashAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.num_heads, -1).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.reshape(b, n, c))


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=math.sqrt(q.size(-1)))


def efficient_attention(q, k, v):
    q = q / math.sqrt(q.size(-1))
    return F.scaled_dot_product_attention(q, k, v)


def fused_attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, scale=1.0)


def masked_sdpa(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v)


def decoder_sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def bmm_attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    return torch.bmm(F.softmax(scores), v)


class SoftmaxLayerAttention(_Projected):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.softmax = nn.Softmax()

    def forward(self, x):
        q, k, v = self._heads(x)
        return self._merge(self.softmax(q @ k.mT / math.sqrt(q.size(-1))) @ v)


BUGS: dict[str, list[str]] = {
    "CausalBlock": ["inverted mask"],
    "CausalDecoderLayer": ["0/1 mask added"],
    "EncoderLayer": ["batch elements see each other"],
    "PaddedEncoder": ["inverted mask"],
    "CausalSelfAttention": ["inverted mask"],
    "CausalMultiHead": ["0/1 mask added"],
    "FlashAttention": ["heads attend to heads"],
    "sdpa": ["times the root of d"],
    "efficient_attention": ["d for its root"],
    "fused_attention": ["no root of d"],
    "masked_sdpa": ["no mask"],
    "decoder_sdpa": ["no mask"],
    "bmm_attention": ["softmax over the batch"],
    "SoftmaxLayerAttention": ["softmax over heads"],
}
OPTIONS: dict[str, dict] = {
    "decoder_sdpa": {"causal": True},
}
