"""Compiles Gluon kernels for sm_90a on a machine without a GPU, and reads what the assembler says of them.

    measured(file, names)       {name: {"registers": …, "spills": …, "shared": …, …}}

`file` is a Python file with a function `cases() -> {name: Case}`. It is read in a process of its own: other tests set
TRITON_INTERPRET, with which Gluon does not load, and the parents of the kernels' package are left unread there, so that
an interpreter with triton alone is enough.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
BYTES = 227 * 1024  # of shared memory that a program on Hopper may have
TUNED = importlib.util.find_spec("triton") is None or importlib.metadata.version("triton").startswith("3.6")
UNTUNED = "tiles were chosen with triton 3.6: another assembler puts a few numbers away"


@dataclass(frozen=True)
class Case:
    """A kernel with what makes one version of it: types of arguments, constants, options of the launch."""

    kernel: Any
    signature: dict[str, Any]
    constants: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


def measured(file: str | Path, names: list[str], python: str = sys.executable) -> dict[str, dict[str, Any]]:
    """The figures of each named case, or its error as {"error": text}."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [python, __file__, str(file), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def descriptor(dtype: Any, rows: int, width: int) -> str:
    """The type of a TMA descriptor with tiles (1, 1, rows, width)."""
    from triton.experimental.gluon import language as gl

    shape = [1, 1, rows, width]
    return f"tensordesc<{dtype}{shape},{gl.NVMMASharedLayout.get_default_for(shape, gl.bfloat16)!r}>"


def compiled(case: Case) -> Any:
    """What triton makes of a case: `.asm["ptx"]`, `.metadata.shared`."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource

    names = case.kernel.arg_names
    constants = {(names.index(name),): value for name, value in case.constants.items()}
    signature = {name: case.signature.get(name, "constexpr") for name in names}
    source = GluonASTSource(case.kernel, signature, constants, _aligned(signature, names))
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=case.options)


def _aligned(signature: dict[str, Any], names: list[str]) -> dict[tuple[int, ...], list[list[Any]]]:
    """Pointers are multiples of 16, as PyTorch's are: alone, and in tuples."""
    found = []
    for place, name in enumerate(names):
        kind = signature[name]
        parts = enumerate(kind) if isinstance(kind, tuple) else []
        found += [(place, part) for part, inner in parts if str(inner).startswith("*")]
        found += [(place,)] if isinstance(kind, str) and kind.startswith("*") else []
    return {path: [["tt.divisibility", 16]] for path in found}


def figures(case: Case) -> dict[str, Any]:
    """Registers, bytes spilled, bytes of shared memory, products, whether every product is waited for at once, and
    how many special functions are computed under one."""
    import triton

    built = compiled(case)
    reader = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(built.asm["cubin"])
        command = [reader, "-sass", "-res-usage", file.name]
        code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        "registers": int(_number(r"REG:(\d+)", code)),
        "spills": int(_number(r"STACK:(\d+)", code)),
        "shared": built.metadata.shared,
        "wgmma": built.asm["ptx"].count("wgmma.mma_async"),
        "serialized": "gsb0, 0x1" not in code,
        "under": _under(code),
    }


def _under(code: str) -> int:
    """Special functions between a wait that leaves one product in flight and the next that leaves none: the fewest."""
    least, count = [], None
    for line in code.splitlines():
        if "WARPGROUP.DEPBAR.LE" in line:
            least += [count] if count is not None and "gsb0, 0x0" in line else []
            count = 0 if "gsb0, 0x1" in line else None
        elif count is not None and "MUFU" in line:
            count += 1
    return min(least, default=0)


def _number(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


def _told(error: BaseException) -> str:
    """An error with those that led to it: the innermost one names the line of the kernel."""
    before = error.__cause__ or error.__context__
    return f"{type(error).__name__}: {error}" + ("" if before is None else f"\nfrom {_told(before)}")


def load(file: str | Path) -> Any:
    """A file as a module, with the parents of the kernels' package as empty modules."""
    for name in ("regard", "regard.engines", "regard.engines.triton"):
        parent = types.ModuleType(name)
        parent.__path__ = [str(SOURCE.joinpath(*name.split(".")))]
        sys.modules[name] = parent
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(file: str, names: list[str]) -> None:
    """Prints the figures as one line of JSON."""
    found: dict[str, Any] = {}
    cases = load(file).cases()
    for name in names or list(cases):
        try:
            found[name] = figures(cases[name])
        except Exception as error:  # noqa: BLE001  (front ends fail in many ways: each is told)
            found[name] = {"error": _told(error)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
