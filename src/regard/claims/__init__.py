"""The ledger: what texts about attention claim, measured.

    claim   a sentence, a verdict, and a function that yields numbers with their bounds
    run     measures; a claim passes when every number keeps its bounds

`ledger()` lists the claims, `run()` measures them, `table(run())` prints them. A new row is a decorated function in a
module that `registry.MODULES` lists.
"""

from __future__ import annotations

from .record import Claim, LedgerError, Measured, Measurements, Result, Verdict
from .registry import Ledger, claim, ledger, run, running
from .report import COLUMNS, full, row, show, summary, table
from .sources import SOURCES, Source

__all__ = [
    "COLUMNS",
    "SOURCES",
    "Claim",
    "Ledger",
    "LedgerError",
    "Measured",
    "Measurements",
    "Result",
    "Source",
    "Verdict",
    "claim",
    "full",
    "ledger",
    "row",
    "run",
    "running",
    "show",
    "summary",
    "table",
]
