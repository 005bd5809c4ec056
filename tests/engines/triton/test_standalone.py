"""`code("triton")`: a module that needs torch and triton alone, with the numbers of the equation and a text to read."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import needs_triton
from regard import (
    FormulaError,
    H,
    b,
    causal,
    cosine,
    d,
    documents,
    dot,
    each,
    exp,
    floor,
    given,
    h,
    i,
    j,
    log,
    maximum,
    minimum,
    n,
    relu,
    s,
    share,
    sigmoid,
    softplus,
    sqdist,
    sqrt,
    table,
    tanh,
    where,
    zoo,
)  # fmt: skip
from regard.engines.triton.standalone.layout import laid_out
from regard.engines.triton.standalone.rewriting import branches, counts, rewritten, without_unread
from regard.example import example

BATCH, HEADS, GROUPS, QUERIES, KEYS, WIDTH, OUT = 2, 4, 2, 17, 37, 7, 11
scaled = dot / sqrt(d)
slopes = 2 ** (-8 * (h + 1) / H)
ALIBI = rg.Attention(scaled - slopes * (i - j), mask=causal)

FORMULAS = {
    "plain": rg.Attention(),
    "alibi": ALIBI,
    "euclid": rg.Attention(-sqdist / 2),
    "laplace": rg.Attention(-sqrt(sqdist), mask=causal),
    "mahalanobis": rg.Attention(-sqdist(table("P")[h])),
    "bilinear": rg.Attention(dot(table("M")) / d, mask=causal),
    "three products": rg.Attention(scaled + dot(table("M")[b]) / 9 - sqdist(table("P")) / 99),
    "cosine": rg.Attention(cosine / (table("tau")[h] ** 2 + 1), mask=causal),
    "relative": rg.Attention(scaled + table("bias")[h, minimum(maximum(i - j + 8, 0), 16)]),
    "buckets": rg.Attention(scaled + table("bias")[h, floor(log(maximum(i - j, 0) + 1))], mask=causal),
    "sink": rg.Attention(weight=share(exp, sink=exp(table("sink")[h])), mask=j < i),
    "two sinks": rg.Attention(weight=share(exp, sink=exp(table("sink")[h]) + 2 * exp(-i / 3))),
    "plain sink": rg.Attention(weight=share(relu, sink=table("sink")[h] ** 2 + 1)),
    "documents": rg.Attention(mask=documents("ids") & causal),
    "given": rg.Attention(mask=given("mask") & (j <= i + 3)),
    "sigmoid": rg.Attention(scaled - log(n), weight=sigmoid),
    "relu over n": rg.Attention(weight=each(relu(s) / n), mask=causal),
    "squared relu": rg.Attention(weight=share(relu(s) ** 2), mask=causal),
    "softplus": rg.Attention(3 * dot, weight=share(softplus)),
    "cosh": rg.Attention(weight=share(exp(s) + exp(-s)), mask=causal),
    "factor": rg.Attention(3 * dot, weight=share(relu(s) * exp(s)), mask=causal),
    "by its sign": rg.Attention(mask=dot > 0),
    "integers": rg.Attention(scaled + (i // 2) % 3 - (j % 2) * (h + 1) // 2),
    "positions alone": rg.Attention(score=-rg.abs(i - j) / 2),
    "pairs in a table": rg.Attention(scaled + table("pairs")[i, j], mask=(i + j) % 3 >= 1),
    "scattered": rg.Attention(mask=((h + 1) * 3 * 10**9 + 1103515245 * i + 12345 * j) // 65536 % (n + 3) < 19),
    "names": rg.Attention(
        (scaled + n) * table("head0") + table("forward")[j] * table("torch") + table("float")[i] + table("S")[h],
        mask=(table("data")[j] > -9) & (j <= i + table("lead")),
    ),
    "long": rg.Attention(
        scaled * tanh(dot / 7 + cosine / 3) + relu(sqdist - 3) * sigmoid(dot * 2 - 1) - softplus(dot)
        + where(j + 2 < i, exp(-sqdist) * table("bias")[h, i - j], where(j < i, table("bias")[h, j], cosine * dot / 9)),
        mask=(j <= i) | (j < 2),
    ),
} | {f"zoo: {name}": entry.formula for name, entry in zoo.ENTRIES.items()
     if entry.formula.weight.among is None and repr(entry.formula.weight.over) in ("None", "j")}  # fmt: skip


# -- a process without regard ----------------------------------------------------------------------------------

WORKER = """
import importlib.util, sys, warnings
import torch

def loaded(path):
    spec = importlib.util.spec_from_file_location("loaded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.modules["regard"] = None  # import regard: ImportError
warnings.simplefilter("ignore")
folder, *others = sys.argv[1:]
list(map(loaded, others))
calls, found = torch.load(f"{folder}/calls.pt"), {}
for name, (file, function, arguments) in calls.items():
    found[name] = getattr(loaded(f"{folder}/{file}.py"), function)(**arguments)
torch.save(found, f"{folder}/found.pt")
"""
TESTS = Path(__file__).parents[2]
FASTER = Path(rg.__file__).parent / "engines" / "triton" / "templates" / "rehearsal.py"  # needs nothing of ours


@dataclass(frozen=True)
class Job:
    """A printed function and what it is called with."""

    attention: rg.Attention
    arguments: dict[str, Any]
    form: str = "attention"


def save(jobs: dict[str, Job], folder: Path) -> None:
    """Printed modules as files, and what to call them with."""
    calls = {}
    for place, (name, job) in enumerate(jobs.items()):
        (folder / f"m{place}.py").write_text(job.attention.code("triton", job.form), encoding="utf-8")
        calls[name] = (f"m{place}", job.form, job.arguments)
    torch.save(calls, folder / "calls.pt")


def run(jobs: dict[str, Job], folder: Path, *others: Path) -> dict[str, Any]:
    """What each printed function returns, in one fresh and isolated process, which loads other files first."""
    save(jobs, folder)
    command = [sys.executable, "-I", "-c", WORKER, *map(str, (folder, *others))]
    subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}, check=True)
    found: dict[str, Any] = torch.load(folder / "found.pt")
    return found


def arguments(attention: rg.Attention, dtype: Any = torch.float32) -> dict[str, Any]:
    """Ragged sizes, grouped heads, v wider than k, and arrays that are views of larger ones, full of NaN."""
    call = example(attention, batch=BATCH, heads=HEADS, n=KEYS, width=WIDTH)
    values = np.random.default_rng(5).standard_normal((BATCH, GROUPS, KEYS, OUT))
    q, k = call.q[..., KEYS - QUERIES :, :], call.k[:, ::2]
    made: dict[str, Any] = {name: view(torch.tensor(x, dtype=dtype)) for name, x in (("q", q), ("k", k), ("v", values))}
    for name, x in call.tables.items():
        found = torch.as_tensor(np.asarray(x))
        found = found[KEYS - QUERIES :] if attention.ranks[name] < 0 else found
        made[name] = found.float() if found.is_floating_point() else found
    return made


def view(x: Any) -> Any:
    """The same numbers, with positions before heads in memory and NaN around them."""
    room = torch.full((x.shape[0], x.shape[2] + 2, x.shape[1], x.shape[3] + 3), torch.nan, dtype=x.dtype)
    inside = room[:, 1:-1, :, 2:-1].transpose(1, 2)
    return inside.copy_(x)


JOBS = {name: Job(attention, arguments(attention)) for name, attention in FORMULAS.items()}
JOBS |= {f"bfloat16: {name}": Job(FORMULAS[name], arguments(FORMULAS[name], torch.bfloat16))
         for name in ("alibi", "euclid", "mahalanobis", "bilinear", "squared relu")}  # fmt: skip


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(JOBS, tmp_path_factory.mktemp("standalone"), FASTER)


def exact(job: Job, **options: Any) -> Any:
    wide = {name: x.double() if x.is_floating_point() else x for name, x in job.arguments.items()}
    return job.attention(**wide, engine="dense", **options)


def close(found: Any, job: Job, **options: Any) -> None:
    """An error of at most twice that of plain PyTorch, and of a few roundings."""
    dtype, wanted = job.arguments["q"].dtype, exact(job, **options)
    single = {name: x.float() if x.is_floating_point() else x for name, x in job.arguments.items()}
    plain = job.attention(**single, engine="dense", **options).to(dtype).double()
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    allowed = 2 * (plain - wanted).norm() + 16 * torch.finfo(dtype).eps * wanted.norm()
    assert (found.double() - wanted).norm() <= allowed


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("name", JOBS)
def test_gives_the_numbers_of_the_equation(printed: dict[str, Any], name: str) -> None:
    close(printed[name], JOBS[name])


@needs_triton
def test_axes_positions_and_self_attention(tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(0)
    x, Wq, Wk, Wv = (torch.randn(shape, generator=draw) for shape in ((3, 19, 8), (8, 5), (8, 5), (8, 6)))
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    causal_one = rg.Attention(mask=causal)
    five = {"q": q[None, :, None], "k": k[None, :, None], "v": v[None, :, None]}
    jobs = {
        "two axes": Job(causal_one, {"q": q[0], "k": k[0], "v": v[0]}),
        "five axes": Job(causal_one, five),
        "more queries": Job(causal_one, {"q": q[0], "k": k[0, :7], "v": v[0, :7], "start": 0}),
        "far": Job(ALIBI, {"q": q[None], "k": k[None], "v": v[None], "start": 10**6}),
        "self": Job(causal_one, {"x": x, "Wq": Wq, "Wk": Wk, "Wv": Wv}, "self_attention"),
    }
    found = run(jobs, tmp_path)
    close(found["two axes"], jobs["two axes"])
    close(found["five axes"], jobs["five axes"])
    for name in ("more queries", "far"):
        start = jobs[name].arguments.pop("start")
        close(found[name], jobs[name], start=start)
    close(found["self"], Job(causal_one, {"q": q, "k": k, "v": v}))


# -- a chip that is not there ----------------------------------------------------------------------------------

COMPILER = """
import importlib.util, sys

sys.path.insert(0, sys.argv[1])
import pretend_gpu
import torch

pretend_gpu.pretend(int(sys.argv[3]))
pretend_gpu.only_compile()
for name, (file, function, arguments) in torch.load(f"{sys.argv[2]}/calls.pt").items():
    spec = importlib.util.spec_from_file_location(file, f"{sys.argv[2]}/{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    getattr(module, function)(**arguments)
    print(pretend_gpu.COMPILED.pop()["shared"])
"""


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("chip", [80, 90])
def test_compiles_for_a_chip(tmp_path: Path, chip: int) -> None:
    draw = torch.Generator().manual_seed(0)
    jobs = {}
    for name in ("alibi", "sink", "documents", "relative", "squared relu"):
        found = arguments(FORMULAS[name])
        shape = {"q": (BATCH, HEADS, QUERIES, 128), "k": (BATCH, GROUPS, KEYS, 128), "v": (BATCH, GROUPS, KEYS, 128)}
        dtype = torch.bfloat16 if chip == 90 else torch.float32
        found |= {side: torch.randn(size, generator=draw).to(dtype) for side, size in shape.items()}
        jobs[name] = Job(FORMULAS[name], found)
    save(jobs, tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", COMPILER, str(TESTS), str(tmp_path), str(chip)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shared = list(map(int, done.stdout.split()))
    assert len(shared) == len(jobs)
    assert max(shared) <= 99 * 1024  # a chip for games has no more


# -- the text --------------------------------------------------------------------------------------------------


def names(text: str) -> list[str]:
    """What a module defines at its top."""
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


@pytest.mark.parametrize("name", FORMULAS)
def test_text_is_short_and_says_each_thing_once(name: str) -> None:
    text = FORMULAS[name].code("triton")
    assert text.startswith("# Save this text as a file")
    assert max(map(len, text.splitlines())) <= 120
    assert len(set(names(text))) == len(names(text))
    assert "regard" not in text
    assert not {"lists", "drop", "F"} & {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    modules = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
    assert modules <= {"hashlib", "math", "torch", "triton", "triton.language"}


def test_only_what_a_formula_needs_is_printed() -> None:
    texts = {name: FORMULAS[name].code("triton") for name in ("plain", "alibi", "sink", "sigmoid")}
    assert {name for name, text in texts.items() if "sink" in names(text)} == {"sink"}
    assert {name for name, text in texts.items() if "admitted_block" in names(text)} == {"alibi", "sink"}
    assert {name for name, text in texts.items() if "def forward(left0, right0, v, y, start, " in text} == {"sigmoid"}
    assert not [name for text in texts.values() for name in names(text) if name.startswith("pull_")]


def test_signature_is_that_of_the_other_flavours() -> None:
    for attention in FORMULAS.values():
        ours, theirs = (_signature(attention.code(flavour)) for flavour in ("triton", "torch"))
        assert ours == theirs


def _signature(text: str) -> str:
    (found,) = (x for x in ast.parse(text).body if isinstance(x, ast.FunctionDef) and x.name == "attention")
    return ast.unparse(found.args)


def test_printing_needs_neither_torch_nor_triton() -> None:
    code = "import sys, regard; text = regard.Attention(mask=regard.causal).code('triton'); "
    code += "assert 'def forward(' in text; assert not {'torch', 'triton'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: rg.Attention(weight=share(exp, over=i)),
            r"^code: a triton kernel shares weights over j; got over=i; ",
        ),
        (lambda: rg.Attention(weight=share(exp, among=j <= 4), mask=causal), r"counts the admitted pairs; got among=j"),
        (
            lambda: rg.Attention(dot(table("A")) * dot(table("B")) + dot(table("C")) * dot(table("D"))),
            r"at most 3 pairs of matrices; got 4; ask for code\(\"torch\"\)$",
        ),
    ],
)
def test_refuses_what_a_kernel_cannot_compute(make: Callable[[], rg.Attention], message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        make().code("triton")


def test_refuses_unknown_forms() -> None:
    with pytest.raises(FormulaError, match=r"^form: one of attention, self_attention; got 'block'$"):
        rg.Attention().code("triton", "block")


# -- its making ------------------------------------------------------------------------------------------------

SOURCE = '''def f(a, b, c):
    """Σ"""
    if F.ONE:
        x = 1  # why
    elif F.TWO:
        x = 2
    else:
        x = 3
    if b and not (F.ONE or F.TWO):
        x = g(x, b, c) if F.ONE else g(b, x, c)
    return (a, x, c)[: F.COUNT]
'''


@pytest.mark.parametrize(("one", "two", "left"), [(1, 0, "x = 1  # why"), (0, 1, "x = 2"), (0, 0, "x = 3")])
def test_branches_are_taken_and_conditions_shortened(one: int, two: int, left: str) -> None:
    known = {"F.ONE": one, "F.TWO": two, "F.COUNT": 2}
    text = rewritten(SOURCE, branches(known), counts(known))
    lines = [line.strip() for line in text.splitlines()]
    assert lines[:3] == ["def f(a, b, c):", '"""Σ"""', left]
    assert lines[3:] == ["return (a, x)"] if one or two else ["if b:", "x = g(b, x, c)", "return (a, x)"]


def test_arguments_that_nothing_reads_go_wherever_they_are_passed_on() -> None:
    sources = {"f": "def f(a, b):\n    return g(a, b) + g(b, a)\n", "g": "def g(x, y):\n    return x\n"}
    assert without_unread(sources) == {
        "f": "def f(a, b):\n    return g(a) + g(b)\n",
        "g": "def g(x):\n    return x\n",
    }
    sources["f"] = "def f(a, b):\n    return g(a, b)\n"
    assert without_unread(sources)["f"] == "def f(a):\n    return g(a)\n"


def test_long_lines_are_broken_and_mean_the_same() -> None:
    long = "a_long_name_of_one_thing"
    value = (
        f"({long} + 1) * -{long} - ({long} - ({long} - 2)) / f({long} * ({long} + 3), {long}) & ({long} <= {long} + 4)"
    )
    source = f"def g():\n    return {value}\n"
    assert max(map(len, laid_out(source).splitlines())) <= 120 < max(map(len, source.splitlines()))
    assert ast.dump(ast.parse(laid_out(source))) == ast.dump(ast.parse(source))


def test_linters_have_nothing_to_say(tmp_path: Path) -> None:
    for place, attention in enumerate(FORMULAS.values()):
        (tmp_path / f"m{place}.py").write_text(attention.code("triton", "self_attention"), encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,E9,I", str(tmp_path)]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
