"""Outcomes that are known already: an experiment is run again when the code that it depends on has changed.

    outcome("recall")        the outcome on the disk, or else that of a run, which is kept

They lie in REGARD_CACHE, or where the system keeps caches, under the name and the hash of the code.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

from ..algebra.errors import RegardError
from .record import Experiment, Outcome, Scale, Tell, silent
from .registry import find

PARTS = ("algebra", "attention.py", "engines", "hf", "inputs", "nn", "parts.py", "train", "viewer", "experiments")
"""What the number of an experiment depends on, beside PyTorch."""


class NotMeasured(RegardError):  # noqa: N818 - what is the case, as one says it
    """An outcome that is asked for and is not there."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(
            f"not measured with this code; `regard experiment {experiment.name}` does, "
            f"in about {experiment.minutes:g} minutes"
        )


def known(name: str, scale: Scale = Scale()) -> Outcome | None:  # noqa: B008 - a value that never changes
    """The outcome that is kept; None where there is none of this code."""
    path = place(name, scale)
    return Outcome.of_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def outcome(name: str) -> Outcome:
    """The outcome of the whole experiment, for the ledger; an error where it was not run with this code."""
    found = known(name)
    if found is None:
        raise NotMeasured(find(name))
    return found


def measured(name: str, scale: Scale = Scale(), tell: Tell = silent) -> Outcome:  # noqa: B008
    """Run it, and keep what comes out."""
    found = find(name).run(scale, tell)
    path = place(name, scale)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        beside.write_text(found.json(), encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return found


def place(name: str, scale: Scale) -> Path:
    """The file of an outcome."""
    return folder() / name / f"{code_hash()[:16]}-{scale.share:g}-{scale.seed}.json"


def folder() -> Path:
    """Where outcomes are kept."""
    if "REGARD_CACHE" in os.environ:
        return Path(os.environ["REGARD_CACHE"]) / "experiments"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "regard" / "experiments"
    usual = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
    return (Path(usual) if usual else Path.home() / ".cache") / "regard" / "experiments"


@cache
def code_hash() -> str:
    """The SHA-256 of the code that outcomes depend on."""
    source, digest = Path(__file__).parent.parent, hashlib.sha256()
    for part in PARTS:
        path = source / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(source).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
