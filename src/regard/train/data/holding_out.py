"""Examples held out of the training: a share of every class, or of all groups, drawn from a seed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...algebra.errors import CallError, KindError
from .draws import Draws


def stratified(labels: Any, held_out: float, seed: int) -> tuple[Any, Any]:
    """Rows to train on and rows held out, both sorted: of each class that share, at least one and not all."""
    share = check_share(held_out)
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        order = Draws(seed, "split", int(label)).order(len(rows))
        held[rows[order[: _part(len(rows), share)]]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def grouped(groups: Sequence[Hashable], held_out: float, seed: int) -> tuple[Any, Any]:
    """Rows to train on and rows held out, both sorted: rows of one group are on one side."""
    share = check_share(held_out)
    number = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    order = Draws(seed, "split").order(len(number))
    held = np.zeros(len(number), dtype=bool)
    held[order[: _part(len(number), share)]] = True
    of_row = held[[number[group] for group in groups]]
    return np.flatnonzero(~of_row), np.flatnonzero(of_row)


def check_share(held_out: object) -> float:
    """A share between 0 and 1."""
    if not isinstance(held_out, int | float) or isinstance(held_out, bool):
        raise KindError(f"held_out: a number; got {held_out!r}")
    if not 0 < held_out < 1:
        raise CallError(f"held_out: a share between 0 and 1, such as 0.2; got {held_out}")
    return float(held_out)


def _part(count: int, share: float) -> int:
    return min(max(round(count * share), 1), count - 1)
