"""Settings as options of a command: one for each field, with its own default and its own words.

--dim 192 --attention "softmax(dot / sqrt(d))" --steps 500 …
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

from .settings import Settings, groups_of

USUAL: dict[str, dict[str, Any]] = {
    "text": {
        "tokens": "bytepairs:384", "noise": 0.15, "dim": 192, "depth": 6, "heads": 6, "dropout": 0.2, "steps": 1500,
    },
    "images": {
        "dim": 64, "depth": 4, "heads": 4, "position": "learned", "dropout": 0.1, "steps": 1500, "batch": 64,
        "rate": 2e-3, "sample": 20,
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


def settings_of(task: str, given: dict[str, Any]) -> Settings:
    """Settings from options by name; what is not given is as usual for the task."""
    groups = groups_of(task)
    known = {**USUAL[task], **{name: value for name, value in given.items() if value is not None}}
    parts = {
        group: {part.name: known[part.name] for part in fields(kind) if part.name in known}
        for group, kind in groups.items()
    }
    unknown = sorted(given.keys() - {part.name for part, _ in _fields(task)})
    if unknown:
        raise TypeError(f"{unknown[0]}: no setting of the task {task}")
    return Settings.of({"task": task, **{group: _plain(part) for group, part in parts.items()}})


def _fields(task: str) -> list[tuple[Field[Any], Any]]:
    return [(part, get_type_hints(kind)[part.name]) for kind in groups_of(task).values() for part in fields(kind)]


def _default(task: str, part: Field[Any]) -> Any:
    assert part.default is not MISSING
    return USUAL[task].get(part.name, part.default)


def _help(part: Field[Any]) -> str:
    return str(part.metadata["help"])


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in part.items()}
