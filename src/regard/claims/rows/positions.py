"""Claims about where an element stands: order, positions that are added, and the room that vectors have for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ... import geometry
from ...algebra.masks import causal
from ...algebra.symbols import dot, table
from ...attention import Attention, self_attention
from ...inputs.embeddings import Embedding
from ...inputs.positions import Learned
from ..measure import gap, normal, relative_gap
from ..plots import Area, Axis, Dots, chart, heat, side_by_side
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim


@claim("P1", "D", "Attention by itself is invariant under permutation of the sequence.", Verdict.WRONG)
def permuted() -> Measurements:
    """f(P x) = P f(x) ≠ f(x) without a mask; Σ_i f(P x)_i = Σ_i f(x)_i; f(P x) ≠ P f(x) with a causal one."""
    x, order = normal(2, 13, 7), np.random.default_rng(3).permutation(13)
    Wq, Wk, Wv = normal(5, 7, 5), normal(7, 7, 5), normal(11, 7, 3)

    def f(x: np.ndarray, attention: Attention) -> np.ndarray:
        return np.asarray(self_attention(x, Wq, Wk, Wv, attention=attention))

    y, of_permuted = f(x, Attention()), f(x[order], Attention())
    yield Measured(relative_gap(y, of_permuted), "|f(x) − f(P x)|: not invariant", at_least=0.1)
    yield Measured(relative_gap(y[order], of_permuted), "|P f(x) − f(P x)|: equivariant", at_most=1e-13)
    pooled = relative_gap(y.mean(axis=0), of_permuted.mean(axis=0))
    yield Measured(pooled, "the same of the means over positions: invariant", at_most=1e-13)
    maps = {"f(x)": y, "f(P x): other outputs": of_permuted, "P f(x): the same as f(P x)": y[order]}
    told = "Columns are positions. Shuffled inputs give shuffled outputs, cell by cell: not the same ones."
    yield Figure("".join(heat(outputs.T, name, cell=22) for name, outputs in maps.items()), told)
    y, of_permuted = f(x, Attention(mask=causal)), f(x[order], Attention(mask=causal))
    yield Measured(relative_gap(y[order], of_permuted), "|P f(x) − f(P x)| under a causal mask", at_least=0.1)
    yield Measured(relative_gap(y.mean(axis=0), of_permuted.mean(axis=0)), "and of its means", at_least=0.01)


# -- the phrases of text C -------------------------------------------------------------------------------------

WORDS = {
    "the": (0.30, 0.80), "cat": (1.00, 0.50), "sat": (0.70, 0.90), "on": (0.20, 0.30), "brian": (0.60, 0.40),
    "typed": (0.50, 0.70), "into": (0.30, 0.40), "is": (0.40, 0.60), "your": (0.30, 0.50), "warm": (0.80, 0.30),
    "black": (0.20, 0.70),
}  # fmt: skip
PLACES = ((0.10, 0.00), (0.00, 0.10), (0.10, 0.10), (0.00, 0.20), (0.20, 0.00))
PHRASES = {"the cat sat on the": "sat", "brian typed cat into the": "typed", "is your warm black cat": "is"}
"""Vectors of words and of positions, and the word of each phrase that “cat” should read."""
PRINTED = (
    ((0.40, 0.80), (1.00, 0.60), (0.80, 1.00), (0.20, 0.50), (0.50, 0.80)),
    ((0.70, 0.40), (0.50, 0.80), (1.10, 0.60), (0.30, 0.60), (0.50, 0.80)),
    ((0.50, 0.60), (0.30, 0.60), (0.90, 0.40), (0.20, 0.90), (1.20, 0.50)),
)
"""Their sums, phrase by phrase, as the text prints them."""


@dataclass(frozen=True, eq=False)
class Phrase:
    """x: the vectors of its words with their positions; where “cat” stands, and where the word that it should read."""

    x: np.ndarray
    cat: int
    wanted: int

    @property
    def rivals(self) -> np.ndarray:
        """The vectors that the wanted one has to beat."""
        return np.delete(self.x, self.wanted, axis=0)

    def past(self) -> Phrase:
        """What “cat” reads of it under a causal mask, if the wanted word is there."""
        return Phrase(self.x[: self.cat + 1], self.cat, self.wanted)


def _phrases(vectors: Iterable[Iterable[float]], places: np.ndarray) -> list[Phrase]:
    """x_i = E[t_i] + p_i, with a vector for each of `WORDS`."""
    words, position = Embedding.of(dict(zip(WORDS, vectors, strict=True))), Learned(places)
    cut = [(text, text.split(), wanted) for text, wanted in PHRASES.items()]
    return [Phrase(position.add(words(text)), split.index("cat"), split.index(word)) for text, split, word in cut]


def _as_printed() -> list[Phrase]:
    return _phrases(WORDS.values(), np.array(PLACES))


@claim("P3", "C", "With their positions added, the same word is three vectors in the three phrases.", Verdict.HOLDS)
def three_cats() -> Measurements:
    """x_i = E[t_i] + p_i, so that E[cat] at positions 1, 2 and 4 is three vectors."""
    found = _as_printed()
    ours, theirs = ([f"{number:.2f}" for number in np.ravel(x)] for x in ([phrase.x for phrase in found], PRINTED))
    wrong = sum(one != other for one, other in zip(ours, theirs, strict=True))
    yield Measured(wrong, f"of {len(theirs)} numbers, those that print otherwise", at_most=0)
    cats = np.array([phrase.x[phrase.cat] for phrase in found])
    told = ", ".join(f"({x:.2f}, {y:.2f})" for x, y in cats)
    apart = np.asarray(geometry.distances(cats))[np.triu_indices(3, 1)]
    yield Measured(apart.min(), "least distance between two of the three vectors of “cat”", at_least=0.09, detail=told)
    bare = np.array([phrase.x[phrase.cat] for phrase in _phrases(WORDS.values(), np.zeros((5, 2)))])
    yield Measured(np.max(geometry.distances(bare)), "largest without positions", at_most=0)


@claim(
    "P4",
    "C",
    "Two matrices can make “cat” align most with “sat”, with “typed” and with “Is” in the text's three phrases.",
    Verdict.WRONG,
    needs=["scipy"],
)
def words_that_can_win() -> Measurements:
    """x M y ≥ x M y' + t with t > 0 for every other y' of the phrase, where x is “cat” and M = W_search W_offerᵀ.

    For one x, u = Mᵀ x can be any vector: so y can win exactly if it is a corner of the phrase's hull at which no other
    word stands. t is the largest with |u|∞ ≤ 1, by a linear programme. With more numbers in a vector, one M wins all.
    """
    first, second, third = phrases = _as_printed()
    free = [_margin(phrase) for phrase in phrases]
    told = ", ".join(f"{word} {margin:.2f}" for word, margin in zip(PHRASES.values(), free, strict=True))
    yield Measured(min(free), "least margin of the three, all positions read", at_most=1e-9, detail=told)
    yield Measured(free[0], "margin of “sat”", at_least=0.3199, at_most=0.3201)
    same = min(gap(second.x[second.wanted], rival) for rival in second.rivals)
    yield Measured(same, "difference of “typed” from “the”, the same vector", at_most=1e-15)
    yield Measured(free[2], "margin of “Is”, which lies in the hull of the others", at_most=1e-9)

    weight = Attention(mask=causal).weights(first.x, first.x)[first.cat, first.wanted]
    yield Measured(weight, "weight of “sat” where “cat” reads the past alone", at_most=0)
    yield Measured(_margin(second.past()), "margin of “typed” there", at_least=0.5999, at_most=0.6001)
    yield Measured(_margin(third.past()), "margin of “Is” there", at_most=1e-9)

    roomy = _phrases(normal(2, len(WORDS), 16), normal(3, len(PLACES), 16))
    margin, M = _margin_of_one(roomy)
    yield Measured(margin, "least margin in 16 dimensions by one M with |M|∞ ≤ 1", at_least=1)
    attention = Attention(score=dot(table("M")))
    read = [attention.weights(phrase.x, phrase.x, M=M)[phrase.cat].argmax() == phrase.wanted for phrase in roomy]
    yield Measured(sum(read), "phrases in which “cat” then reads the word most", at_least=3)
    maps = [_phrase_drawn(text, phrase) for text, phrase in zip(PHRASES, phrases, strict=True)]
    told = (
        "Only a corner of the cloud is farther than all others in some direction, and can win. “sat” is such a corner; "
    )
    told += "“typed” shares its own with “the”, the same vector; “is” lies inside."
    yield Figure(side_by_side(*maps), told)


def _phrase_drawn(text: str, phrase: Phrase) -> str:
    """The words of a phrase as points, with the hull of the cloud; the wanted one has the accent."""
    from scipy.spatial import ConvexHull

    corners = phrase.x[ConvexHull(phrase.x).vertices]
    words, wanted = dict[tuple[float, ...], str](), tuple(phrase.x[phrase.wanted].round(9).tolist())
    for point, word in zip(map(tuple, phrase.x.round(9).tolist()), text.split(), strict=True):
        words[point] = f"{words[point]} = {word}" if point in words else word
    told = Dots(wanted[:1], wanted[1:], "accent", [words.pop(wanted)], size=9)
    xs, ys = zip(*words, strict=True)
    axes = Axis(text, 0.1, 1.3, {0.5: "0.5", 1: "1"}), Axis("", 0.3, 1.15, {0.5: "0.5", 1: "1"})
    marks = Area(corners[:, 0], corners[:, 1]), Dots(xs, ys, names=list(words.values())), told
    return chart(*axes, *marks, width=305, height=220)


def _margin(phrase: Phrase) -> float:
    """max t with u·(y − y') ≥ t for every rival y', |u|∞ ≤ 1."""
    return _margin_of_one([phrase], np.ones(1))[0]


def _margin_of_one(phrases: Iterable[Phrase], x: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """max t with x M (y − y')ᵀ ≥ t for every rival y' of each phrase, |M|∞ ≤ 1; and that M. x is “cat” if not given."""
    from scipy.optimize import linprog

    pairs = [(phrase.x[phrase.cat] if x is None else x, phrase.x[phrase.wanted] - phrase.rivals) for phrase in phrases]
    leads = np.array([np.outer(asks, lead) for asks, leads in pairs for lead in leads])
    rows = np.column_stack([-leads.reshape(len(leads), -1), np.ones(len(leads))])  # t − x M (y − y')ᵀ ≤ 0
    bounds = [(-1, 1)] * (rows.shape[1] - 1) + [(None, None)]
    found = linprog([0] * (rows.shape[1] - 1) + [-1], A_ub=rows, b_ub=np.zeros(len(rows)), bounds=bounds)
    assert found.success
    return max(0.0, float(found.x[-1])), found.x[:-1].reshape(leads.shape[1:])


@claim("P7", "C", "Vectors of many numbers have room for many directions that are nearly orthogonal.", Verdict.HOLDS)
def room_for_directions() -> Measurements:
    """E |cos θ| ≈ √(2 / (π d)) for random directions; of exactly orthogonal ones there are d."""
    cosines = {d: _cosines(count, d) for d, count in ((4096, 503), (768, 1009), (2, 503))}
    for d, low, high in ((768, 0.0283, 0.0293), (4096, 0.012, 0.013), (2, 0.63, 0.645)):
        what = f"mean |cos| of random directions in {d} dimensions"
        yield Measured(cosines[d].mean(), what, at_least=low, at_most=high)
    yield Measured(cosines[768].max(), "largest |cos| among 1009 directions in 768 dimensions", at_most=0.25)
    yield Measured(float(np.mean(cosines[2] > 0.25)), "share of pairs with a larger one in 2 dimensions", at_least=0.5)


def _cosines(count: int, d: int) -> np.ndarray:
    """|cos θ| of every pair of so many random directions."""
    cosines = np.asarray(geometry.cosines(normal(d, count, d)))
    return np.asarray(np.abs(cosines[np.triu_indices(count, 1)]))
