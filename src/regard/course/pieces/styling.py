"""The style of the pages, live and still."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def style() -> str:
    """All rules, as text."""
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
