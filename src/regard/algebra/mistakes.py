"""The classic mistakes, as values: each takes a right formula and gives the wrong one, which runs like any other.

Check, viewer and course show the same ones. A mistake that a formula cannot make (no mask to invert) gives None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from .canonical import canonical
from .expressions import Expression, Mask
from .formula import Formula
from .functions import Sqrt
from .masks import everywhere
from .nodes import HEADS, KEYS, WIDTH, I, J
from .symbols import b, h, i, s, where
from .weights import each

F = TypeVar("F", bound=Formula)
HALF_PRECISION_FLOOR = -1e4  # a mask value that people choose because float16 can hold it


@dataclass(frozen=True)
class Mistake:
    """One way to get attention wrong: what is done, what it leads to, and the formula that does it."""

    name: str
    does: str
    leads_to: str
    change: Callable[[Formula], dict[str, Any] | None]

    def of(self, formula: F) -> F | None:
        """The formula with this mistake made; None where it cannot be made, or changes nothing."""
        changed = self.change(formula)
        if changed is None:
            return None
        parts = {"score": formula.score, "weight": formula.weight, "mask": formula.mask} | changed
        wrong = type(formula)(**parts)
        return None if wrong == formula else wrong


def mistakes_of(formula: F) -> dict[str, F]:
    """Every mistake that this formula can be written with, by name."""
    wrong = {mistake.name: mistake.of(formula) for mistake in MISTAKES}
    return {name: made for name, made in wrong.items() if made is not None}


def _shared_over(index: Expression) -> Callable[[Formula], dict[str, Any] | None]:
    def change(formula: Formula) -> dict[str, Any] | None:
        weight = formula.weight
        return None if weight.over is None else {"weight": replace(weight, over=index, sink=None)}

    return change


def _root_replaced(by: Any) -> Callable[[Formula], dict[str, Any] | None]:
    def change(formula: Formula) -> dict[str, Any] | None:
        node = formula.score.node
        root = Sqrt(WIDTH)
        return {"score": Expression(canonical(node.xreplace({root: by})))} if node.has(root) else None

    return change


def _masked(change: Callable[[Formula, Mask], dict[str, Any] | None]) -> Callable[[Formula], dict[str, Any] | None]:
    return lambda formula: None if formula.mask is None else change(formula, formula.mask)


def _moved(mask: Mask, by: int) -> Mask:
    """The mask with every query moved along by so many places."""
    return Mask(mask.node.xreplace({I: I + by}))


def _exchanged(formula: Formula) -> dict[str, Any]:
    swap = {I: J, J: I}
    mask = None if formula.mask is None else Mask(formula.mask.node.xreplace(swap))
    return {"score": Expression(canonical(formula.score.node.xreplace(swap))), "mask": mask}


MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "softmax over queries",
        "the total runs over i in place of j",
        "rows no longer sum to 1: a query may read everything twice or nothing at all",
        _shared_over(i),
    ),
    Mistake(
        "softmax over heads",
        "the total runs over h",
        "heads compete with each other for every pair; rows do not sum to 1",
        _shared_over(h),
    ),
    Mistake(
        "softmax over the batch",
        "the total runs over b",
        "sentences of one batch leak into each other's weights",
        _shared_over(b),
    ),
    Mistake(
        "mask after the weights",
        "weights are set to 0 after they were divided by the total of all pairs",
        "rows sum to less than 1, and what is masked still counts in the total",
        _masked(lambda f, mask: None if f.weight.over is None else {"weight": replace(f.weight, among=everywhere)}),
    ),
    Mistake(
        "no root of d",
        "the score is not divided by √d",
        "scores of spread √d: softmax saturates and gradients vanish as d grows",
        _root_replaced(1),
    ),
    Mistake(
        "d for its root",
        "the score is divided by d, or by √d twice",
        "scores of spread 1/√d: the weights are nearly uniform",
        _root_replaced(WIDTH),
    ),
    Mistake(
        "root of the model width",
        "the score is divided by √(d·H), the width before heads were split",
        "weights flatter by a factor of √H",
        _root_replaced(Sqrt(WIDTH * HEADS)),
    ),
    Mistake(
        "model width for its root",
        "the score is divided by d·H, the width before heads were split, without a root",
        "scores so small that every row is nearly the mean of the values",
        _root_replaced(WIDTH * HEADS),
    ),
    Mistake(
        "root of the length",
        "the score is divided by √n, the number of keys",
        "weights sharpen or flatten with the length of the text",
        _root_replaced(Sqrt(KEYS)),
    ),
    Mistake(
        "times the root of d",
        "the score is multiplied by √d in place of divided",
        "scores of spread d: every row reads one key alone, and gradients vanish",
        _root_replaced(1 / Sqrt(WIDTH)),
    ),
    Mistake(
        "inverted mask",
        "True means hidden where the code takes it for admitted",
        "a causal model reads only the future",
        _masked(lambda f, mask: {"mask": ~mask}),
    ),
    Mistake(
        "strict mask",
        "j < i in place of j ≤ i",
        "a token cannot read itself, and the first row is empty",
        _masked(lambda f, mask: {"mask": _moved(mask, -1)}),
    ),
    Mistake(
        "shifted mask",
        "j ≤ i + 1 in place of j ≤ i",
        "every token reads the one it should predict",
        _masked(lambda f, mask: {"mask": _moved(mask, 1)}),
    ),
    Mistake(
        "0/1 mask added",
        "a mask of zeros and ones is added to the score, where −∞ is meant",
        "hidden pairs lose a factor of e and stay readable",
        _masked(lambda f, mask: {"score": f.score + where(mask, 1, 0), "mask": None}),
    ),
    Mistake(
        "hidden scores set to 0",
        "the score is multiplied by the mask: hidden pairs get 0, not −∞",
        "hidden pairs weigh as much as orthogonal vectors",
        _masked(lambda f, mask: {"score": where(mask, f.score, 0), "mask": None}),
    ),
    Mistake(
        "finite mask value",
        "hidden pairs get −10 000 in place of −∞",
        "a row with nothing admitted becomes the mean of everything hidden",
        _masked(lambda f, mask: {"score": where(mask, f.score, HALF_PRECISION_FLOOR), "mask": None}),
    ),
    Mistake(
        "no mask",
        "the mask is built and never applied",
        "the future, or the padding, is read",
        _masked(lambda f, mask: {"mask": None}),
    ),
    Mistake(
        "no total",
        "ψ is taken and never divided by its sum",
        "outputs grow with the number of keys",
        lambda f: None if f.weight.over is None else {"weight": each(f.weight.psi)},
    ),
    Mistake(
        "scores as weights",
        "the score itself is the weight",
        "weights are negative and unbounded",
        lambda f: {"weight": each(s)},
    ),
    Mistake(
        "query and key exchanged",
        "i and j change places in the bias and the mask",
        "biases and masks are transposed",
        _exchanged,
    ),
)
