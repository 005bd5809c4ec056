"""The ledger: what texts about attention claim, measured.

    claim   a sentence, a verdict, and a function that yields numbers with their bounds
    run     measures; a claim passes when every number keeps its bounds

`ledger()` lists the claims, `run()` measures them, `table(run())` prints them, `html(run())` is a page of them with
figures. A new row is a decorated function in a module that `registry.MODULES` lists.
"""

from __future__ import annotations

from .command import show
from .page import html
from .record import Claim, Figure, LedgerError, Measured, Measurements, Result, Verdict
from .registry import Ledger, claim, ledger, run, running
from .report import COLUMNS, as_data, full, row, summary, table, titles
from .sources import SOURCES, Source

__all__ = [
    "COLUMNS",
    "SOURCES",
    "Claim",
    "Figure",
    "Ledger",
    "LedgerError",
    "Measured",
    "Measurements",
    "Result",
    "Source",
    "Verdict",
    "as_data",
    "claim",
    "full",
    "html",
    "ledger",
    "row",
    "run",
    "running",
    "show",
    "summary",
    "table",
    "titles",
]
