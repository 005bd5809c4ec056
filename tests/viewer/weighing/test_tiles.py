"""A tile at any level holds the largest and the mean weight of its cells; what is read in part is never too large."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looks import FORMULAS, captured, close, pixels, weights
from regard.algebra.errors import RegardError
from regard.viewer.weighing import passes
from regard.viewer.weighing.pixels import half, interleaved
from regard.viewer.weighing.thumbs import thumbs
from regard.viewer.weighing.tiles import Pyramid
from regard.viewer.work import Stop, Stopped

EVERY = [(name, (131, 307)) for name in FORMULAS]
SHAPES = ((1, 1), (257, 257), (300, 517), (3, 700))
AWKWARD = [(name, shape) for name in ("causal", "sink", "over queries") for shape in SHAPES]
THUMBS = [*((name, (67, 71)) for name in FORMULAS), ("causal", (1, 1)), ("line", (7, 97))]


def tiles(pyramid: Pyramid) -> Any:
    """Every tile of every level, exact, with the pixels it covers."""
    for level in range(pyramid.levels):
        counts = [-(-size // 2**level) for size in pyramid.shape]
        for row in range(-(-counts[0] // 256)):
            for column in range(-(-counts[1] // 256)):
                yield level, slice(256 * row, 256 * row + 256), slice(256 * column, 256 * column + 256)


def exact(pyramid: Pyramid, level: int, row: int, column: int) -> Any:
    """A tile, asked for until it is exact; what it knows only grows."""
    before, end = 0.0, time.monotonic() + 120
    while time.monotonic() < end:
        found, known = pyramid.tile(level, row, column)
        assert known >= before
        if known == 1:
            return found
        before = known
    pytest.fail("it never became exact")


def check(pyramid: Pyramid, whole: Any) -> None:
    for level, rows, columns in tiles(pyramid):
        expected = pixels(whole, level)[: 2 if level else 1, rows, columns]
        close(exact(pyramid, level, rows.start // 256, columns.start // 256), expected)


@pytest.mark.parametrize(("name", "shape"), EVERY + AWKWARD)
def test_every_tile_is_that_of_the_whole_matrix(name: str, shape: tuple[int, int]) -> None:
    call = captured(FORMULAS[name], *shape)
    check(Pyramid(call, 1, 2), weights(call, 1, 2))


@pytest.mark.parametrize(
    "name", ["softmax", "window", "line", "sigmoid", "scores", "over queries", "over heads", "sink"]
)
def test_coarse_levels_come_from_one_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.viewer.weighing.tiles.FINE", 0)
    call = captured(FORMULAS[name], 263, 307)
    pyramid = Pyramid(call, 1, 2)
    assert pyramid.coarse.level == 1
    check(pyramid, weights(call, 1, 2))
    assert pyramid.nbytes >= 132 * 154 * 8


def test_what_is_kept_has_few_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "WIDEST", 40)
    call = captured(FORMULAS["causal"], 1201, 1103)
    pyramid = Pyramid(call, 0, 3)
    assert pyramid.coarse.level == 5
    assert pyramid.levels == 4
    pyramid.coarse.run()
    found, known = pyramid.coarse.tile(6, (0, 19), (0, 18))
    assert known == 1
    close(found, pixels(weights(call, 0, 3), 6))


@pytest.mark.parametrize("name", ["softmax", "causal", "capped"])
def test_a_beginning_is_never_too_large(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.viewer.weighing.totals.ROWS", 17)
    monkeypatch.setattr("regard.viewer.weighing.totals.CELLS", 17 * 700)
    call = captured(FORMULAS[name], 701, 700)
    true, seen = pixels(weights(call, 1, 2), 4), []
    coarse = Pyramid(call, 1, 2).coarse
    coarse._prepare()
    monkeypatch.setattr(coarse, "_start", lambda: None)
    monkeypatch.setattr(passes, "PATIENCE", 0.0)
    for block in coarse._blocks:
        coarse._read(block, Stop())
        found, known = coarse.tile(4, (0, 44), (0, 44))
        assert (found[0].astype(np.float64) <= true[0] * (1 + 2.0**-10) + 2.0**-24).all()
        seen.append(known)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert seen[0] < 0.1
    assert [round(share * 701) for share in np.diff([0, *seen])] == [len(block) for block in coarse._in_order()]
    close(found, true)


def test_the_first_rows_are_spread_over_all() -> None:
    coarse = Pyramid(captured(FORMULAS["softmax"], 3001, 5), 0, 0).coarse
    blocks = list(coarse._in_order())
    assert sorted(np.concatenate(blocks)) == list(range(3001))
    assert all((np.diff(block) > 0).all() for block in blocks)
    read = np.zeros(3001, bool)
    for block in blocks[: -(-188 // 64) + 1]:
        read[block] = True
    assert all(read[first : first + 16].any() for first in range(0, 3001, 16))


def test_fine_tiles_of_unknown_rows_begin_with_one_row_a_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.viewer.weighing.tiles.PATIENCE", -1.0)
    call = captured(FORMULAS["capped"], 523, 401)
    pyramid, whole = Pyramid(call, 0, 1), weights(call, 0, 1)
    found, known = pyramid.tile(1, 0, 0)
    assert known == pytest.approx(0.5)
    close(found, _every_other(whole))
    monkeypatch.setattr("regard.viewer.weighing.tiles.PATIENCE", 60.0)
    found, known = pyramid.tile(1, 0, 0)
    assert known == 1
    close(found, pixels(whole, 1)[:, :256, :256])


def _every_other(whole: Any) -> Any:
    pairs = np.add.reduceat(whole[:512:2].astype(np.float64), np.arange(0, 401, 2), axis=1)
    pairs[:, :-1] /= 2
    largest = np.maximum.reduceat(whole[:512:2], np.arange(0, 401, 2), axis=1)
    return np.stack([largest, pairs])


def test_a_stop_ends_the_work_and_the_thread_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "REST", 0.05)
    call = captured(FORMULAS["softmax"], 4111, 4099)
    pyramid = Pyramid(call, 0, 0)
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        pyramid.tile(1, 0, 0, stop)
    with pytest.raises(Stopped):
        pyramid.coarse.run(stop)
    assert pyramid.coarse._block is not None
    pyramid.tile(4, 0, 0)
    end = time.monotonic() + 60
    while pyramid.coarse._readers and time.monotonic() < end:
        time.sleep(0.01)
    assert not pyramid.coarse._readers


def test_what_goes_wrong_in_the_thread_is_told() -> None:
    call = captured(FORMULAS["relative"], 4111, 5)
    call.tables["near"] = call.tables["near"][:, :7]
    with pytest.raises(RegardError, match="near"):
        Pyramid(call, 0, 0).tile(4, 0, 0)


@pytest.mark.parametrize(
    ("place", "told"),
    [((-1, 0, 0), "level"), ((3, 0, 0), "level"), ((0, 2, 0), "row"), ((0, 0, -1), "column"), ((1, 1, 0), "row")],
)
def test_tiles_that_are_not_there_are_refused(place: tuple[int, int, int], told: str) -> None:
    with pytest.raises(RegardError, match=f"{told}: one of"):
        Pyramid(captured(FORMULAS["softmax"], 300, 517), 0, 0).tile(*place)


@given(st.lists(st.floats(width=32), min_size=1))
def test_half_rounds_as_numpy_does(values: list[float]) -> None:
    numbers = np.asarray(values, np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(half(numbers), numbers.astype(np.float16))


@given(st.integers(1, 300))
def test_interleaved_places_are_all_of_them(count: int) -> None:
    found = interleaved(count)
    assert sorted(found) == list(range(count))
    assert found[0] == 0


@pytest.mark.parametrize(("name", "shape"), THUMBS)
def test_thumbs_show_the_largest_weight(name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    call = captured(FORMULAS[name], *shape)
    monkeypatch.setattr("regard.viewer.weighing.thumbs.CELLS", 500)
    found, is_exact = thumbs(call, 1, 13)
    assert is_exact
    assert found.shape == (4, min(13, shape[0]), min(13, shape[1]))
    for head in range(4):
        rows, columns = (np.arange(min(13, size)) * size // min(13, size) for size in shape)
        largest = np.maximum.reduceat(np.maximum.reduceat(weights(call, 1, head), rows), columns, axis=1)
        np.testing.assert_allclose(found[head], 255 * np.sqrt(np.clip(largest, 0, 1)), atol=0.51)


@pytest.mark.parametrize("name", ["causal", "over queries"])
def test_thumbs_of_long_maps_read_some_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.viewer.weighing.thumbs.EXACT", 1000)
    call = captured(FORMULAS[name], 311, 311)
    found, is_exact = thumbs(call, 0, 16)
    assert not is_exact
    assert found.shape == (4, 16, 16)
    if name == "causal":
        every, _ = thumbs(captured(FORMULAS[name], 311, 311), 0, 16)
        assert (found <= every).all()
        assert not np.triu(found[0], 1).any()
    assert found.any()


def test_rows_that_are_read_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.viewer.weighing.thumbs.EXACT", 1000)
    call = captured(FORMULAS["over queries"], 211, 89)
    call.q[:] = 0
    found, _ = thumbs(call, 0, 16)
    assert (found == round(255 * (1 / 211) ** 0.5)).all()
