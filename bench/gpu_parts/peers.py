"""regard and those it stands beside, each as a function without arguments that gives y."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import regard as rg

from .arrays import Arrays
from .formulas import Formula, Pairs, plain

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
MATRICES = {"forward": 4, "backward": 8}  # of float32, N × N, that eager holds at its peak, about


class NotDoneError(RuntimeError):
    """A peer that is left out, with the reason."""


@dataclass(frozen=True)
class Runner:
    """One peer on one case: y = call(); the gradients of `leaves`; `within` holds its choices while it runs."""

    call: Callable[[], Any]
    leaves: list[Any]
    exact: bool = True  # whether it computes this formula
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    plan: Callable[[], str] = str  # what it says of itself


@dataclass(frozen=True)
class Here:
    """What peers are on this machine: the GPU's, or those that stand in for them in a rehearsal."""

    device: str
    engine: str
    rehearsal: bool


GPU = Here("cuda", "triton", rehearsal=False)
CPU = Here("cpu", "tiled", rehearsal=True)


@contextmanager
def template(name: str) -> Iterator[None]:
    """Calls within use this template of the fused engine: "auto", or "triton" in place of Gluon's."""
    with rg.fused(template=None if name == "auto" else name):
        yield


def runner(peer: str, formula: Formula, arrays: Arrays, direction: str, here: Here) -> Runner:
    """The peer, ready to be called; what it compiles, it compiles at its first call."""
    if peer in ("regard", "regard_triton"):
        return _regard(formula, arrays, here, "auto" if peer == "regard" else "triton")
    if peer in BACKENDS:
        return _kernel(BACKENDS[peer], formula, arrays, here)
    torch._dynamo.reset()  # each case is compiled afresh: no limit of recompilations, no dynamic shapes
    if peer == "flex":
        return _flex(formula, arrays, here)
    return _eager(formula, arrays, direction, here, compiled=peer == "compiled")


def _regard(formula: Formula, arrays: Arrays, here: Here, name: str) -> Runner:
    tables = {table: arrays.x[table] for table in formula.tables}

    def call() -> Any:
        return formula.regard(arrays.q, arrays.k, arrays.v, engine=here.engine, **tables)

    def plan() -> str:
        said = str(formula.regard.plan(arrays.q, arrays.k, arrays.v, engine=here.engine, **tables))
        return next((line for line in said.splitlines() if line.startswith(here.engine)), said)

    within = nullcontext if here.rehearsal else lambda: template(name)
    return Runner(call, _leaves(formula, arrays), within=within, plan=plan)


def _kernel(backend: SDPBackend, formula: Formula, arrays: Arrays, here: Here) -> Runner:
    chosen = SDPBackend.MATH if here.rehearsal else backend
    grouped = arrays.q.shape[1] != arrays.k.shape[1]

    def call() -> Any:
        with sdpa_kernel(chosen):
            return scaled_dot_product_attention(
                arrays.q, arrays.k, arrays.v, is_causal=formula.is_causal, enable_gqa=grouped
            )

    return Runner(call, [arrays.q, arrays.k, arrays.v], exact=formula.exact)


def _flex(formula: Formula, arrays: Arrays, here: Here) -> Runner:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if formula.flex is None:
        raise NotDoneError("FlexAttention divides by a sum of exponentials")
    if here.rehearsal and arrays.q.requires_grad:
        raise NotDoneError("FlexAttention has no backward pass on a CPU")
    modified, blocks = formula.flex, None
    if formula.mask_mod is not None:
        n, batch = arrays.k.shape[-2], arrays.q.shape[0] if "ids" in formula.tables else None
        mod = formula.mask_mod(arrays.x)
        blocks = create_block_mask(mod, batch, None, n, n, device=here.device, _compile=n > 16384)
    grouped = arrays.q.shape[1] != arrays.k.shape[1]

    def attend(q: Any, k: Any, v: Any, x: dict[str, Any]) -> Any:
        q, k, mod, scale = modified(q, k, x)
        return flex_attention(
            q, k, v, score_mod=mod, block_mask=blocks, scale=scale, enable_gqa=grouped, kernel_options=formula.fitted
        )

    def compiled(function: Any) -> Any:
        return function if here.rehearsal else torch.compile(function, dynamic=False, fullgraph=True)

    run, before = compiled(attend), None if formula.before is None else compiled(formula.before)

    def call() -> Any:
        read = arrays.x if before is None else arrays.x | before(arrays.k)
        return run(arrays.q, arrays.k, arrays.v, read)

    return Runner(call, _leaves(formula, arrays))


def _eager(formula: Formula, arrays: Arrays, direction: str, here: Here, *, compiled: bool) -> Runner:
    batch, heads, queries, _ = arrays.q.shape
    n = arrays.k.shape[-2]
    needs = batch * heads * queries * n * 4 * MATRICES[direction]
    if not here.rehearsal and needs > torch.cuda.get_device_properties(0).total_memory:
        raise NotDoneError(f"N × N: about {needs / 2**30:.0f} GiB")

    def attend(q: Any, k: Any, v: Any, x: dict[str, Any]) -> Any:
        at = torch.arange(n, device=q.device)
        x = {**x, "slopes": x["slopes"][:, None, None]}
        return plain(formula, Pairs(q, k, at[:, None], at[None], x), v)

    run = torch.compile(attend, dynamic=False) if compiled and not here.rehearsal else attend
    return Runner(lambda: run(arrays.q, arrays.k, arrays.v, arrays.x), _leaves(formula, arrays))


def _leaves(formula: Formula, arrays: Arrays) -> list[Any]:
    return [arrays.q, arrays.k, arrays.v, *arrays.learned(formula)]
