"""From the text of an answer to a verdict: it is read, run in a process of its own, and judged."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...algebra.errors import RegardError
from ...diagnosis.complaints import ADVICE
from ...diagnosis.sandbox.limits import Stopped
from .exercise import Exercise, Found, Verdict
from .reading import refusal_of


def judged(exercise: Exercise, answer: str) -> Verdict:
    """The verdict on an answer."""
    refusal = refusal_of(exercise, answer)
    if refusal is not None:
        return refusal
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.py"
        file.write_text(answer, encoding="utf-8")
        target = f"{file}:{exercise.function}"
        try:
            verdict = exercise.judge(target)
            shown = exercise.show(target) if verdict.right and exercise.show else ""
        except (RegardError, Stopped) as problem:
            return _not_run(str(problem), file)
        except Exception as problem:  # noqa: BLE001 - whatever an answer raises
            return _not_run(f"It stopped with {type(problem).__name__}: {problem}", file)
    return Verdict(verdict.right, verdict.title, verdict.found, shown + verdict.page)


def _not_run(says: str, file: Path) -> Verdict:
    """An answer that could not be run; no path of this machine is told, and no option that a reader cannot give."""
    told = says.replace(str(file), "your answer").replace(ADVICE, "").strip()
    return Verdict(False, "It could not be run.", (Found("it does not run", told),))
