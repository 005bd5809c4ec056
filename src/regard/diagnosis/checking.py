"""rg.check: the whole way from somebody's function to a report.

read      how it is called                       trying
observe   what it returns on chosen problems     subject
match     which formula, with which mistakes     matching
try       what values alone do not show          laws
report    each mistake by its name, on the smallest input that shows it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from ..algebra.errors import KindError
from ..attention import Attention, parse
from ..zoo import ENTRIES
from . import laws
from .description import Describe, Description, source
from .findings import WHY, distinct, found, imprecise, of_match, of_size, stopped, unmatched
from .laws import Examination, Suspicion, Verdict
from .matching import CAUSAL, PLAIN, Match, Matcher, bases
from .observing import adds_input, is_random, likeliest, observed_by, reads_ahead
from .report import LawResult, Report
from .sandbox.limits import Limits, Stopped, TargetError
from .sandbox.loading import Live, source_of
from .sandbox.process import Runner, runner_for
from .subject import Subject
from .trying import Said, Trial, readings

LOOSE = 0.03  # the error of half precision, seen in the output
DEFAULT = Limits()
SAYS_HALF = re.compile(r"half|float16|fp16|bf16|autocast|int8|round|quant|\.to\(", re.IGNORECASE)
"""What stands in code that computes in low precision."""
OTHERWISE = "say roles, layout, heads, library or mask (--as, --layout, --heads, --library, --mask)"


def check(
    target: Any,
    *,
    formula: Attention | str | None = None,
    causal: bool | None = None,
    roles: str | Sequence[str] | None = None,
    heads: int | None = None,
    groups: int | None = None,
    layout: str | None = None,
    library: str | None = None,
    mask: str | None = None,
    init: Mapping[str, Any] | None = None,
    projections: Mapping[str, str] | None = None,
    limits: Limits | None = DEFAULT,
    progress: Callable[[str], object] | None = None,
) -> Report:
    """Check an attention and name what is wrong with it.

    target:      a function of q, k, v (and a mask), or of x and its matrices; a `torch.nn.Module`, or its class; or
                 text that says where one is: "model.py:attend", "package.module:Class", "lesson.ipynb:attend"
    formula:     what it should compute, where that is not softmax(q·k / √d), with or without a causal mask
    causal:      whether it should be causal; found by trying unless said
    roles:       what its arguments are, in order: "q k v mask", "x wq wk wv"
    heads, groups, layout, library: as in 8, 2, "bhnd", "torch"; found by trying unless said
    mask:        what True means in its mask: "admits" or "hides"
    init:        arguments that make an instance of a class
    projections: where W_Q, W_K, W_V, W_O are, by path: {"q": "attn.wq.weight", …}
    limits:      time, memory and text that it may use in the child process where it runs; None runs it here
    progress:    called with a word or two at each stage
    """
    began = monotonic()
    if limits is not None and not isinstance(limits, Limits):
        raise KindError(f"limits: Limits(seconds=…), or None for none; got {limits!r}")
    said = Said(_split(roles), library, layout, heads, groups, causal, mask)
    asked = _formulas(formula, causal)
    place = source_of(target)
    with runner_for(target, limits) as runner:
        checking = _Check(runner, place, said, asked, init, projections, progress or _silent)
        try:
            made = checking.report()
        except Stopped as stop:
            if not checking.described:
                raise TargetError(f"{place.label}: it could not be loaded; {stop}") from None
            made = Report(place.label, (), "", findings=(stopped(stop),))
        printed = runner.printed
    remarks = (
        made.remarks if not printed.bytes else (*made.remarks, f"it printed {printed.lines} lines, not shown here")
    )
    return replace(made, remarks=remarks, seconds=monotonic() - began)


def _silent(_stage: str) -> None:
    """Nobody waits for it."""


def _split(roles: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if roles is None:
        return None
    return tuple(roles.replace(",", " ").split()) if isinstance(roles, str) else tuple(roles)


def _formulas(formula: Attention | str | None, causal: bool | None) -> tuple[Attention, ...] | None:
    """The formulas that count as right; None where the target may choose."""
    if formula is None:
        return None if causal is None else (CAUSAL,) if causal else (PLAIN,)
    named = getattr(formula, "__name__", formula) if not isinstance(formula, Attention) else ""
    value: object = formula
    if isinstance(named, str) and named in ENTRIES:
        value = ENTRIES[named].formula
    elif isinstance(formula, str):
        value = parse(formula)
    if not isinstance(value, Attention):
        raise KindError(f"formula: an attention, as in softmax(dot / sqrt(d), mask=j <= i); got {formula!r}")
    if value.ranks:
        tables = ", ".join(value.ranks)
        raise KindError(f"formula: one without tables, whose values check would not know; got {tables}")
    return (Attention(score=value.score, weight=value.weight, mask=CAUSAL.mask),) if causal else (value,)


@dataclass
class _Check:
    """One check: what was found so far."""

    runner: Runner
    place: Any
    said: Said
    asked: tuple[Attention, ...] | None
    init: Mapping[str, Any] | None
    projections: Mapping[str, str] | None
    progress: Callable[[str], object]
    described: bool = False
    source: str = ""

    def report(self) -> Report:
        """Read, observe, match, try, report."""
        self.progress("reading")
        description = self._described()
        trials = readings(self.runner, description, self.said)
        random = is_random(self.runner, trials[0], description)
        formulas = self._asked(description)
        self.source = description.source
        self.progress("matching")
        chosen, match, loose = self._matched(trials, formulas, random is not None)
        match = _with_bias(match, description)
        subject = Subject(self.runner, chosen.reading, random is not None, LOOSE if loose else 0.0)
        form = chosen.reading.form
        right = bases(form, [formulas[0]])[0] if match is None else match.explanation.base
        named = frozenset(match.explanation.bugs if match is not None else ())
        exam = Examination(subject, description, match, right, named, self.said.mask)
        self.progress("trying laws")
        verdicts = [*([random] if random else []), *self._tried(exam)]
        suspicions = [*of_match(match, chosen.reading.problem(0)), *of_size(chosen, named), *([loose] if loose else [])]
        suspicions += [one for verdict in verdicts for one in verdict.suspicions]
        suspicions += [*_not_asked_for(match, self.said), *self._another(match)]
        self.progress("looking for small examples")
        findings = [*found(exam, distinct(suspicions)), *unmatched(exam, verdicts)]
        return Report(
            target=self.place.label,
            reading=tuple({**chosen.reading.words(), **_facts(description), "not so?": OTHERWISE}.items()),
            formula="" if match is None else _computed(match),
            recognised=_recognised(match),
            asked=repr(formulas[0] if match is None or match.recognised else match.explanation.base.formula),
            findings=tuple(sorted(findings, key=lambda one: one.severity != "error")),
            laws=tuple(LawResult(one.law, one.holds, one.measured) for one in verdicts),
            remarks=(*_left_to_caller(match, formulas), *(remark for one in verdicts for remark in one.remarks)),
        )

    def _asked(self, description: Description) -> tuple[Attention, ...]:
        """The formulas to look for: those asked for first, then those that a mask, or its lack, turns them into."""
        if self.asked is None:
            return _meant(description)
        if self.said.causal and self.asked == (CAUSAL,) and description.roles & {"mask", "causal"}:
            return (CAUSAL, PLAIN)  # it may leave the mask to its caller
        return (PLAIN, CAUSAL) if self.said.causal is False and self.asked == (PLAIN,) else self.asked

    def _another(self, match: Match | None) -> list[Suspicion]:
        """Another formula than the one that the user has named."""
        if match is None or not match.recognised or self.asked in (None, (PLAIN,), (CAUSAL,)):
            return []
        return [Suspicion("another formula", f"It computes {match.text}, where {self.asked[0]!r} was asked for.")]

    def _described(self) -> Description:
        description: Description = self.runner.ask(Describe(self.init, self.projections))
        self.described = True
        if description.module is None and (self.init or self.projections):
            raise KindError(f"init, projections: for classes and modules; got them for the function {description.name}")
        if isinstance(self.place, Live) and not description.source:
            text, line = source(self.place.target)
            description = replace(description, source=text, line=line)
        return description

    def _matched(
        self, trials: Sequence[Trial], formulas: Sequence[Attention], random: bool
    ) -> tuple[Trial, Match | None, Suspicion | None]:
        """The reading that is believed, what explains it, and whether only half precision's error lets it be."""
        trials = likeliest(trials, formulas)
        observed = [observed_by(Subject(self.runner, trial.reading, random), trial) for trial in trials]
        kept = [(trial, seen) for trial, seen in zip(trials, observed, strict=True) if seen]
        if not kept:
            return trials[0], None, None
        first = Subject(self.runner, kept[0][0].reading)
        ahead = None if random else reads_ahead(first)
        match = Matcher(
            [(trial.reading.form, seen) for trial, seen in kept], formulas, ahead, adds_input(first)
        ).match()
        if match is not None:
            return kept[match.at][0], match, None
        rough = [(trial.reading.form, [replace(seen[0], tolerance=LOOSE)]) for trial, seen in kept]
        match = Matcher(rough, formulas).roughly()
        if match is None or not SAYS_HALF.search(self.source or "half"):
            return kept[0][0], None, None
        return kept[match.at][0], match, imprecise(match, kept[match.at][1][0])

    def _tried(self, exam: Examination) -> Iterable[Verdict]:
        trying = laws.tried(exam)
        while True:
            try:
                verdict = next(trying)
            except StopIteration:
                return
            except Stopped as stop:
                yield Verdict("every call returns", False, str(stop), (Suspicion(WHY[stop.why], str(stop)),))
                return
            yield verdict


# -- what is asked for ----------------------------------------------------------------------------------------------


def _meant(description: Description) -> tuple[Attention, ...]:
    """Causal where its name, or its module's triangle, says so; else with or without a causal mask."""
    facts = description.module
    says = bool(facts.causal) if facts is not None else "causal" in description.name.lower()
    if description.roles & {"causal", "mask"}:  # a flag or a mask decides, and is tried by itself
        says = facts is not None and "name" not in facts.causal and bool(facts.causal)
    return (CAUSAL,) if says else (PLAIN, CAUSAL)


def _with_bias(match: Match | None, description: Description) -> Match | None:
    """T5 leaves out √d and adds a bias of its own: with an argument for that, no root of d is what is meant."""
    if match is None or match.explanation.bugs != ("no root of d",) or "bias" not in description.roles:
        return match
    return Match(replace(match.explanation, base=match.steps, bugs=()), "t5_bias", at=match.at)


# -- what the report says ------------------------------------------------------------------------------------------


def _not_asked_for(match: Match | None, said: Said) -> list[Suspicion]:
    formula = None if match is None else match.explanation.base.formula
    if said.causal is not False or formula is None or formula.mask is None:
        return []
    evidence = "It hides what comes after each position, though it was said not to be causal."
    return [Suspicion("causal mask not asked for", evidence)]


def _left_to_caller(match: Match | None, formulas: Sequence[Attention]) -> tuple[str, ...]:
    formula = None if match is None else match.explanation.base.formula
    if formulas != (CAUSAL, PLAIN) or formula is None or formula.mask is not None:
        return ()
    return ("it makes no causal mask of its own: it is causal where the caller asks for it, or passes such a mask",)


def _computed(match: Match) -> str:
    """The formula that it computes; where a mistake is in no formula, the one that it should."""
    formula = match.steps.formula
    return match.text if match.fitted is not None or formula is None else repr(formula)


def _recognised(match: Match | None) -> str:
    if match is None or not match.recognised:
        return ""
    entry = ENTRIES.get(match.recognised)
    return match.recognised if entry is None else f"{entry.title} ({entry.paper}, {entry.year})"


def _facts(description: Description) -> dict[str, str]:
    shown = {}
    if description.projections:
        shown["projections"] = ", ".join(f"{role} {name}" for role, name in description.projections[0].names.items())
    if description.aside:
        shown["set aside"] = ", ".join(description.aside)
    return shown
