"""The public face: a formula that runs.

    y_i = Σ_j w_ij v_j        w_ij = ψ(s_ij) / Z_i        s_ij = score(q_i, k_j, i, j, h, b)

Every call passes one door (engines.call) and one plan (engines.plan), then one engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from ._arrays import as_array, is_array, library
from .algebra.errors import CallError, KindError
from .algebra.expressions import Expression, Mask
from .algebra.formula import Formula
from .algebra.parsing import parse as parse_value
from .algebra.symbols import d, dot, sqrt
from .algebra.weights import Weight, softmax
from .engines.call import Call, prepare
from .engines.graph import FUNCTIONS, be_ready, is_traced, node
from .engines.plan import Plan, choose, engine_for
from .parts import Parts
from .trace import Trace

Watcher = Callable[[Call], None]
_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Let a function see every call of an attention in this context, before it runs; calls in a compiled graph not."""
    token = _WATCHERS.set((*_WATCHERS.get(), watcher))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


class Gradients(tuple[Any, ...]):
    """dq, dk, dv, as a tuple of three; the gradients of tables are in `tables`, or by name: `grads["bias"]`."""

    tables: dict[str, Any]

    def __new__(cls, q: Any, k: Any, v: Any, tables: dict[str, Any]) -> Gradients:
        made = super().__new__(cls, (q, k, v))
        made.tables = tables
        return made

    q = property(lambda self: tuple.__getitem__(self, 0), doc="The gradient of q.")
    k = property(lambda self: tuple.__getitem__(self, 1), doc="The gradient of k.")
    v = property(lambda self: tuple.__getitem__(self, 2), doc="The gradient of v.")

    def __getitem__(self, key: Any) -> Any:
        return self.tables[key] if isinstance(key, str) else super().__getitem__(key)


class Attention(Formula):
    """An attention, written once: y_i = Σ_j w_ij v_j with w_ij = ψ(score) / Z_i.

    score:  what compares a query with a key; q·k / √d unless said otherwise
    weight: how a score becomes a weight; softmax unless said otherwise
    mask:   the pairs that are admitted; all unless said otherwise

    Call it on arrays (…, positions, width) of NumPy, PyTorch or JAX, or on nested lists; the same kind comes out.
    Axis −3 is the head `h`, axes before it the batch `b`; three axes are one head. Tables are arguments by name.
    """

    text: str

    def __init__(self, score: object = dot / sqrt(d), weight: object = softmax, mask: object = None) -> None:
        super().__init__(score, weight, mask)
        object.__setattr__(self, "text", repr(self))  # what a compiler's graph holds of it
        be_ready()

    def __call__(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        start: Any = None,
        dropout: Any = 0.0,
        seed: Any = None,
        totals: bool = False,
        engine: str = "auto",
        **tables: Any,
    ) -> Any:
        """y, with one row for each query.

        start:   the position of the first query; the queries are the last rows of the keys unless said otherwise
        dropout: the share p of weights to drop; those that stay are multiplied by 1 / (1 − p), and Z is as without
        seed:    which weights are dropped: an integer, or an integer array of rank 0 from the library of q; drawn
                 from the random state of PyTorch or NumPy unless said otherwise, and needed for JAX
        totals:  also return log Z of each row (Z itself where ψ is no exponential)
        engine:  "auto", "sdpa", "triton", "tiled", "dense" or "python"; one that is named is used or refused
        """
        if is_traced():
            options = {"start": start, "dropout": dropout, "seed": seed, "totals": totals, "engine": engine}
            return node("attention", self.text, q, k, v, **options, **tables)
        call = prepare(self, q, k, as_array(v, "v"), start=start, dropout=dropout, seed=seed, tables=tables)
        for watcher in _WATCHERS.get():
            watcher(call)
        steps = engine_for(call, engine, "totals" if totals else "y").attend(call)
        y = steps.y if steps.y.dtype == call.dtype else call.xp.astype(steps.y, call.dtype)
        y = call.restore(y, call.queries, int(call.given["v"].shape[-1]))
        return (y, _restored_totals(steps)) if totals else y

    def scores(self, q: Any, k: Any, *, start: Any = None, engine: str = "auto", **tables: Any) -> Any:
        """s_ij for every pair of a query and a key, whether or not the mask admits it."""
        call = prepare(self, q, k, start=start, tables=tables)
        return call.restore(engine_for(call, engine, "matrices").scores(call), call.queries, call.keys)

    def weights(
        self,
        q: Any,
        k: Any,
        *,
        start: Any = None,
        dropout: Any = 0.0,
        seed: Any = None,
        engine: str = "auto",
        **tables: Any,
    ) -> Any:
        """w_ij for every pair, after dropout; exactly 0 where the mask does not admit it or dropout takes it."""
        call = prepare(self, q, k, start=start, dropout=dropout, seed=seed, tables=tables)
        return call.restore(engine_for(call, engine, "matrices").attend(call).weights, call.queries, call.keys)

    def parts(self, q: Any, k: Any, v: Any = None, *, start: Any = None, **tables: Any) -> Parts:
        """The same arrays, looked at in parts: `parts(q, k).weights(heads=3, rows=slice(0, 256))` makes no N × n."""
        return Parts(prepare(self, q, k, v, start=start, tables=tables))

    def trace(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        start: Any = None,
        dropout: Any = 0.0,
        seed: Any = None,
        engine: str = "auto",
        **tables: Any,
    ) -> Trace:
        """Every step with its shape and its values, the weights after dropout; prints as a diagram."""
        call = prepare(self, q, k, as_array(v, "v"), start=start, dropout=dropout, seed=seed, tables=tables)
        steps = engine_for(call, engine, "matrices").attend(call)
        scores = self.scores(q, k, start=start, engine=engine, **tables)
        return Trace.of(self, steps, scores, None if self.weight.over is None else _restored_totals(steps))

    def plan(
        self,
        q: Any,
        k: Any,
        v: Any = None,
        *,
        start: Any = None,
        dropout: Any = 0.0,
        seed: Any = None,
        engine: str = "auto",
        **tables: Any,
    ) -> Plan:
        """Which engine would run this call, why not the others, operations and bytes; no seed is drawn."""
        seed = 0 if seed is None else seed
        return choose(prepare(self, q, k, v, start=start, dropout=dropout, seed=seed, tables=tables), engine)

    def code(self, flavour: str = "numpy", form: str = "attention") -> str:
        """Source that computes this formula without regard.

        flavour: "python", "numpy", "torch", or "triton": the kernel of the fused engine, forward alone
        form:    "attention" takes q, k, v; "self_attention" takes x and its matrices
        """
        if flavour != "triton":
            return super().code(flavour, form)
        from .engines.triton import standalone

        return standalone.code(self, form)

    def vjp(
        self,
        q: Any,
        k: Any,
        v: Any,
        dy: Any,
        *,
        start: Any = None,
        dropout: Any = 0.0,
        seed: Any = None,
        engine: str = "auto",
        **tables: Any,
    ) -> Gradients:
        """The gradients of Σ dy·y for q, k, v and every real table, by the algebra's own derivative.

        With dropout they are those of the call with the same seed=.
        """
        call = prepare(self, q, k, as_array(v, "v"), start=start, dropout=dropout, seed=seed, tables=tables)
        rows = _laid_out_rows(call, as_array(dy, "dy"))
        chosen = engine_for(call, engine, "gradients")
        found = chosen.vjp(chosen.attend(call), rows)
        tables = {name: call.hand_back(found[name]) for name in call.formula.ranks if name in found}
        dq, dk, dv = (call.hand_back(found[name]) for name in "qkv")
        return Gradients(dq, dk, dv, tables)


@lru_cache(maxsize=4096)
def _known(text: str) -> Attention:
    attention = parse(text)
    assert isinstance(attention, Attention)
    return attention


def _in_graph(text: str, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return _known(text)(q, k, v, **options)


FUNCTIONS["attention"] = _in_graph


def _laid_out_rows(call: Call, dy: Any) -> Any:
    """dy as (batch, heads, queries, width), if it fits y."""
    xp, expected = call.xp, (*call.lead, call.queries, int(call.given["v"].shape[-1]))
    if tuple(dy.shape) != expected:
        raise CallError(f"dy: has the shape of y, {expected}; got {tuple(dy.shape)}")
    if library(dy).name != xp.name:
        raise KindError(f"dy: comes from the library of q, {xp.name}; got {library(dy).name}")
    if not xp.is_real(dy):
        raise KindError(f"dy: real floating numbers; got dtype {dy.dtype}; convert it, for example to {call.dtype}")
    return xp.reshape(dy, (call.batch, call.heads, call.queries, expected[-1]))


def _restored_totals(steps: Any) -> Any:
    call: Call = steps.call
    over = call.formula.weight.over
    totals = steps.log_total
    if over is not None and over.node.name in "ij":
        return call.restore(totals, call.queries if over.node.name == "j" else call.keys)
    return call.hand_back(totals)


def parse(text: str) -> Attention | Expression | Mask | Weight:
    """What `repr` printed, as a value again: an attention, or a part of one. No text is ever evaluated."""
    value = parse_value(text)
    return Attention(value.score, value.weight, value.mask) if isinstance(value, Formula) else value


def self_attention(
    x: Any,
    Wq: Any = None,
    Wk: Any = None,
    Wv: Any = None,
    *,
    M: Any = None,
    attention: Attention | None = None,
    **options: Any,
) -> Any:
    """Y from X: every row of x reads every other.

        q = x Wq,  k = x Wk,  v = x Wv        score of a pair: attention's, softmax(q·k / √d) unless said otherwise
        q = x M,   k = x,     v = x Wv        with M: softmax(x M xᵀ), where M carries its own scale

    x:          (…, N, D): lists, NumPy, PyTorch or JAX
    Wq, Wk, Wv: (D, d_k), (D, d_k), (D, d_v); without Wv the values are x itself
    M:          (D, D), in place of Wq and Wk; `dot` in the formula is then x M xᵀ, and `d` the width of x
    """
    if attention is not None and not isinstance(attention, Attention):
        raise KindError(f"attention: an Attention, as in Attention(mask=causal); got {attention!r}")
    if is_traced():
        text = None if attention is None else attention.text
        return node("self_attention", text, x, Wq=Wq, Wk=Wk, Wv=Wv, M=M, **options)
    if attention is not None and Wq is not None and "M" in attention.ranks:
        options["M"], M = M, None  # a table of the formula, not the matrix in place of two
    if (M is None) == (Wq is None) or (Wq is None) != (Wk is None):
        given_names = ", ".join(name for name, value in (("Wq", Wq), ("Wk", Wk), ("M", M)) if value is not None)
        raise CallError(f"self_attention: both Wq and Wk, or M alone; got {given_names or 'none of them'}")
    if attention is None:
        attention = Attention() if M is None else Attention(score=dot)
    lists = not is_array(x)
    rows = as_array(x, "x")
    matrices = {"Wq": Wq, "Wk": Wk, "Wv": Wv, "M": M}
    read = {name: _projection(rows, name, matrix) for name, matrix in matrices.items() if matrix is not None}
    q = rows @ read["M"] if M is not None else rows @ read["Wq"]
    k = rows if M is not None else rows @ read["Wk"]
    v = rows if Wv is None else rows @ read["Wv"]
    return attention(*((array.tolist() for array in (q, k, v)) if lists else (q, k, v)), **options)


def _self_in_graph(text: str | None, x: Any, **options: Any) -> Any:
    return self_attention(x, attention=None if text is None else _known(text), **options)


FUNCTIONS["self_attention"] = _self_in_graph


def _projection(x: Any, name: str, matrix: Any) -> Any:
    array = as_array(matrix, name)
    if array.ndim < 2 or array.shape[-2] != x.shape[-1]:
        raise CallError(
            f"{name}: (width of x, width of the result), {x.shape[-1]} rows for x {tuple(x.shape)}; "
            f"got {tuple(array.shape)}{'; transpose it' if array.ndim == 2 and array.shape[-1] == x.shape[-1] else ''}"
        )
    if library(array).name != library(x).name:
        raise KindError(f"{name}: comes from the library of x, {library(x).name}; got {library(array).name}")
    device = library(x).device
    for what, found, expected in (("dtype", array.dtype, x.dtype), ("device", device(array), device(x))):
        if found != expected:
            raise CallError(f"{name}: has the {what} of x, {expected}; got {found}; convert it")
    return array
