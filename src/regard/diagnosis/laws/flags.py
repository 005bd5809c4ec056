"""A flag that asks for a causal mask, and padding masks that fit two shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...algebra.masks import causal, given
from ..masks import GivenMask
from ..mutants import MUTANTS
from ..problem import Array, Problem
from ..search import Search
from ..signature import Parameter
from ..steps import Weigh
from ..trying import with_mask
from .base import UNKNOWN, Examination, Suspicion, Verdict
from .chains import masked

SHAPE = (
    r"\W{1,6}[^\n]{0,30}[\(\[]\s*(batch\w*|bs|B)\s*,"
    r"\s*(seq\w*|positions?|n|n_k|T|L|S|keys?|len\w*|tokens?|src_len|k_len)\s*[\)\]]"
)
"""A text that gives what stands before it the shape (batch, keys)."""


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
        return Verdict(
            law, False, "wrong values", (Suspicion(UNKNOWN, f"{law}: the output is none of the usual ones"),)
        )
    evidence = f"with {parameter.name}=True"
    return Verdict(law, False, evidence, tuple(Suspicion(name, evidence) for name in found.bugs))


def padding_by_accident(exam: Examination) -> Iterator[Verdict]:
    """A (batch, keys) mask is not read as (queries, keys) where both fit."""
    for parameter in exam.description.parameters:
        if parameter.role == "padding" or (parameter.role == "mask" and _is_padding(exam, parameter)):
            yield _accident(exam, parameter)


def _is_padding(exam: Examination, parameter: Parameter) -> bool:
    """Whether a mask is meant for padding: its text says (batch, n), or it is called as the padding of texts is."""
    return _says_padding(exam, parameter) or parameter.name == "attention_mask"


def _says_padding(exam: Examination, parameter: Parameter) -> bool:
    return bool(re.search(rf"\b{re.escape(parameter.name)}{SHAPE}", exam.description.source))


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
            certain = parameter.role == "padding" or _says_padding(exam, parameter)
            severity = "error" if certain else "warning"
            return Verdict(law, False, evidence, (Suspicion("mask broadcast by accident", evidence, severity),))
    return Verdict(law, None, "no such mask was taken")


def _staggered(problem: Problem) -> Array:
    lengths = 1 + np.arange(problem.batch) % problem.keys
    return np.broadcast_to(
        np.arange(problem.keys) < lengths[:, None, None], (problem.batch, problem.queries, problem.keys)
    ).copy()
