"""A chain of steps as a plain function, such as a person would write: the right one, or one with a mistake made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regard._arrays import library
from regard.diagnosis.problem import Array, Problem
from regard.diagnosis.steps import Steps

Function = Callable[..., Any]


def on_heads(steps: Steps) -> Function:
    """f(q, k, v) over (batch, heads, positions, width)."""

    def attend(q: Array, k: Array, v: Array) -> Array:
        return steps.run(_vectors(q, k, v)).y

    return attend


def with_mask(steps: Steps) -> Function:
    """f(q, k, v, mask), whose mask admits pairs where it is True: (queries, keys), or with a batch before."""

    def attend(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
        return steps.run(_vectors(q, k, v, mask=_broadcast(q, k, mask))).y

    return attend


def with_padding(steps: Steps) -> Function:
    """f(q, k, v, key_mask), whose mask is True for keys that count: (batch, keys)."""

    def attend(q: Array, k: Array, v: Array, key_mask: Array | None = None) -> Array:
        mask = None if key_mask is None else key_mask[:, None, :]
        return steps.run(_vectors(q, k, v, mask=_broadcast(q, k, mask))).y

    return attend


def with_weights(steps: Steps) -> Function:
    """f(q, k, v) that returns the output and the weights."""

    def attend(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        state = steps.run(_vectors(q, k, v))
        return state.y, state.weights

    return attend


def with_cache(steps: Steps) -> Function:
    """f(q, k, v, past=None) that returns the output, and the keys and values to hand over next time."""

    def attend(q: Array, k: Array, v: Array, past: tuple[Array, Array] | None = None) -> tuple[Array, Any]:
        kept = {} if past is None else {"past_k": past[0], "past_v": past[1]}
        state = steps.run(Problem({"q": q, "k": k, "v": v, **kept}, q.shape[1], k.shape[1]))
        return state.y, state.kept

    return attend


def on_input(steps: Steps) -> Function:
    """f(x, wq, wk, wv, wo, heads) over (batch, positions, width)."""

    def attend(x: Array, wq: Array, wk: Array, wv: Array, wo: Array, heads: int) -> Array:
        arrays = {"x": x, "context": x, "memory": x, "wq": wq, "wk": wk, "wv": wv, "wo": wo}
        return steps.run(Problem(arrays, heads, heads)).y

    return attend


def without_output(steps: Steps) -> Function:
    """f(x, wq, wk, wv, heads) over (batch, positions, width): the heads side by side, and no more."""

    def attend(x: Array, wq: Array, wk: Array, wv: Array, heads: int) -> Array:
        arrays = {"x": x, "context": x, "memory": x, "wq": wq, "wk": wk, "wv": wv}
        return steps.run(Problem(arrays, heads, heads)).y

    return attend


def on_three_inputs(steps: Steps) -> Function:
    """f(query, key, value, wq, wk, wv, heads): each role has an input of its own."""

    def attend(query: Array, key: Array, value: Array, wq: Array, wk: Array, wv: Array, heads: int) -> Array:
        arrays = {"x": query, "context": key, "memory": value, "wq": wq, "wk": wk, "wv": wv}
        return steps.run(Problem(arrays, heads, heads)).y

    return attend


def _broadcast(q: Array, k: Array, mask: Array | None) -> Array:
    """(batch, queries, keys) of truths; all of them without a mask."""
    xp, shape = library(q), (q.shape[0], q.shape[-2], k.shape[-2])
    return xp.ones(shape, dtype=xp.bool) if mask is None else xp.broadcast_to(mask, shape)


def _vectors(q: Array, k: Array, v: Array, mask: Array | None = None) -> Problem:
    return Problem({"q": q, "k": k, "v": v}, q.shape[1], k.shape[1], mask)
