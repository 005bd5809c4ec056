"""The numbers of a formula that can be turned: scale, temperature, window, soft cap.

    scale c          q·k becomes c · q·k, and the like for distances and cosines; biases stay
    temperature t    s becomes s / t
    window w         i − j < w joins the mask, and j − i < w where keys after the query are admitted
    soft cap c       s becomes c · tanh(s / c)

Each gives a formula, which is text again: nothing here knows about arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.logic.boolalg import And

from ...algebra.errors import CallError, KindError
from ...algebra.expressions import Mask, expression, operand
from ...algebra.fold import fraction
from ...algebra.functions import Tanh
from ...algebra.masks import causal
from ...algebra.mistakes import MISTAKES
from ...algebra.nodes import SCORE, AtLeastZero, I, J
from ...algebra.symbols import i, j, tanh
from ...attention import Attention

DIGITS = 4  # that a slider's number has in the text


@dataclass(frozen=True)
class Slider:
    """A number that can be turned.

    own:   its value in a formula; None where the formula has no such thing
    turn:  the formula with another value
    suits: whether it can be turned in a formula at all
    """

    name: str
    does: str
    low: float
    high: float
    own: Callable[[Attention], float | None]
    turn: Callable[[Attention, float], Attention]
    suits: Callable[[Attention], bool]


def with_slider(formula: Attention, name: str, value: float) -> Attention:
    """The formula with one of its numbers turned."""
    if name not in SLIDERS:
        raise CallError(f"changes: one of {', '.join([*SLIDERS, 'mistake'])}; got {str(name)[:40]!r}")
    slider = SLIDERS[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise KindError(f"{name}: a number; got {str(value)[:40]!r}")
    if not (math.isfinite(value) and value > 0):
        raise CallError(f"{name}: a finite number above 0; got {value!r}")
    if not slider.suits(formula):
        raise CallError(f"{name}: this formula has nothing to turn; got {formula!r}; leave it out")
    return slider.turn(formula, float(f"{value:.{DIGITS}g}"))


def with_changes(formula: Attention, changes: Mapping[str, Any]) -> Attention:
    """The formula with a mistake made in it, and then its sliders turned; None as a value changes nothing."""
    chosen = {name: value for name, value in changes.items() if value is not None}
    if "mistake" in chosen:
        formula = with_mistake(formula, chosen.pop("mistake"))
    for name in sorted(chosen, key=lambda name: list(SLIDERS).index(name) if name in SLIDERS else -1):
        formula = with_slider(formula, name, chosen[name])
    return formula


def with_mistake(formula: Attention, name: object) -> Attention:
    """The formula with a classic mistake made in it."""
    mistake = next((one for one in MISTAKES if one.name == name), None)
    if mistake is None:
        raise CallError(f"mistake: one of {', '.join(one.name for one in MISTAKES)}; got {str(name)[:40]!r}")
    wrong = mistake.of(formula)
    if wrong is None:
        raise CallError(f"mistake: one that changes this formula; got {name!r} of {formula!r}; choose another")
    return wrong


def offered(formula: Attention, keys: int, now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sliders of a formula, with its own values and those that are set now."""
    shown = []
    for slider in SLIDERS.values():
        if slider.suits(formula):
            own, high = slider.own(formula), max(keys, 2) if slider.name == "window" else slider.high
            value = now.get(slider.name)
            shown.append(
                {
                    "name": slider.name, "does": slider.does, "value": own if value is None else value, "own": own,
                    "low": slider.low, "high": high, "log": True,
                }
            )  # fmt: skip
    return shown


# -- scale and temperature -------------------------------------------------------------------------------------


def _scaled(formula: Attention, factor: float) -> Attention:
    pairs = {pair: pair * operand(factor, "scale") for pair in formula.pairs}
    return _with(formula, score=expression(formula.score.node.xreplace(pairs)))


def _cooled(formula: Attention, temperature: float) -> Attention:
    return _with(formula, score=formula.score / temperature)


# -- the window ------------------------------------------------------------------------------------------------


def _rules(formula: Attention) -> list[Any]:
    """The rules that are joined in the mask."""
    node = formula.admitted
    return [] if node == sympy.true else list(node.args) if isinstance(node, And) else [node]


def _reach(rule: Any, ahead: bool) -> int | None:
    """w, where the rule is i − j < w (with `ahead` j − i < w); None for any other."""
    if not isinstance(rule, AtLeastZero):
        return None
    rest = rule.args[0] - (I - J if ahead else J - I)
    return int(rest) + 1 if rest.is_Integer and rest >= 0 else None


def _width(formula: Attention) -> float | None:
    found = [_reach(rule, False) for rule in _rules(formula)]
    return min((width for width in found if width is not None), default=None)


def _windowed(formula: Attention, width: float) -> Attention:
    """A window in place of the one that is there; both of its sides, where it has two."""
    count, old = max(1, round(width)), _width(formula)
    rules = [rule for rule in _rules(formula) if _reach(rule, False) is None]
    others = [rule for rule in rules if old is None or _reach(rule, True) != old or rule == causal.node]
    mask = Mask(And(*others)) & (i - j < count)
    return _with(formula, mask=mask if causal.node in others else mask & (j - i < count))


# -- the soft cap ----------------------------------------------------------------------------------------------


def _capped_parts(formula: Attention) -> tuple[float, Any] | None:
    """c and x where the score is c · tanh(x)."""
    node = formula.score.node
    factor, above, below = fraction(node) if node.is_Mul else (1, (node,), ())
    if below or len(above) != 1 or not isinstance(above[0], Tanh) or factor <= 0:
        return None
    return float(factor), above[0].args[0]


def _cap(formula: Attention) -> float | None:
    found = _capped_parts(formula)
    return None if found is None else found[0]


def _capped(formula: Attention, cap: float) -> Attention:
    found = _capped_parts(formula)
    bare = formula.score if found is None else expression(found[1] * operand(found[0], "soft-cap"))
    return _with(formula, score=cap * tanh(bare / cap))


def _with(formula: Attention, **changed: Any) -> Attention:
    return Attention(**({"score": formula.score, "weight": formula.weight, "mask": formula.mask} | changed))


def _weighs(formula: Attention) -> bool:
    """Whether a score becomes a weight by more than its own value."""
    return bool(formula.weight.psi.node != SCORE)


SLIDERS = {
    slider.name: slider
    for slider in (
        Slider("scale", "what q and k give, times a number", 0.1, 10, lambda _: 1, _scaled, lambda f: bool(f.pairs)),
        Slider("temperature", "the score, divided by a number", 0.1, 10, lambda _: 1, _cooled, _weighs),
        Slider("soft-cap", "scores bent into ± a number", 0.5, 100, _cap, _capped, _weighs),
        Slider("window", "only so many places around the query", 1, math.inf, _width, _windowed, lambda _: True),
    )
}  # by name, in the order in which they are turned
