"""What the rows measure with: numbers and photographs, distances between arrays, hulls, and every engine at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np

from ..algebra.errors import EngineError

Array = Any


def normal(seed: int, *shape: int) -> Array:
    """Standard normal numbers, the same on every run."""
    return np.random.default_rng(seed).standard_normal(shape)


def rotation(seed: int, width: int) -> Array:
    """A random orthogonal matrix."""
    return np.linalg.qr(normal(seed, width, width))[0]


def photograph(name: str) -> Array:
    """A photograph that comes with scikit-learn, (427, 640, 3) in uint8: "china", a pagoda by a lake, or "flower"."""
    from sklearn.datasets import load_sample_image

    return np.asarray(load_sample_image(f"{name}.jpg"))


def grey(name: str) -> Array:
    """The same as one number for each pixel, the mean of its colours, rounded."""
    return np.rint(photograph(name).mean(axis=-1)).astype(np.uint8)


def gap(a: Array, b: Array) -> float:
    """max |a − b|. NaN where either holds one, and a NaN keeps no bound."""
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))))


def relative_gap(a: Array, b: Array) -> float:
    """max |a − b| / max |a|."""
    return gap(a, b) / float(np.max(np.abs(a)))


def asymmetry(scores: Array) -> float:
    """max |s_ij − s_ji| / max |s_ij|."""
    return relative_gap(scores, np.swapaxes(scores, -1, -2))


def changed_bits(a: Array, b: Array) -> int:
    """How many bytes differ between two arrays of one shape and dtype."""
    a, b = (np.ascontiguousarray(array) for array in (a, b))
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"arrays: of one shape and dtype; got {a.shape} {a.dtype} and {b.shape} {b.dtype}")
    return int(np.sum(a.view(np.uint8) != b.view(np.uint8)))


def outside_hull(points: Array, cloud: Array) -> float:
    """max over faces u, |u| = 1, of u·p − max_j u·c_j: how far a point lies outside the hull of a cloud in space.

    A face of the hull goes through three points of the cloud. So the normals of all such planes, in both directions,
    hold all of its faces: a point is inside exactly when no normal u separates it. Negative: how deep it lies inside.
    """
    corners = np.array(list(combinations(cloud, 3)))
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    faces = np.concatenate([normals, -normals])
    return float(np.max(points @ faces.T - np.max(cloud @ faces.T, axis=0)))


def on_every_engine(compute: Callable[..., Any], *arrays: Array) -> dict[str, Array]:
    """`compute(*arrays, engine=name)` for every engine and every kind of array that is installed, as NumPy arrays.

    A pair that the engine refuses is left out; so is a library that is not there.
    """
    from ..engines.plan import ENGINES

    found = {}
    for kind, convert in _kinds():
        converted = [convert(array) for array in arrays]
        for engine in ENGINES:
            try:
                found[f"{engine} on {kind}"] = np.asarray(compute(*converted, engine=engine))
            except EngineError:
                continue
    return found


def _kinds() -> Iterator[tuple[str, Callable[[Array], Any]]]:
    """The kinds of array that are installed, each with the function that makes one of a NumPy array."""
    yield "lists", lambda array: array.tolist()
    yield "numpy", lambda array: array
    for kind, module, name in (("torch", "torch", "from_numpy"), ("jax", "jax.numpy", "asarray")):
        try:
            yield kind, getattr(import_module(module), name)
        except ImportError:
            continue
