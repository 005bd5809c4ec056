"""What values on one call do not show: randomness, changed inputs, lost gradients, sizes that are baked in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._arrays import library
from ..problem import Array
from ..steps import State, Step, Steps
from .registry import makes

DROPPED = 0.1
NOISE = 1e-3
BAKED = {"length": 5, "batch": 2}


@dataclass(frozen=True)
class Dropped:
    """Weights are dropped on every call."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        w = weighed.weights
        stays = np.random.default_rng().random(w.shape) >= DROPPED
        return replace(weighed, weights=w * _like(stays / (1 - DROPPED), w))


@makes("dropout in evaluation", silent=True)
def always_dropped(steps: Steps) -> Steps:
    """dropout(weights, p) without asking whether this is training."""
    return replace(steps, weigh=Dropped(steps.weigh))


@dataclass(frozen=True)
class Noisy:
    """The result differs from call to call."""

    mix: Step

    def __call__(self, state: State) -> State:
        mixed = self.mix(state)
        return replace(mixed, y=mixed.y + _like(NOISE * np.random.default_rng().normal(size=mixed.y.shape), mixed.y))


@makes("not deterministic", silent=True)
def noisy(steps: Steps) -> Steps:
    """Noise from an unseeded source."""
    return replace(steps, mix=Noisy(steps.mix))


@dataclass(frozen=True)
class InPlace:
    """The caller's array is halved once it was read."""

    project: Step

    def __call__(self, state: State) -> State:
        made = self.project(state)
        given = state.problem["q" if state.problem.form == "vectors" else "x"]
        xp = library(given)
        made = replace(made, q=xp.asarray(made.q, copy=True), k=xp.asarray(made.k, copy=True))
        given[...] = given / 2
        return made


@makes("inputs changed in place", silent=True)
def in_place(steps: Steps) -> Steps:
    """q /= 2 on the caller's own array."""
    return replace(steps, project=InPlace(steps.project))


@dataclass(frozen=True)
class Cut:
    """No gradient passes the weights."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        return replace(weighed, weights=library(weighed.weights).constant(weighed.weights))


@makes("gradient cut", silent=True)
def gradient_cut(steps: Steps) -> Steps:
    """weights.detach()."""
    return replace(steps, weigh=Cut(steps.weigh))


@dataclass(frozen=True)
class WrongWay:
    """2c − w with c = w held fixed: the value of w, and its gradient with the sign turned."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        w = weighed.weights
        return replace(weighed, weights=2 * library(w).constant(w) - w)


@makes("gradient wrong", silent=True)
def gradient_wrong(steps: Steps) -> Steps:
    """A backward written by hand, with a sign turned."""
    return replace(steps, weigh=WrongWay(steps.weigh))


@dataclass(frozen=True)
class Centred:
    """Keys minus their mean over the batch."""

    split: Step

    def __call__(self, state: State) -> State:
        made = self.split(state)
        return replace(made, k=made.k - library(made.k).mean(made.k, axis=0, keepdims=True))


@makes("batch elements see each other", silent=True)
def across_the_batch(steps: Steps) -> Steps:
    """A statistic over the batch in the middle of attention."""
    return replace(steps, split=Centred(steps.split))


@dataclass(frozen=True)
class OneText:
    """All texts of the batch are read as one: (batch · n) positions."""

    weigh: Step
    mix: Step

    def __call__(self, state: State) -> State:
        joined = replace(state, q=_joined(state.q), k=_joined(state.k), v=_joined(state.v))
        mixed = self.mix(self.weigh(joined))
        batch, n = state.q.shape[0], state.q.shape[2]
        xp = library(mixed.y)
        _, heads, _, width = mixed.y.shape
        y = xp.permute_dims(mixed.y.reshape(heads, batch, n, width), (1, 0, 2, 3))
        return replace(state, y=y)


def _joined(x: Array) -> Array:
    """(batch, heads, n, d) → (1, heads, batch · n, d)."""
    batch, heads, n, width = x.shape
    return library(x).permute_dims(x, (1, 0, 2, 3)).reshape(1, heads, batch * n, width)


def _unweighed(state: State) -> State:
    """Weights are made together with the mixture."""
    return state


@makes("batch elements see each other")
def flattened(steps: Steps) -> Steps | None:
    """reshape(−1, d) before attention."""
    if steps.weigh is _unweighed:
        return None
    return replace(steps, weigh=_unweighed, mix=OneText(steps.weigh, steps.mix))


@dataclass(frozen=True)
class AcrossTexts:
    """The axis of the batch is taken for that of positions."""

    weigh: Step
    mix: Step

    def __call__(self, state: State) -> State:
        turned = replace(state, q=_turned(state.q), k=_turned(state.k), v=_turned(state.v))
        return replace(state, y=_turned(self.mix(self.weigh(turned)).y))


def _turned(x: Array) -> Array:
    """(batch, heads, n, d) ↔ (n, heads, batch, d)."""
    return library(x).permute_dims(x, (2, 1, 0, 3))


@makes("batch elements see each other")
def across_texts(steps: Steps) -> Steps | None:
    """A batch-first input given to a layer that reads positions first."""
    if steps.weigh is _unweighed:
        return None
    return replace(steps, weigh=_unweighed, mix=AcrossTexts(steps.weigh, steps.mix))


@dataclass(frozen=True)
class Fixed:
    """One size was written into the code."""

    project: Step
    what: str

    def __call__(self, state: State) -> State:
        size = state.problem.keys if self.what == "length" else state.problem.batch
        if size != BAKED[self.what]:
            raise ValueError(f"shapes do not fit: {size} and {BAKED[self.what]}")
        return self.project(state)


@makes("length baked in", silent=True)
def length_baked_in(steps: Steps) -> Steps:
    """A mask or a view for one length."""
    return replace(steps, project=Fixed(steps.project, "length"))


@makes("batch size baked in", silent=True)
def batch_baked_in(steps: Steps) -> Steps:
    """A view for one batch size."""
    return replace(steps, project=Fixed(steps.project, "batch"))


@dataclass(frozen=True)
class Shown:
    """Scores are handed back as if they were the weights."""

    out: Step

    def __call__(self, state: State) -> State:
        made = self.out(state)
        return replace(made, weights=made.weights - 1)


@makes("returned weights are others", silent=True)
def other_weights(steps: Steps) -> Steps:
    """What is returned is not what the values were mixed with."""
    return replace(steps, out=Shown(steps.out))


def _like(values: Array, x: Array) -> Array:
    return library(x).asarray(values, dtype=x.dtype)
