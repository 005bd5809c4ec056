"""Captured calls and small lenses, for the tests of what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import regard as rg
from regard.viewer.record import Axis, Captured, Missing

FORMULAS = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=rg.causal),
    "window": rg.Attention(mask=rg.window(31)),
    "strict": rg.parse("softmax(dot / sqrt(d), mask=j < i)"),
    "line": rg.parse("softmax(dot * (i + 1) / (10 * sqrt(d)) - 0.01 * (i - j) + h, mask=j <= i + 5)"),
    "sink": rg.parse("share(exp(s), sink=1)(dot / sqrt(d))"),
    "sigmoid": rg.parse("each(sigmoid(s))(dot / sqrt(d) - log(n))"),
    "scores": rg.parse("each(s)(dot - 3)"),
    "capped": rg.parse("softmax(3 * tanh(dot / (3 * sqrt(d))))"),
    "cosine": rg.parse("softmax(4 * cosine)"),
    "over queries": rg.parse("share(exp(s), over=i)(dot / sqrt(d), mask=j <= i + 100)"),
    "over heads": rg.parse("share(exp(s), over=h)(dot / sqrt(d))"),
    "over the batch": rg.parse("share(exp(s), over=b)(dot / sqrt(d))"),
    "squares": rg.parse("share(relu(s) ** 2)(dot)"),
    "late mask": rg.parse("share(exp(s), among=j >= 0)(dot / sqrt(d), mask=j <= i)"),
    "tables": rg.parse('softmax(dot / sqrt(d) + table("bias")[h], mask=(j < table("lengths")[b]) & given("mask"))'),
    "relative": rg.parse('softmax(dot / sqrt(d) + table("near")[h, (i + j) % 101])'),
}


def captured(
    formula: rg.Attention, queries: int, keys: int, *, dtype: Any = np.float32, width: int = 7, seed: int = 0
) -> Captured:
    """Two batch items of four heads, with two key heads and every table that the formulas above read."""
    rng = np.random.default_rng(seed)
    q, k, v = (
        (2 * rng.standard_normal((2, heads, places, width))).astype(dtype)
        for heads, places in ((4, queries), (2, keys), (2, keys))
    )
    tables = {
        "bias": rng.standard_normal(4).astype(np.float32), "lengths": np.asarray([keys, max(1, keys - 3)]),
        "mask": rng.random((1, 1, queries, keys)) < 0.9, "near": rng.standard_normal((4, 101)).astype(np.float32),
    }  # fmt: skip
    return Captured("layer", formula, q, k, v, tables, start=0)


def weights(call: Captured, batch: int, head: int, formula: rg.Attention | None = None) -> Any:
    """The whole matrix of one head, from the whole of everything."""
    formula = call.formula if formula is None else formula
    read = {name: call.tables[name] for name in formula.ranks}
    return formula.weights(call.q, call.k, start=0, engine="dense", **read)[batch, head]


def pixels(matrix: Any, level: int) -> Any:
    """The largest and the mean over 2^level × 2^level cells, in float64."""
    rows, columns = (np.arange(0, size, 2**level) for size in matrix.shape)
    wide = matrix.astype(np.float64)
    largest = np.maximum.reduceat(np.maximum.reduceat(wide, rows), columns, axis=1)
    total, count = (np.add.reduceat(np.add.reduceat(x, rows), columns, axis=1) for x in (wide, np.ones_like(wide)))
    return np.stack([largest, total / count])


def close(found: Any, expected: Any) -> None:
    """float16 numbers that are the rounded ones, but for the last bit, which rounding twice may change."""
    assert found.dtype == np.float16
    assert found.shape == expected.shape
    slack = 1e-6 * np.abs(expected).max(initial=0) + 2.0**-24
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2.0**-10, atol=slack)


class SmallLens:
    """What answers are asked of: two layers of one text, and a layer that reads another."""

    title, model, notes, image = "small", "by hand", ("a note",), b"\x89PNG and so on"
    missing, begin = (Missing("layer 7", "it said nothing"),), {"layer": 1, "head": 3}

    def __init__(self, places: int = 23, keys: int = 31) -> None:
        self.layers = (
            captured(FORMULAS["softmax"], places, places),
            captured(FORMULAS["tables"], places, places, seed=1),
            captured(FORMULAS["over queries"], places, keys, seed=2),
        )
        axes = {
            "query": Axis("query", tuple(f" t{place}" for place in range(places)), frozenset({0})),
            "key": Axis("key", tuple(f"k{place}" for place in range(keys)), grid=(1, keys)),
        }
        self.axes = (axes, axes)
