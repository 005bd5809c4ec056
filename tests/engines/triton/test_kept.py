"""The backward pass of the Triton template where dS is made once and written down, in its interpreter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import agrees, needs_triton
from regard import causal, cosine, dot, each, h, i, j, share, sigmoid, sqdist, table, window
from regard.engines.triton.templates import kept
from regard.engines.triton.tilings import Tiling

pytestmark = [needs_triton, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
PLENTY = 2**26
SCORE = dot / 4
FORMULAS = {
    "softmax": rg.Attention(SCORE),
    "causal": rg.Attention(SCORE, mask=causal),
    "window": rg.Attention(SCORE, mask=window(40) & causal),
    "documents": rg.Attention(SCORE, mask=rg.documents("ids")),
    "heads differ": rg.Attention(SCORE / (h + 1), mask=i - j < 20 * (h + 1)),
    "relative": rg.Attention(SCORE + table("bias")[h, i - j + 200]),
    "relative, causal": rg.Attention(SCORE + table("bias")[h, i - j], mask=causal),
    "columns": rg.Attention(-sqdist / 8 + table("line")[j]),
    "cosine": rg.Attention(5 * cosine, mask=causal),
    "each": rg.Attention(SCORE, weight=each(sigmoid), mask=causal),
    "a sink": rg.Attention(SCORE, share(rg.exp, sink=rg.exp(table("rest")[h, i]))),
}
SIZES = {"whole blocks": (1, 2, 2, 128, 64), "groups": (2, 4, 2, 70, 131), "one row": (1, 1, 1, 1, 65)}


def arrays(batch: int, heads: int, groups: int, queries: int, keys: int, width: int = 16) -> list[Any]:
    random = np.random.default_rng(7)
    shapes = (heads, queries), (groups, keys), (groups, keys), (heads, queries)
    return [random.standard_normal((batch, *shape, width)) for shape in shapes]


def tables(attention: rg.Attention, batch: int, heads: int, keys: int) -> dict[str, Any]:
    random = np.random.default_rng(11)
    made = {
        "ids": np.sort(random.integers(0, 4, (batch, keys)), axis=-1),
        "bias": random.standard_normal((heads, 401)),
        "line": random.standard_normal(keys),
        "rest": random.standard_normal((heads, keys)),
    }
    return {name: made[name] for name in attention.ranks}


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many heads were kept at a time, of each backward pass that kept dS."""
    found: list[int] = []
    of_both = kept.of_both

    def watched(*arguments: Any) -> Any:
        found.append(arguments[5])
        return of_both(*arguments)

    monkeypatch.setattr(kept, "of_both", watched)
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_are_those_of_whole_matrices(name: str, size: str, ways: list[int]) -> None:
    attention, (batch, heads, _, queries, keys) = FORMULAS[name], SIZES[size]
    start = 0 if queries > keys else None
    with rg.fused(memory=PLENTY):
        given = tables(attention, batch, heads, keys if start is None else queries)
        agrees(attention, *arrays(*SIZES[size]), dtype=torch.float16, start=start, **given)
    assert ways == [batch * heads]


def grads(attention: rg.Attention, rounded: list[Any], **tables: Any) -> list[Any]:
    *leaves, dy = (x.detach().clone().requires_grad_() for x in rounded)
    return list(torch.autograd.grad(attention(*leaves, engine="triton", **tables), leaves, dy))


@pytest.mark.parametrize("name", ["softmax", "window", "relative"])
def test_parts_give_the_same_bits(name: str, ways: list[int]) -> None:
    attention, (batch, heads, _, _, keys) = FORMULAS[name], SIZES["groups"]
    rounded = [torch.tensor(x).half() for x in arrays(*SIZES["groups"])]
    given = {key: torch.tensor(x) for key, x in tables(attention, batch, heads, keys).items()}
    block = 64 * 64 * 2
    found = []
    for memory in (PLENTY, 12 * 2 * block, 12 * block):  # 3 blocks of keys, 2 of rows, 2 heads of a group
        with rg.fused(memory=memory):
            found.append(grads(attention, rounded, **given))
    assert ways == [8, 4, 2]
    assert all(torch.equal(one, other) for other in found[1:] for one, other in zip(found[0], other, strict=True))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A chip on which no more than so many numbers, the first, are free; behind it what was asked for."""
    asked, new_empty = [2**62], torch.Tensor.new_empty

    def limited(x: Any, shape: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(shape, tuple) and shape[2:] == (64, 64):
            asked.append(int(np.prod(shape)))
            if asked[-1] > asked[0]:
                raise torch.OutOfMemoryError("short")
        return new_empty(x, shape, *arguments, **options)

    monkeypatch.setattr(torch.Tensor, "new_empty", limited)
    return asked


def test_where_memory_is_short_fewer_heads_are_kept_at_a_time(short: list[int], ways: list[int]) -> None:
    rounded = [torch.tensor(x).half() for x in arrays(3, 4, 2, 70, 131)]
    one = 3 * 2 * 64 * 64  # head
    with rg.fused(memory=PLENTY):
        wanted = grads(FORMULAS["relative"], rounded, bias=torch.ones(4, 401))
        short[:] = [3 * one]
        found = grads(FORMULAS["relative"], rounded, bias=torch.ones(4, 401))
        assert short[1:] == [12 * one, 6 * one, 2 * one], "whole groups of two heads"
        assert all(map(torch.equal, wanted, found))
        short[:] = [one]
        with pytest.raises(torch.OutOfMemoryError):
            grads(FORMULAS["relative"], rounded, bias=torch.ones(4, 401))
        assert short[1:] == [12 * one, 6 * one, 2 * one]
    assert ways == [12, 12, 12]


def test_more_heads_than_a_grid_takes_are_kept_in_parts(monkeypatch: pytest.MonkeyPatch, ways: list[int]) -> None:
    monkeypatch.setattr(kept, "ACROSS", 5)
    rounded = [torch.tensor(x).half() for x in arrays(2, 4, 2, 70, 131)]
    with rg.fused(memory=PLENTY):
        grads(FORMULAS["relative"], rounded, bias=torch.ones(4, 401))
    assert ways == [4]


def test_too_little_memory_makes_it_twice(ways: list[int]) -> None:
    rounded = [torch.tensor(x).half() for x in arrays(*SIZES["groups"])]
    for memory in (None, 0, 1000):
        with rg.fused(memory=memory):
            grads(FORMULAS["softmax"], rounded)
    assert ways == []


@pytest.mark.parametrize(
    ("attention", "dtype"),
    [
        (rg.Attention(SCORE * table("factor")[i]), torch.float16),  # rows want sums
        (rg.Attention(dot(table("M")) / 4), torch.float16),  # two products: q M in halves
        (rg.Attention(SCORE), torch.float32),
    ],
)
def test_what_is_made_twice_whatever_the_memory(attention: rg.Attention, dtype: Any, ways: list[int]) -> None:
    made = {"factor": torch.rand(131, requires_grad=True), "M": torch.randn(16, 16, requires_grad=True)}
    rounded = [torch.tensor(x).to(dtype) for x in arrays(1, 2, 2, 70, 131)]
    with rg.fused(memory=PLENTY):
        grads(attention, rounded, **{name: made[name] for name in attention.ranks})
    assert ways == []


def test_keys_that_no_one_reads_may_be_nan(ways: list[int]) -> None:
    """In blocks that are read otherwise; rows that read nothing, too. What was done again is rounded otherwise."""
    attention = rg.Attention(SCORE, mask=(j < 40) & (i >= 90))
    clean = [torch.tensor(x).half() for x in arrays(1, 2, 2, 131, 131)]
    spoilt = [x.clone() for x in clean]
    for x in spoilt[1:3]:
        x[:, :, 40:] = torch.nan
    for x in (spoilt[0], spoilt[3]):
        x[:, :, :90] = torch.nan
    with rg.fused(memory=PLENTY):
        found, wanted = grads(attention, spoilt), grads(attention, clean)
    assert ways == [2, 2]
    assert not found[0][:, :, :90].any()
    for one, other in zip(found, wanted, strict=True):
        assert float((one - other).float().norm()) <= 2 * torch.finfo(torch.float16).eps * float(other.float().norm())


def test_heads_at_once_are_whole_groups_in_parts_of_about_one_size() -> None:
    call = SimpleNamespace(shape=(3, 4, 100), group=2, v=torch.empty(3, 2, 130, 16, dtype=torch.float16))
    block = 64 * 64 * 2
    own = 2 * 3 * 2 * block  # of a group: 2 heads, 3 blocks of keys, 2 of rows
    tile = (128, 64, 64)
    assert kept.slants_of(call, None, tile) == (3, 2)
    assert [kept.heads_at_once(call, None, tile, own * n - 1) for n in (1, 2, 3, 5, 6, 7)] == [0, 2, 4, 6, 6, 12]


def test_a_way_needs_square_blocks() -> None:
    formula = SimpleNamespace(PRODUCTS=1)
    call: Any = SimpleNamespace(formula=formula, v=torch.empty(1, 1, 64, 128, dtype=torch.bfloat16))
    assert kept.way(call, Tiling(64, 64), 1) is not None
    assert kept.way(call, Tiling(32, 64), 1) is None
