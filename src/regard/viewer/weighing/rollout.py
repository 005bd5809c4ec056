"""Attention rollout (Abnar, Zuidema 2020): how much of each input reaches a place through all layers.

    A_l = r I + (1 − r) Ŵ_l        Ŵ: the mean or maximum over heads, rows divided by their sum
    x = e_q A_L ⋯ A_2 A_1          from the last layer to the first: a vector, so that no product of matrices is made

A row that reads nothing passes itself on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._checks import check_number
from ...algebra.errors import CallError
from ..arrays import numpy_of
from ..record import Captured
from ..work import Stop
from .streaming import blocks
from .totals import without_values

if TYPE_CHECKING:
    from ..lenses import Lens

LONGEST = 4096  # places
FUSED = {"mean": lambda weights: weights.mean(axis=0), "max": lambda weights: weights.max(axis=0)}


def rollout(lens: Lens, batch: int, query: int | None, how: str, residual: float, stop: Stop) -> np.ndarray[Any, Any]:
    """What reaches a query from each place of the input, (N,) in float32; the mean over all queries without one."""
    size = _places(lens)
    if how not in FUSED:
        raise CallError(f"how: one of {', '.join(FUSED)}; got {str(how)[:40]!r}")
    check_number("residual", residual, 0)
    if residual > 1:
        raise CallError(f"residual: from 0 to 1; got {residual!r}")
    if query is not None and not 0 <= query < size:
        raise CallError(f"query: from 0 to {size - 1}; got {query}")
    reached = np.full(size, 1 / size) if query is None else np.eye(1, size, query)[0]
    for captured in reversed(lens.layers):
        reached = residual * reached + (1 - residual) * _through(captured, batch, how, reached, stop)
    return reached.astype(np.float32)


def _through(captured: Captured, batch: int, how: str, reached: Any, stop: Stop) -> Any:
    """x Ŵ for one layer, over the rows that anything reaches."""
    parts = without_values(captured, captured.formula)
    read = np.zeros_like(reached)
    for rows, (steps,) in blocks(captured, [parts], batch, range(parts.shape[1]), np.flatnonzero(reached), stop):
        every = numpy_of(steps.weights)[0].astype(np.float64)
        if (every < 0).any():
            raise CallError(f"rollout: weights of at least 0; got negative ones in {captured.name}; look at each layer")
        weights = FUSED[how](every)
        total = weights.sum(axis=1)
        reads = total > 0
        read += (reached[rows] * np.divide(1, total, out=np.zeros_like(total), where=reads)) @ weights
        read[rows[~reads]] += reached[rows[~reads]]
    return read


def _places(lens: Lens) -> int:
    """How many places all layers read and write; refused where they differ."""
    if not lens.layers:
        raise CallError("rollout: at least one layer; got none")
    first = lens.layers[0]
    for captured in lens.layers:
        _, _, queries, keys = captured.shape
        if captured.query != captured.key:
            raise CallError(
                f"rollout: every layer reads the places that it writes; got {captured.name} with {queries} queries "
                f"along {captured.query} and {keys} keys along {captured.key}; look at each layer"
            )
        if (captured.key, keys) != (first.key, first.shape[3]):
            raise CallError(
                f"rollout: all layers share one axis; got {first.shape[3]} places of {first.key} in {first.name} and "
                f"{keys} of {captured.key} in {captured.name}; look at each layer"
            )
    if first.shape[3] > LONGEST:
        raise CallError(f"rollout: up to {LONGEST} places; got {first.shape[3]}; take a shorter input")
    return first.shape[3]
