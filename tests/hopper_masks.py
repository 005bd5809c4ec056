"""The masks of the formulas in hopper_formulas.py, as every pair sees them."""

from __future__ import annotations

from typing import Any

import torch

WINDOW = 60


def mask_of(formula: str, start: Any, documents: list[Any]) -> Any:
    """The truths of a masked formula, (B, 1, N, n); `documents` are those of rows and of keys, (B, N) and (B, n)."""
    rows, keys = documents
    i, j = start[:, None, None, None] + torch.arange(rows.shape[1])[:, None], torch.arange(keys.shape[1])
    match formula:
        case "documents":
            return (rows[:, None, :, None] == keys[:, None, None]) & (i >= j)
        case "window":
            return (i >= j) & (i - j < WINDOW)
    return i >= j
