"""Checks targets in a process of its own, without the type checks of the tests: a question a line, an answer a line.

    python tests/check_targets.py         ["file", "…/right/torch_masks.py", ["attend"]]      some targets of a file
                                          ["mutant", "no root of d", 0]                       a mistake that was made
                                          ["half", "low precision inside"]                    one that its source tells
                                          ["formula", "softmax(0.3 * dot)"]                   another formula
                                          ["right", "heads"]                                  none

Answers are JSON, {"name": {"ok": …, "recognised": …, "formula": …, "findings": …, "text": …}}.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mutant_programs
from corpus import loaded
from regard.attention import parse
from regard.diagnosis.checking import check
from regard.diagnosis.steps import on_vectors


def told(target: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """What is asserted of a report, and its text for a reader."""
    report = check(target, limits=None, **options)
    return {
        "ok": report.ok,
        "true": bool(report),
        "recognised": report.recognised,
        "formula": report.formula,
        "errors": [finding.name for finding in report.errors],
        "findings": [finding.name for finding in report.findings],
        "also": [name for finding in report.findings for name in finding.also],
        "evidence": [finding.evidence for finding in report.findings],
        "text": str(report),
    }


def asked(kind: str, name: str, given: Any = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every target that a question is about, with what was found."""
    if kind == "file":
        module = loaded(Path(name))
        for target in given:
            yield target, told(getattr(module, target), getattr(module, "OPTIONS", {}).get(target, {}))
    elif kind == "mutant":
        yield name, told(*mutant_programs.made(name, given))
    elif kind == "half":
        yield name, told(mutant_programs.said_to_be_in_half(mutant_programs.made(name, 0)[0]), {})
    elif kind == "formula":
        yield name, told(mutant_programs.on_heads(on_vectors(parse(name))), {})
    else:
        setting = mutant_programs.SETTINGS[name]
        yield name, told(setting.program(setting.chain), setting.options)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a target prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(dict(asked(*json.loads(line)))) + "\n")
        answers.flush()
