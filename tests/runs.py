"""One call of different prime sizes, and every engine and library that runs it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUES = 2, 3, 5, 7, 4, 11
RNG = np.random.default_rng(0)
LIBRARIES = {"numpy": np.asarray, "torch": torch.asarray, "jax": jnp.asarray}
RUNS = [("python", "numpy"), ("dense", "numpy"), ("dense", "torch"), ("dense", "jax")]
ENGINES = pytest.mark.parametrize("engine", ["python", "dense"])
EVERY_RUN = pytest.mark.parametrize(("engine", "library"), RUNS, ids=map(" ".join, RUNS))


def normal(*shape: int) -> Any:
    """Random numbers of this shape, the same ones on every run."""
    return RNG.standard_normal(shape)


Q, K, V = normal(BATCH, HEADS, QUERIES, WIDTH), normal(BATCH, HEADS, KEYS, WIDTH), normal(BATCH, HEADS, KEYS, VALUES)
DY = normal(BATCH, HEADS, QUERIES, VALUES)
TQ, TK, TV = map(torch.asarray, (Q, K, V))
