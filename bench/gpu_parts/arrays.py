"""The arrays of a case: random vectors, and what the formulas read beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .formulas import Formula


@dataclass(frozen=True)
class Arrays:
    """q, k, v, dy, and what the formulas read: slopes, bias, ids."""

    q: Any
    k: Any
    v: Any
    dy: Any
    x: dict[str, Any]

    def learned(self, formula: Formula) -> list[Any]:
        """The tables with a gradient."""
        return [self.x[name] for name in formula.tables if self.x[name].is_floating_point()]


def arrays(
    seed: int, device: str, shape: tuple[int, int, int, int], queries: int, key_heads: int, spread: float, grad: bool
) -> Arrays:
    """Random ones, in bfloat16, and the tables: the biases in float32."""
    batch, heads, n, width = shape
    torch.manual_seed(seed)

    def normal(*size: int) -> Any:
        return torch.randn(*size, device=device, dtype=torch.bfloat16)

    q, k = normal(batch, heads, queries, width) * spread, normal(batch, key_heads, n, width) * spread
    v, dy = normal(batch, key_heads, n, width), normal(batch, heads, queries, width)
    slopes = torch.tensor([2 ** (-8 * (head + 1) / heads) for head in range(heads)], device=device)
    bias = torch.randn(heads, 2 * n - 1, device=device)
    x = {"slopes": slopes, "bias": bias, "ids": packed(batch, n, device)}
    for leaf in (q, k, v, bias) if grad else ():
        leaf.requires_grad_()
    return Arrays(q, k, v, dy, x)


def packed(batch: int, n: int, device: str, count: int = 8) -> Any:
    """Document numbers: `count` documents of unequal length in each entry of the batch."""
    cuts = torch.stack([(torch.randperm(n - 1)[: count - 1] + 1).sort().values for _ in range(batch)])
    return torch.searchsorted(cuts, torch.arange(n).repeat(batch, 1), right=True).to(device)


def share(name: str, n: int, window: int, ids: Any) -> float:
    """The share of all pairs that the mask admits."""
    if name in ("causal", "alibi_causal"):
        return (n + 1) / (2 * n)
    if name == "window":
        width = min(window, n)
        return (n * width - width * (width - 1) / 2) / n**2
    if name == "documents":
        lengths = torch.nn.functional.one_hot(ids).sum(-2).double()
        return float((lengths**2).sum(-1).mean()) / n**2
    return 1.0
