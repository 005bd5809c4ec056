"""Softmax of scores that depend on the places, in PyTorch: slopes, tables, windows."""

import math

import torch
from torch import Tensor, nn

FORMULAS = {
    "alibi": "alibi",
    "AlibiAttention": "alibi",
    "PublishedSlopes": "alibi",
    "t5_attention": "t5_bias",
    "RelativeBias": "",  # its table is set to 0: right, and no more is known of it
    "sliding_window": "sliding_window",
    "two_sided_window": "sliding_window",
    "WindowAttention": "sliding_window",
}


def _places(q: Tensor, k: Tensor) -> Tensor:
    """i − j, the last query being at the last key."""
    n, m = q.shape[-2], k.shape[-2]
    return torch.arange(m - n, m, device=q.device)[:, None] - torch.arange(m, device=q.device)[None, :]


def _heads(layer: nn.Linear, n_heads: int, x: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.unflatten(-1, (n_heads, -1)).transpose(1, 2) for t in layer(x).chunk(3, dim=-1))


def _alibi(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Tensor:
    distance = _places(q, k)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) - slopes[:, None, None] * distance
    return scores.masked_fill(distance < 0, -torch.inf).softmax(-1) @ v


def alibi(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(batch, heads, tokens, depth), causal; slopes 2^(−8 (h + 1) / H)."""
    slopes = 2.0 ** (-8.0 * torch.arange(1, q.shape[1] + 1, dtype=q.dtype) / q.shape[1])
    return _alibi(q, k, v, slopes)


class AlibiAttention(nn.Module):
    """The same as a module; the penalty is built up to the longest context."""

    def __init__(self, d_model, num_heads, max_len=64):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        slopes = torch.tensor([2 ** (-8 / num_heads * (h + 1)) for h in range(num_heads)])
        places = torch.arange(max_len)
        penalty = slopes.view(-1, 1, 1) * (places[None, :] - places[:, None])
        later = torch.ones(max_len, max_len, dtype=torch.bool).triu(1)
        self.register_buffer("penalty", penalty.masked_fill(later, -torch.inf))

    def forward(self, x):
        n = x.shape[1]
        q, k, v = _heads(self.qkv, self.num_heads, x)
        weights = (q @ k.mT / math.sqrt(q.shape[-1]) + self.penalty[:, :n, :n]).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


def _published_slopes(heads: int) -> list[float]:
    """Between powers of two: those of the power below, then every other one of the power above."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2 ** (-4 * (h + 1) / power) for h in range(0, 2 * (heads - power), 2)]


class PublishedSlopes(nn.Module):
    """Slopes by the published rule, which differs from 2^(−8 (h + 1) / H) where H is no power of two."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.register_buffer("slopes", torch.tensor(_published_slopes(n_heads)))

    def forward(self, x):
        q, k, v = _heads(self.in_proj, self.n_heads, x)
        return self.out_proj(_alibi(q, k, v, self.slopes).transpose(1, 2).flatten(2))


def t5_attention(q: Tensor, k: Tensor, v: Tensor, position_bias: Tensor | None = None) -> Tensor:
    """No scale; the bias (heads, queries, keys) is handed over."""
    scores = q @ k.transpose(-2, -1)
    if position_bias is not None:
        scores = scores + position_bias
    return scores.softmax(-1) @ v


class RelativeBias(nn.Module):
    """A learned number for each head and offset within the reach of max_len."""

    def __init__(self, d_model, num_heads, max_len=64):
        super().__init__()
        self.num_heads, self.max_len = num_heads, max_len
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model)
        self.relative_bias = nn.Parameter(torch.randn(num_heads, 2 * max_len - 1))

    def forward(self, x):
        q, k, v = _heads(self.qkv, self.num_heads, x)
        bias = self.relative_bias[:, _places(q, k) + self.max_len - 1]
        weights = (q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


def sliding_window(q: Tensor, k: Tensor, v: Tensor, window: int = 3) -> Tensor:
    """A query reads itself and window − 1 before it."""
    distance = _places(q, k)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill((distance < 0) | (distance >= window), -torch.inf).softmax(-1) @ v


def two_sided_window(q: Tensor, k: Tensor, v: Tensor, radius: int = 2) -> Tensor:
    """A query reads what is at most radius away, before and after."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(_places(q, k).abs() > radius, float("-inf")).softmax(-1) @ v


class WindowAttention(nn.Module):
    """A causal window in a module."""

    def __init__(self, d_model, n_heads, window_size=3):
        super().__init__()
        self.n_heads, self.window_size = n_heads, window_size
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = _heads(self.qkv, self.n_heads, x)
        return self.out(sliding_window(q, k, v, self.window_size).transpose(1, 2).flatten(2))
