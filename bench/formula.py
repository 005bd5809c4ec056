"""How long a formula takes to build, canonicalise and print: every zoo entry, in fresh processes.

    python bench/formula.py            prints a table and keeps bench/results/formula.json

Each entry is built and printed (text, Unicode, LaTeX, MathML) in a process of its own, so that nothing
is cached; the median of five processes stands beside the time for the same again in a warm process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from machine import keep

GOAL_MS = 50
ROUNDS = 5

ONE = """
import json, sys, time
import regard as rg
from regard.zoo import ENTRIES
import regard.algebra.printing.latex, regard.algebra.printing.mathml, regard.algebra.printing.unicode

def once():
    start = time.perf_counter()
    formula = ENTRIES[sys.argv[1]].make()
    text = repr(formula); formula.latex(); formula.mathml(); formula.unicode()
    built = time.perf_counter()
    rg.parse(text)
    return (built - start) * 1e3, (time.perf_counter() - built) * 1e3

print(json.dumps([once(), once()]))
"""


def measured(name: str) -> dict[str, float]:
    """Milliseconds for one entry: cold and warm, to build and print, and to parse."""
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", ONE, name])) for _ in range(ROUNDS)]
    cold, warm = zip(*runs, strict=True)
    return {
        "cold_ms": statistics.median(build for build, _ in cold),
        "cold_parse_ms": statistics.median(parse for _, parse in cold),
        "warm_ms": statistics.median(build for build, _ in warm),
    }


def main() -> None:
    """Measure every entry, print the table, keep it as JSON."""
    from regard.zoo import ENTRIES

    rows = {name: measured(name) for name in ENTRIES}
    print(f"{'entry':20} {'cold':>8} {'parse':>8} {'warm':>8}   milliseconds")
    for name, row in rows.items():
        print(f"{name:20} {row['cold_ms']:8.1f} {row['cold_parse_ms']:8.1f} {row['warm_ms']:8.1f}")
    slowest = max(row["cold_ms"] for row in rows.values())
    print(f"slowest {slowest:.1f} ms; goal: under {GOAL_MS} ms")
    keep("formula", "entries", {"goal_ms": GOAL_MS, "slowest_ms": slowest, "rows": rows}, "regard", "sympy", "numpy")


if __name__ == "__main__":
    main()
