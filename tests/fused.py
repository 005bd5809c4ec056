"""What the tests of the fused engine share: where it runs, and how exact it must be.

    ‖found − exact‖  ≤  2 ‖plain − exact‖

`exact` is `dense` in float64 on the same rounded inputs, `plain` is `dense` in float32 with results rounded to the
dtype, the worse of two orders in which the numbers of q and k can be summed: where few pairs decide, one order alone is
a throw of dice, which falls otherwise on every processor. Weights are rounded to the dtype too, which `plain` does not
show: one such rounding of the whole is allowed beside, and some of float32, where `plain` happens to be exact.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or not (INTERPRETED or torch.cuda.is_available()),
    reason="no triton here, or neither its interpreter (TRITON_INTERPRET=1) nor a GPU: pip install 'regard[gpu]'",
)
ROUNDINGS = {torch.float32: 16}  # in units of the whole
SMALLEST = 2e-6  # of each number: what cancels to 0 exactly in one order of sums, does not in another


def tensors(array: Any, dtype: Any = torch.float32) -> Any:
    """An array as a tensor of the dtype on the device; integers and truths as they are."""
    found = torch.as_tensor(np.asarray(array), device=DEVICE)
    return found.to(dtype) if found.is_floating_point() else found


def agrees(attention: rg.Attention, *arrays: Any, dtype: Any = torch.float32, start: Any = None, **tables: Any) -> None:
    """y and all gradients of q, k, v, dy and the tables are as exact as they must be."""
    rounded = [tensors(array, dtype) for array in arrays]
    reads = {name: tensors(table) for name, table in tables.items()}
    with rg.fused(atomics=True):
        found = _results(attention, rounded, reads, "triton", start)
    plains = list(_plains(attention, [x.float() for x in rounded], reads, start))
    wide = {name: x.double() if x.is_floating_point() else x for name, x in reads.items()}
    exact = _results(attention, [x.double() for x in rounded], wide, "dense", start)
    for name, wanted in exact.items():
        got, there = found[name].double(), wanted.isfinite()
        assert torch.equal(got.isfinite(), there), f"{name}: not finite where it should be"
        size = float(wanted[there].norm())
        usual = (plain[name].to(found[name].dtype).double() for plain in plains)
        error, *bounds = (float((x - wanted)[there].norm()) for x in (got, *usual))
        bound = max(bounds)
        floor = ROUNDINGS.get(dtype, 1) * torch.finfo(dtype).eps * size + SMALLEST * wanted.numel() ** 0.5
        assert error <= 2 * bound + floor, f"{name}: off by {error:.2e}, where {2 * bound + floor:.2e} is allowed"


def _plains(attention: rg.Attention, arrays: Any, tables: Any, start: Any) -> Iterator[dict[str, Any]]:
    """`dense` on these arrays, and with the numbers of q and k in reverse, which changes nothing but roundings."""
    yield _results(attention, arrays, tables, "dense", start)
    if all(pair.metric is None for pair in attention.pairs):
        q, k, *rest = arrays
        found = _results(attention, [q.flip(-1), k.flip(-1), *rest], tables, "dense", start)
        yield found | {name: found[name].flip(-1) for name in "qk"}


def _results(attention: rg.Attention, arrays: Any, tables: Any, engine: str, start: Any) -> dict[str, Any]:
    *leaves, dy = (x.detach().clone().requires_grad_() for x in arrays)
    reads = {name: x.detach().clone().requires_grad_(x.is_floating_point()) for name, x in tables.items()}
    y = attention(*leaves, engine=engine, start=start, **reads)
    real = {name: x for name, x in reads.items() if x.requires_grad}
    inputs = [*leaves, *real.values()]
    found = torch.autograd.grad(y, inputs, dy, allow_unused=True, materialize_grads=True)
    return {"y": y.detach(), **dict(zip((*"qkv", *real), found, strict=True))}
