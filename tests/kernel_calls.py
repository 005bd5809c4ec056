"""Calls of PyTorch's own kernel: arrays, tables, formulas that reduce to it, and what agreement with `dense` means."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard as rg
from regard import b, cosine, d, dot, h, i, j, n, sqdist, sqrt, table
from regard.engines import sdpa
from regard.engines.call import Call, prepare

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 6, 11, 13, 5
GENERATOR = torch.Generator().manual_seed(0)
DOUBLE = 1e-12


def normal(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64).to(dtype)


Q, K, V = normal(BATCH, HEADS, QUERIES, WIDTH), normal(BATCH, HEADS, KEYS, WIDTH), normal(BATCH, HEADS, KEYS, WIDTH)
DY = normal(BATCH, HEADS, QUERIES, WIDTH)
TABLES: dict[str, torch.Tensor] = {
    "M": normal(WIDTH, WIDTH), "P": normal(HEADS, WIDTH, WIDTH), "scale": normal(), "heads": normal(HEADS),
    "line": normal(29), "relative": normal(HEADS, 41), "rows": normal(BATCH, 29), "ids": torch.arange(29) % 5,
    "lengths": torch.tensor([7, 13]), "widths": torch.tensor([2, 5]), "keep": torch.rand(QUERIES, KEYS) < 0.7,
    "ij": normal(KEYS, KEYS), "hij": normal(HEADS, KEYS, KEYS), "bij": normal(BATCH, KEYS, KEYS),
    "bhij": normal(BATCH, HEADS, KEYS, KEYS),
}  # fmt: skip


def read(attention: rg.Attention) -> dict[str, Any]:
    return {name: TABLES[name] for name in attention.ranks if name in TABLES}


def call_of(attention: rg.Attention, q: Any = Q, k: Any = K, v: Any = V, start: Any = None, **tables: Any) -> Call:
    return prepare(attention, q, k, v, start=start, tables=read(attention) | tables)


def reduced(attention: rg.Attention) -> sdpa.Reduction:
    law = sdpa.reduction(attention)
    assert isinstance(law, sdpa.Reduction), law
    return law


def close(found: torch.Tensor, expected: torch.Tensor, accuracy: float = DOUBLE) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    largest = float(expected.detach().nan_to_num(0, 0, 0).abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=accuracy * (1 + largest), equal_nan=True)


def agrees(attention: rg.Attention, q: Any = Q, k: Any = K, v: Any = V, **options: Any) -> None:
    options = read(attention) | options
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # the N × n path is an error
        found = attention(q, k, v, engine="sdpa", **options)
    close(found, attention(q, k, v, engine="dense", **options))


FORMULAS = {
    "padding": rg.Attention(mask=rg.padding("lengths")),
    "window": rg.Attention(mask=rg.window(3)),
    "window of each batch": rg.Attention(mask=(j <= i) & (i - j < table("widths")[b])),
    "band": rg.Attention(score=dot + (i - j) / 7, mask=abs(i - j) <= 4),
    "causal cosine": rg.Attention(score=3 * cosine, mask=rg.causal),
    "relative": rg.Attention(score=dot / sqrt(d) + table("relative")[h, i - j + 20], mask=rg.causal),
    "column bias": rg.Attention(score=dot + table("line")[j] * (h + 1), mask=j > 2),
    "row bias": rg.Attention(score=dot + table("rows")[b, i] - table("heads")[h], mask=rg.causal),
    "row and offset": rg.Attention(score=dot - (i - j) / 5 + table("line")[i]),
    "product with a row": rg.Attention(score=dot + (h + 1) * (table("line")[i] + table("line")[j])),
    "slope of a table": rg.Attention(score=dot * table("scale"), mask=rg.causal),
    "slope of a head": rg.Attention(score=dot * table("heads")[h] + j),
    "slope of a row": rg.Attention(score=cosine * table("rows")[b, i] + (i - j)),
    "slope of cos": rg.Attention(score=dot * rg.cos(n)),
    "falling": rg.Attention(score=-dot / n),
    "metric": rg.Attention(score=dot(table("M")) / 3),
    "metrics": rg.Attention(score=dot(table("P")[h]), mask=rg.causal),
    "heads that read": rg.Attention(mask=h < 4),
    "distance": rg.Attention(score=-sqdist / (2 * d)),
    "distance by head": rg.Attention(score=-sqdist * (h + 1) / 9 + table("line")[j] + i, mask=rg.padding("lengths")),
    "metric distance": rg.Attention(score=-sqdist(table("P")[h]) / 5),
    "matrix": rg.Attention(score=dot + table("ij")[i, j]),
    "matrix of heads": rg.Attention(score=dot + table("hij")[h, i, j] + i),
    "matrix of batches": rg.Attention(score=dot + table("bij")[b, i, j]),
    "matrix of all": rg.Attention(score=dot + table("bhij")[b, h, i, j]),
    "given": rg.Attention(mask=rg.given("keep")),
}
