"""What a mask argument means, and which shape it has, as values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .layouts import Layout
from .problem import Array, Problem

MEANINGS = {
    "admits": "True admits a pair",
    "hides": "True hides a pair",
    "ones": "1 admits a pair, 0 hides it",
    "adds": "added to the scores: 0 admits, −∞ hides",
    "lengths": "how many keys of each text count",
}
SHAPES = {
    "n": "(keys)",
    "nn": "(queries, keys)",
    "bnn": "(batch, queries, keys)",
    "b1nn": "(batch, 1, queries, keys)",
    "bn": "(batch, keys)",
    "b11n": "(batch, 1, 1, keys)",
    "b": "(batch)",
}


@dataclass(frozen=True)
class GivenMask:
    """One meaning in one shape. Without a mask in the problem, everything is admitted."""

    meaning: str
    shape: str

    @property
    def words(self) -> str:
        """The meaning and the shape, for people."""
        return f"{MEANINGS[self.meaning]}; {SHAPES[self.shape]}"

    @property
    def of_keys(self) -> bool:
        """Whether it can only say which keys count, whatever the query."""
        return self.shape in ("n", "bn", "b11n", "b")

    @property
    def of_texts(self) -> bool:
        """Whether it can say different things of different texts."""
        return self.shape not in ("n", "nn")

    def array(self, problem: Problem, layout: Layout) -> Array:
        """The mask of a problem, as the target takes it."""
        admitted = problem.mask
        if admitted is None:
            admitted = np.ones((problem.batch, problem.queries, problem.keys), dtype=bool)
        return self._shaped(self._meant(np.asarray(admitted), problem.options.get("added")))

    def _meant(self, admitted: Array, added: Array | None) -> Array:
        if self.meaning == "hides":
            return ~admitted
        if self.meaning == "ones":
            return admitted.astype(np.float64)
        if self.meaning == "adds":
            return np.where(admitted, 0.0 if added is None else added, -np.inf)
        return admitted

    def _shaped(self, meant: Array) -> Array:
        if self.shape == "b":
            return meant[:, 0].sum(axis=-1)
        return {
            "n": meant[0, 0],
            "nn": meant[0],
            "bnn": meant,
            "b1nn": meant[:, None],
            "bn": meant[:, 0],
            "b11n": meant[:, None, :1],
        }[self.shape]


def masks_for(role: str, layout: Layout) -> tuple[GivenMask, ...]:
    """The masks to try for an argument of that role, best first."""
    if role == "lengths":
        return (GivenMask("lengths", "b"),)
    pairs = ("b1nn", "bnn", "nn") if layout.has("b") else ("nn",)
    keys = ("bn", "b11n") if layout.has("b") else ("n",) if layout.one else ()
    shapes = (*keys, *pairs) if role == "padding" or layout.one else (*pairs, *keys)
    meanings: tuple[str, ...] = (
        ("hides", "admits", "ones", "adds") if role == "padding" else ("admits", "ones", "adds", "hides")
    )
    if role == "bias":
        meanings = ("adds",)
    return tuple(GivenMask(meaning, shape) for shape in shapes for meaning in meanings)
