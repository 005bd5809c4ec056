"""Checks every target of one file in a process of its own, without the type checks of the tests, and prints JSON.

python tests/check_targets.py FILE        {"name": {"ok": …, "recognised": …, "formula": …, "findings": …, "text": …}}
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from corpus import loaded, targets
from regard.diagnosis.checking import check


def checked(path: Path, name: str) -> dict[str, Any]:
    """What is asserted of a report, and its text for a reader."""
    module = loaded(path)
    report = check(getattr(module, name), limits=None, **getattr(module, "OPTIONS", {}).get(name, {}))
    return {
        "ok": report.ok,
        "recognised": report.recognised,
        "formula": report.formula,
        "errors": [finding.name for finding in report.errors],
        "findings": [finding.name for finding in report.findings],
        "text": str(report),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    file = Path(sys.argv[1])
    sys.stdout.write(json.dumps({name: checked(file, name) for name in targets(file)}))
