"""`regard.testing`: an attention checked in a project's own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard.testing
from regard.algebra.errors import KindError
from regard.diagnosis import CATALOGUE, Finding, Report, TargetError
from regard.diagnosis.catalogue import GROUPS
from regard.testing import assert_right, group_of, parametrize

PARTS = ["formula", *GROUPS]


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def right(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v


def unscaled(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2)) @ v


def fragile(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])
    e = np.exp(s - s.max())
    return e / e.sum(axis=-1, keepdims=True) @ v


# -- as it is used -------------------------------------------------------------------------------------------------


@parametrize(right, causal=False)
def test_one(check: Any) -> None:
    check()


@parametrize({"plain": right, "scores of 1": unscaled}, formula="softmax(dot)", allow=["wrong scale", "d for its root"])
def test_named(check: Any) -> None:
    if check.checked.target is unscaled:
        check()


# -- cases ---------------------------------------------------------------------------------------------------------


def cases(targets: Any, **options: Any) -> dict[str, Any]:
    mark = parametrize(targets, **options).mark
    name, values = mark.args
    assert name == "check"
    return dict(zip(mark.kwargs["ids"], values, strict=True))


def failing(made: dict[str, Any]) -> dict[str, str]:
    told = {}
    for name, case in made.items():
        try:
            case()
        except AssertionError as failure:
            told[name] = str(failure)
    return told


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        (right, ["right"]),
        ([right, unscaled], ["right", "unscaled"]),
        ({"mine": right}, ["mine"]),
        ("model.py:attend", ["model.py:attend"]),
    ],
)
def test_there_is_a_case_for_each_part(targets: Any, names: list[str]) -> None:
    assert list(cases(targets)) == [f"{name}-{part}" for name in names for part in PARTS]


@pytest.mark.parametrize(
    ("target", "options", "part", "name"),
    [
        (unscaled, {}, "scale", "no root of d"),
        (right, {"causal": True}, "masks", "no mask"),
        (fragile, {"strict": True}, "numbers", "one maximum for all rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_part_that_is_wrong_fails_and_tells(target: Any, options: Any, part: str, name: str) -> None:
    told = failing(cases({"mine": target}, **options))
    assert list(told) == [f"mine-{part}"]
    first, *rest = told[f"mine-{part}"].splitlines()
    assert first == f"{target.__name__}: {name}"
    assert CATALOGUE[name].wrong.split()[0] in "".join(rest)


def test_what_the_catalogue_does_not_name_is_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("fits nothing in the catalogue", "error", "It computes nothing that is known.", "", "", "", None)
    monkeypatch.setattr(regard.testing, "check", lambda target, **_: Report("mine", (), "", findings=(found,)))
    told = failing(cases({"mine": right}))
    assert list(told) == ["mine-formula"]
    assert "It computes nothing that is known." in told["mine-formula"]


def test_warnings_count_where_strict_alone() -> None:
    assert failing(cases(fragile)) == {}


def test_a_mistake_may_be_allowed() -> None:
    assert failing(cases(unscaled, allow=["no root of d"])) == {}
    assert assert_right(unscaled, allow="no root of d").errors


def test_a_target_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = regard.testing.check

    def counting(target: Any, **options: Any) -> Any:
        calls.append(target)
        return real(target, **options)

    monkeypatch.setattr(regard.testing, "check", counting)
    failing(cases([right, unscaled]))
    assert calls == [right, unscaled]


def test_a_target_that_cannot_be_found_fails_every_case(tmp_path: Path) -> None:
    for case in cases(f"{tmp_path}/gone.py:attend").values():
        with pytest.raises(TargetError, match=r"gone\.py: a file that exists"):
            case()


# -- in one go -----------------------------------------------------------------------------------------------------


def test_assert_right_gives_the_report() -> None:
    assert assert_right(right, causal=False).ok
    assert assert_right(fragile).warnings


def test_assert_right_fails_with_the_report() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_right(unscaled)
    text = str(failure.value)
    assert text.startswith("no root of d\n")
    assert "unscaled  ✗ 1 mistake" in text
    assert "mend it" in text
    with pytest.raises(AssertionError, match="one maximum for all rows"):
        assert_right(fragile, strict=True)


@pytest.mark.parametrize(
    ("target", "options", "problem"),
    [
        (right, {"casual": True}, "casual: an option of regard.check, .*; did you mean 'causal'"),
        (right, {"allow": ["no rot of d"]}, "allow: names of the catalogue; got .*; did you mean 'no root of d'"),
        (3, {}, "target: something to call"),
    ],
)
def test_mistakes_in_its_use_are_told_at_once(target: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(KindError, match=problem):
        parametrize(target, **options)
    with pytest.raises(KindError, match=problem):
        assert_right(target, **options)


def test_every_bug_has_its_part() -> None:
    made = {name: Finding(name, "error", "", "", "", "", None) for name in [*CATALOGUE, "never returns"]}
    assert {group_of(one) for one in made.values()} == set(PARTS)
    assert group_of(made["never returns"]) == "formula"
