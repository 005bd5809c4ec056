"""What every step on the road from distance to attention says of one patch of an image.

‖x − y‖    cos θ    ‖A (x − y)‖    Σ = Q Λ Qᵀ    A (x − μ)    softmax(q·k / √d), q = x W_Q, k = x W_K
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import geometry
from ..algebra.errors import CallError
from ..attention import Attention
from ..inputs import patches, pixels, unit
from ..inputs.grid import Grid

WIDEST = 4096  # D for which Σ, with D² numbers, is taken apart
MEASURES = {"Euclidean": "euclidean", "cosine": "cosine", "Mahalanobis": "mahalanobis"}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How near every patch is to the query, and the nearest of them.

    values:  a distance or a cosine for every patch
    nearest: indices of patches, the nearest first, without the query
    """

    values: Any
    nearest: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Chain:
    """One image, one query patch, and what each step makes of it."""

    image: Any
    grid: Grid
    vectors: Any
    query: int
    neighbours: dict[str, Neighbours]
    axes: geometry.Axes
    shrinkage: float
    coordinates: Any
    whitened: Any
    weights: Any
    width: int

    @classmethod
    def of(
        cls, image: Any, size: Any = 16, *, query: int | None = None, count: int = 8, width: int = 64, seed: int = 0
    ) -> Chain:
        """Every step for one image.

        image: whatever `inputs.patches` takes
        size:  of a patch, as there
        query: the index of a patch; that of the most contrast without
        count: how many neighbours
        width: d of queries and keys
        seed:  of W_Q and W_K
        """
        shown = _colours(unit(pixels(image)))
        cut = patches(shown, size)
        x = np.asarray(cut.vectors, dtype=np.float64)
        if len(x) < 3:
            raise CallError(f"size: at least three patches in the image; got {len(x)}; pass a smaller size")
        if x.shape[1] > WIDEST:
            rule = f"patches of at most {WIDEST} numbers, whose axes are computed"
            raise CallError(f"size: {rule}; got {x.shape[1]}; pass a smaller size")
        if x.min() == x.max():
            raise CallError("image: more than one colour; got the same everywhere, where all patches are one")
        query = int(x.std(axis=1).argmax()) if query is None else cut.grid.index(*cut.grid.place(query))
        covariance, shrinkage = geometry.shrunk(x, "ledoit-wolf")
        metric = geometry.Mahalanobis(covariance)
        found = geometry.axes(geometry.covariance(x))
        centred = x - x.mean(axis=0)
        return cls(
            image=shown, grid=cut.grid, vectors=x, query=query,
            neighbours={name: _neighbours(x, query, metric if word == "mahalanobis" else word, min(count, len(x) - 1))
                        for name, word in MEASURES.items()},
            axes=found, shrinkage=shrinkage, coordinates=_first_two(found.coordinates(centred)),
            whitened=_first_two(centred @ geometry.whitening(covariance, "pca").T),
            weights=_attention(centred / x.std(), query, width, seed), width=width,
        )  # fmt: skip


def _colours(image: Any) -> Any:
    """Grey as it is; of more channels than three, the colours."""
    image = np.asarray(image, dtype=np.float64)
    return image[..., :3] if image.ndim == 3 and image.shape[-1] > 3 else image


def _first_two(coordinates: Any) -> Any:
    """Along the first two axes; where there is one alone, the second is 0."""
    return np.pad(coordinates, ((0, 0), (0, 1)))[:, :2]


def _neighbours(x: Any, query: int, metric: Any, count: int) -> Neighbours:
    values, indices = geometry.search(x[query], x, len(x), metric=metric)
    every = np.empty(len(x))
    every[indices] = values
    nearest = tuple(int(index) for index in indices if index != query)[:count]
    return Neighbours(every, nearest)


def _attention(x: Any, query: int, width: int, seed: int) -> Any:
    """The row of weights of the query, under random projections whose entries have variance 1/D."""
    rng = np.random.default_rng(seed)
    Wq, Wk = rng.standard_normal((2, x.shape[1], width)) / np.sqrt(x.shape[1])
    return Attention().weights(x[query : query + 1] @ Wq, x @ Wk)[0]
