"""Heads that are cut, repeated or joined in the wrong order."""

from __future__ import annotations

from dataclasses import replace

from ..._arrays import library
from ..problem import Array
from ..steps import State, Steps, as_they_are, merge_heads, repeat_groups, split_heads
from .registry import makes


def _viewed(x: Array, heads: int) -> Array:
    batch, n, width = x.shape
    return x.reshape(batch, heads, n, width // heads)


def split_by_view(state: State) -> State:
    """(batch, n, heads · d) read as (batch, heads, n, d): rows of one head come from several tokens."""
    p = state.problem
    return replace(state, q=_viewed(state.q, p.heads), k=_viewed(state.k, p.groups), v=_viewed(state.v, p.groups))


@makes("heads split without transpose")
def split_without_transpose(steps: Steps) -> Steps | None:
    """view(batch, heads, n, d)."""
    return replace(steps, split=split_by_view) if steps.split is split_heads else None


def merge_by_view(state: State) -> State:
    """(batch, heads, n, d) read as (batch, n, heads · d)."""
    batch, heads, n, width = state.y.shape
    return replace(state, y=state.y.reshape(batch, n, heads * width))


@makes("heads merged without transpose")
def merge_without_transpose(steps: Steps) -> Steps | None:
    """reshape(batch, n, heads · d) of (batch, heads, n, d)."""
    return replace(steps, merge=merge_by_view) if steps.merge is merge_heads else None


def split_in_place(state: State) -> State:
    """(batch, n, heads, d): the heads stand where positions belong."""

    def cut(x: Array, heads: int) -> Array:
        return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads)

    p = state.problem
    return replace(state, q=cut(state.q, p.heads), k=cut(state.k, p.groups), v=cut(state.v, p.groups))


@makes("heads attend to heads")
def no_transpose(steps: Steps) -> Steps | None:
    """No transpose at all: within each token, heads read heads."""
    if steps.split is not split_heads or steps.merge is not merge_heads:
        return None
    return replace(steps, split=split_in_place, merge=merge_in_place, repeat=as_they_are)


def merge_in_place(state: State) -> State:
    """(batch, n, heads, d) → (batch, n, heads · d)."""
    batch, n, heads, width = state.y.shape
    return replace(state, y=state.y.reshape(batch, n, heads * width))


def tile_groups(state: State) -> State:
    """Key heads 0 1 0 1 where 0 0 1 1 is meant."""
    times = state.q.shape[1] // state.k.shape[1]
    xp = library(state.k)
    return replace(state, k=xp.tile(state.k, (1, times, 1, 1)), v=xp.tile(state.v, (1, times, 1, 1)))


@makes("groups repeated in the wrong order")
def groups_tiled(steps: Steps) -> Steps | None:
    """repeat(1, r, 1, 1), which lays the whole set of heads side by side."""
    return replace(steps, repeat=tile_groups) if steps.repeat is repeat_groups else None


def average_heads(state: State) -> State:
    """The mean over heads."""
    return replace(state, y=library(state.y).mean(state.y, axis=1))


def add_heads(state: State) -> State:
    """The sum over heads."""
    return replace(state, y=library(state.y).sum(state.y, axis=1))


@makes("heads averaged")
def heads_averaged(steps: Steps) -> Steps | None:
    """mean(1) where heads are to stand side by side."""
    return replace(steps, merge=average_heads) if steps.merge is merge_heads else None


@makes("heads averaged")
def heads_added(steps: Steps) -> Steps | None:
    """sum(1) where heads are to stand side by side."""
    return replace(steps, merge=add_heads) if steps.merge is merge_heads else None
