"""Masks that are given with the call: what they mean, and whether they do that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...algebra.masks import given
from ..calling import Outcome
from ..examples import paired
from ..families import filled, fitted
from ..masks import MEANINGS, GivenMask, masks_for
from ..mutants import MUTANTS
from ..problem import Problem, drawn_masks
from ..reading import Reading
from ..report import Example
from ..search import Explanation, Observation, Search
from ..signature import Parameter
from ..steps import Steps
from ..subject import Subject
from ..trying import with_mask
from . import leaks
from .base import UNKNOWN, Examination, Suspicion, Verdict
from .chains import biased, masked, replaced

ROLES = ("mask", "padding", "lengths", "bias")
MASK_BUGS = (
    "mask after the weights",
    "0/1 mask added",
    "hidden scores set to 0",
    "no mask",
    "padding on queries",
    "query and key exchanged",
    "mask of another text",
)
SAYS_HIDES = re.compile(
    r"(true|1|ones?|nonzero)\b[^.\n]{0,40}\b(hid|mask(ed|ing)?\b|ignor|pad|block|exclud|forbid|disallow)"
    r"|not (be )?(attend|read|seen)|(to be|positions?) (masked|ignored|hidden)|mask(ed)? out"
    r"|\bmask\b[^\n]{0,20}\*\s*\(?-\s*(1e|np\.inf|float|torch\.inf|inf)",
    re.IGNORECASE,
)
"""Words, or an arithmetic, that say that True hides."""

ELSEWHERE = {"softmax over queries", "softmax over heads", "softmax over the batch", "softmax over all pairs"}
READABLE = 0.3  # the share of outputs that must be numbers


@dataclass(frozen=True)
class Tried:
    """One mask that the target took: its reading, what came out, and the mistakes that explain it."""

    reading: Reading
    mask: GivenMask
    observation: Observation
    changed: tuple[str, ...] = ()  # arguments that the call has changed
    bugs: tuple[str, ...] = ()


def mask_arguments(exam: Examination) -> Iterator[Verdict]:
    """Each argument that is a mask: what it means, and whether it does that."""
    for parameter in exam.description.parameters:
        if parameter.role in ROLES:
            yield from _argument(exam, parameter)


def _argument(exam: Examination, parameter: Parameter) -> Iterator[Verdict]:
    law = f"{parameter.name} hides pairs"
    if exam.model is None or exam.model.formula is None or exam.named & ELSEWHERE:
        yield Verdict(law, None, "the formula is not known, or its total does not run over keys")
        return
    tried = list(_taken(exam, parameter))
    if not tried:
        yield Verdict(law, None, "no mask of a usual shape was taken")
        return
    found = _explained(exam, tried)
    changed = tuple(dict.fromkeys(name for one in tried for name in one.changed))
    if changed:
        yield Verdict(law, False, _changed(changed), (Suspicion("inputs changed in place", _changed(changed)),))
        return
    if found is None:
        evidence = f"{parameter.name}: none of the usual meanings of a mask predicts the output"
        yield Verdict(law, False, evidence, (Suspicion(UNKNOWN, evidence),))
        return
    yield _meant(exam, parameter, found, law)
    if not found.bugs and found.mask.meaning not in ("lengths", "adds"):
        yield empty_rows(exam, found, parameter)
        yield leaks.given_mask(exam, exam.subject.read_as(found.reading))


def _changed(names: tuple[str, ...]) -> str:
    return f"after the call {' and '.join(names)} {'is' if len(names) == 1 else 'are'} changed"


def _taken(exam: Examination, parameter: Parameter) -> Iterator[Tried]:
    """Every mask that the target takes, with what it gave."""
    for kind in masks_for(parameter.role, exam.subject.reading.layout):
        reading = with_mask(exam.subject.reading, parameter, kind)
        problem = exam.numbered(_problem(exam.subject.reading, kind))
        subject = exam.subject.read_as(reading)
        outcome = subject.outcome(problem, f"a call with {parameter.name}")
        seen = subject.observed(problem) if subject.random else _seen(subject, outcome, problem)
        if seen is not None and np.isfinite(seen.y).mean() > READABLE:
            yield Tried(reading, kind, seen, outcome.changed)


def _seen(subject: Subject, outcome: Outcome, problem: Problem) -> Observation | None:
    y = subject.reading.read(outcome, problem)
    return None if y is None else Observation(problem, y, subject.tolerance)


def _problem(reading: Reading, kind: GivenMask) -> Problem:
    """A problem with a mask that says as much as its shape can; numbers to add for one that is added."""
    problem = reading.problem(31)
    admitted = drawn_masks(problem, 32, "padding" if kind.of_keys else "pairs")
    added = np.random.default_rng(33).normal(size=admitted.shape)
    if not kind.of_texts:
        admitted, added = (np.broadcast_to(one[:1], one.shape).copy() for one in (admitted, added))
    if kind.of_keys:
        added = np.broadcast_to(added[:, :1], added.shape).copy()
    options = {**problem.options, "added": added} if kind.meaning == "adds" else problem.options
    return replace(problem, mask=admitted, options=options)


def _explained(exam: Examination, tried: list[Tried]) -> Tried | None:
    """The mask whose meaning needs no mistake; or else the one that needs the fewest."""
    chains = [] if exam.model is None else [masked(exam.model, given("mask")), replaced(exam.model, given("mask"))]
    for bugs in (0, 1):
        for one in tried:
            for chain in (chain for chain in chains if chain is not None):
                meant = biased(chain) if one.mask.meaning == "adds" else chain
                if meant is not None and (found := _simple(Search([one.observation]), meant, bugs)) is not None:
                    crossed = None if one.mask.of_texts else _crossed(chain, tried)
                    return crossed or replace(one, bugs=found.bugs)
    return _leaky(exam, tried)


def _crossed(chain: Steps, tried: list[Tried]) -> Tried | None:
    """A mask that is right while all texts have the same one, and else is that of another text."""
    for one in (one for one in tried if one.mask.of_texts):
        found = _simple(Search([one.observation]), chain, 1)
        if found is not None and found.bugs == ("mask of another text",):
            return replace(one, bugs=found.bugs)
    return None


def _simple(search: Search, chain: Steps, bugs: int) -> Explanation | None:
    if not bugs:
        return Explanation(chain, chain) if search.explains(chain) else None
    for name in MASK_BUGS:
        for mutant in MUTANTS[name]:
            made = mutant(chain)
            if made is not None and search.explains(made):
                return Explanation(made, chain, (name,))
    return None


def _leaky(exam: Examination, tried: list[Tried]) -> Tried | None:
    """A mask whose hidden pairs get a number that is not low enough."""
    if exam.model is None or exam.model.formula is None or exam.model.formula.mask is not None:
        return None
    for one in (one for one in tried if one.mask.meaning != "adds"):
        for family in filled(given("mask")):
            if fitted(Search([one.observation]), exam.model, family) is not None:
                return replace(one, bugs=(family.bug,))
    return None


def _meant(exam: Examination, parameter: Parameter, tried: Tried, law: str) -> Verdict:
    mask, name = tried.mask, parameter.name
    if tried.bugs:
        evidence = f"{name} ({mask.words}): hidden pairs still count, or others are hidden"
        return Verdict(law, False, evidence, tuple(Suspicion(bug, evidence, "error") for bug in tried.bugs))
    if mask.meaning != "hides":
        return Verdict(law, True, f"{name}: {mask.words}", remarks=_added(name) if mask.meaning == "adds" else ())
    if parameter.role == "mask" and not SAYS_HIDES.search(exam.description.source) and exam.mask != "hides":
        evidence = f"{name} hides a pair where it is True; F.scaled_dot_product_attention admits it there"
        return Verdict(law, False, evidence, (Suspicion("inverted mask", evidence, "warning"),))
    return Verdict(law, True, f"{name}: {mask.words}", remarks=(f"{name}: {MEANINGS['hides']}",))


def _added(name: str) -> tuple[str, ...]:
    return (f"{name} is added to the scores: a mask of truths would only add 0 and 1 (see: 0/1 mask added)",)


def empty_rows(exam: Examination, tried: Tried, parameter: Parameter) -> Verdict:
    """A row that may read nothing is zeros, not NaN."""
    law = "empty rows are numbers"
    problem = tried.observation.problem
    admitted = np.array(problem.mask)
    if tried.mask.of_keys:
        admitted[0] = False
    else:
        admitted[:, 1] = False
    y = exam.subject.read_as(tried.reading).y(replace(problem, mask=admitted), "a row with nothing admitted")
    if y is None:
        return Verdict(law, None, "the call failed")
    if np.isfinite(y).all():
        return Verdict(law, True, "a row with nothing admitted is finite")
    evidence = f"where {parameter.name} admits nothing in a row, {np.mean(~np.isfinite(y)):.0%} of the output is NaN"
    return Verdict(law, False, evidence, (Suspicion("empty rows are NaN", evidence, example=_emptied(exam, tried)),))


def _emptied(exam: Examination, tried: Tried) -> Example | None:
    """Two positions, of which the second may read nothing."""
    sizes = {
        "queries": 2,
        "keys": 2,
        "batch": 1,
        **({"heads": 1, "groups": 1, "value_width": 2} if exam.vectors else {}),
    }
    problem = tried.reading.problem(51, **sizes)
    admitted = np.array([[[True, True], [tried.mask.of_keys, False]]])
    if tried.mask.of_keys:
        admitted[:] = False
    chain = None if exam.model is None else masked(exam.model, given("mask"))
    return paired(exam.subject.read_as(tried.reading), replace(problem, mask=admitted), chain)
