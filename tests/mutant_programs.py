"""A chain of steps as a plain function, such as a person would write: the right one, or one with a mistake made.

made("no root of d", 0)      that mistake in its first form: the function, and what check is told of it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import regard as rg
from regard._arrays import library
from regard.diagnosis.mutants import MUTANTS
from regard.diagnosis.problem import Array, Problem
from regard.diagnosis.steps import Steps, Turn, on_inputs, on_vectors
from regard.inputs import Rotary

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


def said_to_be_in_half(inside: Function) -> Function:
    """The same f(q, k, v), whose source tells its precision."""

    def in_half(q: Array, k: Array, v: Array) -> Array:
        return inside(q, k, v)

    return in_half


def _broadcast(q: Array, k: Array, mask: Array | None) -> Array:
    """(batch, queries, keys) of truths; all of them without a mask."""
    xp, shape = library(q), (q.shape[0], q.shape[-2], k.shape[-2])
    return xp.ones(shape, dtype=xp.bool) if mask is None else xp.broadcast_to(mask, shape)


def _vectors(q: Array, k: Array, v: Array, mask: Array | None = None) -> Problem:
    return Problem({"q": q, "k": k, "v": v}, q.shape[1], k.shape[1], mask)


# -- where a mistake is made --------------------------------------------------------------------------------------

PLAIN, CAUSAL, GIVEN = rg.Attention(), rg.Attention(mask=rg.causal), rg.Attention(mask=rg.given("mask"))
ROTARY = Turn(Rotary())
CROSSED = {"values_of_keys", "values_of_queries", "keys_of_queries", "all_of_queries"}  # need inputs of their own


@dataclass(frozen=True)
class Setting:
    """Where a bug can be made and seen: a right chain, the function it becomes, what check is told."""

    chain: Steps
    program: Callable[[Steps], Function]
    options: dict[str, Any] = field(default_factory=dict)


HEADS = Setting(on_vectors(PLAIN), on_heads)
AHEAD = Setting(on_vectors(CAUSAL), on_heads, {"causal": True})
MASKED = Setting(on_vectors(GIVEN), with_mask)
PADDED = Setting(on_vectors(GIVEN), with_padding)
WEIGHTS = Setting(on_vectors(PLAIN), with_weights)
TURNED = Setting(replace(on_vectors(PLAIN), place=ROTARY), on_heads)
CACHED = Setting(replace(on_vectors(CAUSAL), place=ROTARY), with_cache)
INPUT = Setting(on_inputs(PLAIN), on_input)
MERGED = Setting(on_inputs(PLAIN), without_output)
CROSS = Setting(on_inputs(PLAIN), on_three_inputs)
TORCH = Setting(on_vectors(PLAIN), on_heads, {"library": "torch"})
SETTINGS = {
    "heads": HEADS,
    "ahead": AHEAD,
    "masked": MASKED,
    "padded": PADDED,
    "weights": WEIGHTS,
    "turned": TURNED,
    "cached": CACHED,
    "input": INPUT,
    "merged": MERGED,
    "cross": CROSS,
    "torch": TORCH,
}

FIRST = {  # the setting to make a bug in, where it is not the first that can
    "root of the model width": INPUT,
    "model width for its root": INPUT,
    "mask in the wrong corner": AHEAD,
    "padding on queries": PADDED,
    "mask broadcast by accident": PADDED,
    "empty rows are NaN": MASKED,
    "finite mask value": MASKED,
    "returned weights are others": WEIGHTS,
    "heads averaged": MERGED,
    "mask of another text": MASKED,
    "gradient cut": TORCH,
    "gradient wrong": TORCH,
    "positions not moved on": CACHED,
    "position off by one after prefill": CACHED,
    "cache on the wrong axis": CACHED,
}


def made(name: str, number: int) -> tuple[Function, dict[str, Any]]:
    """The wrong function, in the first setting where the mistake can be made and is no other form's."""
    for setting in [FIRST[name]] if name in FIRST else SETTINGS.values():
        steps = MUTANTS[name][number](setting.chain)
        if steps is not None and getattr(steps.project, "__name__", "") in CROSSED and setting is not CROSS:
            continue
        if steps is not None and steps != setting.chain:
            return setting.program(steps), setting.options
    raise LookupError(f"{name}: no setting lets it be made")
