"""The whole way: what the user says of a target is believed, and what it does is told in the right words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard as rg
from corpus import FOLDER, loaded
from regard.algebra.errors import KindError
from regard.diagnosis import Limits, check
from regard.diagnosis.findings import WHY
from regard.diagnosis.trying import Unreadable

SMALL = Limits(seconds=300, call_seconds=100, memory=2**30, printed=100_000)  # no end of time on a busy machine
SHORT = Limits(seconds=20, call_seconds=1, memory=2**30, printed=100_000)


def softmax(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def right(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def unscaled(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2)) @ v


def cosine(q: Any, k: Any, v: Any) -> Any:
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    return softmax(7 * q @ k.swapaxes(-1, -2)) @ v


def hides(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(mask, -1e9, scores)) @ v


def nothing(q: Any, k: Any, v: Any) -> Any:
    return 0.0 * v


def values_alone(q: Any, k: Any, v: Any) -> Any:
    return 1.0 * v


def found(target: Any, **options: Any) -> list[str]:
    return [finding.name for finding in check(target, limits=None, **options).findings]


# -- what the user says --------------------------------------------------------------------------------------------


def test_the_named_formula_is_what_counts() -> None:
    assert found(unscaled) == ["no root of d"]
    assert found(unscaled, formula="softmax(dot)") == []
    assert found(unscaled, formula=rg.Attention(score=rg.dot)) == []
    assert found(cosine, formula="softmax(7 * cosine)") == []
    assert found(right, formula="softmax(-sqdist / 2)") == ["another formula"]


def test_causal_is_what_is_asked_for() -> None:
    assert found(right) == []
    assert found(right, causal=False) == []
    assert found(right, causal=True) == ["no mask"]


def test_what_true_means_in_a_mask_can_be_said() -> None:
    assert found(hides) == ["inverted mask"]
    assert found(hides, mask="hides") == []


def test_arguments_in_another_order_are_said_by_their_roles() -> None:
    def strange(a: Any, b: Any, c: Any) -> Any:
        return right(b, c, a)

    assert "fits nothing in the catalogue" not in found(strange, roles="v q k")
    assert found(strange, roles="v q k") == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"layout": "xyz"}, "layout: one of"),
        ({"library": "tensorflow"}, "library: one of"),
        ({"formula": "dot"}, "formula: an attention"),
        ({"formula": 'softmax(dot + table("bias")[h])'}, "formula: one without tables"),
        ({"roles": "q k v mask x x"}, "as many roles as arguments"),
        ({"roles": "q k v bananas"}, "roles: one of"),
        ({"heads": 0}, "heads: a whole number above 0; got 0"),
        ({"heads": "4"}, "heads: a whole number above 0; got '4'"),
        ({"heads": 4, "groups": 3}, "groups: a divisor of heads=4; got 3"),
        ({"causal": "yes"}, "causal: True, False, or None"),
        ({"mask": "no"}, "mask: one of admits, hides"),
        ({"init": {"a": 1}}, "init, projections: for classes and modules"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(KindError, match=text):
        check(right, limits=None, **options)


# -- what is told --------------------------------------------------------------------------------------------------


def test_another_formula_is_recognised_with_its_number(checked: Any) -> None:
    report = checked("file", __file__, ["cosine"])["cosine"]
    assert report["ok"]
    assert "cosine" in report["recognised"]
    assert report["formula"] == "softmax(cosine * 7)"


def test_a_finding_says_all_that_a_learner_needs() -> None:
    (finding,) = check(unscaled, limits=None).findings
    assert finding.severity == "error"
    assert all((finding.wrong, finding.hides, finding.advice, finding.mend, finding.seen, finding.evidence))
    assert [line.text.strip() for line in finding.lines] == ["return softmax(q @ k.swapaxes(-1, -2)) @ v"]
    example = finding.example
    assert example is not None
    assert example.shown == "weights"
    np.testing.assert_allclose(example.right.sum(axis=-1), 1)
    assert example.wrong.any()


def test_the_example_is_what_the_target_returns() -> None:
    (finding,) = check(unscaled, limits=None).findings
    assert finding.example is not None
    arrays = {name: np.asarray(value, dtype=float) for name, value in finding.example.inputs.items()}
    np.testing.assert_allclose(unscaled(**arrays).squeeze(), finding.example.yours)
    np.testing.assert_allclose(right(**arrays).squeeze(), finding.example.right)


def test_two_mistakes_are_each_shown_by_themselves() -> None:
    def both(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2)
        return softmax(np.where(np.tri(scores.shape[-2], k=-1, dtype=bool), scores, -1e9)) @ v

    report = check(both, limits=None, causal=True)
    assert {finding.name for finding in report.findings} == {"strict mask", "no root of d"}
    assert all(finding.example is not None for finding in report.findings)
    assert len({str(finding.example.yours) for finding in report.findings if finding.example}) == 2


def test_what_follows_from_a_mistake_is_not_named_beside_it() -> None:
    def in_place(q: Any, k: Any, v: Any) -> Any:
        q *= q.shape[-1] ** -0.5
        return softmax_torch(q, k, v)

    def softmax_torch(q: Any, k: Any, v: Any) -> Any:
        return (q @ k.mT).softmax(-1) @ v

    pytest.importorskip("torch", reason="pip install torch to check a PyTorch function")
    assert found(in_place, library="torch") == ["inputs changed in place"]


def test_words_printed_are_counted_and_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    def chatty(q: Any, k: Any, v: Any) -> Any:
        print("here")  # noqa: T201 - the point of it
        return right(q, k, v)

    report = check(chatty)
    assert report.ok
    assert any(remark.startswith("it printed") for remark in report.remarks)
    assert "here" not in "".join(capfd.readouterr())


def test_progress_is_told() -> None:
    said: list[str] = []
    check(right, limits=None, progress=said.append)
    assert said[0] == "reading"
    assert "matching" in said


# -- targets that misbehave ----------------------------------------------------------------------------------------

STOPS = {"time", "memory", "crash", "exit", "printing"}
MISBEHAVING: dict[str, str] = loaded(FOLDER / "misbehaving.py").EXPECTED


@pytest.mark.parametrize("name", [name for name, what in MISBEHAVING.items() if what in STOPS])
def test_a_target_that_must_be_stopped_is_a_finding(name: str) -> None:
    limits = SHORT if MISBEHAVING[name] == "time" else SMALL
    report = check(f"{FOLDER / 'misbehaving.py'}:{name}", limits=limits)
    assert not report.ok
    assert {finding.name for finding in report.errors} & set(WHY.values()), str(report)


@pytest.mark.parametrize(
    "name", [name for name, what in MISBEHAVING.items() if what not in STOPS and name != "returns_nan"]
)
def test_a_target_that_cannot_be_called_is_refused_in_words(name: str) -> None:
    with pytest.raises((Unreadable, rg.RegardError)) as refused:
        check(f"{FOLDER / 'misbehaving.py'}:{name}", limits=SMALL)
    assert name in str(refused.value)


def test_a_target_that_returns_no_number_is_a_finding() -> None:
    assert not check(f"{FOLDER / 'misbehaving.py'}:returns_nan", limits=SMALL).ok


@pytest.mark.parametrize("name", ["nothing", "values_alone"])
def test_a_target_that_reads_no_scores_is_recognised_as_nothing(checked: Any, name: str) -> None:
    report = checked("file", __file__, [name])[name]
    assert not report["ok"]
    assert not report["recognised"]
    assert not report["true"]


def test_what_is_causal_and_should_not_be() -> None:
    def ahead(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        return softmax(np.where(np.tri(*scores.shape[-2:], scores.shape[-1] - scores.shape[-2]), scores, -1e9)) @ v

    assert found(ahead) == []
    assert found(ahead, causal=False) == ["causal mask not asked for"]


def test_a_mask_that_the_caller_makes_may_be_causal() -> None:
    def masked(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        return softmax(scores if mask is None else np.where(mask, scores, -1e9)) @ v

    report = check(masked, limits=None, causal=True)
    assert report.ok
    assert any("no causal mask of its own" in remark for remark in report.remarks)


def test_another_formula_than_the_one_that_was_named_is_a_finding() -> None:
    assert found(right, formula="alibi") == ["another formula"]
    assert found(right, formula=rg.zoo.euclidean) == ["another formula"]
    assert found(right, formula=rg.zoo.scaled_dot) == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rg.RegardError, match=r"attention\.py"):
        check(f"{tmp_path / 'attention.py'}:attend")
