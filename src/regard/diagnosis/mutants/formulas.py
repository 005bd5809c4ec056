"""Mistakes that are formulas: those of `algebra.mistakes`, made in the weights of a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from ...algebra.mistakes import MISTAKES, Mistake
from ...attention import Attention
from ..steps import State, Step, Steps, mix_values
from .registry import makes

BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


@lru_cache(maxsize=4096)  # the search makes the same mistakes in the same formulas again and again
def _made(mistake: Mistake, formula: Attention) -> Attention | None:
    return mistake.of(formula)


def in_formula(steps: Steps, name: str) -> Steps | None:
    """The chain with one mistake of the algebra made in its formula."""
    formula = steps.formula
    return None if formula is None else steps.with_formula(_made(BY_NAME[name], formula))


def _enter(name: str) -> None:
    makes(name, silent=name == "finite mask value")(lambda steps: in_formula(steps, name))


for _name in BY_NAME:
    _enter(_name)


def _over_all_hidden(name: str) -> None:
    """Where a total has hidden pairs alone, a finite mask value makes them equal: 1 / H, not 0."""

    @makes(name)
    def finite(steps: Steps) -> Steps | None:
        leaky = in_formula(steps, "finite mask value")
        return None if leaky is None else in_formula(leaky, name)


for _name in ("softmax over heads", "softmax over the batch"):
    _over_all_hidden(_name)


@dataclass(frozen=True)
class Rescaled:
    """Weights of scores that are multiplied by a number, which the shapes decide."""

    weigh: Step
    factor: Callable[[State], float]

    def __call__(self, state: State) -> State:
        return replace(self.weigh(replace(state, q=state.q * self.factor(state))), q=state.q)


def _width_of_input(state: State) -> float:
    """√d / √(width of x): what √(width of x) in place of √d comes to."""
    return float((state.q.shape[-1] / _model_width(state)) ** 0.5)


def _width_of_input_whole(state: State) -> float:
    return float(state.q.shape[-1] ** 0.5 / _model_width(state))


def _width_of_values(state: State) -> float:
    return float((state.q.shape[-1] / state.v.shape[-1]) ** 0.5)


def _model_width(state: State) -> int:
    x = state.problem.get("x")
    return int(state.q.shape[1] * state.q.shape[-1] if x is None else x.shape[-1])


@makes("root of the model width")
def root_of_the_input(steps: Steps) -> Steps:
    """√(width of x), which differs from √(d·H) where the projections change the width."""
    return replace(steps, weigh=Rescaled(steps.weigh, _width_of_input))


@makes("model width for its root")
def width_of_the_input(steps: Steps) -> Steps:
    """The width of x, without a root."""
    return replace(steps, weigh=Rescaled(steps.weigh, _width_of_input_whole))


@makes("root of the value width")
def root_of_the_values(steps: Steps) -> Steps:
    """√d_v in place of √d_k."""
    return replace(steps, weigh=Rescaled(steps.weigh, _width_of_values))


@dataclass(frozen=True)
class Divided:
    """The output is divided by √d, which the scores have missed."""

    mix: Step

    def __call__(self, state: State) -> State:
        mixed = self.mix(state)
        root = state.q.shape[-1] ** 0.5
        return replace(mixed, y=mixed.y / root, weights=mixed.weights / root)


@makes("scale after the weights")
def divided_late(steps: Steps) -> Steps | None:
    """softmax(q·k) / √d."""
    bare = in_formula(steps, "no root of d")
    return None if bare is None else replace(bare, mix=Divided(steps.mix))


@makes("scale after the weights")
def divided_twice(steps: Steps) -> Steps | None:
    """softmax(q·k / √d) / √d."""
    return replace(steps, mix=Divided(steps.mix)) if steps.mix is mix_values else None
