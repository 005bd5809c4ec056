"""Settings as options of a command: one for each field, with its own default and its own words.

--dim 192 --attention "softmax(dot / sqrt(d))" --steps 500 …
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, Field, asdict, fields
from typing import Any

from .settings import Settings, fields_of, groups_of

USUAL: dict[str, dict[str, Any]] = {
    "text": {
        "tokens": "bytepairs:384", "context": 256, "noise": 0.2, "dim": 192, "depth": 6, "heads": 6, "dropout": 0.2,
        "steps": 2000, "average": 0.999,
    },
    "images": {
        "dim": 64, "depth": 4, "heads": 4, "position": "learned", "dropout": 0.2, "steps": 2000, "batch": 64,
        "average": 0.99, "sample": 20,
    },
    "pairs": {"dim": 96, "depth": 2, "heads": 4, "position": "sinusoidal", "steps": 1500, "batch": 64, "sample": 12},
}  # fmt: skip
"""Where a task's defaults are others than those of the settings."""


def parameters(task: str) -> list[inspect.Parameter]:
    """A keyword parameter for each field, annotated with its type and what is said of it."""
    return [
        inspect.Parameter(
            part.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(task, part),
            annotation=(kind, _help(part)),
        )
        for part, kind in _fields(task)
    ]


def settings_of(task: str, given: dict[str, Any], parent: Settings | None = None) -> Settings:
    """Settings from options by name; what is not given is as in the parent's data and shape, or usual for the task."""
    names = {part.name for part, _ in _fields(task)}
    unknown = sorted(given.keys() - names)
    if unknown:
        raise TypeError(f"{unknown[0]}: no setting of the task {task}")
    known = {**USUAL[task], **_inherited(parent), **{name: value for name, value in given.items() if value is not None}}
    groups = {
        group: {part.name: known[part.name] for part in fields(kind) if part.name in known}
        for group, kind in groups_of(task).items()
    }
    return Settings.of({"task": task, **groups})


def _inherited(parent: Settings | None) -> dict[str, Any]:
    """What a model that goes on learning cannot change, and what it learns from."""
    return {} if parent is None else {**asdict(parent.data), **asdict(parent.shape)}


def _fields(task: str) -> list[tuple[Field[Any], Any]]:
    return [found for kind in groups_of(task).values() for found in fields_of(kind)]


def _default(task: str, part: Field[Any]) -> Any:
    assert part.default is not MISSING
    return USUAL[task].get(part.name, part.default)


def _help(part: Field[Any]) -> str:
    return str(part.metadata["help"])
