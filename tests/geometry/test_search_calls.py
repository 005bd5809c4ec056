"""What search takes: libraries, dtypes, layouts, files; what it refuses, what it holds, and what it tells meanwhile."""

from __future__ import annotations

import gc
import io
import sys
import tracemalloc
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import regard as rg
from neighbours import (
    KINDS,
    METRICS,
    RNG,
    WIDTH,
    assert_nearest,
    in_kind,
    normal,
    numpy,
    one_thread,  # noqa: F401 - a fixture of every test here
    truth,
)
from regard._arrays import Torch, library
from regard.geometry import BilinearForm, Mahalanobis, search
from regard.geometry.nearest import progress as progressing
from regard.geometry.nearest import searching

QUERIES, CORPUS = normal(7, WIDTH), normal(103, WIDTH)
every_metric = pytest.mark.parametrize("metric", METRICS)


def assert_found(found: Any, queries: Any, corpus: Any, k: int, metric: Any = "cosine") -> None:
    assert_nearest(found, truth(metric, queries, corpus), corpus, k)


# -- where a corpus comes from -------------------------------------------------------------------------------------


class Shelf:
    """Something that has a shape and can be sliced, and hands out lists."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.shape = rows, rows.shape

    def __getitem__(self, part: slice) -> Any:
        assert isinstance(part, slice)
        return self.rows[part].tolist()


@every_metric
def test_every_source_finds_the_same(metric: str, tmp_path: Any) -> None:
    expected = search(QUERIES, CORPUS, 5, metric=METRICS[metric])
    path = tmp_path / "corpus.f4"
    CORPUS.tofile(path)
    mapped = np.memmap(path, np.float32, "r", shape=CORPUS.shape)
    sources = {
        "memory map": mapped,
        "shelf": Shelf(CORPUS),
        "lists": CORPUS.tolist(),
        "every other row": np.repeat(CORPUS, 2, 0)[::2],
        "by columns": np.asfortranarray(CORPUS),
        "backwards": CORPUS[::-1].copy()[::-1],
        "other bytes first": CORPUS.astype(">f4"),
    }
    for name, source in sources.items():
        for kind in KINDS:
            queries = KINDS[kind](QUERIES)
            found = search(queries, source, 5, metric=in_kind(METRICS[metric], kind), block=29)
            assert library(found.values).name == library(queries).name, name
            assert library(found.values).device(found.values) == library(queries).device(queries), name
            assert found.values.dtype == queries.dtype, name
            np.testing.assert_array_equal(numpy(found.indices), expected.indices, err_msg=name)
            np.testing.assert_allclose(numpy(found.values), expected.values, rtol=2**-20, atol=2**-20, err_msg=name)
    np.testing.assert_array_equal(mapped, CORPUS)


@pytest.mark.parametrize("layout", ["strided", "transposed", "expanded", "on the CPU"])
def test_tensors_in_any_layout(layout: str) -> None:
    corpus = torch.asarray(CORPUS)
    made = {
        "strided": torch.repeat_interleave(corpus, 2, 0)[::2],
        "transposed": corpus.T.contiguous().T,
        "expanded": corpus[:1].expand(103, WIDTH),
        "on the CPU": corpus,
    }[layout]
    queries = KINDS[list(KINDS)[-1]](QUERIES)
    assert_found(search(queries, made, 4, block=11), QUERIES, made, 4)


def test_gradients_do_no_harm() -> None:
    queries, corpus = (torch.tensor(x, requires_grad=True) for x in (QUERIES, CORPUS))
    bias, square = torch.ones(103, requires_grad=True), torch.eye(WIDTH, requires_grad=True)
    metrics = ["dot", "cosine", "euclidean", Mahalanobis(square), BilinearForm(square), rg.dot + rg.table("bias")[rg.j]]
    for metric in metrics:
        found = search(queries, corpus, 3, metric=metric, **({"bias": bias} if metric is metrics[-1] else {}))
        assert not found.values.requires_grad
        expected = search(queries.detach(), corpus.detach(), 3, metric="dot" if metric is metrics[-1] else metric)
        assert torch.equal(found.indices, expected.indices)
    assert queries.grad is None
    with torch.inference_mode():
        assert torch.equal(search(queries, corpus, 3).indices, search(queries.detach(), corpus.detach(), 3).indices)


DTYPES = "float16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 bool".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean"])
def test_every_dtype_of_a_corpus(dtype: str, metric: str) -> None:
    corpus = (RNG.standard_normal((41, WIDTH)) * 20).astype(dtype)
    for kind, queries in (("numpy", QUERIES), ("numpy", QUERIES.astype(float)), (list(KINDS)[-1], QUERIES)):
        found = search(KINDS[kind](queries), corpus, 6, metric=metric, block=10)
        assert str(found.values.dtype).endswith(str(queries.dtype))
        assert_found(found, queries, corpus, 6, metric)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.bool])
def test_every_dtype_of_a_tensor(dtype: Any) -> None:
    corpus = (torch.asarray(CORPUS) * 3).to(dtype)
    assert_found(search(torch.asarray(QUERIES), corpus, 6, metric="dot"), QUERIES, corpus.float(), 6, "dot")


@pytest.mark.parametrize("dtype", ["float16", "int8", "int64", "bool"])
def test_every_dtype_of_queries(dtype: str) -> None:
    queries = (QUERIES * 3).astype(dtype)
    found = search(queries, CORPUS, 6, metric="euclidean")
    assert found.values.dtype == (np.float32 if dtype == "float16" else np.float64)
    assert found.indices.dtype == np.int64
    assert_found(found, queries, CORPUS, 6, "euclidean")


def test_integers_that_float32_does_not_hold() -> None:
    corpus = 2**24 + np.arange(11)[:, None]
    assert search([[2.0**24 + 5]], corpus, 1, metric="euclidean") == ([[0.0]], [[5]])


@pytest.mark.parametrize("metric", ["mahalanobis", "bilinear"])
def test_a_matrix_in_float32_is_taken_at_its_word(metric: str) -> None:
    made: Any = METRICS[metric]
    narrow = (
        Mahalanobis(made.covariance.astype("f4")) if metric == "mahalanobis" else BilinearForm(made.matrix.astype("f4"))
    )
    assert_found(search(QUERIES, CORPUS, 6, metric=narrow), QUERIES, CORPUS, 6, narrow)


def test_a_value_too_large_for_the_queries_is_infinite() -> None:
    huge = np.float32(3e38) * np.ones((1, WIDTH), np.float32)
    found = search(huge, np.vstack([huge, -huge]), 2, metric="dot")
    np.testing.assert_array_equal(found.values, [[np.inf, -np.inf]])
    np.testing.assert_array_equal(found.indices, [[0, 1]])


# -- memory --------------------------------------------------------------------------------------------------------


def peak(call: Any) -> int:
    """Bytes that a call holds at its peak."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("metric", "dtype"), [*product([*METRICS, "score"], ["float32"]), ("dot", "float16")])
def test_memory_is_that_of_a_block(metric: str, dtype: str, tmp_path: Any) -> None:
    few, many, count, block = 2003, 16007, 61, 251
    path = tmp_path / "corpus"
    RNG.standard_normal((many, WIDTH)).astype(dtype).tofile(path)
    chosen = METRICS.get(metric, rg.dot / rg.sqrt(rg.d) + rg.tanh(rg.cosine) + rg.j % 3)
    held = {}
    for rows in (few, many):
        corpus = np.memmap(path, dtype, "r", shape=(rows, WIDTH))
        held[rows] = peak(lambda corpus=corpus: search(normal(count, WIDTH), corpus, 5, metric=chosen, block=block))
    assert held[many] < many * count * 4 / 4
    assert held[many] < held[few] * 1.5  # some blocks bring more contenders than others


def test_a_block_is_chosen_for_the_machine(monkeypatch: Any) -> None:
    def rows(queries: Any, width: int) -> list[int]:
        told: list[int] = []
        search(queries, normal(10_007, width), 1, progress=lambda done, _: told.append(done))
        return told

    monkeypatch.setattr(searching, "BLOCK", 100_000)
    assert rows(normal(3, 50), 50)[0] == 100_000 // 50  # entries of a block
    assert rows(normal(100, 50), 50)[0] == 1000  # of its scores
    assert rows(normal(3, 400), 400)[0] == 256  # no fewer
    monkeypatch.setattr(searching, "QUERIES", 80)
    assert rows(normal(100, 50), 50)[0] == 100_000 // 80  # that are compared at once
    monkeypatch.setattr(Torch, "is_accelerated", lambda self, x: True)
    assert rows(torch.asarray(normal(3, 50)), 50) == [10_007]


# -- progress ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 40, 103, 500])
def test_progress_is_told_up_to_the_end(block: int) -> None:
    told: list[Any] = []
    search(QUERIES, CORPUS, 3, block=block, progress=lambda done, rows: told.append((done, rows)))
    assert told == [(min(done, 103), 103) for done in range(block, 103 + block, block)]


def test_a_bar_on_the_error_stream(capsys: Any) -> None:
    search(QUERIES, CORPUS, 3, block=40, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "searching" in shown.err
    assert "103/103" in shown.err
    for quiet in (False, None):  # None: no terminal, no bar
        search(QUERIES, CORPUS, 3, block=40, progress=quiet)
        assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("patience", "shown"), [(0.0, True), (3600.0, False)])
def test_a_bar_by_itself_for_long_work_in_a_terminal(patience: float, shown: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(progressing, "PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", Terminal())
    search(QUERIES, CORPUS, 3, block=40)
    assert ("searching" in sys.stderr.getvalue()) == shown
    sys.stderr.truncate(0)
    search(QUERIES, CORPUS, 3, block=40, progress=False)
    assert "searching" not in sys.stderr.getvalue()


def test_a_bar_needs_rich(monkeypatch: Any) -> None:
    for name in ("rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(rg.MissingExtra, match=r'this needs rich, which is not installed: pip install "regard\[cli\]"'):
        search(QUERIES, CORPUS, 3, progress=True)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progressing, "PATIENCE", 0.0)
    search(QUERIES, CORPUS, 3)
    assert sys.stderr.getvalue() == ""


def test_a_bar_ends_with_an_error(capsys: Any) -> None:
    corpus = CORPUS.copy()
    corpus[90, 2] = np.nan
    with pytest.raises(rg.CallError, match="row 90"):
        search(QUERIES, corpus, 3, block=40, progress=True)
    assert "80/103" in capsys.readouterr().err


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("row", "block"), [(0, None), (37, None), (37, 10), (102, 10), (39, 1)])
def test_wild_rows_are_named(wrong: float, row: int, block: int | None, kind: str) -> None:
    corpus = CORPUS.copy()
    corpus[row, 3] = wrong
    corpus[min(row + 1, 102), 1] = wrong
    for metric in ("dot", "cosine", "euclidean", rg.dot):
        with pytest.raises(
            rg.CallError,
            match=f"^corpus: finite numbers; got NaN or infinity in row {row}; drop such rows or fill them$",
        ):
            search(KINDS[kind](QUERIES), KINDS[kind](corpus), 3, metric=metric, block=block)


def test_numbers_whose_squares_overflow_are_not_wild() -> None:
    corpus = np.float32(3e38) * np.sign(CORPUS)
    assert_found(search(QUERIES, corpus, 3), QUERIES, corpus, 3)


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "k of 0": ({"k": 0}, {}, rg.CallError, "k: how many to find, an integer of at least 1; got 0"),
    "k too large": ({"k": 104}, {}, rg.CallError, r"k: from 1 to the 103 rows .* got 104; pass k=min\(104, len"),
    "k of none": ({"k": 1, "corpus": CORPUS[:0]}, {}, rg.CallError, "k: from 1 to the 0 rows of the corpus; got 1"),
    "k true": ({"k": True}, {}, rg.KindError, "k: how many to find, an integer of at least 1; got True"),
    "k broken": ({"k": 1.5}, {}, rg.KindError, "k: how many to find, an integer of at least 1; got 1.5"),
    "widths": ({"queries": QUERIES[:, :4]}, {}, rg.CallError, "queries, corpus: vectors of one width; got 4 and 5"),
    "wild queries": (
        {"queries": np.full((2, WIDTH), np.nan)}, {}, rg.CallError, "queries: finite numbers; got NaN.*in row 0",
    ),
    "one number": ({"queries": np.float64(3)}, {}, rg.CallError, "queries: a matrix, one vector in each row"),
    "stacked queries": (
        {"queries": QUERIES[None]}, {}, rg.CallError, "queries: a matrix, one vector in each row; got 3 axes",
    ),
    "text": ({"queries": "abc"}, {}, rg.KindError, "queries: an array or nested lists of numbers; got str"),
    "a corpus of text": ({"corpus": "abc"}, {}, rg.KindError, "corpus: an array or nested lists of numbers; got str"),
    "a stacked corpus": (
        {"corpus": CORPUS[None]}, {}, rg.CallError, r"corpus: a matrix, one vector in each row; got \(1, 103, 5\)",
    ),
    "a complex corpus": ({"corpus": CORPUS * 1j}, {}, rg.KindError, "corpus: real numbers; got dtype complex64"),
    "a corpus of objects": (
        {"corpus": CORPUS.astype(object)}, {}, rg.KindError, "corpus: real numbers; got dtype object",
    ),
    "tensors for arrays": (
        {"corpus": torch.asarray(CORPUS)}, {}, rg.KindError,
        "corpus: from the library of the queries, numpy, or from NumPy; got torch",
    ),
    "jax for tensors": (
        {"queries": torch.asarray(QUERIES), "corpus": jnp.asarray(CORPUS)}, {}, rg.KindError,
        "corpus: from the library of the queries, torch, or from NumPy; got jax",
    ),
    "jax": (
        {"queries": jnp.asarray(QUERIES)}, {}, rg.KindError,
        "queries: from NumPy or PyTorch; got jax; convert them, as with numpy.asarray",
    ),
    "too long": (
        {"queries": np.full((1, WIDTH), 1e200)}, {"metric": "dot"}, rg.CallError,
        "queries, corpus: vectors whose squared lengths float64 holds, up to about 1e307; got longer ones; divide both",
    ),
    "rows too long": (
        {"corpus": np.full((103, WIDTH), -1e200)}, {"metric": "euclidean"}, rg.CallError,
        "queries, corpus: vectors whose squared lengths float64 holds",
    ),
    "block of 0": ({}, {"block": 0}, rg.CallError, "block: rows .* an integer of at least 1; got 0"),
    "block true": ({}, {"block": True}, rg.KindError, "block: rows .* an integer of at least 1; got True"),
    "block broken": ({}, {"block": 2.0}, rg.KindError, "block: rows .* an integer of at least 1; got 2.0"),
    "progress": (
        {}, {"progress": 3}, rg.KindError, "progress: True, False, or a function of rows done and in all; got 3",
    ),
    "a metric by another name": (
        {}, {"metric": "manhattan"}, rg.KindError,
        'metric: "dot", "cosine", "euclidean", a Mahalanobis, a BilinearForm, or a score as in .*; got \'manhattan\'',
    ),
    "a metric of another kind": ({}, {"metric": np.eye(5)}, rg.KindError, "metric: .*; got ndarray"),
    "a list for a metric": ({}, {"metric": ["dot"]}, rg.KindError, "metric: .*; got list"),
    "a covariance of another width": (
        {}, {"metric": Mahalanobis(np.eye(3))}, rg.CallError,
        "metric: its covariance has width 3; got queries of width 5",
    ),
    "a matrix of another width": (
        {}, {"metric": BilinearForm(np.eye(3))}, rg.CallError, "metric: its matrix has width 3; got queries of width 5",
    ),
    "a metric of another library": (
        {}, {"metric": BilinearForm(torch.eye(5))}, rg.KindError,
        "metric: comes from the library of queries, numpy; got torch; convert it",
    ),
    "tables for a name": (
        {}, {"metric": "dot", "bias": [1.0]}, rg.CallError,
        "tables: for a score of the algebra; got bias with metric='dot'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(name: str) -> None:
    positional, options, error, text = REFUSED[name]
    arguments = {"queries": QUERIES, "corpus": CORPUS, "k": 3, **positional}
    with pytest.raises(error, match=f"^{text}"):
        search(**arguments, **options)


def test_apple_has_no_float64() -> None:
    class Apple(Torch):
        def device(self, x: Any) -> Any:
            return "mps:0"

    text = "queries: where there is float64, in which search decides; got mps; move them to the CPU"
    with pytest.raises(rg.CallError, match=text):
        searching._refuse_narrow(Apple(library(torch.ones(1)).xp), torch.ones(1))


def test_numbers_of_numpy_count_too() -> None:
    plain = search(CORPUS[:3], CORPUS, 5, block=40)
    found = search(CORPUS[:3], CORPUS, np.int64(5), block=np.int32(40))
    np.testing.assert_array_equal(found.indices, plain.indices)
