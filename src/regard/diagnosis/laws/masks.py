"""Laws of masks that are given with the call, and of flags that ask for a causal one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...algebra.masks import causal, given
from ...attention import Attention
from ..masks import MEANINGS, GivenMask, masks_for
from ..mutants import MUTANTS
from ..problem import Array, Problem, masks
from ..reading import Reading
from ..search import Explanation, Observation, Search
from ..signature import Parameter
from ..steps import Steps, Weigh
from ..subject import Subject
from ..trying import with_mask
from .base import Examination, Suspicion, Verdict

ROLES = ("mask", "padding", "lengths", "bias")
MASK_BUGS = (
    "mask after the weights",
    "0/1 mask added",
    "hidden scores set to 0",
    "no mask",
    "padding on queries",
    "query and key exchanged",
)
SAYS_HIDES = re.compile(
    r"(true|1|ones?|nonzero)\b[^.\n]{0,40}\b(hid|mask(ed)?\b|ignor|pad|block|exclud|forbid|disallow|not (be )?(attend|read|seen))"
    r"|(to be|positions?) (masked|ignored|hidden)|mask(ed)? out|\bmask\b[^\n]{0,20}\*\s*\(?-\s*(1e|np\.inf|float|torch\.inf|inf)",
    re.IGNORECASE,
)
FILLS = (60.0, 300.0, 2e4)  # how far below 0 admitted scores are put to see whether a hidden pair shines through


@dataclass(frozen=True)
class Tried:
    """One mask that the target took: its reading, what came out, and the chain that explains it."""

    reading: Reading
    observation: Observation
    found: Explanation | None = None


def masked(steps: Steps, extra: object) -> Steps | None:
    """The chain with one more mask in its formula."""
    formula = steps.formula
    if formula is None:
        return None
    mask = extra if formula.mask is None else formula.mask & extra
    return steps.with_formula(Attention(score=formula.score, weight=formula.weight, mask=mask))


def mask_arguments(exam: Examination) -> Iterator[Verdict]:
    """Each argument that is a mask: what it means, and whether it does that."""
    for parameter in exam.description.parameters:
        if parameter.role in ROLES:
            yield from _argument(exam, parameter)


def _argument(exam: Examination, parameter: Parameter) -> Iterator[Verdict]:
    law = f"{parameter.name} hides pairs"
    if exam.model is None or exam.model.formula is None:
        yield Verdict(law, None, "the formula is not known")
        return
    tried = list(_taken(exam, parameter))
    if not tried:
        yield Verdict(law, None, "no mask of a usual shape was taken")
        return
    found = _explained(exam, tried)
    if found is None:
        yield Verdict(law, False, f"tried {tried[0].reading.mask.words if tried[0].reading.mask else ''}: wrong values")
        return
    yield _meant(exam, parameter, found, law)
    if found.found is not None and not found.found.bugs:
        yield empty_rows(exam, found, parameter)
        yield finite_value(exam, found, parameter)


def _taken(exam: Examination, parameter: Parameter) -> Iterator[Tried]:
    """Every mask that the target takes, with what it gave."""
    kinds = masks_for(parameter.role, exam.subject.reading.layout)
    readings = [with_mask(exam.subject.reading, replace(parameter, required=parameter.required), kind) for kind in kinds]
    problems = [_problem(exam.subject.reading, kind) for kind in kinds]
    for reading, problem in zip(readings, problems, strict=True):
        observed = exam.subject.read_as(reading).observed(problem, f"a call with {parameter.name}")
        if observed is not None and np.isfinite(observed.y).mean() > 0.3:
            yield Tried(reading, observed)


def _problem(reading: Reading, kind: GivenMask) -> Problem:
    problem = reading.problem(31)
    admitted = masks(problem, 32, "padding" if kind.of_keys else "pairs")
    if not kind.of_texts:
        admitted = np.broadcast_to(admitted[:1], admitted.shape).copy()
    return replace(problem, mask=admitted)


def _explained(exam: Examination, tried: list[Tried]) -> Tried | None:
    """The mask whose meaning needs no mistake; or else the one that needs the fewest."""
    chain = None if exam.model is None else masked(exam.model, given("mask"))
    if chain is None:
        return None
    for bugs in (0, 1):
        for one in tried:
            search = Search([one.observation])
            if (found := _simple(search, chain, bugs)) is not None:
                return replace(one, found=found)
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


def _meant(exam: Examination, parameter: Parameter, tried: Tried, law: str) -> Verdict:
    mask, found = tried.reading.mask, tried.found
    if mask is None or found is None:
        return Verdict(law, None, "not known")
    if found.bugs:
        evidence = f"{parameter.name} {mask.words}: hidden pairs still count, or others are hidden"
        return Verdict(law, False, evidence, tuple(Suspicion(name, evidence) for name in found.bugs))
    if mask.meaning == "hides" and parameter.role == "mask" and not _says_hides(exam, parameter):
        evidence = f"{parameter.name} hides a pair where it is True; F.scaled_dot_product_attention and most code admit it there"
        return Verdict(law, False, evidence, (Suspicion("inverted mask", evidence),))
    remarks = ()
    if mask.meaning == "hides":
        remarks = (f"{parameter.name}: {MEANINGS['hides']}, the other way round than F.scaled_dot_product_attention",)
    return Verdict(law, True, f"{parameter.name}: {mask.words}", remarks=remarks)


def _says_hides(exam: Examination, parameter: Parameter) -> bool:
    return bool(SAYS_HIDES.search(exam.description.source))


def empty_rows(exam: Examination, tried: Tried, parameter: Parameter) -> Verdict:
    """A row that may read nothing is zeros, not NaN."""
    law = "empty rows are numbers"
    problem = tried.observation.problem
    if tried.reading.mask is None or tried.reading.mask.meaning == "lengths":
        return Verdict(law, None, "lengths are at least 1")
    admitted = np.array(problem.mask)
    if tried.reading.mask.of_keys:
        admitted[0] = False
    else:
        admitted[:, 1] = False
    y = exam.subject.read_as(tried.reading).y(replace(problem, mask=admitted), "a row with nothing admitted")
    if y is None:
        return Verdict(law, None, "the call failed")
    if np.isfinite(y).all():
        return Verdict(law, True, "a row with nothing admitted is finite")
    evidence = f"where {parameter.name} admits nothing in a row, {np.mean(~np.isfinite(y)):.0%} of the output is NaN"
    return Verdict(law, False, evidence, (Suspicion("empty rows are NaN", evidence),))


def finite_value(exam: Examination, tried: Tried, parameter: Parameter) -> Verdict:
    """However low the admitted scores are, a hidden pair is not read."""
    law = "hidden pairs stay hidden"
    if tried.reading.mask is None or tried.reading.mask.meaning == "adds":
        return Verdict(law, None, "the caller chooses what is added")
    return leaking(exam.subject.read_as(tried.reading), exam, tried.observation.problem, law)


def leaking(subject: Subject, exam: Examination, problem: Problem, law: str) -> Verdict:
    """Scores of admitted pairs are put far below 0: a hidden pair with a finite score then wins."""
    if not exam.vectors:
        return Verdict(law, None, "scores cannot be set")
    for fill in FILLS:
        low = _lowered(problem, fill)
        y = subject.y(low, "admitted scores far below 0")
        if y is None:
            return Verdict(law, None, "the call failed")
        chain = masked(exam.model, given("mask")) if exam.model is not None and problem.mask is not None else exam.model
        expected = None if chain is None else exam.predicted(chain, low)
        if expected is not None and exam.differs(y, expected, times=4):
            evidence = f"where admitted scores are about −{fill:.0f}, hidden pairs are read: they were given a finite score above that"
            return Verdict(law, False, evidence, (Suspicion("finite mask value", evidence),))
    return Verdict(law, True, f"admitted scores of −{FILLS[-1]:.0f}: hidden pairs are not read")


def _lowered(problem: Problem, fill: float) -> Problem:
    """Every score is −fill plus a little: queries and keys have one large feature of opposite signs."""
    q, k = np.array(problem["q"]), np.array(problem["k"])
    size = (fill * q.shape[-1] ** 0.5) ** 0.5
    q[..., 0], k[..., 0] = size, -size
    return problem.but(q=q, k=k)


def causal_flag(exam: Examination) -> Iterator[Verdict]:
    """A flag that asks for a causal mask gives one."""
    for parameter in exam.description.parameters:
        if parameter.role == "causal" and isinstance(parameter.default, bool | type(None)):
            yield _flag(exam, parameter)


def _flag(exam: Examination, parameter: Parameter) -> Verdict:
    law = f"{parameter.name}=True is causal"
    reading = exam.subject.reading
    if exam.model is None or exam.model.formula is None or exam.model.formula.mask is not None:
        return Verdict(law, None, "the formula has a mask of its own")
    taken = reading.taken if parameter in reading.taken else (*reading.taken, parameter)
    asked = replace(reading, taken=taken).but(causal=True)
    observed = exam.subject.read_as(asked).observed(asked.problem(33), f"{parameter.name}=True")
    chain = masked(exam.model, causal)
    if observed is None or chain is None:
        return Verdict(law, None, "the call failed")
    search = Search([observed])
    if search.explains(chain):
        return Verdict(law, True, "each position reads itself and what came before")
    found = search.first([chain], 1)
    if found is None:
        return Verdict(law, False, "wrong values")
    evidence = f"with {parameter.name}=True"
    return Verdict(law, False, evidence, tuple(Suspicion(name, evidence) for name in found.bugs))


def padding_by_accident(exam: Examination) -> Iterator[Verdict]:
    """A (batch, keys) mask is not read as (queries, keys) where both fit."""
    for parameter in exam.description.parameters:
        if parameter.role == "padding":
            yield _accident(exam, parameter)


def _accident(exam: Examination, parameter: Parameter) -> Verdict:
    law = f"{parameter.name} means the same for every batch"
    reading = exam.subject.reading
    if exam.model is None or not reading.layout.has("b"):
        return Verdict(law, None, "it takes no batch")
    chain = masked(exam.model, given("mask"))
    if chain is None or type(chain.weigh) is not Weigh:
        return Verdict(law, None, "the formula is not known")
    n = reading.sizes.queries
    for meaning in ("hides", "admits", "ones"):
        asked = with_mask(reading, parameter, GivenMask(meaning, "bn"))
        problem = asked.problem(34, batch=n)
        problem = replace(problem, mask=_staggered(problem))
        observed = exam.subject.read_as(asked).observed(problem, f"{parameter.name} with as many texts as positions")
        if observed is None:
            continue
        search = Search([observed])
        if search.explains(chain):
            return Verdict(law, True, f"{n} texts of {n} positions: right")
        wrong = MUTANTS["mask broadcast by accident"][0](chain)
        if wrong is not None and search.explains(wrong):
            evidence = f"with {n} texts of {n} positions, row b of the ({n}, {n}) mask hides keys from query b of every text"
            return Verdict(law, False, evidence, (Suspicion("mask broadcast by accident", evidence),))
    return Verdict(law, None, "no such mask was taken")


def _staggered(problem: Problem) -> Array:
    lengths = 1 + np.arange(problem.batch) % problem.keys
    return np.broadcast_to(
        np.arange(problem.keys) < lengths[:, None, None], (problem.batch, problem.queries, problem.keys)
    ).copy()


