"""Right first: the error of a peer against float64 on the inputs that are timed.

Forward: some rows of some heads, against all keys. Backward: one head of every batch whole, streamed over rows.
The error is ‖found − exact‖ / ‖exact‖; NaN is never right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .arrays import Arrays
from .formulas import Formula, Pairs, plain

LIMITS = {"forward": 1e-2, "backward": 2e-2}  # what bfloat16 operands lose, and float32 sums do not
ROWS, STRIDE = 16, 512


class Reference:
    """What is exact for a case; computed when it is first asked for, and kept."""

    def __init__(self, formula: Formula, arrays: Arrays) -> None:
        self.formula, self.arrays = formula, arrays
        heads, queries = arrays.q.shape[1:3]
        device = arrays.q.device
        self.heads = torch.tensor(sorted({0, heads // 3, heads - 1}), device=device)
        self.rows = torch.linspace(0, queries - 1, min(ROWS, queries), device=device).round().long()
        self._y: Any = None
        self._grads: dict[str, Any] | None = None

    def forward(self, y: Any) -> dict[str, float]:
        """The error of y."""
        if self._y is None:
            with torch.no_grad():
                self._y = self._attend(self.rows, self.heads)
        return {"y": _error(y[:, self.heads][:, :, self.rows], self._y)}

    def backward(self, grads: list[Any], tell: Callable[[], None]) -> dict[str, float]:
        """The errors of the gradients of q, k, v and the learned tables, in one head."""
        head = self.heads[len(self.heads) // 2 :][:1]
        if self._grads is None:
            self._grads = self._pulled(head, tell)
        found = dict(zip(("dq", "dk", "dv", "dtable"), grads, strict=False))
        return {
            name: _error(grad[head] if name == "dtable" else grad[:, head], self._grads[name])
            for name, grad in found.items()
        }

    def _attend(self, rows: Any, heads: Any) -> Any:
        arrays = self.arrays
        shared = arrays.q.shape[1] // arrays.k.shape[1]
        q, k, v = arrays.q[:, heads][:, :, rows], arrays.k[:, heads // shared], arrays.v[:, heads // shared]
        return self._exact(rows, q.double(), k.double(), v.double(), heads, arrays.x["bias"][heads].double())

    def _exact(self, rows: Any, q: Any, k: Any, v: Any, heads: Any, bias: Any) -> Any:
        """y of some rows of some heads, all in float64."""
        n, x = k.shape[-2], self.arrays.x
        read = {"slopes": x["slopes"][heads].double()[:, None, None], "bias": bias, "ids": x["ids"]}
        first = n - self.arrays.q.shape[-2]
        pairs = Pairs(q, k, rows[:, None] + first, torch.arange(n, device=k.device)[None], read)
        return plain(self.formula, pairs, v)

    def _pulled(self, head: Any, tell: Callable[[], None]) -> dict[str, Any]:
        """Gradients of Σ dy·y over all rows of one head, a stretch of rows at a time."""
        arrays, learned = self.arrays, bool(self.arrays.learned(self.formula))
        q, k, v = (x.detach()[:, head].double() for x in (arrays.q, arrays.k, arrays.v))
        bias = arrays.x["bias"].detach()[head].double()
        held = [k, v, bias] if learned else [k, v]
        sums, dq = [torch.zeros_like(x) for x in held], torch.zeros_like(q)
        for leaf in held:
            leaf.requires_grad_()
        for rows in torch.arange(q.shape[-2], device=q.device).split(STRIDE):
            tell()
            some = q[:, :, rows].requires_grad_()
            y = self._exact(rows, some, k, v, head, bias)
            dq[:, :, rows], *pulled = torch.autograd.grad(y, [some, *held], arrays.dy[:, head][:, :, rows].double())
            sums = [total + grad for total, grad in zip(sums, pulled, strict=True)]
        return dict(zip(("dq", "dk", "dv", "dtable"), (dq, *sums), strict=False))


def right(errors: dict[str, float], direction: str) -> bool:
    """Whether every error is within what the dtype allows; NaN is not."""
    return all(error <= LIMITS[direction] for error in errors.values())


def _error(found: Any, exact: Any) -> float:
    if found is None:
        return float("nan")
    return float((found.double() - exact).norm() / exact.norm().clamp(min=1e-300))
