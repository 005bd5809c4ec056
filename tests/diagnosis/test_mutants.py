"""Every bug of the catalogue, made in the right implementation, is named; the right implementation passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import mutant_programs as programs
import regard as rg
from regard.diagnosis import CATALOGUE
from regard.diagnosis.checking import check
from regard.diagnosis.mutants import MUTANTS
from regard.diagnosis.mutants.registry import Mutant
from regard.diagnosis.steps import Steps, Turn, on_inputs, on_vectors
from regard.inputs import Rotary

PLAIN, CAUSAL, GIVEN = rg.Attention(), rg.Attention(mask=rg.causal), rg.Attention(mask=rg.given("mask"))
ROTARY = Turn(Rotary())
BEHAVIOUR = {"library": "torch"}
CROSSED = {"values_of_keys", "values_of_queries", "keys_of_queries", "all_of_queries"}  # need inputs of their own


@dataclass(frozen=True)
class Setting:
    """Where a bug can be made and seen: a right chain, the function it becomes, what check is told."""

    chain: Steps
    program: Callable[[Steps], Callable[..., Any]]
    options: dict[str, Any] = field(default_factory=dict)


HEADS = Setting(on_vectors(PLAIN), programs.on_heads)
AHEAD = Setting(on_vectors(CAUSAL), programs.on_heads, {"causal": True})
MASKED = Setting(on_vectors(GIVEN), programs.with_mask)
PADDED = Setting(on_vectors(GIVEN), programs.with_padding)
WEIGHTS = Setting(on_vectors(PLAIN), programs.with_weights)
TURNED = Setting(replace(on_vectors(PLAIN), place=ROTARY), programs.on_heads)
CACHED = Setting(replace(on_vectors(CAUSAL), place=ROTARY), programs.with_cache)
INPUT = Setting(on_inputs(PLAIN), programs.on_input)
MERGED = Setting(on_inputs(PLAIN), programs.without_output)
CROSS = Setting(on_inputs(PLAIN), programs.on_three_inputs)
TORCH = Setting(on_vectors(PLAIN), programs.on_heads, BEHAVIOUR)
FULL = (HEADS, AHEAD, MASKED, PADDED, WEIGHTS, TURNED, CACHED, INPUT, MERGED, CROSS, TORCH)

FIRST = {  # the setting to make a bug in, where it is not the first that can
    "root of the model width": INPUT,
    "model width for its root": INPUT,
    "mask in the wrong corner": AHEAD,
    "padding on queries": PADDED,
    "mask broadcast by accident": PADDED,
    "empty rows are NaN": MASKED,
    "finite mask value": MASKED,
    "returned weights are others": WEIGHTS,
    "heads averaged": MERGED,
    "mask of another text": MASKED,
    "gradient cut": TORCH,
    "gradient wrong": TORCH,
    "positions not moved on": CACHED,
    "position off by one after prefill": CACHED,
    "cache on the wrong axis": CACHED,
}
INVISIBLE = {  # forms that are another function's twin in the setting where they can be made
    ("root of the value width", 0),  # d_v = d
    ("groups repeated in the wrong order", 0),  # as many key heads as query heads: see below
    ("low precision inside", 0),  # its source must say so: see below
    ("output projection per head", 1),  # a W_O of the width of one head: among the targets
}


def forms() -> list[Any]:
    return [
        pytest.param(name, number, id=f"{name} {number}")
        for name, mutants in MUTANTS.items()
        for number in range(len(mutants))
        if (name, number) not in INVISIBLE
    ]


def made(name: str, mutant: Mutant) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The wrong function, in the first setting where the mistake can be made and is no other form's."""
    for setting in [FIRST[name]] if name in FIRST else FULL:
        steps = mutant(setting.chain)
        if steps is not None and getattr(steps.project, "__name__", "") in CROSSED and setting is not CROSS:
            continue
        if steps is not None and steps != setting.chain:
            return setting.program(steps), setting.options
    pytest.fail(f"{name}: no setting lets it be made")


def names(target: Callable[..., Any], **options: Any) -> set[str]:
    return {finding.name for finding in check(target, limits=None, **options).findings}


@pytest.mark.parametrize("setting", FULL, ids=lambda one: one.program.__name__)
def test_the_right_implementation_passes(setting: Setting) -> None:
    report = check(setting.program(setting.chain), limits=None, **setting.options)
    assert report.ok, str(report)


@pytest.mark.parametrize(("name", "number"), forms())
def test_each_mutant_is_named(name: str, number: int) -> None:
    target, options = made(name, MUTANTS[name][number])
    report = check(target, limits=None, **options)
    found = {finding.name for finding in report.findings}
    same = {other for finding in report.findings for other in finding.also}
    assert name in found | same, str(report)


def test_every_bug_has_a_mutant_and_every_mutant_a_bug() -> None:
    assert set(MUTANTS) | {"wrong scale"} == set(CATALOGUE)


def test_groups_are_told_apart_by_their_order() -> None:
    for mutant in MUTANTS["groups repeated in the wrong order"]:
        wrong = mutant(HEADS.chain)
        assert wrong is not None
        assert names(programs.on_heads(wrong)) == {"groups repeated in the wrong order"}


def test_half_precision_is_named_where_the_source_says_so() -> None:
    (mutant,) = MUTANTS["low precision inside"]
    wrong = mutant(HEADS.chain)
    assert wrong is not None
    inside = programs.on_heads(wrong)

    def in_half(q: Any, k: Any, v: Any) -> Any:
        return inside(q, k, v)

    assert names(in_half) == {"low precision inside"}
    assert names(inside) == {"fits nothing in the catalogue"}


def test_another_scale_is_named_with_its_number() -> None:
    report = check(programs.on_heads(on_vectors(rg.Attention(score=0.3 * rg.dot))), limits=None)
    assert [finding.name for finding in report.findings] == ["wrong scale"]
    assert "0.3 × q·k" in report.findings[0].evidence
