"""docs/claims.md has every row of the ledger, in its order, with its sentence and its verdict."""

from __future__ import annotations

import re
from pathlib import Path

from regard import claims

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.*?) \| ([a-z ]+) \| (.+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    """Id, sentence and verdict of each row of the page's table."""
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [(name, sentence.replace("\\|", "|"), verdict) for name, sentence, verdict, _ in found]


def test_the_page_has_the_rows_of_the_ledger() -> None:
    assert rows() == [(claim.id, claim.sentence, str(claim.verdict)) for claim in claims.ledger()]
