"""Fit the rates of the cost model (src/regard/engines/costs.py) to this machine.

    python bench/costs.py              prints the rates to put there, and keeps them in bench/results/costs.json

Each engine runs calls of many sizes; the rates are the non-negative least squares of its relative errors.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch
from machine import in_turns, keep, timed
from scipy.optimize import nnls

import regard as rg
from regard import zoo
from regard.engines import costs
from regard.engines.call import prepare
from regard.engines.plan import ENGINES

STREAMED = [(1, 1, 16, 16), (1, 8, 64, 64), (2, 4, 256, 32), (1, 8, 512, 64), (1, 8, 1024, 64), (1, 2, 2048, 128)]
SIZES = {
    "sdpa": [*STREAMED, (1, 8, 2048, 64), (1, 1, 8192, 64)],
    "tiled": [*STREAMED, (1, 8, 2048, 64), (1, 1, 8192, 64)],
    "dense": STREAMED,
    "python": [(1, 1, 4, 4), (1, 2, 8, 4), (1, 2, 16, 8), (1, 2, 32, 16)],
}
FORMULAS = [rg.Attention(), rg.Attention(mask=rg.causal), zoo.soft_cap(), zoo.alibi(), zoo.sigmoid(), zoo.euclidean()]


def features(engine: str, call: Any) -> list[float]:
    """What each rate is multiplied by."""
    kept, found = costs.RATES[engine], []
    for rate in fields(costs.Rates):
        costs.RATES[engine] = costs.Rates(**{field.name: float(field == rate) for field in fields(costs.Rates)})
        found.append(ENGINES[engine].cost(call).seconds)
    costs.RATES[engine] = kept
    return found


def measured(engine: str) -> tuple[list[list[float]], list[float]]:
    """Features and seconds of every call that the engine takes."""
    rows, times = [], []
    for formula in FORMULAS:
        for shape in SIZES[engine]:
            q, k, v = (torch.randn(*shape) for _ in range(3))
            call = prepare(formula, q, k, v, tables={})
            if ENGINES[engine].refusal(call) is None:
                run = timed(lambda f=formula, x=(q, k, v): f(*x, engine=engine))
                rows.append(features(engine, call))
                times.append(in_turns({"run": run}, 7)["run"])
    return rows, times


def main() -> None:
    """Fit every engine, print the rates, keep them."""
    found = {}
    for engine in ENGINES:
        rows, times = measured(engine)
        matrix, seconds = np.asarray(rows), np.asarray(times)
        rates, _ = nnls(matrix / seconds[:, None], np.ones(len(seconds)))
        wrong = np.abs(matrix @ rates / seconds - 1)
        fitted = costs.Rates(*(float(f"{rate:.2g}") for rate in rates))
        print(f'    "{engine}": {fitted},   # median error {np.median(wrong):.0%}, largest {wrong.max():.0%}')
        found[engine] = {**asdict(fitted), "median error": float(np.median(wrong)), "largest": float(wrong.max())}
    keep("costs", "rates", found, "regard", "torch")


if __name__ == "__main__":
    with torch.no_grad():
        main()
