"""Every experiment at its full size: bench/results/experiments/NAME.json, and how long each took.

python bench/experiments.py [NAME …]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from machine import keep

from regard.experiments.record import Scale
from regard.experiments.registry import EXPERIMENTS, find
from regard.experiments.store import measured

RESULTS = Path(__file__).parent / "results" / "experiments"

if __name__ == "__main__":
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or EXPERIMENTS:
        began = time.perf_counter()
        outcome = measured(name, Scale())
        seconds = time.perf_counter() - began
        (RESULTS / f"{name}.json").write_text(outcome.json() + "\n", encoding="utf-8")
        keep("experiments", name, {"seconds": seconds, "minutes said": find(name).minutes}, "torch")
        print(f"{name:<10} {seconds:6.1f} s   {outcome.says}", flush=True)
