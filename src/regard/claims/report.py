"""Results to read: a plain table, a claim with all its numbers, and both as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from .record import Claim, Result
from .sources import SOURCES

COLUMNS = ("id", "texts", "verdict", "measured", "expected", "result", "seconds", "claim")
Row = tuple[str, ...]


def row(result: Result) -> Row:
    """One cell for each of `COLUMNS`."""
    claim, number = result.claim, result.measured
    return (
        claim.id,
        " ".join(claim.sources),
        str(claim.verdict),
        "" if number is None else f"{number:.4g}",
        result.expected,
        result.status,
        f"{result.seconds:.2f}{' kept' if result.stored else ''}",
        claim.sentence,
    )


def titles(claim: Claim) -> str:
    """The titles of the texts that make a claim."""
    return ", ".join(f"“{SOURCES[letter].title}”" for letter in claim.sources)


def took(result: Result) -> str:
    """How long it took; for a result of an earlier run, that it was kept."""
    seconds = f"{result.seconds:.2f} s" if result.seconds >= 0.005 else "less than 0.01 s"
    return f"{seconds}{', kept from a run of the same code' if result.stored else ''}"


def table(results: Iterable[Result], width: int = 120) -> str:
    """A plain table; the sentences fold into what is left of `width`. Below: failures in full, and the texts."""
    results = list(results)
    rows = [COLUMNS, *map(row, results)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS) - 1)]
    lines = [line for cells in rows for line in _folded(cells, widths, width)]
    letters = sorted({letter for result in results for letter in result.claim.sources})
    texts = (f"{letter}: “{SOURCES[letter].title}”" for letter in letters)
    return "\n".join([*lines, "", summary(results), *map(trouble, filter(_is_trouble, results)), "", *texts]).rstrip()


def summary(results: Sequence[Result]) -> str:
    """How many passed, failed, were skipped or broke off, how long that took, and how many were kept from before."""
    counts = {
        word: sum(result.status == word for result in results) for word in ("passed", "failed", "skipped", "error")
    }
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    stored = sum(result.stored for result in results)
    seconds = sum(result.seconds for result in results if not result.stored)
    return f"{told or 'no claims'} in {seconds:.1f} s{f', {stored} of them kept' if stored else ''}"


def trouble(result: Result) -> str:
    """Why a claim did not pass."""
    return "\n  ".join([f"{result.claim.id} {result.status}", *result.detail.splitlines()])


def full(result: Result) -> str:
    """One claim with its texts, its formula and every number."""
    claim = result.claim
    heading = f"{claim.id}  {claim.sentence}"
    lines = [*(str(SOURCES[letter]) for letter in claim.sources), *claim.formula.splitlines()]
    verdict = f"{claim.verdict}; {result.status} in {took(result)}"
    return "\n  ".join([heading, *lines, verdict, *result.detail.splitlines()])


def as_data(result: Result) -> dict[str, Any]:
    """One result as plain data, which JSON can hold; its figures are for the page."""
    claim = result.claim
    return {
        "id": claim.id,
        "claim": claim.sentence,
        "sources": [SOURCES[letter].title for letter in claim.sources],
        "verdict": str(claim.verdict),
        "formula": claim.formula,
        "status": result.status,
        "measurements": [
            {**asdict(part), "expected": part.expected, "kept": part.kept} for part in result.measurements
        ],
        "seconds": result.seconds,
        "stored": result.stored,
        "reason": result.error or result.skipped,
    }


def _is_trouble(result: Result) -> bool:
    return not result.passed


def _folded(cells: Row, widths: list[int], width: int) -> list[str]:
    """The cells of one row, the last of them on as many lines as it needs."""
    *short, sentence = cells
    head = "  ".join(cell.ljust(size) for cell, size in zip(short, widths, strict=True))
    first, *rest = wrap(sentence, max(20, width - len(head) - 2)) or [""]
    return [f"{head}  {first}".rstrip(), *(" " * (len(head) + 2) + line for line in rest)]
