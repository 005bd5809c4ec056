"""Functions of q, k, v and a mask in PyTorch: every meaning and shape that a mask has in public code."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def boolean_admits(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """True may be read; hidden scores are the dtype's least number."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) @ v


def boolean_hides(q, k, v, attn_mask=None):
    """True is hidden, as in nn.MultiheadAttention."""
    scores = torch.matmul(q, k.transpose(-2, -1)) * q.size(-1) ** -0.5
    if attn_mask is not None:
        scores.masked_fill_(attn_mask, -1e9)
    return F.softmax(scores, dim=-1).matmul(v)


def added(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Floats are added: 0 admits, a large negative number or −inf hides."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def zero_hides(q, k, v, mask=None):
    """mask == 0 is hidden by −inf, as most lecture code has it; a row without keys is NaN."""
    logits = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size()[-1])
    if mask is not None:
        logits = logits.masked_fill(mask == 0, float("-inf"))
    weights = F.softmax(logits, dim=-1)
    return torch.matmul(weights, v), weights


def empty_rows_read_nothing(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """True may be read; a row without keys gives zeros."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, dim=-1)) @ v


def renormalised(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Masked after the softmax, then each row is shared out again: the same as masking before."""
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1) * mask
    total = weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    return weights / total @ v


def one_minus_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """A mask of ones and zeros turned into numbers to add."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores + (1.0 - mask.to(scores.dtype)) * -1e9
    return torch.softmax(scores, -1) @ v


def per_batch(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A mask (batch, queries, keys) for all heads: an axis is put in."""
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)


def key_padding(q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
    """(batch, keys), True where a key is padding."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if key_padding_mask is not None:
        scores = scores.masked_fill(key_padding_mask[:, None, None, :], torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ v


def valid_lengths(queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
    """(batch, tokens, width) and how many keys of each sentence count."""
    scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
    if valid_lens is not None:
        places = torch.arange(keys.shape[1], device=keys.device)
        scores = scores.masked_fill(places >= valid_lens[:, None, None], -1e6)
    return torch.bmm(torch.softmax(scores, dim=-1), values)


def fused_kernel_with_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, is_causal: bool = False):
    """PyTorch's own; True admits, floats are added."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal)


def keywords_only(*, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Nothing by place; True admits."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1) @ value


def causal_by_buffer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Lower triangle of ones; the rest −inf."""
    n = q.shape[-2]
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    triangle = torch.tril(torch.ones(n, n, device=q.device))
    return F.softmax(scores.masked_fill(triangle == 0, float("-inf")), dim=-1) @ v


def causal_by_addition(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The upper triangle of −inf is added."""
    n = q.shape[-2]
    future = torch.full((n, n), float("-inf"), dtype=q.dtype, device=q.device).triu(diagonal=1)
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + future, dim=-1) @ v


def causal_by_places(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compared positions; with more keys than queries the last query reads all of them."""
    queries, keys = q.shape[-2], k.shape[-2]
    i = torch.arange(queries, device=q.device)[:, None] + keys - queries
    j = torch.arange(keys, device=q.device)[None, :]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.where(j <= i, -torch.inf).softmax(-1) @ v


def causal_or_not(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """A flag."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        n_q, n_k = scores.shape[-2:]
        later = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).triu(1 + n_k - n_q)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(-1) @ v


def scriptable(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None) -> Tensor:
    """Typed so that TorchScript takes it; True admits."""
    factor = 1.0 / math.sqrt(float(q.size(-1))) if scale is None else scale
    scores = torch.matmul(q, k.transpose(-2, -1)) * factor
    if mask is not None:
        scores = scores.masked_fill(torch.logical_not(mask), -1e30)
    return torch.matmul(torch.softmax(scores, dim=-1), v)
