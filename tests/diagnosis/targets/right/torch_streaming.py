"""Functions in PyTorch that never hold all the weights at once, or that write their own backward pass."""

import math

import torch
from torch import Tensor


def online(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Blocks of keys with a running maximum, total and mixture."""
    q = q / math.sqrt(q.shape[-1])
    top = q.new_full((*q.shape[:-1], 1), float("-inf"))
    total = torch.zeros_like(top)
    mixed = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, k.shape[-2], 2):
        block = slice(start, start + 2)
        scores = q @ k[..., block, :].transpose(-2, -1)
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        shrink, grown = torch.exp(top - higher), torch.exp(scores - higher)
        total = total * shrink + grown.sum(-1, keepdim=True)
        mixed = mixed * shrink + grown @ v[..., block, :]
        top = higher
    return mixed / total


def tiles_causal(q: Tensor, k: Tensor, v: Tensor, block: int = 3) -> Tensor:
    """Tiles of queries by tiles of keys; tiles of the future are never touched."""
    outputs = []
    for first in range(0, q.shape[-2], block):
        rows = q[..., first : first + block, :] * q.shape[-1] ** -0.5
        i = torch.arange(first, first + rows.shape[-2])[:, None]
        top = rows.new_full((*rows.shape[:-1], 1), -torch.inf)
        total, mixed = torch.zeros_like(top), rows.new_zeros(*rows.shape[:-1], v.shape[-1])
        for start in range(0, first + rows.shape[-2], block):
            keys, values = k[..., start : start + block, :], v[..., start : start + block, :]
            j = torch.arange(start, start + keys.shape[-2])[None]
            scores = (rows @ keys.transpose(-2, -1)).masked_fill(j > i, -torch.inf)
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            shrink, grown = (top - higher).exp(), (scores - higher).exp()
            total, mixed = total * shrink + grown.sum(-1, keepdim=True), mixed * shrink + grown @ values
            top = higher
        outputs.append(mixed / total)
    return torch.cat(outputs, dim=-2)


def chunks_of_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Full rows, a few queries at a time."""
    parts = [(part @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v for part in q.split(2, dim=-2)]
    return torch.cat(parts, dim=-2)


def merged_by_logarithms(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Two halves of the keys, each with its logsumexp, joined at the end as decoding kernels do."""
    half = (k.shape[-2] + 1) // 2
    outputs, logs = [], []
    for keys, values in ((k[..., :half, :], v[..., :half, :]), (k[..., half:, :], v[..., half:, :])):
        scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
        log = torch.logsumexp(scores, dim=-1, keepdim=True)
        outputs.append(torch.exp(scores - log.nan_to_num(neginf=0.0)) @ values)
        logs.append(log)
    shares = torch.softmax(torch.cat(logs, dim=-1), dim=-1)
    return outputs[0] * shares[..., :1] + outputs[1] * shares[..., 1:]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.shape[-1] ** -0.5
        weights = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return weights @ v

    @staticmethod
    def backward(ctx, d_out):
        q, k, v, weights = ctx.saved_tensors
        d_weights = d_out @ v.transpose(-2, -1)
        d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdim=True)) * ctx.scale
        return d_scores @ k, d_scores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ d_out


def own_backward(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Forward and backward written by hand."""
    return _Attend.apply(q, k, v)
