"""The equation itself, set by a typesetter: what stands on the page is decided here, how it looks by the typesetter.

    y_i = Σ_j softmax_j(s) v_j                                   softmax
    y_i = Σ_j ψ(s) v_j                                           each
    y_i = Σ_j w_ij v_j,  w_ij = ψ(s_ij) / Z_i,  Z_i = …          share

A mask stands under the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..expressions import Mask
from ..fold import Algebra, fold
from ..masks import everywhere
from ..nodes import SCORE
from .text import Piece

if TYPE_CHECKING:
    from ..formula import Formula


class Typesetter(Algebra[Piece], Protocol):
    """The algebra of pieces, and the few marks that an equation has beyond an expression."""

    def indexed(self, name: str, indices: str) -> Piece: ...
    def total(self, index: str, condition: Piece | None, body: Piece) -> Piece: ...
    def softmax(self, score: Piece) -> Piece: ...
    def called(self, name: str, argument: Piece) -> Piece: ...
    def ratio(self, above: Piece, below: Piece) -> Piece: ...
    def beside(self, left: Piece, right: Piece) -> Piece: ...
    def equation(self, left: Piece, right: Piece) -> Piece: ...


def equations(formula: Formula, set_: Typesetter) -> list[Piece]:
    """The equations of a formula, the one for y first."""
    weight = formula.weight
    score = fold(formula.score.node, set_)
    condition = None if formula.mask is None else _condition(formula.mask, set_)
    y, v = set_.indexed("y", "i"), set_.indexed("v", "j")

    def mixed(weights: Piece) -> Piece:
        return set_.equation(y, set_.total("j", condition, set_.beside(weights, v)))

    if weight.is_softmax:
        return [mixed(set_.softmax(score))]
    if weight.over is None:
        inside = fold(weight.psi.node.xreplace({SCORE: formula.score.node}), set_)
        return [mixed(inside)]
    s, psi = set_.indexed("s", "ij"), set_.called("ψ", set_.indexed("s", "ij"))
    z = set_.indexed("Z", _without("ij", weight.over.node.name))
    counted = condition if weight.among is None else _condition(weight.among, set_)
    shares = set_.total(weight.over.node.name, counted, psi)
    whole = shares if weight.sink is None else set_.sum([fold(weight.sink.node, set_), shares])
    return [
        mixed(set_.indexed("w", "ij")),
        set_.equation(set_.indexed("w", "ij"), set_.ratio(psi, z)),
        set_.equation(z, whole),
        set_.equation(set_.called("ψ", fold(SCORE, set_)), fold(weight.psi.node, set_)),
        set_.equation(s, score),
    ]


def _condition(mask: Mask, set_: Typesetter) -> Piece | None:
    return None if mask == everywhere else fold(mask.node, set_)


def _without(indices: str, index: str) -> str:
    return indices.replace(index, "") or indices
