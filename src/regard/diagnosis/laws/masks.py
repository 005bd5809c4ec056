"""Laws of masks that are given with the call, and of flags that ask for a causal one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...algebra.masks import causal, given
from ...algebra.symbols import b, i, j, table
from ...attention import Attention
from ..calling import Outcome
from ..families import filled, fitted
from ..masks import MEANINGS, GivenMask, masks_for
from ..mutants import MUTANTS
from ..problem import Array, Problem, drawn_masks
from ..reading import Reading
from ..search import Explanation, Observation, Search
from ..signature import Parameter
from ..steps import Steps, Turn, Weigh
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
LEAK = 100  # times the tolerance: scores of thousands are rounded coarsely, a leak is no matter of rounding
FILLS = (60.0, 300.0, 2e4)  # how far below 0 admitted scores are put to see whether a hidden pair shines through
READABLE = 0.3  # the share of outputs that must be numbers
HIDDEN = "hidden pairs stay hidden"
SAYS_PADDING = re.compile(
    r"mask\w*\W{1,6}[^\n]{0,40}[\(\[]\s*(batch\w*|bs|B|N)\s*,\s*(seq\w*|positions?|n|n_k|T|L|S|keys?|len\w*|tokens?|src_len|k_len)\s*[\)\]]"
)


@dataclass(frozen=True)
class Tried:
    """One mask that the target took: its reading, what came out, and the chain that explains it."""

    reading: Reading
    observation: Observation
    found: Explanation | None = None
    changed: tuple[str, ...] = ()  # arguments that the call has changed


def masked(steps: Steps, extra: object) -> Steps | None:
    """The chain with one more mask in its formula."""
    formula = steps.formula
    if formula is None:
        return None
    mask = extra if formula.mask is None else formula.mask & extra
    return steps.with_formula(Attention(score=formula.score, weight=formula.weight, mask=mask))


def biased(steps: Steps) -> Steps | None:
    """The chain with a number added to every score."""
    formula = steps.formula
    if formula is None:
        return None
    score = formula.score + table("added")[b, i, j]
    return steps.with_formula(Attention(score=score, weight=formula.weight, mask=formula.mask))


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
    changed = tuple(dict.fromkeys(name for one in tried for name in one.changed))
    if changed:
        yield Verdict(law, False, _changed(changed), (Suspicion("inputs changed in place", _changed(changed)),))
        return
    if found is None or found.reading.mask is None:
        yield Verdict(law, False, "none of the usual meanings predicts the output")
        return
    yield _meant(exam, parameter, found, law)
    if found.found is not None and not found.found.bugs:
        yield empty_rows(exam, found, parameter)
        yield finite_value(exam, found)


def _changed(names: tuple[str, ...]) -> str:
    return f"after the call {' and '.join(names)} {'is' if len(names) == 1 else 'are'} changed"


def _taken(exam: Examination, parameter: Parameter) -> Iterator[Tried]:
    """Every mask that the target takes, with what it gave."""
    for kind in masks_for(parameter.role, exam.subject.reading.layout):
        reading = with_mask(exam.subject.reading, parameter, kind)
        problem = _problem(exam.subject.reading, kind)
        subject = exam.subject.read_as(reading)
        outcome = subject.outcome(problem, f"a call with {parameter.name}")
        seen = subject.observed(problem) if subject.random else _seen(subject, outcome, problem)
        if seen is not None and np.isfinite(seen.y).mean() > READABLE:
            yield Tried(reading, seen, changed=outcome.changed)


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
    chain = None if exam.model is None else masked(exam.model, given("mask"))
    if chain is None:
        return None
    for bugs in (0, 1):
        for one in tried:
            adds = one.reading.mask is not None and one.reading.mask.meaning == "adds"
            meant = biased(chain) if adds else chain
            if meant is not None and (found := _simple(Search([one.observation]), meant, bugs)) is not None:
                return replace(one, found=found)
    return _leaky(exam, tried)


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
    for one in tried:
        for family in filled(given("mask")):
            found = fitted(Search([one.observation]), exam.model, family)
            if found is not None:
                return replace(one, found=Explanation(found.steps, exam.model, (family.bug,)))
    return None


def _meant(exam: Examination, parameter: Parameter, tried: Tried, law: str) -> Verdict:
    mask, found, name = tried.reading.mask, tried.found, parameter.name
    assert mask is not None and found is not None
    if found.bugs:
        evidence = f"{name} ({mask.words}): hidden pairs still count, or others are hidden"
        return Verdict(law, False, evidence, tuple(Suspicion(bug, evidence, "error") for bug in found.bugs))
    if mask.meaning != "hides":
        return Verdict(law, True, f"{name}: {mask.words}", remarks=_added(name) if mask.meaning == "adds" else ())
    if parameter.role == "mask" and not SAYS_HIDES.search(exam.description.source) and exam.mask != "hides":
        evidence = f"{name} hides a pair where it is True; F.scaled_dot_product_attention admits it there"
        return Verdict(law, False, evidence, (Suspicion("inverted mask", evidence),))
    return Verdict(law, True, f"{name}: {mask.words}", remarks=(f"{name}: {MEANINGS['hides']}",))


def _added(name: str) -> tuple[str, ...]:
    return (f"{name} is added to the scores: a mask of truths would only add 0 and 1 (see: 0/1 mask added)",)


def empty_rows(exam: Examination, tried: Tried, parameter: Parameter) -> Verdict:
    """A row that may read nothing is zeros, not NaN."""
    law = "empty rows are numbers"
    problem = tried.observation.problem
    if tried.reading.mask is None or tried.reading.mask.meaning in ("lengths", "adds"):
        return Verdict(law, None, "the caller decides what an empty row is")
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


# -- values that are not low enough --------------------------------------------------------------------------------


def finite_value(exam: Examination, tried: Tried) -> Verdict:
    """However low the admitted scores are, a pair that a given mask hides is not read."""
    mask = tried.reading.mask
    if mask is None or mask.meaning in ("adds", "lengths"):
        return Verdict(HIDDEN, None, "the caller chooses what is added" if mask is not None else "")
    problem = tried.reading.problem(35)
    admitted = np.zeros((problem.batch, problem.queries, problem.keys), dtype=bool)
    admitted[..., 0] = True
    chain = None if exam.model is None else masked(exam.model, given("mask"))
    return _leaking(exam, exam.subject.read_as(tried.reading), replace(problem, mask=admitted), chain)


def own_mask(exam: Examination) -> Verdict:
    """However low the admitted scores are, a pair that the formula's own mask hides is not read."""
    model = exam.model
    if model is None or model.formula is None or model.formula.mask is None:
        return Verdict(HIDDEN, None, "it has no mask of its own")
    return _leaking(exam, exam.subject, exam.subject.reading.problem(36), model)


def _leaking(exam: Examination, subject: Subject, problem: Problem, chain: Steps | None) -> Verdict:
    """Key 0 alone has scores far below 0: where it alone is admitted, a hidden pair with a finite score wins."""
    if chain is None or subject.random or isinstance(chain.place, Turn):
        return Verdict(HIDDEN, None, "the scores cannot be set")
    for fill in FILLS:
        low = _lowered(problem, fill)
        y = None if low is None else subject.y(low, "admitted scores far below 0")
        expected = None if low is None else exam.predicted(chain, low)
        if low is None or y is None or expected is None:
            return Verdict(HIDDEN, None, "the scores cannot be set")
        if exam.differs(y, expected, times=LEAK):
            evidence = (
                f"where the admitted score is −{fill:.0f}, hidden pairs are read: their score is no lower than that"
            )
            return Verdict(HIDDEN, False, evidence, (Suspicion("finite mask value", evidence),))
    return Verdict(HIDDEN, True, f"admitted scores of −{FILLS[-1]:.0f}: hidden pairs are not read")


def _lowered(problem: Problem, fill: float) -> Problem | None:
    """s_i0 = −fill, and 0 for the other keys."""
    if problem.form == "vectors":
        q, k = np.zeros_like(problem["q"]), np.zeros_like(problem["k"])
        size = (fill * q.shape[-1] ** 0.5) ** 0.5
        q[..., 0], k[..., 0, 0] = size, -size
        return problem.but(q=q, k=k)
    if not {"wq", "wk"} <= set(problem.arrays) or problem["context"] is not problem["x"]:
        return None
    return _lowered_inputs(problem, fill)


def _lowered_inputs(problem: Problem, fill: float) -> Problem:
    """The same through the matrices: feature 0 of x makes every query, feature 1 the first key."""
    x, wq, wk = np.array(problem["x"]), np.zeros_like(problem["wq"]), np.zeros_like(problem["wk"])
    width = wq.shape[1] // problem.heads
    size = (fill * width**0.5) ** 0.5
    x[..., 0], x[..., 1] = 1.0, 0.0
    x[:, 0, 1] = -1.0
    wq[0, ::width], wk[1, ::width] = size, size
    zeros = {name: np.zeros_like(problem[name]) for name in ("bq", "bk") if name in problem.arrays}
    return problem.but(x=x, context=x, memory=x, wq=wq, wk=wk, **zeros)


# -- flags, and padding --------------------------------------------------------------------------------------------


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
        if parameter.role == "padding" or (parameter.role == "mask" and _is_padding(exam, parameter)):
            yield _accident(exam, parameter)


def _is_padding(exam: Examination, parameter: Parameter) -> bool:
    """Whether a mask is meant for padding: its text says (batch, n), or it is called as the padding of texts is."""
    return bool(SAYS_PADDING.search(exam.description.source)) or parameter.name == "attention_mask"


def _accident(exam: Examination, parameter: Parameter) -> Verdict:
    law = f"{parameter.name} means the same for every batch"
    reading = exam.subject.reading
    chain = None if exam.model is None else masked(exam.model, given("mask"))
    if chain is None or type(chain.weigh) is not Weigh or not reading.layout.has("b"):
        return Verdict(law, None, "it takes no batch, or its formula is not known")
    n = reading.sizes.queries
    for meaning in ("admits", "ones", "hides"):
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
            evidence = (
                f"with {n} texts of {n} positions, row b of a ({n}, {n}) mask hides keys from query b of every text"
            )
            certain = parameter.role == "padding" or bool(SAYS_PADDING.search(exam.description.source))
            severity = "error" if certain else "warning"
            return Verdict(law, False, evidence, (Suspicion("mask broadcast by accident", evidence, severity),))
    return Verdict(law, None, "no such mask was taken")


def _staggered(problem: Problem) -> Array:
    lengths = 1 + np.arange(problem.batch) % problem.keys
    return np.broadcast_to(
        np.arange(problem.keys) < lengths[:, None, None], (problem.batch, problem.queries, problem.keys)
    ).copy()
