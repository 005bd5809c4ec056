"""Pairs of texts from a file with two columns.

source <tab> target          one pair a line, in UTF-8; empty lines are passed over, spaces around a side are dropped
"""

from __future__ import annotations

from pathlib import Path

from ...algebra.errors import CallError, KindError
from .skipped import Skipped

Pair = tuple[str, str]
SUFFIXES = (".tsv", ".txt", ".tab")
HELD_OUT = ("test", "val", "valid", "validation", "dev")


def read_tsv(path: Path, longest: int) -> tuple[list[Pair], tuple[str, ...]]:
    """The pairs of a file in their order, each once, and notes on what was left out."""
    skipped, found, lines = Skipped("line"), dict[Pair, None](), 0
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        lines += 1
        sides = [side.strip() for side in line.split("\t")]
        problem = _problem(sides, longest)
        if problem is None and (sides[0], sides[1]) in found:
            problem = "a pair that was there before"
        if problem is None:
            found[sides[0], sides[1]] = None
        else:
            skipped.add(problem, f"line {number}")
    if not lines:
        raise CallError(f"source: pairs, one a line, as source<tab>target; got {str(path)!r}, which is empty")
    skipped.refuse_most(lines, repr(str(path)), "two columns, source<tab>target: cut -f1,2 keeps the first two of more")
    return list(found), skipped.notes()


def _problem(sides: list[str], longest: int) -> str | None:
    if len(sides) == 1:
        return "without a tab"
    if len(sides) > 2:
        return f"of {len(sides)} columns"
    if not all(sides):
        return "with an empty side"
    return f"longer than {longest} characters a side" if max(map(len, sides)) > longest else None


def _text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + path.read_bytes()[: error.start].count(b"\n")
        raise KindError(
            f"source: text in UTF-8; got another encoding in {str(path)!r}, line {line}; convert it: iconv -t UTF-8"
        ) from None
    if "\0" in text:
        raise KindError(f"source: text in UTF-8; got {str(path)!r}, which holds zero bytes; convert it: iconv -t UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def pair_paths(path: Path) -> tuple[Path, Path | None]:
    """The file to learn from, and the one held out if it is a folder with both."""
    if not path.exists():
        raise CallError(f"source: a file of pairs, source<tab>target; got {str(path)!r}, which is not there")
    if path.is_file():
        return path, None
    by_stem = {found.stem.lower(): found for found in sorted(path.iterdir()) if found.suffix in SUFFIXES}
    if "train" not in by_stem:
        raise CallError(
            f"source: a file of pairs, or a folder with train.tsv and test.tsv; got the folder {str(path)!r} "
            f"with {', '.join(sorted(found.name for found in by_stem.values())) or 'no .tsv'}; name the file"
        )
    return by_stem["train"], next((by_stem[name] for name in HELD_OUT if name in by_stem), None)
