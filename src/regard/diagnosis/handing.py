"""What is handed over for an argument that is no array of the problem: counts, flags, scales, and tables of positions.

cos sin            cos n·θ_c and sin n·θ_c for θ_c = 10000^(−2c/d), twice beside each other: (n, d)
freqs_cis          exp(i n·θ_c): (n, d/2);  freqs: the angles n·θ_c
position_ids       0, 1, … n − 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .problem import Array, Problem, Sizes
from .words import words

BASE = 10000.0


def plain_values(form: str, sizes: Sizes, problem: Problem) -> Mapping[str, Any]:
    """A value for each role that is no array."""
    return {
        "heads": problem.heads,
        "kv_heads": problem.groups,
        "width": sizes.width,
        "model_width": sizes.model_width if form == "inputs" else sizes.width,
        "scale": sizes.width**-0.5,
        "dropout": 0.0,
        "training": False,
        "causal": False,
        "use_cache": False,
        "return_weights": False,
        "start": 0,
        "seed": 0,
    }


def position_table(name: str, n: int, width: int) -> Array | tuple[Array, ...]:
    """What an argument of this name holds for positions 0 … n − 1 of rotary vectors."""
    angles = np.arange(n)[:, None] * BASE ** (-2 * np.arange(width // 2) / width)
    halves = np.concatenate([angles, angles], axis=-1)
    said = set(words(name))
    if {"cos", "sin"} <= said or {"embeddings"} & said:
        return np.cos(halves)[None], np.sin(halves)[None]
    if "cos" in said:
        return np.cos(halves)
    if "sin" in said:
        return np.sin(halves)
    if {"cis", "complex"} & said:
        return np.exp(1j * angles)
    return angles if {"freqs", "freq", "angles", "theta", "rope", "rotary"} & said else np.arange(n)
