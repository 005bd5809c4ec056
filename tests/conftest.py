"""What every test stands on. Environment variables are set here, before the first import of torch, triton or jax."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook
from sympy.core.function import FunctionClass

IN_WORKER = "PYTEST_XDIST_WORKER" in os.environ  # a worker inherits what the first process has set

# -- numbers ---------------------------------------------------------------------------------------------------

if not Path("/dev/nvidia0").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels are interpreted; decorators look when they run
os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
for library in ("OMP", "MKL", "OPENBLAS"):
    if IN_WORKER:
        os.environ[f"{library}_NUM_THREADS"] = "1"  # beside its neighbours
    os.environ.setdefault(f"{library}_NUM_THREADS", "2")

BFLOAT16_PRODUCT = "import torch; x = torch.ones(256, 256, dtype=torch.bfloat16); x @ x"


def announces_amx() -> bool:
    """Whether the processor says that it multiplies bfloat16 matrices."""
    try:
        return "amx_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


def dies_of_bfloat16() -> bool:
    """Some virtual machines announce AMX and then kill the process that uses it; another process finds out."""
    return announces_amx() and subprocess.run([sys.executable, "-c", BFLOAT16_PRODUCT], check=False).returncode < 0


if not IN_WORKER and "ONEDNN_MAX_CPU_ISA" not in os.environ and dies_of_bfloat16():
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"

# -- signals ---------------------------------------------------------------------------------------------------

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell; what tests start would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# -- shapes ----------------------------------------------------------------------------------------------------

if "regard.attention" in sys.modules or "regard.engines" in sys.modules:
    raise RuntimeError("regard was imported before its shapes could be checked; import it after tests/conftest.py")


def class_repr(cls: type) -> str:
    """SymPy prints a class by its bare name; beartype reads only Python's own way, so ours are printed so."""
    return type.__repr__(cls) if cls.__module__.startswith("regard.") else cls.__name__


FunctionClass.__repr__ = class_repr
ENGINES = Path(__file__).parents[1] / "src" / "regard" / "engines"
KERNELS = ("templates", "hopper")  # Triton reads their source itself
PLAIN = [f"regard.engines.{path.stem}" for path in ENGINES.iterdir() if path.name != "triton"]
FUSED = [f"regard.engines.triton.{path.stem}" for path in (ENGINES / "triton").iterdir() if path.stem not in KERNELS]
install_import_hook(["regard.attention", *PLAIN, *FUSED], "checker.check")

# -- random formulas -------------------------------------------------------------------------------------------

settings.register_profile("dev", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
