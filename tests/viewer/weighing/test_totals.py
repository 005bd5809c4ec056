"""Totals are those of whole rows, found in blocks, once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import regard as rg
from looks import FORMULAS, captured, weights
from regard.viewer.weighing import totals as module
from regard.viewer.weighing.totals import Head, kept, totals
from regard.viewer.work import Stop, Stopped

SHARED = [name for name in FORMULAS if Head(captured(FORMULAS[name], 2, 3), 0, 0).shared in ("columns", "rows")]
CASES = [(name, (67, 311)) for name in SHARED] + [("line", shape) for shape in ((1, 1), (2, 1), (311, 67))]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are several."""
    monkeypatch.setattr(module, "CELLS", 2000)
    monkeypatch.setattr(module, "ROWS", 13)
    monkeypatch.setattr("regard.viewer.weighing.lines.CHUNK", 1)


def whole(call: Any, batch: int, head: int) -> Any:
    return call.parts.totals()[batch, head]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_totals_are_those_of_the_whole(name: str, shape: tuple[int, int]) -> None:
    call = captured(FORMULAS[name], *shape)
    np.testing.assert_allclose(totals(call, 1, 2), whole(call, 1, 2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_any_part_of_the_weights_is_that_of_the_whole(name: str) -> None:
    call = captured(FORMULAS[name], 67, 311)
    head, expected = Head(call, 1, 3), weights(call, 1, 3)
    rows, columns = np.asarray([3, 4, 17, 66]), slice(200, 263)
    np.testing.assert_allclose(head.weights(rows, columns), expected[rows, columns], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(head.weights(slice(5, 9), slice(None)), expected[5:9], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_half_and_double_precision(dtype: Any) -> None:
    call = captured(FORMULAS["causal"], 67, 67, dtype=dtype)
    exact = 1e-5 if dtype == np.float16 else 1e-12
    np.testing.assert_allclose(Head(call, 1, 3).weights(slice(None), slice(3, 40)), weights(call, 1, 3)[:, 3:40], exact)
    assert totals(call, 0, 0).dtype == (np.float32 if dtype == np.float16 else np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_are_looked_at_too(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    call = captured(FORMULAS["tables"], 67, 71)
    arrays = {name: torch.as_tensor(getattr(call, name)).to(getattr(torch, dtype)) for name in "qkv"}
    tables = {name: torch.as_tensor(table) for name, table in call.tables.items()}
    tensors = type(call)("layer", call.formula, **arrays, tables=tables, start=torch.tensor([0, 0]))
    found = totals(tensors, 1, 3)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, tensors.parts.totals()[1, 3], rtol=1e-5, atol=1e-5)


def test_empty_rows_have_no_total() -> None:
    call = captured(FORMULAS["strict"], 311, 311)
    assert totals(call, 0, 1)[0] == -np.inf
    assert not Head(call, 0, 1).weights(slice(0, 1), slice(None)).any()


def test_what_nobody_reads_may_be_anything() -> None:
    call = captured(FORMULAS["causal"], 311, 311)
    call.k[:, :, 300:] = np.nan
    assert np.isfinite(totals(call, 0, 1)[:300]).all()


@pytest.mark.parametrize("name", ["softmax", "causal", "window", "line", "sigmoid", "capped", "over queries"])
@pytest.mark.parametrize("size", [1, 4])
def test_a_strip_has_the_pixels_of_its_rows(name: str, size: int) -> None:
    call = captured(FORMULAS[name], 67, 311)
    expected, rows = weights(call, 1, 3), np.asarray([1, 2, 3, 40, 41, 63, 66])
    strip = Head(call, 1, 3).strip(rows, size)
    places = np.arange(0, 311, size)
    largest, total = np.zeros((67, len(places))), np.zeros((67, len(places)))
    across = slice(strip.first, strip.first + strip.largest.shape[1])
    largest[strip.places, across], total[strip.places, across] = strip.largest, strip.total
    for pixel, count in zip(strip.places, strip.counts, strict=True):
        chosen = expected[rows[rows // size == pixel]]
        assert count == len(chosen)
        np.testing.assert_allclose(largest[pixel], np.maximum.reduceat(chosen.max(0), places), 1e-5, 1e-7)
        np.testing.assert_allclose(total[pixel], np.add.reduceat(chosen.sum(0), places), 1e-5, 1e-7)


def test_totals_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    call = captured(FORMULAS["capped"], 67, 311)
    head = Head(call, 1, 3)
    head.totals(np.asarray([5, 6, 7, 60]))
    assert head.known.done.sum() == 4
    head.totals()
    monkeypatch.setattr(Head, "_found", lambda *_: pytest.fail("found again"))
    np.testing.assert_array_equal(Head(call, 1, 3).totals(slice(3, 9)), head.known.values[3:9])


def test_the_mask_says_which_keys_are_left_out() -> None:
    call = captured(FORMULAS["window"], 1999, 1999)
    keys = Head(call, 0, 0).admitted(slice(1000, 1010), 16)
    assert keys.start % 16 == 0
    assert keys.start <= 1000 - 31
    assert keys.stop > 1009
    assert keys.stop - keys.start < 400
    late = captured(FORMULAS["late mask"], 1999, 1999)
    assert Head(late, 0, 0).admitted(slice(0, 10)) == slice(0, 1999)


@pytest.mark.parametrize("name", ["softmax", "sigmoid", "over queries"])
def test_a_stop_ends_the_work(name: str) -> None:
    call = captured(FORMULAS[name], 67, 311)
    stop = Stop()
    stop.set()
    if name != "sigmoid":
        with pytest.raises(Stopped):
            totals(call, 0, 0, stop=stop)
        assert not Head(call, 0, 0).known.done.any()
    with pytest.raises(Stopped):
        Stop(seconds=-1).check()
    Stop(seconds=60).check()


def test_formulas_that_are_tried_are_forgotten_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OTHERS", 5)
    call = captured(FORMULAS["softmax"], 5, 5)
    totals(call, 0, 0)
    for place in range(module.OTHERS):
        totals(call, 0, 0, rg.parse(f"softmax(dot * {place + 2})"))
    others = [key for key in call.known if key[0] != call.formula.text]
    assert len(others) == module.OTHERS
    assert (call.formula.text, 0, 0) in call.known
    assert kept(call, others[-1], lambda: pytest.fail("it is there")) is call.known[others[-1]]
