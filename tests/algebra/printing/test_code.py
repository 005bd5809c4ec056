"""Emitted source: the numbers of the engines in a process without regard, and a text that formatters leave alone."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import regard as rg
import strategies
from regard import (
    FormulaError,
    H,
    b,
    causal,
    cos,
    cosine,
    d,
    documents,
    dot,
    each,
    equal,
    erf,
    everywhere,
    exp,
    floor,
    gelu,
    given,
    h,
    i,
    j,
    log,
    maximum,
    minimum,
    n,
    padding,
    prefix,
    relu,
    s,
    share,
    sigmoid,
    sin,
    softplus,
    sqdist,
    sqrt,
    table,
    tanh,
    where,
    window,
    zoo,
)  # fmt: skip
from regard.algebra.formula import Formula
from regard.example import example
from strategies import Case

BATCH, HEADS, QUERIES, KEYS, WIDTH, OUT = 2, 3, 5, 7, 11, 13
FLAVOURS = ("python", "numpy", "torch")
scaled = dot / sqrt(d)
slopes = 2 ** (-8 * (h + 1) / H)
distance = i - j
far = floor(16 + log(maximum(distance, 1) / 16) / log(8) * 16)
bucket = floor(where(distance < 16, maximum(distance, 0), minimum(far, 31)))

FORMULAS = {
    "plain": rg.Attention(),
    "causal": rg.Attention(mask=causal),
    "strict": rg.Attention(mask=j < i),
    "nothing": rg.Attention(mask=~everywhere),
    "soft cap": rg.Attention(30 * tanh(scaled / 30)),
    "alibi": rg.Attention(scaled - slopes * (i - j), mask=causal),
    "euclid": rg.Attention(-sqdist / 2),
    "laplace": rg.Attention(-sqrt(sqdist), mask=causal),
    "mahalanobis": rg.Attention(-sqdist(table("P"))),
    "bilinear": rg.Attention(dot(table("M"))),
    "bilinear by head": rg.Attention(dot(table("M")[h]) / d),
    "bilinear by batch": rg.Attention(dot(table("M")[b]) / d - sqdist(table("P")[b]) / 99),
    "mahalanobis by head": rg.Attention(-sqdist(table("P")[h])),
    "relative": rg.Attention(scaled + table("bias")[h, i - j + 6], mask=causal),
    "relative, clipped": rg.Attention(scaled + table("bias")[h, i - j], mask=causal),
    "short table": rg.Attention(scaled + table("short")[i - j], mask=window(3) & (table("short")[i - j] > -99)),
    "buckets": rg.Attention(scaled + table("bias")[h, bucket], mask=causal),
    "temperature": rg.Attention(cosine / table("tau")[h], mask=causal),
    "one temperature": rg.Attention(cosine / table("tau")),
    "window": rg.Attention(mask=window(3)),
    "window by table": rg.Attention(mask=window(table("width"))),
    "prefix": rg.Attention(mask=prefix(4)),
    "documents": rg.Attention(mask=documents("ids") & causal),
    "padding": rg.Attention(mask=padding("lengths")),
    "given": rg.Attention(mask=given("mask") & causal),
    "given alone": rg.Attention(mask=given("mask")),
    "table as mask": rg.Attention(mask=table("allowed")[i, j]),
    "not that table": rg.Attention(mask=~table("allowed")[i, j] | equal(i, j)),
    "sigmoid": rg.Attention(scaled - log(n), weight=sigmoid),
    "relu over n": rg.Attention(weight=each(relu(s) / n), mask=causal),
    "squared relu": rg.Attention(weight=share(relu(s) ** 2), mask=causal),
    "softplus": rg.Attention(9 * dot, weight=share(softplus), mask=causal),
    "sink": rg.Attention(weight=share(exp, sink=1), mask=j < i),
    "learned sink": rg.Attention(weight=share(exp, sink=exp(table("sink")[h])), mask=j < i),
    "two sinks": rg.Attention(weight=share(exp, sink=exp(table("sink")[h]) + 2 * exp(-i / 3))),
    "plain sink": rg.Attention(weight=share(relu, sink=table("sink")[h] ** 2 + 1)),
    "over queries": rg.Attention(weight=share(exp, over=i), mask=causal),
    "over heads": rg.Attention(weight=share(exp, over=h)),
    "over batches, a choice": rg.Attention(
        weight=share(lambda s: where(s > 0, s + 1, exp(s)), over=b, among=causal), mask=h < 1
    ),
    "two exponentials by choice": rg.Attention(weight=share(lambda s: where(j < 2, 2 * exp(s), exp(-s)))),
    "chosen by sizes": rg.Attention(score=minimum(dot, where(equal(d % 2, 1), sqdist, 0.125))),
    "nothing counts": rg.Attention(weight=share(exp, among=j > i)),
    "huge integers": rg.Attention(score=dot + where(j <= i, 0, -1e20)),
    "over batches": rg.Attention(weight=share(exp, over=b, sink=exp(table("sink")[h]))),
    "over queries, relu": rg.Attention(weight=share(relu, over=i, sink=1), mask=given("mask")),
    "mask after the weights": rg.Attention(weight=share(exp, among=everywhere), mask=causal),
    "among others": rg.Attention(weight=share(exp, among=j <= 4), mask=causal),
    "among others, over queries": rg.Attention(weight=share(exp, among=j <= 4, over=i), mask=causal),
    "among without a mask": rg.Attention(weight=share(relu, among=j < 3)),
    "cosh": rg.Attention(weight=share(exp(s) + exp(-s)), mask=causal),
    "one and exp": rg.Attention(9 * dot, weight=share(1 + exp(s)), mask=causal),
    "factor": rg.Attention(3 * dot, weight=share(relu(s) * exp(s)), mask=causal),
    "square and exp": rg.Attention(weight=share(s**2 * exp(s)), mask=causal),
    "two exponents": rg.Attention(dot / 9, weight=share(exp(s) + exp(s**2)), mask=j < i),
    "factor alone": rg.Attention(3 * dot, weight=share(relu(s) + exp(s - 60)), mask=causal),
    "factor by key": rg.Attention(weight=share(table("c")[j] ** 2 + exp(s), over=i)),
    "square of exp": rg.Attention(weight=share(2**s + exp(2 * s + table("bias")[h, j])), mask=causal),
    "no score": rg.Attention(weight=share(exp(table("c")[j])), mask=causal),
    "gelu": rg.Attention(weight=each(gelu), mask=causal),
    "gelu, shared": rg.Attention(weight=share(gelu(s) + 1)),
    "erf": rg.Attention(erf(dot) + rg.abs(dot) - cos(dot) * sin(dot)),
    "by its sign": rg.Attention(mask=dot > 0),
    "by a distance": rg.Attention(-sqdist, mask=sqdist <= 20.5),
    "integers": rg.Attention(scaled + (i // 2) % 3 - (j % 2) * (h + 1) // 2),
    "division by zero": rg.Attention(scaled + j // table("size")[h] - j % table("size")[h], mask=causal),
    "powers": rg.Attention(scaled * 2 ** (-h - 1) + (j - i) ** 3 / 99 + (i + 1) ** -2),
    "undefined elsewhere": rg.Attention(scaled + table("c")[h] * log(i - j + 1) + dot / sqrt(i - j + 1), mask=causal),
    "divided by distance": rg.Attention(scaled / (i - j) + rg.abs(dot) ** 1.5 / (i - j) ** 2, mask=j < i),
    "where": rg.Attention(where(j < 3, scaled, -sqdist / 9)),
    "where of numbers": rg.Attention(scaled * where(equal(i % 2, j % 2), 0.1, 2)),
    "where by size": rg.Attention(where(n > 5, scaled, dot), mask=(n > 3) & (j <= i)),
    "mask by size": rg.Attention(mask=~equal(n, 5) | (n > 9)),
    "constant": rg.Attention(score=0 * dot + 1, mask=causal),
    "positions alone": rg.Attention(score=-rg.abs(i - j) / 2),
    "weight without score": rg.Attention(weight=each(1 / n), mask=causal),
    "names": rg.Attention(
        scaled + table("scores")[j] * table("np")[h] + table("m")[i] + table("sum") - table("start_")[j]
        + cosine * table("unit") + dot * table("dot_")[j] + table("math") + table("torch"),
        weight=share(exp, sink=exp(table("weights")[h])),
        mask=(j <= i) & (table("admitted")[j] >= 0) & (table("key") > -99),
    ),
    "scalars": rg.Attention(dot * sigmoid(n) / (n - 6) + softplus(1 / d) * sqrt(n - 3) + log(H) + tanh(n / 9)),
    "tables of integers": rg.Attention(scaled + table("ids")[b, i] / 3 - table("bias")[h, table("ids")[b, j]]),
    "zero": rg.Attention(mask=~everywhere, weight=share(relu)),
    "small numbers": rg.Attention(scaled * 1e-5 + 1e16 / (1e16 + j) + 0.1 * i),
    "long": rg.Attention(
        scaled * tanh(dot / 7 + cosine / 3) + relu(sqdist - 3) * sigmoid(dot * 2 - 1) / (2 + sin(i * j)) - softplus(dot)
        + where(j + 2 < i, exp(-sqdist) * table("bias")[h, i - j], where(j < i, table("bias")[h, j], cosine * dot / 9))
        + minimum(maximum(dot, -2) + maximum(cosine, 0.25) * i, 3 * sqrt(sqdist + 1)) / (1 + rg.abs(dot * table("c")[j])
        ) - 0.1,
        mask=((j <= i) | (j < 2) | equal(table("ids")[b, i], table("ids")[b, j])) & ((i + j) % 5 >= 1) & (dot > -30),
    ),
}  # fmt: skip

TABLES = {
    "bias": (HEADS, 32), "short": (3,), "tau": (HEADS,), "sink": (HEADS,), "c": (KEYS,), "scores": (KEYS,),
    "np": (HEADS,), "m": (KEYS,), "weights": (HEADS,), "start_": (KEYS,), "dot_": (KEYS,), "admitted": (KEYS,),
}  # fmt: skip
INTEGERS = {
    "ids": np.asarray([[0, 0, 1, 1, 1, 2, 2], [3, 3, 3, 1, 1, 1, 1]]), "lengths": np.asarray([4, 7]),
    "width": np.asarray(3), "size": np.asarray([2, 0, 3]),
}  # fmt: skip


def arrays(name: str) -> dict[str, Any]:
    """q, k, v, dy and tables for one formula: the same in every process."""
    attention = FORMULAS[name]
    draw = np.random.default_rng(sum(map(ord, name)))
    lead = (BATCH, HEADS)
    found = {
        "q": (*lead, QUERIES, WIDTH),
        "k": (*lead, KEYS, WIDTH),
        "v": (*lead, KEYS, OUT),
        "dy": (*lead, QUERIES, OUT),
    }
    made = {key: draw.normal(size=shape) for key, shape in found.items()}
    for key, rank in attention.ranks.items():
        made[key] = _table(draw, attention, key, rank)
    return made


def _table(draw: np.random.Generator, attention: rg.Attention, name: str, rank: int) -> Any:
    if name in INTEGERS:
        return INTEGERS[name]
    if rank < 0:
        return draw.random((BATCH, HEADS, QUERIES, KEYS)) < 0.6
    if name == "allowed":
        return draw.random((KEYS, KEYS)) < 0.6
    if name in ("M", "P"):
        lead = {2: (), 3: (HEADS if "h" in repr(attention) else BATCH,)}[rank]
        return draw.normal(size=(*lead, WIDTH, WIDTH)) / 9
    values = draw.normal(size=TABLES.get(name, ()) if rank else ())
    return np.abs(values) + 0.5 if name == "tau" else values


# -- a process without regard ------------------------------------------------------------------------------------------

WORKER = """
import json, sys, traceback, warnings
import numpy as np

sys.modules["regard"] = None  # import regard: ImportError
warnings.simplefilter("ignore")
flavour = sys.argv[1]
if flavour == "torch":
    import torch


def answer(function, arrays, dy):
    if flavour == "torch":
        arrays = {name: torch.tensor(x, requires_grad=x.dtype.kind == "f") for name, x in arrays.items()}
        y = function(**arrays)
        found = {"y": y.detach()}
        if dy is not None:
            y.backward(torch.as_tensor(dy, dtype=y.dtype))
            leaves = {name: x for name, x in arrays.items() if x.requires_grad}
            found |= {name: torch.zeros_like(x) if x.grad is None else x.grad for name, x in leaves.items()}
        return found
    if flavour == "python":
        arrays = {name: x.tolist() for name, x in arrays.items()}
    return {"y": function(**arrays)}


for line in sys.stdin:
    request = json.loads(line)
    try:
        space = {}
        exec(compile(request["source"], "<emitted>", "exec"), space)
        with np.load(request["file"]) as stored:
            arrays = dict(stored)
        found = answer(space[request["form"]], arrays, arrays.pop("dy", None))
        np.savez(request["file"], **{name: np.asarray(x) for name, x in found.items()})
        print("null", flush=True)
    except Exception:
        print(json.dumps(traceback.format_exc()), flush=True)
"""


class Worker:
    """A fresh, isolated process that runs emitted source, and cannot import regard."""

    def __init__(self, flavour: str, folder: Path) -> None:
        self.flavour, self.file = flavour, folder / "arrays.npz"
        command = [sys.executable, "-I", "-c", WORKER, flavour]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")

    def run(self, source: str, call: dict[str, Any], form: str = "attention") -> dict[str, Any]:
        """What the function returns, as y; in PyTorch also the gradients, where the call brings dy."""
        np.savez(self.file, **call)
        request = {"source": source, "file": str(self.file), "form": form}
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        problem = json.loads(stdout.readline())
        assert problem is None, f"{problem}\n{source}"
        with np.load(self.file) as found:
            return dict(found)


@pytest.fixture(scope="module", params=FLAVOURS)
def worker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    made = Worker(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.process.communicate()


# -- the numbers -------------------------------------------------------------------------------------------------------


def is_deep(attention: rg.Attention) -> bool:
    return attention.uses("h", "b", "H") or repr(attention.weight.over) in ("h", "b")


def suited(worker: Worker, attention: rg.Attention, call: dict[str, Any]) -> dict[str, Any]:
    """The first head alone, where the formula tells no heads apart and plain Python wants rows."""
    if worker.flavour != "python" or is_deep(attention):
        return call
    names = ["q", "k", "v", "dy", *(name for name, rank in attention.ranks.items() if rank < 0)]
    return {name: x[0, 0] if name in names and x.ndim > 2 else x for name, x in call.items()}


def agree(found: Any, expected: Any, tolerance: float, source: str) -> None:
    assert found.shape == expected.shape, source
    largest = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * largest, err_msg=source)


def check(worker: Worker, attention: rg.Attention, call: dict[str, Any], roughness: float = 1.0) -> None:
    source, call = attention.code(worker.flavour), dict(suited(worker, attention, call))
    found, dy = worker.run(source, call), call.pop("dy", None)
    agree(found["y"], attention(**call), 1e-12 * roughness, source)
    if worker.flavour == "torch" and dy is not None:
        gradients = attention.vjp(**call, dy=dy)
        for name, expected in (dict(zip("qkv", gradients, strict=True)) | gradients.tables).items():
            agree(found[name], expected, 1e-11 * roughness**2, f"gradient of {name}\n{source}")


@pytest.mark.parametrize("name", FORMULAS)
def test_gives_the_numbers_and_gradients_of_the_engines(worker: Worker, name: str) -> None:
    check(worker, FORMULAS[name], arrays(name))


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_so_does_the_zoo(worker: Worker, name: str) -> None:
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=3, n=7, width=5)
    tables = {
        key: np.broadcast_to(x, (2, 3, 7, 7)) if attention.ranks[key] < 0 else x for key, x in call.tables.items()
    }
    check(worker, attention, {"q": call.q[..., 2:, :], "k": call.k, "v": call.v, **tables})


def random_call(case: Case) -> tuple[dict[str, Any], float]:
    """Arrays for a random formula, and how much rounding in its scores grows into its weights."""
    call = strategies.arrays()
    scores = case.scores(strategies.environment(call))
    heads = strategies.HEADS // strategies.KEY_HEADS
    wide = {name: np.repeat(call[name], heads, axis=1) for name in "kv"}
    roughness = 1.0 + float(np.max(np.abs(scores), initial=0, where=np.isfinite(scores)))
    return {"q": call["q"], **wide, "dy": call["dy"], **case.tables(call)}, roughness


@hypothesis.settings(max_examples=60)
@hypothesis.given(strategies.cases())
def test_so_do_random_formulas(worker: Worker, case: Case) -> None:
    call, roughness = random_call(case)
    del call["dy"]
    check(worker, case.attention, call, roughness)


@hypothesis.settings(max_examples=40)
@hypothesis.given(strategies.cases(smooth=True))
def test_random_smooth_formulas_have_the_gradients_too(worker: Worker, case: Case) -> None:
    check(worker, case.attention, *random_call(case))


@pytest.mark.parametrize("name", FORMULAS)
def test_keeps_float32(worker: Worker, name: str) -> None:
    if worker.flavour == "python":
        return  # Python knows one kind of float
    call = {key: x.astype(np.float32) if x.dtype.kind == "f" else x for key, x in arrays(name).items()}
    del call["dy"]
    source = FORMULAS[name].code(worker.flavour)
    found = worker.run(source, call)["y"]
    assert found.dtype == np.float32, source
    agree(
        found,
        FORMULAS[name](**{key: x.astype(float) if x.dtype.kind == "f" else x for key, x in call.items()}),
        1e-3,
        source,
    )


@pytest.mark.parametrize("name", ["plain", "alibi", "relative", "over queries"])
def test_self_attention_projects_first(worker: Worker, name: str) -> None:
    attention, call, draw = FORMULAS[name], arrays(name), np.random.default_rng(5)
    tables = {key: call[key] for key in attention.ranks}
    matrices = {key: draw.normal(size=(WIDTH, size)) / 3 for key, size in (("Wq", 5), ("Wk", 5), ("Wv", OUT))}
    x = suited(worker, attention, {"k": call["k"]})["k"]
    source = attention.code(worker.flavour, "self_attention")
    for given_matrices in (matrices, {key: matrices[key] for key in ("Wq", "Wk")}):
        found = worker.run(source, {"x": x, **given_matrices, **tables}, "self_attention")
        agree(found["y"], rg.self_attention(x, **given_matrices, attention=attention, **tables), 1e-12, source)


def test_start_places_the_first_query(worker: Worker) -> None:
    attention = FORMULAS["alibi"]
    call = arrays("alibi") | {"start": np.asarray(1)}
    del call["dy"]
    found = worker.run(attention.code(worker.flavour), call)["y"]
    agree(found, attention(**(call | {"start": 1})), 1e-12, "start")


# -- what breaks code that is written in haste -------------------------------------------------------------------------


def test_a_row_that_admits_nothing_is_zero_with_no_gradient(worker: Worker) -> None:
    attention = rg.Attention(mask=j < i - 2)
    call = suited(worker, attention, arrays("strict") | {"start": np.asarray(0)})
    found = worker.run(attention.code(worker.flavour), call)
    assert np.all(found["y"][..., :3, :] == 0)
    assert all(np.all(np.isfinite(x)) for x in found.values())
    if worker.flavour == "torch":
        assert np.all(found["q"][..., :3, :] == 0)


def test_large_scores_do_not_overflow(worker: Worker) -> None:
    for attention in (rg.Attention(1000 * dot), rg.Attention(1000 * dot, share(exp(s) + exp(-s), sink=1))):
        check(worker, attention, arrays("plain"))


def test_scores_that_do_not_count_may_be_anything(worker: Worker) -> None:
    attention = rg.Attention(mask=j <= 3)
    call = suited(worker, attention, arrays("plain"))
    del call["dy"]
    expected = attention(**call)
    call["k"] = np.where(np.arange(KEYS)[:, None] > 3, np.nan, call["k"])
    agree(worker.run(attention.code(worker.flavour), call)["y"], expected, 1e-12, "NaN in a masked key")


def test_zero_vectors_have_a_cosine_of_zero_and_distances_of_zero_a_slope(worker: Worker) -> None:
    call = arrays("plain")
    call["q"][..., 1, :] = 0
    call["k"][..., 2, :] = call["q"][..., 3, :]
    check(worker, rg.Attention(cosine), call)
    check(worker, rg.Attention(-sqrt(sqdist)), call)


def test_infinities_are_numbers_and_raise_nothing(worker: Worker) -> None:
    large = tanh(2 ** (400 * dot)) + tanh(exp(900 * dot)) + tanh(1 / (i - j)) + sigmoid(log(relu(dot)))
    call = arrays("plain")
    del call["dy"]
    check(worker, rg.Attention(large), call)
    check(worker, rg.Attention(where(dot > 0, sqrt(dot) + dot**1.5, 0)), call)


def test_a_table_of_minus_infinity_masks(worker: Worker) -> None:
    attention = rg.Attention(dot + table("bias")[i, j])
    call = suited(worker, attention, arrays("plain"))
    call["bias"] = np.where(np.tri(KEYS, k=-3) > 0, 0.0, -np.inf)
    del call["dy"]
    agree(worker.run(attention.code(worker.flavour), call)["y"], attention(**call), 1e-12, "additive mask")


# -- the text ----------------------------------------------------------------------------------------------------------

SOURCES = {
    f"{flavour}: {name}": attention.code(flavour, "self_attention")
    for flavour in FLAVOURS
    for name, attention in (FORMULAS | {name: entry.formula for name, entry in zoo.ENTRIES.items()}).items()
}


def ruff(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def test_is_formatted_and_clean(tmp_path: Path) -> None:
    for place, source in enumerate(SOURCES.values()):
        (tmp_path / f"source_{place}.py").write_text(source, encoding="utf-8")
    formatted = ruff("format", "--isolated", "--line-length", "100", "--diff", str(tmp_path))
    assert formatted.returncode == 0, formatted.stdout[:4000]
    checked = ruff("check", "--isolated", "--select", "F,E9,I", str(tmp_path))
    assert checked.returncode == 0, checked.stdout[:4000]


@hypothesis.settings(max_examples=8)
@hypothesis.given(strategies.st.lists(strategies.cases(), min_size=20, max_size=20))
def test_so_are_random_formulas(tmp_path_factory: pytest.TempPathFactory, found: list[Case]) -> None:
    folder = tmp_path_factory.mktemp("random")
    for place, case in enumerate(found):
        for flavour in FLAVOURS:
            (folder / f"{flavour}_{place}.py").write_text(case.attention.code(flavour), encoding="utf-8")
    formatted = ruff("format", "--isolated", "--line-length", "100", "--diff", str(folder))
    assert formatted.returncode == 0, formatted.stdout[:4000]


@pytest.mark.parametrize("name", SOURCES)
def test_imports_the_one_library_alone(name: str) -> None:
    flavour = name.split(":")[0]
    nodes = list(ast.walk(ast.parse(SOURCES[name])))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"math", {"python": "math"}.get(flavour, flavour)}
    assert not any(isinstance(node, ast.ImportFrom) for node in nodes)
    assert max(map(len, SOURCES[name].split("\n"))) <= 120


def test_says_the_formula_first() -> None:
    source = rg.Attention(mask=causal).code("numpy")
    assert source.startswith('"""softmax(dot / sqrt(d), mask=j <= i)\n')
    assert "yᵢ = Σ[j: j ≤ i] softmaxⱼ(qᵢ·kⱼ / √d) vⱼ" in source


def test_softmax_reads_like_a_textbook() -> None:
    lines = [line.strip() for line in rg.Attention().code("numpy").split("\n")]
    code = [
        line for line in lines[lines.index("d = k.shape[-1]  # width of a key") :] if not line.startswith("#") and line
    ]
    assert code == [
        "d = k.shape[-1]  # width of a key",
        "dot = q @ k.swapaxes(-1, -2)",
        "scores = dot / math.sqrt(d)",
        "m = scores.max(axis=-1, keepdims=True)",
        "weights = np.exp(scores - m)",
        "weights = weights / weights.sum(axis=-1, keepdims=True)",
        "return weights @ v",
    ]


def test_brings_only_what_it_uses() -> None:
    source = rg.Attention(-sqdist / 2).code("torch")
    for word in ("start", "math", "arange", "sqrt", "unit", "admitted"):
        assert word not in source
    assert "start=None" in rg.Attention(mask=causal).code("torch")


def test_integers_are_cast_where_they_meet_real_numbers() -> None:
    source = rg.Attention(dot * 2 ** (-h - 1), mask=(i // 2 <= j) & equal(table("ids")[i], table("ids")[j])).code(
        "torch"
    )
    assert "2 ** (-h - 1).to(q.dtype)" in source
    assert "(i // 2 <= j) & (ids[i] == ids[j])" in source
    assert "ids = torch.as_tensor(ids, device=q.device)" in source


def test_a_table_that_is_called_like_one_of_ours_keeps_its_name() -> None:
    for flavour in FLAVOURS:
        source = FORMULAS["names"].code(flavour)
        signature = re.search(r"def attention\((.*?)\):", source, re.DOTALL)
        assert signature is not None
        assert set(FORMULAS["names"].ranks) <= set(re.findall(r"\w+", signature[1]))


def test_unknown_flavours_and_forms_are_refused() -> None:
    with pytest.raises(
        FormulaError, match=r"^code: one of python, numpy, torch and, of an Attention, triton; got 'jax'$"
    ):
        rg.Attention().code("jax")
    with pytest.raises(FormulaError, match=r"got 'triton'; ask an Attention: regard\.parse\(repr\(formula\)\)\.code"):
        Formula(rg.dot).code("triton")  # Attention prints it: tests/engines/triton/test_standalone.py
    with pytest.raises(FormulaError, match=r"^form: one of attention, self_attention; got 'block'$"):
        rg.Attention().code("numpy", "block")
