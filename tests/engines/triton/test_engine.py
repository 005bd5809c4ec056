"""`triton` is the equation in one kernel: every formula, forward and backward, in Triton's interpreter or on a GPU."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings

import regard as rg
from agreement import CALL, TROUBLE
from fused import DEVICE, INTERPRETED, agrees, needs_triton, tensors
from regard import causal, dot, h, i, j, relu, share, sigmoid, sqrt, table, tanh, zoo
from regard.engines import costs
from regard.engines import triton as fused_engine
from regard.engines.triton import functions
from regard.engines.triton.choice import _is_even
from regard.engines.triton.options import TEMPLATES, Options, chosen
from regard.engines.triton.program import program
from regard.engines.triton.source import written
from regard.example import example
from strategies import Case, cases
from told import as_told

pytestmark = needs_triton

LEAVES = tuple("qkv")


def streams(attention: rg.Attention) -> bool:
    weight = attention.weight
    return weight.among is None and (weight.over is None or weight.over == j)


@settings(max_examples=8 if INTERPRETED else 200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(cases())
def test_is_the_equation(case: Case) -> None:
    assume(streams(case.attention))
    agrees(case.attention, *(CALL[name] for name in (*LEAVES, "dy")), **case.tables(CALL))


@pytest.mark.slow
@pytest.mark.parametrize("attention", TROUBLE, ids=repr)
def test_what_is_undefined_where_no_one_reads_spoils_nothing(attention: rg.Attention) -> None:
    q, k, v, dy = (CALL[name] for name in (*LEAVES, "dy"))
    agrees(attention, 0.1 * q, k, v, dy, **{name: CALL[name] for name in attention.ranks})  # relu(s)⁶ stays small


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_zoo(name: str) -> None:
    attention = zoo.ENTRIES[name].formula
    if not streams(attention):
        pytest.skip(f"{attention!r} is not shared over keys")
    call = example(attention, batch=1, heads=2, n=37, width=7)
    dy = np.random.default_rng(1).standard_normal(call.v.shape)
    agrees(attention, call.q, call.k, call.v, dy, **call.tables)


# -- the range of float16 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e7])
@pytest.mark.parametrize("queries", [3, 70])  # few: the keys are split over the chip
@pytest.mark.parametrize("sink", [None, 2.0])
def test_weights_that_are_shared_may_have_any_size(size: float, queries: int, sink: float | None) -> None:
    """ψ and its sink, times a number, give the same y, and Z times the number, also where float16 holds neither."""

    def of(size: float) -> rg.Attention:
        own = None if sink is None else sink * size
        return rg.Attention(weight=share(lambda s: relu(s) ** 2 * size, sink=own), mask=j <= i + 550)

    q, k, v = (tensors(random(1, 2, n, 16), torch.float16) for n in (queries, 600, 600))
    y, z = of(size)(q, k, v, engine="triton", totals=True, start=0)
    wanted, total = of(1.0)(*(x.double() for x in (q, k, v)), engine="dense", totals=True, start=0)
    torch.testing.assert_close(y.double(), wanted, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(z.double(), total * size, atol=0, rtol=1e-5)


@pytest.mark.parametrize("size", [-300.0, 300.0, -20000.0])
@pytest.mark.parametrize("queries", [3, 70])
@pytest.mark.parametrize("weight", ["share(exp(s) * (1 + s ** 2))", "share(exp(s) + 1e6 * exp(s / 2 - 1000))"])
def test_what_stands_before_an_exponential_may_be_large(weight: str, queries: int, size: float) -> None:
    """1 + s² is up to 4 · 10⁸, and float16 ends at 65504."""
    attention = rg.parse(f'{weight}(dot + table("rise")[j], mask=j <= i)')
    assert isinstance(attention, rg.Attention)
    q, k, v = (tensors(random(1, 2, n, 16), torch.float16) for n in (queries, 600, 600))
    rise = tensors(np.full(600, size))
    y, z = attention(q, k, v, engine="triton", totals=True, rise=rise)
    wide = (x.double() for x in (q, k, v))
    wanted, total = attention(*wide, engine="dense", totals=True, rise=rise.double())
    torch.testing.assert_close(y.double(), wanted, atol=3e-3, rtol=3e-3)
    torch.testing.assert_close(z.double(), total, atol=1e-3, rtol=1e-5)


SHARED_SO = [
    {"weight": share(lambda s: relu(s) ** 2 + 0.01)},
    {"weight": share(lambda s: rg.exp(s) * (1 + s**2))},
    {"score": 9 * rg.cosine},  # no maximum is taken out of it
]


@pytest.mark.parametrize("keys", [1, 600])  # many: they are split over the chip
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("words", SHARED_SO)
def test_a_row_that_reads_one_key_gives_its_value(words: Any, dtype: Any, keys: int) -> None:
    """To the last digit, though weights are rounded: so that nothing goes back to q and k."""
    q, k, v, dy = (tensors(random(1, 2, n, 16), dtype).requires_grad_() for n in (1, keys, keys, 1))
    y = rg.Attention(**words, mask=rg.equal(j, i))(q, k, v, engine="triton", start=keys - 1)
    assert torch.equal(y, v[:, :, -1:])
    dq, dk = torch.autograd.grad(y, (q, k), dy)
    assert max(float(dq.abs().max()), float(dk.abs().max())) < 1e-5


# -- shapes and layouts ----------------------------------------------------------------------------------------

ALIBI = rg.Attention(score=dot / sqrt(rg.d) - 2 ** (-8 * (h + 1) / rg.H) * (i - j), mask=causal)
SHAPES = {
    "one pair": (1, 1, 1, 1, 1, 3, 5),
    "17 of 127": (2, 2, 2, 17, 127, 16, 16),
    "129 of 129": (1, 1, 1, 129, 129, 8, 24),
    "groups of 3": (1, 6, 2, 33, 47, 40, 12),
    "more queries": (1, 2, 1, 65, 31, 5, 7),
}


def random(*shape: int) -> Any:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "attention",
    [rg.Attention(), ALIBI, rg.Attention(weight=sigmoid), rg.Attention(weight=share(lambda s: relu(s) ** 2))],
    ids=["softmax", "alibi", "sigmoid", "relu²"],
)
def test_lengths_that_are_no_multiple_of_anything(attention: rg.Attention, shape: str) -> None:
    batch, heads, groups, queries, keys, width, values = SHAPES[shape]
    arrays = (
        random(batch, heads, queries, width), random(batch, groups, keys, width), random(batch, groups, keys, values),
        random(batch, heads, queries, values),
    )  # fmt: skip
    agrees(attention, *arrays, start=0 if queries > keys else None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "attention", [ALIBI, rg.Attention(score=30 * tanh(dot / sqrt(rg.d) / 30)), rg.Attention(score=-rg.sqdist / 2),
                  rg.Attention(weight=sigmoid), rg.Attention(score=dot(table("M")) / rg.d)], ids=repr,
)  # fmt: skip
def test_half_precision(attention: rg.Attention, dtype: Any) -> None:
    arrays = [random(2, 2, 41, 16), random(2, 2, 53, 16), random(2, 2, 53, 16), random(2, 2, 41, 16)]
    tables = {"M": random(16, 16)} if attention.ranks else {}
    agrees(attention, *arrays, dtype=dtype, **tables)


def test_heads_last_but_one_without_a_copy() -> None:
    q, k, v, dy = (tensors(random(2, 43, 3, 16)).transpose(1, 2) for _ in range(4))
    expected = ALIBI(*(x.contiguous() for x in (q, k, v)), engine="triton")
    found = ALIBI(q, k, v, engine="triton")
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert found.transpose(1, 2).is_contiguous()
    one = ALIBI.vjp(q, k, v, dy, engine="triton")
    other = ALIBI.vjp(*(x.contiguous() for x in (q, k, v, dy)), engine="triton")
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_nothing_outside_the_arrays_is_read_or_written() -> None:
    """Arrays cut out of larger ones that hold NaN, with odd strides."""
    frames = [torch.full((2, 3, 50, 19), float("nan"), device=DEVICE) for _ in range(4)]
    q, k, v, dy = (frame[:1, 1:, 3:44, 2:15] for frame in frames)
    for x in (q, k, v, dy):
        x.copy_(tensors(random(1, 2, 41, 13)))
    y = ALIBI(q, k, v, engine="triton")
    assert y.isfinite().all()
    for gradient in ALIBI.vjp(q, k, v, dy, engine="triton"):
        assert gradient.isfinite().all()
    for frame in frames:
        assert frame.isnan().sum() == frame.numel() - 2 * 41 * 13


# -- what a call may ask for -----------------------------------------------------------------------------------


def test_batches_that_start_apart() -> None:
    arrays = [random(3, 2, 5, 8), random(3, 2, 61, 8), random(3, 2, 61, 8), random(3, 2, 5, 8)]
    agrees(ALIBI, *arrays, start=np.array([0, 31, 56]))


@pytest.mark.parametrize(
    "attention", [ALIBI, rg.Attention(score=-rg.sqdist), rg.Attention(weight=share(rg.exp, sink=2), mask=j < i),
                  rg.Attention(weight=share(relu))], ids=repr,
)  # fmt: skip
def test_totals_and_their_gradients(attention: rg.Attention) -> None:
    leaves = {engine: [tensors(random(1, 2, 37, 8)[..., s:]).requires_grad_() for s in (0, 0, 0)]
              for engine in ("triton", "dense")}  # fmt: skip
    found = {engine: attention(*given_, engine=engine, totals=True) for engine, given_ in leaves.items()}
    torch.testing.assert_close(found["triton"][1], found["dense"][1], rtol=1e-5, atol=1e-5)
    for engine, (y, totals) in found.items():
        (y.sum() + (totals.where(totals.isfinite(), torch.zeros(())) * 0.7).sum()).backward()
        assert all(leaf.grad.isfinite().all() for leaf in leaves[engine])
    for one, other in zip(*leaves.values(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-4)


def test_dropout_drops_what_every_engine_drops() -> None:
    q, k, v, dy = (tensors(random(2, 2, 37, 8) + place) for place in range(4))
    for attention in (ALIBI, rg.Attention(weight=sigmoid)):
        options = {"dropout": 0.3, "seed": 5}
        found, expected = (attention(q, k, v, engine=engine, **options) for engine in ("triton", "dense"))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        one, other = (attention.vjp(q, k, v, dy, engine=engine, **options) for engine in ("triton", "dense"))
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_gradients_are_the_same_bits_every_time() -> None:
    attention = rg.Attention(score=dot + table("bias")[h, i - j + 64] + table("full")[h, i, j])
    tables = {"bias": tensors(random(2, 130)), "full": tensors(random(2, 61, 61))}
    arrays = [tensors(random(2, 2, 61, 8) + place) for place in range(4)]
    one, other = (attention.vjp(*arrays, engine="triton", **tables) for _ in range(2))
    for a, b in zip([*one, *one.tables.values()], [*other, *other.tables.values()], strict=True):
        assert torch.equal(a, b)


PLACES = rg.Attention(score=dot + table("pairs")[table("ids")[i], table("ids")[j]])


def test_places_that_only_atomics_can_sum_are_asked_for() -> None:
    arrays = [tensors(random(1, 2, 19, 8)) for _ in range(4)]
    tables = {"pairs": tensors(random(5, 5)), "ids": torch.arange(19, device=DEVICE) % 5}
    with pytest.raises(rg.EngineError, match=r"pairs: its gradient .*fused\(atomics=True\)"):
        PLACES.vjp(*arrays, engine="triton", **tables)
    expected = PLACES.vjp(*arrays, engine="dense", **tables)
    with rg.fused(atomics=True):
        found = PLACES.vjp(*arrays, engine="triton", **tables)
    torch.testing.assert_close(found["pairs"], expected["pairs"], rtol=1e-4, atol=1e-4)


def test_a_table_of_differences_under_a_factor_of_the_batch() -> None:
    attention = rg.Attention(weight=sigmoid, score=dot + table("scale")[rg.b] * table("bias")[h, i - j + 40])
    arrays = [random(3, 2, 37, 8) for _ in range(4)]
    agrees(attention, *arrays, scale=random(3), bias=random(2, 90))


@pytest.mark.slow
def test_few_queries_against_many_keys() -> None:
    """The keys are split over several programs, and the heads of a group share one."""
    arrays = [random(1, 4, 3, 16), random(1, 2, 601, 16), random(1, 2, 601, 8), random(1, 4, 3, 8)]
    agrees(ALIBI, *arrays)
    agrees(rg.Attention(weight=share(rg.exp, sink=2)), *arrays)
    q, k, v, _ = map(tensors, arrays)
    assert str(ALIBI.plan(q, k, v, engine="triton")).endswith("with the keys split over the chip")


def test_the_plan_says_which_template_and_why() -> None:
    x = tensors(random(1, 2, 19, 8))
    said = str(rg.Attention().plan(x, x, x, engine="triton"))
    assert re.search("template: (Gluon's, for Hopper|Triton's, because .*)$", said)
    if INTERPRETED:
        assert said.endswith("template: Triton's, because Gluon has no interpreter")
        with rg.fused(template="hopper"), pytest.raises(rg.EngineError, match="template: hopper cannot run this call"):
            rg.Attention()(x, x, x, engine="triton")
    with rg.fused(template="triton"), rg.fused(exact=True):
        assert "template: Triton's" in str(rg.Attention().plan(x, x, x, engine="triton"))


def test_auto_leaves_the_interpreter_alone() -> None:
    x = tensors(random(1, 2, 19, 8))
    found = ALIBI.plan(x, x, x)
    assert found.engine != "triton"
    assert found["triton"].against == "its kernels are interpreted here: it runs when it is asked for by name"


def test_auto_takes_it_on_a_chip_and_leaves_it_gradients_that_need_atomics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what PyTorch's own kernel cannot run; the chip is pretended, and nothing is computed."""
    monkeypatch.setattr(fused_engine, "is_interpreted", lambda: False)
    monkeypatch.setattr(fused_engine, "_kind", lambda _call: None)
    monkeypatch.setattr(costs, "is_on_gpu", lambda _: True)
    x = tensors(random(1, 2, 19, 8))
    assert rg.Attention(score=9 * tanh(dot)).plan(x, x, x).engine == "triton"
    placed = rg.Attention(score=dot + table("pairs")[table("ids")[i], table("ids")[j]])
    tables = {"pairs": torch.randn(3, 3), "ids": torch.arange(19) % 3}
    assert placed.plan(x, x, x, **tables).engine == "triton"
    tables["pairs"].requires_grad_()
    found = placed.plan(x, x, x, **tables)
    assert found.engine == "tiled"
    assert found["triton"].against == "the gradient of pairs needs atomic additions: see regard.fused"
    with rg.fused(atomics=True):
        assert placed.plan(x, x, x, **tables).engine == "triton"


def test_choices_are_checked() -> None:
    with (
        pytest.raises(rg.CallError, match="template: one of hopper, triton; got 'ampere'"),
        rg.fused(template="ampere"),
    ):
        pass


@pytest.mark.parametrize("memory", [-1, True, 1.5, "1"])
def test_memory_is_a_number_of_bytes(memory: Any) -> None:
    fused = contextmanager(inspect.unwrap(rg.fused))  # as outside of tests, where nothing checks types before it
    said = re.escape(f"memory: a number of bytes, 0 or more; got {memory!r}")
    with pytest.raises(rg.CallError, match=said), fused(memory=memory):
        pass


def test_choices_within_choices() -> None:
    with rg.fused(memory=5, exact=True):
        with rg.fused(template="triton"):
            assert chosen() == Options(exact=True, template="triton", memory=5)
        with rg.fused(memory=0, exact=False):
            assert chosen() == Options(memory=0)
        assert chosen() == Options(exact=True, memory=5)
    assert chosen() == Options()


@pytest.mark.parametrize("memory", [None, 0, 5])
@pytest.mark.parametrize("template", [None, *TEMPLATES])
def test_choices_are_read_as_they_are_written(template: str | None, memory: int | None) -> None:
    for exact, atomics in ((False, True), (True, False)):
        options = Options(exact, atomics, template, memory)
        assert Options.read(str(options)) == options
        assert type(Options.read(str(options)).memory) is type(memory)


MASKS = {"distance": rg.sqdist <= 9, "angle": rg.cosine > 0, "number": (table("key") > -9) & (j <= i)}


@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_what_vectors_make(mask: str) -> None:
    attention = rg.Attention(mask=MASKS[mask])
    arrays = [random(1, 2, 37, 8) * (place + 1) for place in range(4)]
    agrees(attention, *arrays, **({"key": np.array(0.5)} if attention.ranks else {}))


# -- tables ----------------------------------------------------------------------------------------------------

RELATIVE = rg.Attention(score=dot + table("bias")[h, i - j], mask=causal)
ROWS = rg.Attention(score=dot + table("line")[i])
NAMED = rg.Attention(score=dot + table("line")[table("ids")[j]])
OUTSIDE = {
    "differences": (
        RELATIVE,
        {"bias": random(2, 18)},
        r"bias: .* within its 18 entries .* from 18 to 18",
    ),
    "rows": (ROWS, {"line": random(17)}, r"line: .* within its 17 entries along axis 0; .* from 17 to 18"),
    "named": (NAMED, {"line": random(3), "ids": np.arange(19) % 4}, r"line: .* within its 3 entries .* from 3 to 3"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_a_read_outside_its_table_is_refused(case: str) -> None:
    attention, tables, said = OUTSIDE[case]
    x = tensors(random(1, 2, 19, 8))
    longer = {name: np.pad(t, [(0, 0)] * (t.ndim - 1) + [(0, 2)]) if name != "ids" else t for name, t in tables.items()}
    attention(x, x, x, engine="triton", **{name: tensors(t) for name, t in longer.items()})
    with pytest.raises(rg.TableError, match=said):
        attention(x, x, x, engine="triton", **{name: tensors(t) for name, t in tables.items()})


def test_kernels_are_files_that_are_written_again_when_they_were_changed(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    for cached in (functions.folder, functions.jitted):
        cached.cache_clear()
    text = written(program(ROWS))
    functions.jitted(text)
    (file,) = (tmp_path / "regard" / "kernels").glob("*.py")
    assert "def height(product, known, at):" in file.read_text()
    file.write_text("raise SystemExit('not ours')\n")
    functions.jitted.cache_clear()
    assert functions.jitted(text).height is not None
    assert file.read_text() == functions.whole_text(text, functions.TRITON)
    functions.folder.cache_clear()


# -- PyTorch ---------------------------------------------------------------------------------------------------


def test_double_backward_is_refused() -> None:
    leaf = tensors(random(1, 1, 5, 4)).requires_grad_()
    (gradient,) = torch.autograd.grad(rg.Attention()(leaf, leaf, leaf, engine="triton").sum(), leaf, create_graph=True)
    with pytest.raises(rg.EngineError, match="double backward: triton"):
        gradient.sum().backward()


def test_a_compiler_keeps_it_whole() -> None:
    q, k, v = (tensors(random(1, 2, 19, 8)).requires_grad_() for _ in range(3))
    run = torch.compile(lambda *x: ALIBI(*x, engine="triton") * 2, fullgraph=True, backend="aot_eager")
    run(q, k, v).sum().backward()
    found = [x.grad.clone() for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    (ALIBI(q, k, v, engine="triton") * 2).sum().backward()
    for gradient, x in zip(found, (q, k, v), strict=True):
        torch.testing.assert_close(gradient, x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("attention", [rg.Attention(-rg.sqdist / 9), rg.Attention(dot, sigmoid, rg.causal), ALIBI])
def test_results_lie_as_compilers_are_told(attention: rg.Attention, dtype: Any) -> None:
    for way in LAYOUTS.values():
        q, k, v = (way(2, heads, 19, width, dtype).requires_grad_() for heads, width in ((4, 9), (2, 9), (2, 13)))
        with as_told():
            attention(q, k, v, engine="triton").sum().backward()


LAYOUTS = {
    "heads first": lambda b, h, n, d, dtype: torch.randn(b, h, n, d, dtype=dtype, device=DEVICE),
    "sequence first": lambda b, h, n, d, dtype: torch.randn(b, n, h, d, dtype=dtype, device=DEVICE).transpose(1, 2),
    "parts of vectors": lambda b, h, n, d, dtype: torch.randn(b, h, n, 2 * d, dtype=dtype, device=DEVICE)[..., :d],
    "numbers apart": lambda b, h, n, d, dtype: torch.randn(b, h, d, n, dtype=dtype, device=DEVICE).mT,
    "one head repeated": lambda b, h, n, d, dtype: torch.randn(b, 1, n, d, dtype=dtype, device=DEVICE).expand(
        b, h, n, d
    ),
}

COMPILED = """
import torch
import regard as rg

attention = rg.Attention(rg.dot / rg.sqrt(rg.d) + rg.table("bias")[rg.h, rg.i - rg.j], mask=rg.causal)
bias = torch.randn(4, 64)
run = torch.compile(lambda *x: attention(*x, engine="triton", bias=bias) * 2, fullgraph=True)
for length in (19, 23, 17):  # the second is one that the compiler holds open
    drawn = (torch.randn(2, length, heads, 8) for heads in (4, 2, 2))
    q, k, v = (x.transpose(1, 2).requires_grad_() for x in drawn)
    found, wanted = run(q, k, v), attention(q, k, v, engine="triton", bias=bias) * 2
    torch.testing.assert_close(found, wanted)
    pairs = zip(*(torch.autograd.grad(y.sin().sum(), (q, k, v)) for y in (found, wanted)), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other)
"""


@pytest.mark.slow
def test_pytorchs_own_compiler_runs_it() -> None:
    """In a process of its own: the type checks of this one are not for Dynamo to read."""
    environment = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]


# -- what it refuses -------------------------------------------------------------------------------------------

REFUSED = {
    "float64": (rg.Attention(), torch.zeros(1, 1, 3, 4, dtype=torch.float64), "float16, bfloat16 and float32"),
    "shared over i": (rg.Attention(weight=share(rg.exp, over=i)), torch.zeros(1, 1, 3, 4), "streams over keys"),
    "wide": (rg.Attention(), torch.zeros(1, 1, 3, 257), "up to 256 numbers; got 257"),
    "empty": (rg.Attention(), torch.zeros(1, 0, 3, 4), "nothing to compute"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_why(case: str) -> None:
    attention, x, why = REFUSED[case]
    x = x.to(DEVICE)
    with pytest.raises(rg.EngineError, match=why):
        attention(x, x, x, engine="triton")


def test_numpy_is_refused() -> None:
    x = random(1, 1, 3, 4)
    with pytest.raises(rg.EngineError, match="tensors of PyTorch; got numpy"):
        rg.Attention()(x, x, x, engine="triton")


@pytest.mark.parametrize(
    ("mask", "even"),
    [(rg.window(9), True), (causal, False), (rg.window(9) & causal, True), (rg.documents("ids"), False),
     (rg.given("some"), False), (rg.window(9) & (table("line")[j] > 0), False)], ids=repr,
)  # fmt: skip
def test_rows_read_equally_many_keys_where_positions_alone_say_so(mask: rg.Mask, even: bool) -> None:
    assert _is_even(program(rg.Attention(mask=mask)).mask) is even


# -- on the host -----------------------------------------------------------------------------------------------


SINK = rg.Attention(weight=share(rg.exp, sink=rg.exp(table("rest")[h])), mask=causal)
ON_DEVICE = [(rg.Attention(score=dot + table("bias")[h, i - j + 20]), None)]
ON_DEVICE += [(attention, start) for attention in (SINK, zoo.alibi(), zoo.sigmoid()) for start in (None, (3, 0))]


@pytest.mark.parametrize(("attention", "start"), ON_DEVICE, ids=repr)
def test_nothing_is_brought_to_the_device_or_from_it(
    attention: rg.Attention, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a copy would wait for the device, and no CUDA graph could be captured."""
    from regard.engines.call import prepare
    from regard.engines.triton import operator
    from regard.engines.triton.sides import sides

    x = torch.randn(2, 2, 19, 8)
    tables = {"bias": torch.randn(2, 40), "rest": torch.randn(2)}
    first = None if start is None else torch.tensor(start)
    call = prepare(attention, x, x, x, start=first, tables={name: tables[name] for name in attention.ranks})

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a number crosses between host and device")

    for name in ("tolist", "item", "__bool__", "__int__", "__float__"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    for name in ("tensor", "asarray", "as_tensor"):
        monkeypatch.setattr(torch, name, refuse)
    operator._arguments(call, sides(call))


def test_keys_that_heads_share_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms of them are, which are a number for each."""
    from regard.engines.call import prepare
    from regard.engines.triton.sides import sides

    q, k = torch.randn(1, 4, 19, 8), torch.randn(1, 2, 19, 8)
    repeated, usual = [], torch.Tensor.repeat_interleave

    def told(x: Any, *arguments: Any, **options: Any) -> Any:
        repeated.append(tuple(x.shape))
        return usual(x, *arguments, **options)

    monkeypatch.setattr(torch.Tensor, "repeat_interleave", told)
    sides(prepare(rg.Attention(), q, k, k, tables={}))
    assert repeated == []
    sides(prepare(rg.Attention(score=8 * rg.cosine), q, k, k, tables={}))
    assert repeated == [(1, 2, 19)]


def test_a_sigmoid_and_its_slope_are_made_of_one_tanh() -> None:
    made = program(zoo.sigmoid(), True)
    text = written(made, exact=False).text
    arguments = set(re.findall(r"(?<!def )tanh\((.*?product.*?)\)", text))
    assert len(arguments) == 1, arguments
    assert "g * (-0.25 * (tanh(" in text, "σ σ(−x) as one square"
    called = r"return .*sigmoid\("
    assert not re.search(called, text)
    assert re.search(called, written(made, exact=True).text)


def test_what_is_written_quickly_is_the_same_number() -> None:
    import sympy

    from regard.algebra.functions import Sigmoid
    from regard.engines.triton.writing import quick

    x, y = sympy.symbols("x y", real=True)
    for node in (Sigmoid(x), Sigmoid(-x), 3 * y * Sigmoid(2 * x + 1) * Sigmoid(-2 * x - 1), Sigmoid(x) * Sigmoid(y)):
        there = {x: 0.7, y: -1.3}
        told = [part.subs(there).replace(Sigmoid, lambda a: 1 / (1 + sympy.exp(-a))) for part in (node, quick(node))]
        told = [part.replace(lambda a: a.func.__name__ == "Tanh", lambda a: sympy.tanh(a.args[0])) for part in told]
        assert abs(float(told[0]) - float(told[1])) < 1e-12, node


def test_numbers_of_a_head_are_multiplied_before_they_meet_a_block() -> None:
    text = written(program(rg.Attention(score=30 * tanh(dot / sqrt(rg.d) / 30)), True), exact=False).text
    assert re.search(r"tanh\(0\.0333\d* \* head0 \* product0\)", text), text


# -- what a launch must fit into ---------------------------------------------------------------------------------


def test_kernels_start_on_the_device_of_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton starts them on the current device, which need not be theirs where a model lies on several."""
    from regard.engines.triton import starting

    inside: list[bool] = []
    seen: list[bool] = []

    class Guard:
        def __init__(self, x: torch.Tensor) -> None:
            assert x.device.type == DEVICE

        def __enter__(self) -> None:
            inside.append(True)

        def __exit__(self, *_: object) -> None:
            inside.pop()

    run = starting.Start.run
    monkeypatch.setattr(torch.cuda, "device_of", Guard)
    monkeypatch.setattr(starting.Start, "run", lambda made: (seen.append(bool(inside)), run(made)))
    q, k, v = (tensors(random(1, 2, 19, 8)).requires_grad_() for _ in range(3))
    rg.Attention()(q, k, v, engine="triton").sum().backward()
    assert len(seen) >= 3
    assert all(seen)


def test_grids_are_parted_where_a_chip_takes_no_more_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.engines.triton.templates import tables as kernels

    attention = rg.Attention(score=dot / 3 + table("all")[rg.b, h, i, j])
    arrays, whole = [tensors(random(5, 2, 19, 8) + place) for place in range(4)], tensors(random(5, 2, 19, 19))
    wanted = attention.vjp(*arrays, engine="triton", all=whole)["all"]
    grids: list[tuple[int, ...]] = []
    start = kernels.start
    monkeypatch.setattr(kernels, "ACROSS", 4)
    monkeypatch.setattr(
        kernels, "start", lambda kernel, grid, *a, **o: (grids.append(grid), start(kernel, grid, *a, **o))
    )
    assert torch.equal(attention.vjp(*arrays, engine="triton", all=whole)["all"], wanted)
    assert [grid[2] for grid in grids] == [4, 4, 2]


def test_more_key_heads_than_a_grid_takes_are_no_few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.engines.triton.templates import decode

    x = tensors(random(3, 2, 600, 8))
    assert "split" in str(rg.Attention().plan(x[:, :, :1], x, x, engine="triton"))
    monkeypatch.setattr(decode, "ACROSS", 5)
    assert "split" not in str(rg.Attention().plan(x[:, :, :1], x, x, engine="triton"))
