"""Clouds of vectors, metrics and rotations of different prime sizes, in every library and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

ROWS, WIDTH = 23, 5
LIBRARIES = {"numpy": np, "torch": torch, "jax": jnp}


@dataclass(frozen=True)
class Kind:
    """A library and a precision: calling it makes an array."""

    library: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.library} {self.dtype}"

    def __call__(self, values: Any) -> Any:
        xp = LIBRARIES[self.library]
        return xp.asarray(values, dtype=getattr(xp, self.dtype))

    @property
    def eps(self) -> float:
        return float(np.finfo(self.dtype).eps)

    def rounded(self, values: Any) -> Any:
        """The values that an array of this kind holds, for an oracle in float64."""
        return np.asarray(values, self.dtype).astype(float)

    def made(self, array: Any) -> bool:
        """Whether the array is of this library and precision."""
        root = type(array).__module__.partition(".")[0].removesuffix("lib")
        return root == self.library and str(array.dtype).endswith(self.dtype)


KINDS = [Kind(library, dtype) for library in ("numpy", "torch") for dtype in ("float32", "float64")]
KINDS.append(Kind("jax", "float32"))  # its own default; float64 where it compiles and differentiates
EVERY_KIND = pytest.mark.parametrize("kind", KINDS, ids=str)


def normal(*shape: int, seed: int = 0) -> Any:
    """Random numbers of this shape, the same ones on every run."""
    return np.random.default_rng(seed).standard_normal(shape)


def metric(width: int = WIDTH, seed: int = 1) -> Any:
    """A symmetric matrix with positive eigenvalues, at worst in the ratio of some 100."""
    root = normal(width, width, seed=seed)
    return root @ root.T / width + 0.1 * np.eye(width)


def orthogonal(width: int = WIDTH, seed: int = 2) -> Any:
    """A random rotation, perhaps with a reflection."""
    return np.linalg.qr(normal(width, width, seed=seed))[0]


def cloud(rows: int = ROWS, width: int = WIDTH, seed: int = 3) -> Any:
    """Rows around a mean that is not 0, correlated, of different variances."""
    mixed = normal(rows, width, seed=seed) @ metric(width, seed + 1)
    return mixed * np.arange(1, width + 1) + normal(width, seed=seed + 2)


def numbers(array: Any) -> Any:
    """Any array as NumPy's."""
    return np.asarray(array.detach() if isinstance(array, torch.Tensor) else array)


def leaf(values: Any) -> Any:
    """A tensor in float64 that asks for its gradient."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)
