"""A lens as text: its layers in a table, those that are alike in one line.

0–5  encoder.layer.*.attention.self  12 heads of 32  18 × 18  softmax(dot / sqrt(d))
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from ...attention import Attention
from ..arrays import in_words
from ..record import Captured

if TYPE_CHECKING:
    from ..lenses import Lens

SHOWN = 8  # of what is missing
NUMBER = re.compile(r"(?<![^.\s(])\d+(?![^.\s)])")  # a part of a name that counts


def table(lens: Lens) -> str:
    """Title, layers, what is kept, what is missing, notes."""
    indexed = [(index, *_looks(captured)) for index, captured in enumerate(lens.layers)]
    groups = [list(group) for _, group in groupby(indexed, key=lambda one: one[1:])]
    lines = _aligned([(_span(group[0][0], group[-1][0]), *group[0][1:]) for group in groups])
    heading = [f"Lens: {lens.title}" if lens.title else "Lens", *([lens.model] if lens.model else [])]
    return "\n".join([*heading, *(f"  {line}" for line in lines), kept(lens), *_missing(lens), *_notes(lens)])


def kept(lens: Lens) -> str:
    """What a lens takes, beside what the weights would."""
    dtypes = dict.fromkeys(str(captured.q.dtype).removeprefix("torch.") for captured in lens.layers)
    cells = sum(one.q.shape[0] * one.q.shape[1] * one.q.shape[2] * one.k.shape[2] for one in lens.layers)
    inputs = f", {lens.batches} inputs" if lens.batches > 1 else ""
    whole = in_words(cells * min(4, lens.layers[0].q.dtype.itemsize))
    return f"{in_words(lens.bytes)} kept in {', '.join(dtypes)}{inputs}; all weights would be {whole}"


def short(formula: Attention) -> str:
    """A formula in one line: ψ of the score, then the mask.

    >>> from regard import Attention, causal, sigmoid
    >>> short(Attention()), short(Attention(weight=sigmoid, mask=causal))
    ('softmax(dot / sqrt(d))', 'each(sigmoid(s)) of dot / sqrt(d), j <= i')
    """
    weight = repr(formula.weight)
    inner = f"{weight}({formula.score!r})" if weight.isidentifier() else f"{weight} of {formula.score!r}"
    return inner if formula.mask is None else f"{inner}, {formula.mask!r}"


def _looks(captured: Captured) -> tuple[str, str, str, str]:
    _, heads, queries, width = captured.q.shape
    keys, key_heads = captured.k.shape[2], captured.k.shape[1]
    grouped = f" on {key_heads}" if key_heads != heads else ""
    counted = f"{heads} head{'s' if heads != 1 else ''}{grouped} of {width}"
    return NUMBER.sub("*", captured.name), counted, f"{queries} × {keys}", short(captured.formula)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _missing(lens: Lens) -> list[str]:
    lines = [f"  {one.name}: {one.why}" for one in lens.missing[:SHOWN]]
    more = len(lens.missing) - SHOWN
    return [f"missing, {len(lens.missing)}:", *lines, *([f"  and {more} more"] if more > 0 else [])] if lines else []


def _notes(lens: Lens) -> list[str]:
    return [f"note: {note}" for note in lens.notes]
