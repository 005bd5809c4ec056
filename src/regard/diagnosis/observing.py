"""What matching looks at: the readings that are worth it, and what the target returns in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attention import Attention
from .description import Description
from .laws import Examination, Verdict
from .laws.calls import same_twice
from .laws.weights import moved
from .matching import KEPT, PLAIN, bases
from .mutants.projections import values_averaged
from .sandbox.process import Runner
from .search import Observation, Search
from .subject import Subject
from .trying import Trial

SHARP = 5.0  # queries so much larger bend scores where formulas differ


def likeliest(trials: Sequence[Trial], formulas: Sequence[Attention]) -> list[Trial]:
    """Those that the first outcome already shows to be right come first; those in which nothing is read, last."""
    right = [trial for trial in trials if _is_right(trial, formulas)]
    even = [trial for trial in trials if trial.reading.mask is not None and _is_even(trial)]
    return sorted(trials, key=lambda trial: (trial not in right, trial in even))[:KEPT]


def _is_even(trial: Trial) -> bool:
    """Whether every output is the mean of the values: its mask was read the wrong way round, and hides everything."""
    problem = trial.reading.problem()
    y = trial.reading.read(trial.outcome, problem)
    chains = [values_averaged(chain) for chain in bases(trial.reading.form, [PLAIN])]
    return y is not None and any(
        Search([Observation(problem, y, trial.reading.tolerance)]).explains(chain)
        for chain in chains
        if chain is not None
    )


def _is_right(trial: Trial, formulas: Sequence[Attention]) -> bool:
    problem = trial.reading.problem()
    y = trial.reading.read(trial.outcome, problem)
    if y is None:
        return False
    search = Search([Observation(problem, y, trial.reading.tolerance)])
    return any(search.explains(chain) for chain in bases(trial.reading.form, formulas))


def is_random(runner: Runner, trial: Trial, description: Description) -> Verdict | None:
    """The verdict on a target that answers differently each time; None of one that does not."""
    reading = trial.reading
    exam = Examination(Subject(runner, reading), description, None, bases(reading.form, [PLAIN])[0])
    verdict = same_twice(exam)
    return verdict if verdict.holds is False else None


def observed_by(subject: Subject, trial: Trial) -> list[Observation]:
    """What matching looks at: an ordinary problem, and one with large scores and another length."""
    reading = subject.reading
    first = subject.observed(reading.problem(0))
    if first is None:
        return []
    found = [first]
    lengths = [reading.sizes.queries] if trial.only.startswith("length") else [7, reading.sizes.queries]
    for n in lengths:
        size = {"queries": n, "keys": n} if trial.only != "square" else {}
        sharp = subject.observed(reading.problem(1, spread=SHARP, **size))
        if sharp is not None:
            return [*found, sharp]
    return found


def adds_input(subject: Subject) -> bool:
    """Whether x comes back where W_O, or W_V, is 0."""
    problem = subject.reading.problem(0)
    silenced = [name for name in ("wo", "bo", "wv", "bv") if name in problem.arrays]
    if problem.form != "inputs" or not {"wo", "wv"} & set(silenced):
        return False
    y = subject.y(problem.but(**{name: np.zeros_like(problem[name]) for name in silenced}))
    x = problem["x"]
    return y is not None and y.shape == x.shape and bool(np.abs(y - x).max() <= subject.tolerance)


def reads_ahead(subject: Subject) -> bool | None:
    """Whether the first query reads the last key; None where that cannot be told."""
    problem = subject.reading.problem(0)
    if problem.queries < 2 or problem.queries != problem.keys:
        return None
    before, after = subject.y(problem), subject.y(moved(problem, problem.keys - 1))
    if before is None or after is None or before.shape != after.shape:
        return None
    change = np.abs(after - before)[..., 0, :]
    return bool(np.nanmax(change, initial=0.0) > subject.tolerance)
