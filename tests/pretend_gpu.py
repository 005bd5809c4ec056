"""Runs the fused engine's host side on a chip that is not there: every kernel is compiled for it, none is launched.

    python tests/pretend_gpu.py 90 bfloat16 '{"template": "hopper"}' 64 256 "softmax(dot / sqrt(d))" …

prints, for each formula, the kernels that were compiled with their bytes of shared memory, those of which the assembler
awaits every product at once, those that await other things while a product runs, how often each asks something of a
whole tile, and those where the assembler has answered that by itself, or the error. What stands behind the dtype are
the choices of regard.fused, the width of vectors and how many there are. Numbers are never looked at. In a process of
its own, because triton must not be interpreted here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import CompiledKernel
from triton.runtime import driver, jit

import regard as rg

COMPILED: list[dict[str, Any]] = []


class Pretended:
    """A driver of a chip that is asked what it is, and never to run anything."""

    def __init__(self, chip: int) -> None:
        self.target = GPUTarget("cuda", chip, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


def pretend(chip: int) -> None:
    """From here on, the host's side believes in a chip."""
    driver.set_active(Pretended(chip))
    torch.cuda.get_device_capability = lambda *_: (chip // 10, chip % 10)
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(multi_processor_count=132, total_memory=2**37)
    from regard.engines import triton as engine
    from regard.engines.triton.hopper import launch as hopper
    from regard.engines.triton.templates import launch

    engine.is_interpreted = lambda: True  # arrays lie on the CPU here
    launch.has_descriptors = lambda _: chip >= 90
    hopper._chip = lambda _: None if chip == 90 else "another chip"


def only_compile() -> None:
    """From here on, kernels are compiled in place of being launched."""
    run = jit.JITFunction.run

    def compiled(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        made = run(self, *arguments, grid=grid, warmup=True, **options)
        made = made.result() if hasattr(made, "result") else made
        sums = [line.split(",")[2].split()[0] for line in made.asm.get("ttir", "").splitlines() if " tt.dot " in line]
        waits = waits_at_once(made.asm["ptx"])
        told = {"kernel": self.fn.__name__, "shared": made.metadata.shared, "sums": sums, "waits": waits}
        told["halts"] = halts(made.asm["ttgir"])
        COMPILED.append({**told, **questions(made.asm["cubin"])})
        return made

    jit.JITFunction.run = compiled
    CompiledKernel.__getitem__ = lambda *_: lambda *_: None


def waits_at_once(code: str) -> bool:
    """Whether Hopper's assembler says that it leaves no product in flight."""
    if "wgmma.mma_async" not in code:
        return False
    assembler = get_ptxas(90).path
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.ptx").write_text(code, encoding="utf-8")
        command = [assembler, "-v", "--gpu-name=sm_90a", "kernel.ptx", "-o", "kernel.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return "instructions are serialized" in done.stderr


def halts(code: str) -> bool:
    """Whether copies are awaited between the first product of a loop and the second: no weights are made meanwhile."""
    products = None  # outside of loops
    for line in code.splitlines():
        if " scf.for " in line:
            products = 0
        elif " scf.yield " in line:
            products = None
        elif products is not None:
            products += " ttng.warp_group_dot " in line
            if products == 1 and " ttg.async_wait " in line:
                return True
    return False


def questions(binary: bytes) -> dict[str, Any]:
    """How often something is asked of all numbers of a tile, and whether a constant stands for them: it is answered."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.cubin").write_bytes(binary)
        command = [triton.knobs.nvidia.cuobjdump.path, "-sass", "kernel.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    asked = re.findall(r"\bREDUX\S* \w+, (\w+)", done.stdout)
    return {"asked": len(asked), "answered": bool({"RZ", "URZ"} & set(asked))}


def tried(text: str, dtype: Any, choices: dict[str, Any], sizes: tuple[int, ...]) -> dict[str, Any]:
    """The kernels of one formula, forward and backward, or the error."""
    from regard.example import example

    attention = rg.parse(text)
    assert isinstance(attention, rg.Attention)
    batch, heads, n, width = sizes
    call = example(attention, batch=batch, heads=heads, n=n, width=width)
    q, k, v = (torch.tensor(x).to(dtype).requires_grad_() for x in (call.q, call.k, call.v))
    tables = {name: torch.tensor(x) for name, x in call.tables.items()}
    tables = {name: x.float().requires_grad_() if x.is_floating_point() else x for name, x in tables.items()}
    COMPILED.clear()
    try:
        with rg.fused(atomics=True, **choices):
            attention(q, k, v, engine="triton", **tables).backward(torch.ones_like(v))
            with torch.no_grad():
                if not tables:
                    k, v = (x.repeat_interleave(1 + 600 // n, 2) for x in (k, v))
                if k.shape[2] >= 512 and "given(" not in text:
                    attention(q[:, :, -3:], k, v, engine="triton", **tables)
    except Exception as problem:  # noqa: BLE001 - every error is told
        told = problem
        while told.__cause__ is not None:
            told = told.__cause__
        return {"error": f"{type(problem).__name__}: {str(problem)[-600:]} | {type(told).__name__}: {str(told)[-600:]}"}
    return {
        "kernels": {made["kernel"]: made["shared"] for made in COMPILED},
        "sums": {made["kernel"]: made["sums"] for made in COMPILED},
        "waits": [made["kernel"] for made in COMPILED if made["waits"]],
        "halts": [made["kernel"] for made in COMPILED if made["halts"]],
        "asked": {made["kernel"]: made["asked"] for made in COMPILED},
        "answered": [made["kernel"] for made in COMPILED if made["answered"]],
    }


def main() -> None:
    chip, dtype, choices, width, length, *formulas = sys.argv[1:]
    pretend(int(chip))
    only_compile()
    for text in formulas:
        found = tried(text, getattr(torch, dtype), json.loads(choices), (1, 2, int(length), int(width)))
        sys.stdout.write(json.dumps({"formula": text, "triton": triton.__version__, **found}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
