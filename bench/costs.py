"""Fit the rates of the cost model (src/regard/engines/costs.py) to this machine.

    python bench/costs.py [--gpu]      prints the rates to put there, and keeps them in bench/results/costs.json

Each engine runs calls of many sizes, in float32, on a GPU in bfloat16; the rates are the non-negative least squares of
its relative errors.
"""

from __future__ import annotations

import argparse
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
LARGE = [(1, 8, 128, 128), (2, 16, 512, 128), (1, 16, 2048, 128), (2, 16, 4096, 128), (2, 16, 8192, 128)]
ON_GPU = {"sdpa": LARGE, "triton": LARGE, "tiled": LARGE[:4], "dense": LARGE[:4]}
FORMULAS = [rg.Attention(), rg.Attention(mask=rg.causal), zoo.soft_cap(), zoo.alibi(), zoo.sigmoid(), zoo.euclidean()]


def features(engine: str, call: Any, table: dict[str, costs.Rates]) -> list[float]:
    """What each rate is multiplied by."""
    kept, found = table[engine], []
    for rate in fields(costs.Rates):
        table[engine] = costs.Rates(**{field.name: float(field == rate) for field in fields(costs.Rates)})
        found.append(ENGINES[engine].cost(call).seconds)
    table[engine] = kept
    return found


def measured(engine: str, gpu: bool) -> tuple[list[list[float]], list[float]]:
    """Features and seconds of every call that the engine takes."""
    rows, times = [], []
    sizes, table = (ON_GPU, costs.ON_GPU) if gpu else (SIZES, costs.RATES)
    made: Any = {"device": "cuda", "dtype": torch.bfloat16} if gpu else {}

    def run(formula: Any, x: Any) -> Any:
        y = formula(*x, engine=engine)
        if gpu:
            torch.cuda.synchronize()
        return y

    for formula in FORMULAS[: 2 if gpu else None]:
        for shape in sizes[engine]:
            q, k, v = (torch.randn(*shape, **made) for _ in range(3))
            call = prepare(formula, q, k, v, tables={})
            if ENGINES[engine].refusal(call) is None:
                rows.append(features(engine, call, table))
                times.append(in_turns({"run": timed(lambda f=formula, x=(q, k, v): run(f, x))}, 7)["run"])
    return rows, times


def main() -> None:
    """Fit every engine, print the rates, keep them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="on a GPU")
    gpu, found = parser.parse_args().gpu, {}
    for engine in ON_GPU if gpu else SIZES:
        rows, times = measured(engine, gpu)
        matrix, seconds = np.asarray(rows), np.asarray(times)
        rates, _ = nnls(matrix / seconds[:, None], np.ones(len(seconds)))
        wrong = np.abs(matrix @ rates / seconds - 1)
        fitted = costs.Rates(*(float(f"{rate:.2g}") for rate in rates))
        print(f'    "{engine}": {fitted},   # median error {np.median(wrong):.0%}, largest {wrong.max():.0%}')
        found[engine] = {**asdict(fitted), "median error": float(np.median(wrong)), "largest": float(wrong.max())}
    keep("costs", "rates on a GPU" if gpu else "rates", found, "regard", "torch")


if __name__ == "__main__":
    with torch.no_grad():
        main()
