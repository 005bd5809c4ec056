"""Attention and an LSTM by length, on every device that is there.

    python bench/length_gpu.py         prints a table and keeps bench/results/length.json, part "cuda" or "cpu"

The experiment `length` itself, at its full scale: its numbers, its table and every time that was taken.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from machine import keep

from regard.experiments.length import EXPERIMENT
from regard.experiments.record import Outcome, Scale


def shown(outcome: Outcome) -> None:
    """The table, in columns of their own width."""
    rows = [outcome.table.columns, *outcome.table.rows]
    widths = [max(len(str(row[at])) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)))
    print(outcome.says)


def measured() -> tuple[str, dict[str, Any]]:
    """The name of the part, and what came out."""
    outcome = EXPERIMENT.run(Scale(), lambda what, share: print(f"{share:4.0%} {what}", flush=True))
    shown(outcome)
    cuda = torch.cuda.is_available()
    return ("cuda" if cuda else "cpu"), {"gpu": torch.cuda.get_device_name() if cuda else None, **asdict(outcome)}


if __name__ == "__main__":
    part, found = measured()
    keep("length", part, found, "torch")
