"""What a mask reads of tables for a row or for a column alone is read once for each, and not for each pair."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import agrees, needs_triton
from regard import b, dot, equal, h, i, j, share, table
from regard.engines.call import prepare
from regard.engines.triton import choice, operator
from regard.engines.triton.passes import Pass
from regard.engines.triton.program import program
from regard.engines.triton.sides import sides
from regard.engines.triton.source import written

pytestmark = needs_triton

BATCH, HEADS, GROUPS, QUERIES, KEYS, WIDTH, OUT = 2, 4, 2, 17, 37, 5, 7
own, other = table("t")[table("ids")[i]], table("u")[h, j]
MASKS: dict[str, Any] = {
    "documents": rg.documents("docs"),
    "nested": own > other,
    "read twice": (own > other) & (own < 0.9),
    "a mark within a read of pairs": equal(table("ids")[i], 1) | (table("p")[table("ids")[i], table("ids")[j]] > 0),
    "pairs": (table("p")[table("ids")[i], table("ids")[j]] > 0) & (table("w")[i - j + KEYS] > -1),
    "a column of a batch": (j < table("lengths")[b]) & (table("line")[j] > -1),
    "a row of a head": table("u")[h, i] > -1,
    "integers and numbers": table("ids")[i] + table("t")[table("ids")[j]] > 1,
    "divided": equal(table("docs")[b, i] // 2, table("docs")[b, j] // 2),
    "vectors too": (dot > -1) & rg.documents("docs"),
}
INTEGERS = frozenset({"docs", "ids", "lengths"})


def functions(mask: Any) -> dict[str, str]:
    """The text of each function that the kernels are handed, by its name."""
    text = written(program(rg.Attention(mask=mask)), INTEGERS).text
    return dict(re.findall(r"@jit\ndef (\w+)(\(.*?)(?=\n\n\n|\Z)", text, re.DOTALL))


def loads(mask: Any) -> tuple[int, ...]:
    """How often rows, columns and admitted load something; beside the start, which rows need to know i."""
    found = functions(mask)
    starts = found["rows"].count("i = r + tl.load(")
    rows, columns, admitted = (found[name].count("tl.load(") for name in ("rows", "columns", "admitted"))
    assert starts == ("row_mark0" in found["rows"]), "the start is read where a row's place is needed, once"
    return rows - starts, columns, admitted


def test_documents_are_read_once_a_row_and_once_a_column() -> None:
    found = functions(rg.documents("docs"))
    assert loads(rg.documents("docs")) == (1, 1, 0)
    assert found["rows"].rstrip().endswith("return (row_mark0,)")
    assert found["columns"].rstrip().endswith("return (column_mark0,)")
    assert found["admitted"].rstrip().endswith("return (row_mark0 == column_mark0)")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nested", (2, 1, 0)),  # t and, inside it, ids
        ("read twice", (2, 1, 0)),
        ("a mark within a read of pairs", (1, 0, 2)),  # p and ids[j]; ids[i] is known
        ("pairs", (0, 0, 4)),
        ("a column of a batch", (0, 1, 1)),
        ("a row of a head", (1, 0, 0)),
        ("integers and numbers", (1, 2, 0)),
        ("vectors too", (1, 1, 0)),
    ],
)
def test_reads_stand_where_they_are_read_least(name: str, expected: tuple[int, ...]) -> None:
    assert loads(MASKS[name]) == expected


def test_a_score_reads_as_before() -> None:
    """Marks are the mask's: without one there is none."""
    text = written(program(rg.Attention(dot + table("p")[table("ids")[i], table("ids")[j]])), INTEGERS).text
    assert "_mark" not in text


# -- numbers ---------------------------------------------------------------------------------------------------


def tables(attention: rg.Attention) -> dict[str, Any]:
    random = np.random.default_rng(3)
    made = {
        "docs": np.sort(random.integers(0, 5, (BATCH, KEYS)), axis=-1),
        "ids": random.integers(0, 3, KEYS),
        "lengths": np.array([29, 3]),
        "t": random.standard_normal(3),
        "u": random.standard_normal((HEADS, KEYS)),
        "p": random.standard_normal((3, 3)),
        "w": random.standard_normal(2 * KEYS),
        "line": random.standard_normal(KEYS),
        "rest": random.standard_normal(HEADS),
    }
    return {name: made[name] for name in attention.ranks}


def arrays(queries: int = QUERIES) -> list[Any]:
    random = np.random.default_rng(5)
    shapes = (HEADS, queries, WIDTH), (GROUPS, KEYS, WIDTH), (GROUPS, KEYS, OUT), (HEADS, queries, OUT)
    return [random.standard_normal((BATCH, *shape)) for shape in shapes]


@pytest.mark.parametrize("name", MASKS)
def test_numbers_are_those_of_whole_matrices(name: str) -> None:
    attention = rg.Attention(mask=MASKS[name])
    agrees(attention, *arrays(), **tables(attention))


@pytest.mark.parametrize("start", [None, np.array([20, 3])])
def test_behind_a_vector_of_rows_and_a_sink(start: Any) -> None:
    """The score's own vectors, then the sink, then what the mask reads, where each row has its own place."""
    weight = share(rg.exp, sink=rg.exp(table("rest")[h]))
    attention = rg.Attention(rg.tanh(dot + table("line")[i]) + table("u")[h, j], weight, mask=rg.documents("docs"))
    agrees(attention, *arrays(), start=start, **tables(attention))


@pytest.mark.parametrize("name", ["documents", "nested", "a row of a head"])
def test_few_queries_whose_heads_share_a_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LONG", KEYS)
    attention = rg.Attention(mask=MASKS[name])
    agrees(attention, *arrays(3), **tables(attention))


# -- tables that have a number for each place -------------------------------------------------------------------------


def covering(attention: rg.Attention, start: Any = None, **given: Any) -> frozenset[str]:
    """The tables of a call from whose reads nothing has to be kept within."""
    q, k, v, _ = (torch.as_tensor(x).float() for x in arrays())
    call = prepare(attention, q, k, v, start=start, tables={name: torch.as_tensor(x) for name, x in given.items()})
    tensors, fixed = operator._arguments(call, sides(call))
    the = Pass.of(*fixed.split(tensors), *fixed.rest, [False] * (len(tensors) - 2 * fixed.lefts - 1))
    return the._covering


def test_a_table_for_all_places_is_read_side_by_side() -> None:
    attention = rg.Attention(mask=rg.documents("docs"))
    made = program(attention)
    plain, side_by_side = (written(made, INTEGERS, covering=found).text for found in (frozenset(), INTEGERS))
    assert "within(j" in plain
    assert "within" not in side_by_side
    assert covering(attention, **tables(attention)) == {"docs"}


def test_a_table_that_may_be_too_short_is_read_within() -> None:
    attention, docs = rg.Attention(mask=rg.documents("docs")), tables(rg.Attention(mask=rg.documents("docs")))["docs"]
    assert covering(attention, start=torch.tensor([5, 9]), docs=docs) == frozenset(), "who knows where rows begin"
    short = (table("docs")[b, j] < 2) & (j < 20)
    assert covering(rg.Attention(mask=short), docs=docs[:, :30]) == frozenset()
    assert covering(rg.Attention(mask=short), docs=docs) == {"docs"}
    assert covering(rg.Attention(mask=short), docs=docs[:1]) == frozenset(), "one row for both batches"
    twice = short & (table("docs")[b, i + 1 - 1 + 0 * j] > -1)
    assert covering(rg.Attention(mask=twice), docs=docs) == {"docs"}


@pytest.mark.parametrize("rows", [30, KEYS, KEYS + 11])
def test_numbers_of_tables_of_any_length(rows: int) -> None:
    random = np.random.default_rng(9)
    attention = rg.Attention(mask=(table("docs")[b, j] < 2) & (j < 20))
    agrees(attention, *arrays(), docs=random.integers(0, 5, (BATCH, rows)))
