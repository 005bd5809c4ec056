"""Layers of different prime sizes, with weights so large that attention is far from even, where errors would hide."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import torch
from torch import Tensor, nn

from regard import Attention, H, causal, d, dot, exp, h, i, j, share, sigmoid, sqdist, sqrt, table, tanh, window
from regard.inputs.positions import (
    ALiBi,
    Buckets,
    DynamicNTK,
    Learned,
    NoPosition,
    Offsets,
    Position,
    Relative,
    Rotary,
    Sinusoidal,
)
from regard.nn import Decoder

BATCH, ROWS, DIM, HEADS, KV_HEADS, WIDTH, TOKENS = 3, 11, 13, 6, 2, 4, 17
CLOSE = {"rtol": 1e-9, "atol": 1e-10}  # float64 keeps 16 digits; two loud layers and a norm lose five
EXACT = {"rtol": 0.0, "atol": 0.0}

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """The same normal numbers on every run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def whole(*shape: int, below: int = TOKENS, seed: int = 0) -> Tensor:
    """The same integers on every run."""
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(seed))


def loud(module: ModuleT, spread: float = 0.5, seed: int = 0) -> ModuleT:
    """The module in float64 for inference, every parameter drawn anew."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.double().parameters():
        nn.init.normal_(parameter, std=spread, generator=generator)
    return module.eval()


def unequal(x: Tensor, counts: list[int], filling: float) -> Tensor:
    """A copy of x with the rows behind each text's count replaced."""
    x = x.clone()
    for text, count in enumerate(counts):
        x[text, count:] = filling
    return x


# -- formulas and positions of decoders ----------------------------------------------------------------------------

FORMULAS = {
    "softmax": Attention(mask=causal),
    "window": Attention(mask=window(3)),
    "sigmoid": Attention(weight=sigmoid, mask=causal),
    "soft-cap": Attention(5 * tanh(dot / sqrt(d) / 5), mask=causal),
    "distance": Attention(-sqdist / 2, mask=causal),
    "sink": Attention(weight=share(exp, sink=1), mask=causal),
    "slopes": Attention(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=causal),
    "bias": Attention(dot / sqrt(d) + table("bias")[h, i - j], mask=causal),
}
TABLES = {"bias": {"bias": nn.Parameter(torch.zeros(HEADS, 2 * ROWS))}}
POSITIONS: dict[str, Position] = {
    "none": NoPosition(),
    "rotary": Rotary(),
    "learned": Learned.random(2 * ROWS, DIM),
    "sinusoidal": Sinusoidal(),
    "alibi": ALiBi(),
    "offsets": Relative.random(HEADS, Offsets(3)),
    "buckets": Relative.random(HEADS, Buckets(8, 7)),
    "sum": Learned.random(2 * ROWS, DIM) + Rotary(width=2) + Relative.random(HEADS, Offsets(5, sides=1)),
    "dynamic": Rotary(scaling=DynamicNTK(2.0, 5)),
}


def decoder(formula: str = "softmax", position: str = "rotary") -> Decoder:
    """Two blocks, with fewer keys than queries and heads of their own width; made once and never changed."""
    return _decoder(formula, position)


@cache
def _decoder(formula: str, position: str) -> Decoder:
    tables = TABLES.get(formula)
    with torch.inference_mode(False):
        return loud(
            Decoder(DIM, 2, HEADS, KV_HEADS, FORMULAS[formula], POSITIONS[position], width=WIDTH, tables=tables)
        )
