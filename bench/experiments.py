"""Every experiment at its full size: its outcome goes into the package, results/experiments.json has how long it took.

python bench/experiments.py [NAME …]
"""

from __future__ import annotations

import sys
import time

from machine import keep

from regard.experiments.record import Scale
from regard.experiments.registry import EXPERIMENTS, find
from regard.experiments.store import measured, ship

if __name__ == "__main__":
    for name in sys.argv[1:] or EXPERIMENTS:
        began = time.perf_counter()
        outcome = measured(name, Scale())
        seconds = time.perf_counter() - began
        ship(name, outcome)
        keep("experiments", name, {"seconds": seconds, "minutes said": find(name).minutes}, "torch")
        print(f"{name:<10} {seconds:6.1f} s   {outcome.says}", flush=True)
