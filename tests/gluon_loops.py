"""What stands in the innermost loops of a Gluon kernel compiled for sm_90a: spilled numbers, work under products.

    looped(file, names)      {name: {…gluon_offline.figures, "loops": [{"local": …, "under": …}, …]}}

local: loads and stores of spilled registers.    under: special functions between the first wait for products, which
leaves some in flight, and the next one.    Loops come in the order of the code, those with most products alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LINE = re.compile(r"\s+/\*([0-9a-f]{4,5})\*/\s+(.*?);\s+/\*")
BACK = re.compile(r"\bBRA\b.*?(0x[0-9a-f]+)$")


def looped(file: str | Path, names: list[str], python: str = sys.executable) -> dict[str, dict[str, Any]]:
    """The figures of each named case with those of its loops, read in a process of its own (gluon_offline)."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [python, __file__, str(file), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def loops(code: str) -> list[dict[str, int]]:
    """Of each innermost loop with the most products."""
    lines = [(int(found[1], 16), found[2].strip()) for found in map(LINE.match, code.splitlines()) if found]
    ends = ((int(back[1], 16), at) for at, text in lines if (back := BACK.search(text)))
    spans = [span for span in ends if span[0] < span[1]]
    inner = [s for s in spans if not any(s != t and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    bodies = [[text for at, text in lines if first <= at <= last] for first, last in inner]
    products = [sum("HGMMA" in text for text in body) for body in bodies]
    return [_of(body) for body, count in zip(bodies, products, strict=True) if count == max(products) > 0]


def _of(body: list[str]) -> dict[str, int]:
    waits = [place for place, text in enumerate(body) if "WARPGROUP.DEPBAR" in text]
    between = body[waits[0] : waits[1]] if len(waits) > 1 else []
    local = sum(bool(re.search(r"\b(LDL|STL)\b", text)) for text in body)
    return {"local": local, "under": sum("MUFU" in text for text in between)}


def _measure(case: Any) -> dict[str, Any]:
    import triton

    from gluon_offline import compiled, figures

    reader = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "kernel.cubin")
        built.write_bytes(compiled(case).asm["cubin"])
        code = subprocess.run([reader, "-sass", built], capture_output=True, text=True, check=True).stdout
    return {**figures(case), "loops": loops(code)}


def main(file: str, names: list[str]) -> None:
    """Writes the figures as one line of JSON."""
    from gluon_offline import load

    made = load(file)
    sys.stdout.write(json.dumps({name: _measure(made.named(name)) for name in names}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
