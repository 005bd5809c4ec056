"""The experiments by their names; each is read when it is asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from ..algebra.errors import CallError
from .record import Experiment

EXPERIMENTS = (
    "toy", "phrases", "ngrams", "recall", "length", "scale", "mistakes", "weights", "positions", "values", "heads",
    "blocks", "pooling", "sides", "direction", "attended", "roles", "blocked",
)  # fmt: skip
"""Their names, in the order of a course; each is a module of this package with an `EXPERIMENT`."""


def find(name: str) -> Experiment:
    """The experiment of a name.

    >>> find("recal")
    Traceback (most recent call last):
        ...
    regard.algebra.errors.CallError: experiment: one of toy, phrases, ...; got 'recal'; did you mean recall?
    """
    if name not in EXPERIMENTS:
        near = get_close_matches(name, EXPERIMENTS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise CallError(f"experiment: one of {', '.join(EXPERIMENTS)}; got {name!r}{hint}")
    experiment: Experiment = import_module(f".{name}", __package__).EXPERIMENT
    return experiment
