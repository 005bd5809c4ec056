"""What the reader writes, and how it is judged.

    exercise   a task, where to begin, and who judges;   judging   from the text of an answer to a verdict
    reading    what can be said before it is run;         judges    rg.check, or a comparison
    c05_weight and its like: the exercise and the question of one chapter

An answer runs in a process of its own, with limits, as everything does that `rg.check` looks at.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .exercise import Exercise, Quiz


def of_chapter(key: str) -> tuple[Exercise, Quiz]:
    """The exercise and the question of a chapter, as in `of_chapter("c05_weight")`."""
    module = import_module(f".{key}", __package__)
    return module.EXERCISE, module.QUIZ
