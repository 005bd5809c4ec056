"""What one call is given, in one layout, whatever the target's own is.

    vectors   q (batch, heads, n_q, d)   k (batch, groups, n_k, d)   v (batch, groups, n_k, d_v)
    inputs    x (batch, n_q, width)      context, memory (batch, n_k, width)      wq wk wv wo, bq bk bv bo

Keys and values of an earlier call may come with either: past_k, past_v (batch, groups, n, d).
Matrices are (in, out): q = x wq + bq, with the heads side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = Any

MATRICES = ("wq", "wk", "wv", "wo", "bq", "bk", "bv", "bo")


@dataclass(frozen=True)
class Sizes:
    """How large the arrays of a problem are; different primes where the target lets them be."""

    batch: int = 2
    heads: int = 3
    groups: int = 3
    queries: int = 5
    keys: int = 5
    width: int = 6
    value_width: int = 6
    model_width: int = 11
    out_width: int | None = None
    merged_width: int | None = None  # rows of W_O, where they are not heads · value_width


@dataclass(frozen=True, eq=False)
class Problem:
    """One set of inputs. `arrays` holds those of its form by name; `mask` admits pairs: (batch, n_q, n_k) of truths."""

    arrays: Mapping[str, Array]
    heads: int
    groups: int
    mask: Array | None = None
    start: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def get(self, name: str) -> Array | None:
        """An array that may be absent."""
        return self.arrays.get(name)

    @property
    def form(self) -> str:
        """`vectors` or `inputs`."""
        return "vectors" if "q" in self.arrays else "inputs"

    def but(self, **changed: Array) -> Problem:
        """The same problem with some of its arrays replaced."""
        return replace(self, arrays={**self.arrays, **changed})

    @property
    def queries(self) -> int:
        """n_q."""
        return int(self.arrays["q" if self.form == "vectors" else "x"].shape[-2])

    @property
    def keys(self) -> int:
        """n_k, those of earlier calls among them."""
        past = self.get("past_k")
        new = int(self.arrays["k" if self.form == "vectors" else "context"].shape[-2])
        return new if past is None else new + int(past.shape[-2])

    @property
    def first(self) -> int:
        """The position of the first query."""
        return self.keys - self.queries if self.start is None else self.start

    @property
    def batch(self) -> int:
        """How many texts."""
        return int(self.arrays["q" if self.form == "vectors" else "x"].shape[0])


def drawn_vectors(sizes: Sizes, seed: int = 0, spread: float = 1.0) -> Problem:
    """Random queries, keys and values."""
    draw = np.random.default_rng(seed).normal
    q = spread * draw(size=(sizes.batch, sizes.heads, sizes.queries, sizes.width))
    k = draw(size=(sizes.batch, sizes.groups, sizes.keys, sizes.width))
    v = draw(size=(sizes.batch, sizes.groups, sizes.keys, sizes.value_width))
    return Problem({"q": q, "k": k, "v": v}, sizes.heads, sizes.groups)


TABLES = {"metric": ("M", "P"), "sink": ("sink",)}
"""The names, in formulas, of what arguments of these roles hold."""


def drawn_tables(roles: frozenset[str], sizes: Sizes, seed: int = 0) -> dict[str, Array]:
    """A matrix between queries and keys, symmetric and definite; a number for each head."""
    draw = np.random.default_rng(seed + 100).normal
    square = draw(size=(sizes.width, sizes.width))
    drawn = {"metric": square @ square.T / sizes.width, "sink": draw(size=sizes.heads)}
    return {name: drawn[role] for role in roles & set(TABLES) for name in TABLES[role]}


def drawn_inputs(
    sizes: Sizes, present: frozenset[str], seed: int = 0, spread: float = 1.0, shared: bool = True
) -> Problem:
    """Random inputs and matrices: those that the target has. One x for all three roles where they are shared."""
    draw = np.random.default_rng(seed).normal
    width = sizes.model_width
    merged = sizes.merged_width or sizes.heads * sizes.value_width
    shapes = {
        "wq": (width, sizes.heads * sizes.width),
        "wk": (width, sizes.groups * sizes.width),
        "wv": (width, sizes.groups * sizes.value_width),
        "wo": (merged, merged if sizes.out_width is None else sizes.out_width),
    }
    arrays = {"x": draw(size=(sizes.batch, sizes.queries, width))}
    arrays["context"] = arrays["x"] if shared else draw(size=(sizes.batch, sizes.keys, width))
    arrays["memory"] = arrays["context"]
    for name, shape in shapes.items():
        if name in present:
            arrays[name] = draw(size=shape) * (spread if name == "wq" else 1.0) * shape[0] ** -0.5 * 1.5
        if (bias := f"b{name[1]}") in present:
            arrays[bias] = 0.5 * draw(size=shape[1:])
    return Problem(arrays, sizes.heads, sizes.groups)


def drawn_masks(problem: Problem, seed: int = 0, kind: str = "pairs") -> Array:
    """Random truths that admit at least one key in every row: of pairs, or of keys alone (padding at the end)."""
    random = np.random.default_rng(seed)
    shape = (problem.batch, problem.queries, problem.keys)
    if kind == "pairs":
        admitted = random.random(shape) < 0.6
        admitted[:, np.arange(shape[1]), random.integers(0, shape[2], shape[1])] = True
        return admitted
    lengths = 2 + np.arange(problem.batch) % max(problem.keys - 1, 1)
    return np.broadcast_to(np.arange(problem.keys) < lengths[:, None, None], shape).copy()
