"""Results of slow rows, kept under the hash of the code that they depend on.

    measured_or_kept(claim)   the result that is kept, or else that of a run, which is kept if it was slow and passed

The hash is of the row's module, of all that it imports and of the versions of the packages below: `experiments.store`
makes it, for outcomes as for rows. A row that reads an outcome is not kept a second time: the outcome is.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ..experiments import store
from .record import Claim, Figure, Measured, Result
from .registry import measured

SLOW = 0.5
"""Seconds from which on a row is kept: less than that, and it is measured every time."""
MECHANISM = ("claims", "claims.registry")
"""What runs a row and has no part in its numbers."""


def measured_or_kept(claim: Claim) -> Result:
    """What is kept of a claim; where there is nothing, it is measured."""
    found = kept(claim)
    return measured_and_kept(claim) if found is None else found


def measured_and_kept(claim: Claim) -> Result:
    """A claim measured; its result is kept if it was slow and passed. A failure or a skipped row never is."""
    path = place(claim)  # before the run: it is that of the code that runs
    result = measured(claim)
    if path is not None and result.passed and result.seconds >= SLOW:
        with suppress(OSError):  # a cache that is closed to us is no reason to fail
            store.write(path, as_json(result))
    return result


def kept(claim: Claim) -> Result | None:
    """The result of an earlier run of the same code; None where there is none, or where it cannot be read."""
    if not (store.folder("claims") / claim.id).is_dir():
        return None  # and no hash is needed
    path = place(claim)
    with suppress(OSError, ValueError, KeyError, TypeError):
        return None if path is None else of_json(claim, path.read_text(encoding="utf-8"))
    return None


def place(claim: Claim) -> Path | None:
    """The file of a result; None for a row that is not regard's own, or that reads an outcome."""
    package, _, module = claim.measure.__module__.partition(".")
    if package != "regard" or "experiments.store" in store.dependencies(module, MECHANISM):
        return None
    return store.folder("claims") / claim.id / f"{store.code_hash(module, MECHANISM)[:16]}.json"


def as_json(result: Result) -> str:
    """Numbers, figures and seconds of a result, as text."""
    told = {
        "id": result.claim.id,
        "seconds": result.seconds,
        "measurements": [asdict(part) for part in result.measurements],
        "figures": [asdict(part) for part in result.figures],
    }
    return json.dumps(told, ensure_ascii=False, indent=1)


def of_json(claim: Claim, text: str) -> Result:
    """What `as_json` wrote, of this claim."""
    told = json.loads(text)
    if told["id"] != claim.id:
        raise ValueError(f"text: the result of {claim.id}; got that of {told['id']}")
    numbers = tuple(Measured(**part) for part in told["measurements"])
    figures = tuple(Figure(**part) for part in told["figures"])
    return Result(claim, numbers, float(told["seconds"]), figures=figures, stored=True)
