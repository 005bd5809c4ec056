"""Masks that a caller joins to that of a formula: which are taken, which are refused, and what they mean together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard import Attention, causal, documents, dot, exp, given, i, j, log, n, padding, prefix, share, sigmoid, window
from regard.algebra.errors import CallError, FormulaError, KindError
from regard.nn.masks import LENGTHS, MASK, made_causal, read_masks, uncachable, variants

BATCH, ROWS, KEYS = 3, 5, 7
X = torch.zeros(BATCH, ROWS, 2)


def truths(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool)


# -- formulas ----------------------------------------------------------------------------------------------------


def test_a_causal_formula_needs_no_mask_for_filling() -> None:
    assert variants(Attention(mask=window(3)))["lengths"] == Attention(mask=window(3))
    assert variants(Attention())["lengths"] == Attention(mask=padding(LENGTHS))
    assert variants(Attention(mask=prefix(3)))["lengths"] == Attention(mask=prefix(3) & padding(LENGTHS))


def test_masks_are_joined_by_and() -> None:
    found = variants(Attention(dot, sigmoid, documents("parts")))
    assert found["mask"] == Attention(dot, sigmoid, documents("parts") & given(MASK))
    assert found["lengths mask"] == Attention(dot, sigmoid, documents("parts") & padding(LENGTHS) & given(MASK))
    assert found[""] == Attention(dot, sigmoid, documents("parts"))


def test_a_decoder_reads_what_came_before() -> None:
    assert made_causal(Attention(dot, sigmoid)) == Attention(dot, sigmoid, causal)
    for mask in (causal, window(3), causal & documents("parts"), j < i):
        assert made_causal(Attention(mask=mask)) == Attention(mask=mask)
    for mask in (prefix(3), documents("parts"), given("pairs"), j <= i + 1):
        text = r"attention: a decoder reads what came before, j <= i; got .*; write mask=causal & …"
        with pytest.raises(FormulaError, match=text):
            made_causal(Attention(mask=mask))


def test_what_can_be_kept() -> None:
    assert uncachable(Attention(mask=causal)) is None
    assert uncachable(Attention(dot - log(i + 1), sigmoid, window(3))) is None
    assert "reads n" in str(uncachable(Attention(dot - log(n), sigmoid, causal)))
    assert "reads n" in str(uncachable(Attention(mask=causal & (j >= n - 4))))
    assert "comes after it" in str(uncachable(Attention()))
    assert "comes after it" in str(uncachable(Attention(weight=share(exp, among=j <= i + 1), mask=causal)))


# -- arrays that fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lengths", [[5, 0, 3], (5, 0, 3), np.array([5, 0, 3]), torch.tensor([5, 0, 3]).to(torch.uint8)]
)
def test_lengths_are_integers_of_any_kind(lengths: Any) -> None:
    masked, tables = read_masks(lengths, None, X, ROWS, KEYS)
    assert (masked, tables[LENGTHS].tolist(), tables[LENGTHS].dtype) == ("lengths", [5, 0, 3], torch.int64)


@pytest.mark.parametrize(
    "shape", [(5, 7), (1, 7), (5, 1), (3, 2, 5, 7), (1, 2, 5, 7), (3, 1, 1, 7), (1, 1, 1, 1), (3, 1, 5, 1)]
)
def test_masks_that_fit(shape: tuple[int, ...]) -> None:
    assert read_masks(None, truths(*shape), X, ROWS, KEYS)[0] == "mask"


def test_names_of_what_is_given() -> None:
    assert read_masks(None, None, X, ROWS, KEYS) == ("", {})
    masked, tables = read_masks([1, 2, 3], truths(5, 7), X, ROWS, KEYS)
    assert (masked, set(tables)) == ("lengths mask", {LENGTHS, MASK})
    assert read_masks(torch.zeros(0, dtype=torch.int64), None, X[:0], ROWS, KEYS)[0] == "lengths"


# -- and those that do not ---------------------------------------------------------------------------------------

WRONG: list[tuple[Any, Any, type[Exception], str]] = [
    ([1.0, 2.0, 3.0], None, KindError, "lengths: integers, how many rows each text has; got dtype torch.float"),
    ("ab", None, KindError, "lengths: integers, how many rows each text has; got 'ab'"),
    ([[1], [2, 3]], None, KindError, "lengths: integers, how many rows each text has; got"),
    (truths(3), None, KindError, "lengths: integers, how many rows each text has; got dtype torch.bool"),
    (truths(3, 5), None, KindError, "lengths: integers"),
    ([5, 3], None, CallError, r"lengths: one for each of 3 texts; got shape \(2,\)"),
    (5, None, CallError, r"lengths: one for each of 3 texts; got shape \(\)"),
    ([5, 6, 1], None, CallError, "lengths: from 0 to the 5 rows of x; got 6"),
    ([5, -1, 1], None, CallError, "lengths: from 0 to the 5 rows of x; got -1"),
    (
        None,
        torch.zeros(5, 7),
        KindError,
        r"mask: truths, .* reads a key, as a tensor; got dtype torch.float32; numbers",
    ),
    (
        None,
        torch.ones(5, 7, dtype=torch.int64),
        KindError,
        r"mask: truths, .* got dtype torch.int64; pass mask.bool\(\)",
    ),
    (None, [[True]], KindError, r"mask: truths, .* got list; pass torch.as_tensor\(mask\)$"),
    (None, np.ones((5, 7), bool), KindError, r"mask: truths, .* got ndarray; pass torch.as_tensor\(mask\)$"),
    (None, "causal", KindError, r"mask: truths, .* got str; a formula's own .* into it: Attention\(mask=causal\)$"),
    (None, j <= i, KindError, r"mask: truths, .* got Mask; a formula's own .* into it: Attention\(mask=causal\)$"),
    (
        None,
        truths(3, 5, 7),
        CallError,
        r"mask: \(rows, keys\) or .*; got shape \(3, 5, 7\); put in .*: mask\[:, None\]",
    ),
    (None, truths(7), CallError, r"mask: \(rows, keys\) or \(batch, heads, rows, keys\); got shape \(7,\)$"),
    (None, truths(1, 3, 2, 5, 7), CallError, r"got shape \(1, 3, 2, 5, 7\)$"),
    (None, truths(3, 7), CallError, r"mask: for 5 rows and 7 keys of 3 texts; got shape \(3, 7\); .* pass lengths="),
    (None, truths(7, 5), CallError, r"mask: for 5 rows and 7 keys of 3 texts; got shape \(7, 5\)$"),
    (None, truths(2, 1, 5, 7), CallError, r"mask: for 5 rows and 7 keys of 3 texts; got shape \(2, 1, 5, 7\)$"),
]


@pytest.mark.parametrize(("lengths", "mask", "error", "text"), WRONG)
def test_masks_that_do_not_fit(lengths: Any, mask: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        read_masks(lengths, mask, X, ROWS, KEYS)
