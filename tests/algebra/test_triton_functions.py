"""Every function as kernels write it: run by Triton's interpreter and by NumPy, and compiled for Hopper without a GPU.

NumPy stands in for the chip: its approximate instructions err as far as the manual of PTX lets them.
"""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.algebra.functions import FUNCTIONS, Elementary, FloorDiv, Mod

pytest.importorskip("triton", reason="triton is not installed; on Linux: pip install -e '.[gpu]'")

ALL: dict[str, type[Elementary]] = {**FUNCTIONS, "floor_divide": FloorDiv, "remainder": Mod}
PAIRS = {"minimum", "maximum", "where", "floor_divide", "remainder"}
WHOLE = [name for name in ALL if ALL[name].keeps_integers]
UNARY = [name for name in ALL if name not in PAIRS]
ULPS = {
    "exp": 4,
    "log": 2,
    "sqrt": 0.5,
    "tanh": 3,
    "sigmoid": 5,
    "softplus": 5,
    "gelu": 9,
    "erf": 2,
    "cos": 2,
    "sin": 2,
}
FAST = [name for name, function in FUNCTIONS.items() if "triton_fast" in {*function.source, *function.helpers}]
FLOORS = {"sigmoid": 1.0, "log": 1.0, "cos": 1.0, "sin": 1.0, "gelu": 2.0**-20}  # below it the error is an absolute one

BLOCK = 4096
EDGES = [0.0, 1e-45, 1e-38, 2.0**-126, 1e-20, 0.5, 1.0, math.log(2) / 2, math.sqrt(0.4), 4.0, 5.0, 15.0, 87.3, 88.03]
EDGES += [88.72283, 103.9, 104.0, 1e4, 1e7, 3e9, 1e30, 3.4e38, math.inf]
ROUND = np.concatenate([EDGES, np.geomspace(1e-6, 200, 1201), np.linspace(0, 20, 601)])
NUMBERS = np.resize(np.concatenate([ROUND, -ROUND, [math.nan]]), BLOCK).astype(np.float32)
INTEGERS = np.resize(np.arange(-13, 14, dtype=np.int32), BLOCK)


# -- text ------------------------------------------------------------------------------------------------------

HEADS = {
    "triton": "import triton\nimport triton.language as tl\n\njit = triton.jit\n",
    "gluon": "from triton.experimental.gluon import jit\nfrom triton.experimental.gluon import language as tl\n",
}
KERNEL = """
@jit
def run_{name}(X, Y, OUT):
    place = tl.arange(0, {size})
    x, y = tl.load(X + place), tl.load(Y + place)
    tl.store(OUT + place, {value})
"""


def source(name: str, flavour: str, x: str = "x", y: str = "y") -> str:
    """The function of x, or of x and y, as the flavour writes it."""
    texts = ALL[name].source
    arguments = [f"{x} < {y}", y, x] if name == "where" else [x, y]
    return texts.get(flavour, texts["triton"]).format(*arguments)


def helpers(flavour: str) -> str:
    texts = [function.helpers for function in ALL.values()]
    return "".join(text.get(flavour, text.get("triton", "")) for text in texts)


# -- in Triton's interpreter -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("Triton compiles here; its interpreter wants TRITON_INTERPRET=1")
    file = tmp_path_factory.mktemp("kernels") / "interpreted.py"
    runs = [KERNEL.format(name=name, size=BLOCK, value=source(name, "triton")) for name in ALL]
    file.write_text(HEADS["triton"] + helpers("triton") + "".join(runs), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("interpreted", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(module: ModuleType, name: str, x: Any, y: Any) -> Any:
    out = torch.full((BLOCK,), -77, dtype=torch.from_numpy(x).dtype)
    with np.errstate(all="ignore" if x.dtype == np.float32 else "raise"):  # nothing divides integers by 0
        getattr(module, f"run_{name}")[(1,)](torch.from_numpy(x.copy()), torch.from_numpy(y.copy()), out)
    return out.numpy()


def expected(name: str, x: Any, y: Any) -> Any:
    """`scalar` in float64, or on Python's integers."""
    function, count = ALL[name], 2 if name in PAIRS else 1
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    if name == "where":
        return np.array([function.scalar(a < b, b, a) for a, b in pairs])
    return np.array([function.scalar(*pair[:count]) for pair in pairs])


def assert_within(got: Any, want: Any, allowed: Any) -> None:
    """|got − want| ≤ allowed; NaN and the infinities of float32 stand where they should."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        error = np.abs(got.astype(np.float64) - want)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    worst = np.argmax(np.where(finite, error - allowed, -math.inf))
    assert (error <= allowed)[finite].all(), (got[worst], want[worst], error[worst])


def ulps(name: str, want: Any) -> Any:
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(want).astype(np.float32), np.float32(2.0**-126)))
    return ULPS.get(name, 0) * unit.astype(np.float64)


@pytest.mark.parametrize("name", UNARY)
def test_interpreted(name: str, interpreted: ModuleType) -> None:
    want = expected(name, NUMBERS, NUMBERS)
    allowed = ulps(name, want)
    if name == "gelu":  # fma rounds twice here, so that a² is less exact; and `scalar` cancels where Φ is small
        x = NUMBERS.astype(np.float64)
        allowed = allowed * (1 + x**2) + np.abs(x) * 2.0**-52
    assert_within(run(interpreted, name, NUMBERS, NUMBERS), want, allowed)


@pytest.mark.parametrize("name", ["minimum", "maximum", "where"])
@pytest.mark.parametrize("shift", [0, 1, 7, len(ROUND)])
def test_pairs_of_numbers(name: str, shift: int, interpreted: ModuleType) -> None:
    """NaN beside numbers, −0 beside 0, equal numbers."""
    other = np.roll(NUMBERS, shift)
    np.testing.assert_array_equal(run(interpreted, name, NUMBERS, other), expected(name, NUMBERS, other))


@pytest.mark.parametrize("name", WHOLE)
def test_integers_stay_integers(name: str, interpreted: ModuleType) -> None:
    """Every pair of −13 … 13: also divided by 0, and rounded down where Triton's // rounds towards 0."""
    other = np.resize(np.repeat(np.arange(-13, 14, dtype=np.int32), 27), BLOCK)
    got = run(interpreted, name, INTEGERS, other)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected(name, INTEGERS, other))


# -- on a chip whose instructions err --------------------------------------------------------------------------

RELATIVE = {"ex2": 2.0**-22.4, "tanh": 2.0**-11}
ABSOLUTE = {"sin": 2.0**-20.5, "cos": 2.0**-20.5, "lg2": 2.0**-22}
VALUES = {"ex2": np.exp2, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "lg2": np.log2}


def instruction(name: str, x: Any) -> Any:
    """The value, half of the time above it and half of the time below, by the error that the manual states."""
    exact = VALUES[name](x.astype(np.float64))
    sign = np.random.default_rng(5).choice([-1, 1], exact.shape)
    scale = np.maximum(np.abs(exact), 1) if name == "lg2" else 1.0
    error = sign * (RELATIVE.get(name, 0) * exact + ABSOLUTE.get(name, 0) * scale)
    return np.where(np.isfinite(exact), exact + error, exact).astype(np.float32)


def fused(a: Any, b: Any, c: Any) -> Any:
    a, b, c = (np.asarray(one, dtype=np.float32).astype(np.float64) for one in (a, b, c))
    return (a * b + c).astype(np.float32)


CHIP = SimpleNamespace(
    abs=np.abs,
    floor=np.floor,
    where=lambda condition, a, b: np.where(condition, a, b).astype(np.float32),
    minimum=np.fmin,
    maximum=np.fmax,
    fma=fused,
    exp2=lambda x: instruction("ex2", x),
    sqrt=np.sqrt,
    int32=np.int32,
    float32=np.float32,
    cast=lambda x, dtype, bitcast: x.view(dtype),
    inline_asm_elementwise=lambda text, _constraints, operands, *_: instruction(text.split(".")[0], *operands),
)


def on_chip(name: str, flavour: str) -> Any:
    names: dict[str, Any] = {"tl": CHIP, "jit": lambda function: function, "x": NUMBERS}
    with np.errstate(all="ignore"):
        exec(helpers(flavour), names)
        return eval(source(name, flavour), names)


def truth(name: str) -> Any:
    if name == "gelu":  # without the cancellation of `scalar`
        return np.array([0.0 if x == -math.inf else x * math.erfc(-x / math.sqrt(2)) / 2 for x in NUMBERS.tolist()])
    return expected(name, NUMBERS, NUMBERS)


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "softplus", "gelu", "relu"])
def test_exact_on_chip(name: str) -> None:
    want = truth(name)
    assert_within(on_chip(name, "triton"), want, ulps(name, want))


@pytest.mark.parametrize("name", FAST)
def test_fast_errs_less_than_bfloat16_rounds(name: str) -> None:
    want = truth(name)
    known = np.abs(NUMBERS) <= 1e10 if name in ("cos", "sin") else np.full(BLOCK, True)
    allowed = 2.0**-9 * np.maximum(np.abs(want), FLOORS.get(name, 2.0**-126))
    assert_within(on_chip(name, "triton_fast")[known], want[known], allowed[known])


# -- compiled --------------------------------------------------------------------------------------------------

PLACES = {"triton": "tl.arange(0, 128)", "gluon": "tl.arange(0, 128, tl.BlockedLayout([1], [32], [4], [0]))"}
WHOLE_KERNEL = """
@jit
def kernel(X, Y, A, B, OUT, WHOLE):
    place = {place}
    x, y = tl.load(X + place), tl.load(Y + place)
    a, b = tl.load(A + place), tl.load(B + place)
"""
COMPILE = """
import importlib, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

sys.path.insert(0, sys.argv[1])
signature = dict.fromkeys(["X", "Y", "OUT"], "*fp32") | dict.fromkeys(["A", "B", "WHOLE"], "*i32")
for file in sys.argv[2:]:
    source = GluonASTSource if file.startswith("gluon") else ASTSource
    kernel = importlib.import_module(file).kernel
    built = triton.compile(source(kernel, signature, {}, {}), target=GPUTarget("cuda", 90, 32))
    print(built.asm["ptx"].count("st.global"))
"""


def everything(flavour: str, language: str) -> tuple[str, int]:
    """A module whose kernel computes each function of what it loads and of plain numbers; how often it stores."""
    numbers = [name for name in ALL if name not in ("floor_divide", "remainder")]
    values = [(name, f"OUT + place + {512 * n}", "x", "y", "0.5", "3.5") for n, name in enumerate(numbers)]
    values += [(name, f"WHOLE + place + {512 * n}", "a", "b", "7", "3") for n, name in enumerate(WHOLE)]
    stores = []
    for name, place, x, y, one, other in values:
        stores.append(f"    tl.store({place}, {source(name, flavour, x, y)})\n")
        if name != "where":  # of plain numbers, its condition would be one of Python's
            stores.append(f"    tl.store({place} + 128, {source(name, flavour, x, other)})\n")
            stores.append(f"    tl.store({place} + 256, {source(name, flavour, one, other)} + {x})\n")
    text = HEADS[language] + helpers(flavour) + WHOLE_KERNEL.format(place=PLACES[language])
    return text + "".join(stores), len(stores)


def test_compiles_for_hopper(tmp_path: Path) -> None:
    """Both flavours in both languages, in a process in which Triton does not interpret."""
    counts = []
    files = [(flavour, language) for flavour in ("triton", "triton_fast") for language in HEADS]
    for flavour, language in files:
        text, count = everything(flavour, language)
        (tmp_path / f"{language}_{flavour}.py").write_text(text, encoding="utf-8")
        counts.append(count)
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILE, str(tmp_path), *(f"{language}_{flavour}" for flavour, language in files)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert not done.returncode, done.stderr[-3000:]
    assert [int(line) for line in done.stdout.split()] == counts
