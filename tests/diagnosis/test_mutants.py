"""Every bug of the catalogue, made in the right implementation, is named; the right implementation passes."""

from __future__ import annotations

from typing import Any

import pytest

import mutant_programs as programs
from regard.diagnosis import CATALOGUE
from regard.diagnosis.mutants import MUTANTS

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


@pytest.mark.parametrize("setting", programs.SETTINGS)
def test_the_right_implementation_passes(checked: Any, setting: str) -> None:
    report = checked("right", setting)[setting]
    assert report["ok"], report["text"]


@pytest.mark.parametrize(("name", "number"), forms())
def test_each_mutant_is_named(checked: Any, name: str, number: int) -> None:
    report = checked("mutant", name, number)[name]
    assert name in report["findings"] + report["also"], report["text"]


def test_every_bug_has_a_mutant_and_every_mutant_a_bug() -> None:
    assert set(MUTANTS) | {"wrong scale"} == set(CATALOGUE)


def test_groups_are_told_apart_by_their_order(checked: Any) -> None:
    name = "groups repeated in the wrong order"
    for number in range(len(MUTANTS[name])):
        assert set(checked("mutant", name, number)[name]["findings"]) == {name}


def test_half_precision_is_named_where_the_source_says_so(checked: Any) -> None:
    name = "low precision inside"
    assert checked("half", name)[name]["findings"] == [name]
    assert checked("mutant", name, 0)[name]["findings"] == ["fits nothing in the catalogue"]


def test_another_scale_is_named_with_its_number(checked: Any) -> None:
    (report,) = checked("formula", "softmax(0.3 * dot)").values()
    assert report["findings"] == ["wrong scale"]
    assert "0.3 × q·k" in report["evidence"][0]
