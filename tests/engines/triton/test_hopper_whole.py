"""The engine on Hopper from end to end: the formula's own functions, lists, descriptors and kernels, rehearsed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import INTERPRETED, agrees, needs_triton
from gluon_rehearsal import whole
from many_formulas import formulas
from regard import cosine, dot, h, i, j, share, sqdist, table
from regard.example import example
from told import as_told

pytestmark = [
    needs_triton,
    pytest.mark.skipif(not INTERPRETED, reason="a rehearsal on the CPU: set TRITON_INTERPRET=1"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
FORWARD, ROWS, KEYS, QUERIES = "forward", "backward_rows", "backward_keys", "backward_queries"


def arrays(batch: int, heads: int, groups: int, queries: int, keys: int, width: int, wide: int) -> list[Any]:
    """q, k, v and dy: scores are near 1, and sums over rows and keys do not cancel, so that errors mean something."""
    random = np.random.default_rng(queries + keys)
    q, k, v, dy = (
        random.standard_normal((batch, *shape))
        for shape in ((heads, queries, width), (groups, keys, width), (groups, keys, wide), (heads, queries, wide))
    )
    return [0.7 * q, 0.7 * k, v + 0.5, dy + 0.5]


@pytest.mark.parametrize("text", formulas())
def test_many_formulas(text: str) -> None:
    attention = rg.parse(text)
    assert isinstance(attention, rg.Attention)
    tables = example(attention, batch=2, heads=2, n=139, width=24).tables
    with whole() as ran:
        agrees(attention, *arrays(2, 2, 1, 139, 139, 24, 24), dtype=torch.bfloat16, **tables)
    assert not ran or {FORWARD, KEYS} <= set(ran)


KEPT = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=rg.causal),
    "window of each head": rg.Attention(mask=(j <= i) & (i - j < 40 * (h + 1))),
    "documents": rg.Attention(mask=rg.documents("ids")),
    "relative, causal": rg.Attention(dot / 9 + table("bias")[h, i - j], mask=rg.causal),
    "columns": rg.Attention(-sqdist / 16 + table("line")[j]),
    "cosine": rg.Attention(8 * cosine, mask=rg.causal),
    "a sink": rg.Attention(dot / 9, share(rg.exp, sink=rg.exp(table("rest")[h, i])), mask=j < i),
}


@pytest.mark.parametrize("size", [(1, 2, 2, 131, 131), (2, 4, 2, 70, 200), (1, 1, 1, 1, 65)])
@pytest.mark.parametrize("name", KEPT)
def test_slopes_that_are_kept(name: str, size: tuple[int, ...]) -> None:
    batch, heads, _, _, keys = size
    made = {
        "ids": np.sort(np.random.default_rng(1).integers(0, 4, (batch, keys)), axis=-1),
        "bias": np.random.default_rng(2).standard_normal((heads, keys)),
        "line": np.random.default_rng(3).standard_normal(keys),
        "rest": np.random.default_rng(4).standard_normal((heads, keys)),
    }
    tables = {table: made[table] for table in KEPT[name].ranks}
    with whole() as ran:
        agrees(KEPT[name], *arrays(*size, 72, 72), dtype=torch.bfloat16, **tables)
    assert {KEYS, QUERIES} <= set(ran)
    assert ROWS not in ran


@pytest.mark.parametrize("size", ["1e-9", "1e7"])
def test_float16_does_not_have_to_hold_the_weights(size: str) -> None:
    attention = rg.parse(f"share(relu(s) ** 2 * {size}, sink={size})(dot / sqrt(d), mask=j <= i + 9)")
    assert isinstance(attention, rg.Attention)
    q, k, v = (torch.tensor(x).half() for x in arrays(1, 2, 1, 139, 139, 24, 24)[:3])
    with whole() as ran:
        y, z = attention(q, k, v, engine="triton", totals=True)
    assert set(ran) == {FORWARD}
    wanted, total = attention(*(x.double() for x in (q, k, v)), engine="dense", totals=True)
    torch.testing.assert_close(y.double(), wanted, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(z.double(), total, atol=0, rtol=1e-5)


def test_what_stands_before_an_exponential_may_be_large() -> None:
    attention = rg.parse("share(exp(s) * (1 + s ** 2))(dot - 300, mask=j <= i)")  # 9 · 10⁴
    assert isinstance(attention, rg.Attention)
    q, k, v = (torch.tensor(x).half() for x in arrays(1, 2, 1, 139, 139, 24, 24)[:3])
    with whole() as ran:
        y = attention(q, k, v, engine="triton")
    assert set(ran) == {FORWARD}
    wanted = attention(*(x.double() for x in (q, k, v)), engine="dense")
    torch.testing.assert_close(y.double(), wanted, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("weight", ["share(1 / (1 + s ** 2))", "each(s)", "softmax"])
def test_slopes_have_a_place_in_float16(weight: str) -> None:
    """6 p⁵ / d⁶, of products p near √d: what stands before p⁵ is some 10⁻¹⁰, and p⁵ is up to 10⁷; 3 p² / d³."""
    attention = rg.parse(f"{weight}((dot / d) ** 3, mask=(j <= i) & (i - j < 100))")
    assert isinstance(attention, rg.Attention)
    with whole() as ran:
        q, k, v, dy = arrays(2, 4, 2, 70, 200, 64, 16)
        size = 3 if weight == "softmax" else 1  # 3 p² / d³
        agrees(attention, size * q, size * k, v, 200 * dy, dtype=torch.float16)
    assert {FORWARD, KEYS} <= set(ran)


@pytest.mark.parametrize(
    "text",
    ["share(relu(s) ** 2 + 0.01)(dot / sqrt(d)", "share(exp(s) * (1 + s ** 2))(dot / sqrt(d)", "softmax(9 * cosine"],
)
def test_a_row_that_reads_one_key_gives_its_value(text: str) -> None:
    attention = rg.parse(f"{text}, mask=equal(i, j))")
    assert isinstance(attention, rg.Attention)
    q, k, v, dy = (torch.tensor(x).bfloat16().requires_grad_() for x in arrays(1, 2, 2, 139, 139, 24, 24))
    with whole() as ran:
        y = attention(q, k, v, engine="triton")
        dq, dk = torch.autograd.grad(y, (q, k), dy)
    assert {FORWARD, ROWS, KEYS} == set(ran)
    assert torch.equal(y, v)
    assert max(float(dq.abs().max()), float(dk.abs().max())) < 1e-5


def test_weights_of_what_is_far_away_in_float16() -> None:
    attention = rg.Attention(-sqdist / 2, share(rg.softplus))  # some 10⁻⁶
    with whole() as ran:
        agrees(attention, *arrays(1, 2, 1, 139, 139, 40, 40), dtype=torch.float16)
    assert FORWARD in ran


@pytest.mark.parametrize("width", [40, 44])  # 88 bytes: the copy engine writes vectors 96 bytes apart
def test_results_lie_as_compilers_are_told(width: int) -> None:
    room = torch.randn(3, 2, 70, 2, 48).bfloat16()  # sequence first
    q, k, v = (x[..., :width].transpose(1, 2).requires_grad_() for x in room)
    with whole() as ran, as_told():
        rg.Attention(mask=rg.causal)(q, k, v, engine="triton").sum().backward()
    assert {FORWARD, KEYS} <= set(ran)


def test_lists_of_each_batch_and_head() -> None:
    ends = np.array([[3, 150], [290, 131]])
    attention = rg.Attention(mask=j < table("ends")[rg.b, h])
    with whole() as ran:
        agrees(attention, *arrays(2, 2, 1, 140, 290, 72, 72), dtype=torch.bfloat16, ends=ends)
    assert {FORWARD, KEYS, QUERIES} <= set(ran)


@pytest.mark.parametrize("name", ["softmax", "documents"])
def test_parts_of_a_few_heads_give_the_same_bits(name: str) -> None:
    rounded = [torch.tensor(x).bfloat16() for x in arrays(2, 4, 2, 70, 200, 72, 72)]
    tables = {"ids": torch.arange(200).expand(2, -1) // 60} if name == "documents" else {}
    found = []
    for memory in (2**26, 2 * 2**17):  # 4 × 2 blocks of 8 kB of each head: all of them, or two at a time
        *leaves, dy = (x.clone().requires_grad_() for x in rounded)
        with whole() as ran, rg.fused(memory=memory):
            found.append(torch.autograd.grad(KEPT[name](*leaves, engine="triton", **tables), leaves, dy))
        assert QUERIES in ran
    assert all(map(torch.equal, *found))


def test_where_memory_is_short_the_same_bits_come_of_fewer_heads_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded, new_empty = [torch.tensor(x).bfloat16() for x in arrays(2, 4, 2, 70, 200, 72, 72)], torch.Tensor.new_empty
    kept, found = [], []

    def limited(x: Any, shape: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(shape, tuple) and shape[2:] == (64, 64):
            kept.append(shape[0])
            if len(kept) == 2:
                raise torch.OutOfMemoryError("short")
        return new_empty(x, shape, *arguments, **options)

    monkeypatch.setattr(torch.Tensor, "new_empty", limited)
    for _ in range(2):
        *leaves, dy = (x.clone().requires_grad_() for x in rounded)
        with whole():
            found.append(torch.autograd.grad(KEPT["softmax"](*leaves, engine="triton"), leaves, dy))
    assert kept == [32, 32, 16]  # blocks of four for each head
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("lengths", [(1, 1), (17, 17), (64, 127), (127, 64), (129, 129)])
@pytest.mark.parametrize("widths", [(64, 64), (16, 40), (40, 16), (128, 128)])
def test_lengths_and_widths(lengths: tuple[int, int], widths: tuple[int, int]) -> None:
    start = 0 if lengths[0] > lengths[1] else None
    with whole(processors=1) as ran:
        agrees(rg.Attention(mask=rg.causal), *arrays(1, 2, 1, *lengths, *widths), dtype=torch.float16, start=start)
    assert FORWARD in ran


WINDOW = (j <= i) & (i - j < 80)  # with start 0, the last of 300 rows read none of 200 keys


@pytest.mark.parametrize(("mask", "width", "rows"), [(None, 16, 192), (WINDOW, 72, 128)])
def test_one_processor_takes_every_tile(mask: Any, width: int, rows: int) -> None:
    q, k, v, _ = (torch.tensor(x).bfloat16() for x in arrays(2, 3, 3, 300, 200, width, width))
    attention = rg.Attention(score=dot / 4, mask=mask)
    found = []
    for processors in (1, 2, 100):
        with whole(processors) as ran:
            found.append(attention(q, k, v, engine="triton", start=0))
        assert len(ran) == min(processors, 2 * 3 * -(-300 // rows))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    exact = attention(*(x.double() for x in (q, k, v)), engine="dense", start=0)
    torch.testing.assert_close(found[0].double(), exact, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("lengths", [(1, 1), (129, 129), (200, 300)])
def test_windows(lengths: tuple[int, int]) -> None:
    with whole(processors=2) as ran:
        agrees(rg.Attention(mask=WINDOW), *arrays(2, 4, 2, *lengths, 72, 72), dtype=torch.bfloat16)
    assert {FORWARD, KEYS, QUERIES} <= set(ran)
