"""What if: formulas that are read and refused with their place, sliders, mistakes, and how much they change."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import regard as rg
from regard import zoo
from regard.algebra.errors import CallError, KindError, RegardError
from regard.algebra.mistakes import mistakes_of
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured
from regard.viewer.weighing import streaming
from regard.viewer.weighing.sliders import SLIDERS, with_slider
from regard.viewer.weighing.whatif import changed, what_if
from regard.viewer.work import Stop, Stopped

B, H, N, n, D, E = 2, 3, 7, 11, 5, 2
RNG = np.random.default_rng(23)
q, k, v = (RNG.normal(size=(B, H, places, width)) for places, width in ((N, D), (n, D), (n, E)))
BIAS = RNG.normal(size=(H, 1023))


def lens_of(formula: rg.Attention, values: bool = True, **arrays: Any) -> Lens:
    given = {"q": q, "k": k, "v": v if values else None} | arrays
    tables = {"bias": BIAS} if "bias" in formula.ranks else {}
    axes = {"query": Axis("query", tuple("abcdefg")), "key": Axis("key", tuple("ABCDEFGHIJK"))}
    return Lens([Captured("layer", formula, tables=tables, start=n - N, **given)], [axes, axes])


def asked(formula: rg.Attention, text: str | None, changes: Any = None, **options: Any) -> dict[str, Any]:
    answer = what_if(lens_of(formula, **options), 0, 1, 1, text, Stop(), changes)
    json.dumps(answer, allow_nan=False)
    return answer


def by_hand(formula: rg.Attention, other: rg.Attention) -> tuple[Any, float]:
    """The change of each row, and of the output, of head 1 in batch item 1."""
    w, u = (
        att.weights(q, k, start=n - N, **({"bias": BIAS} if "bias" in att.ranks else {}))[1, 1]
        for att in (formula, other)
    )
    y, z = w @ v[1, 1], u @ v[1, 1]
    return np.abs(w - u).sum(1) / 2, float(np.linalg.norm(z - y) / np.linalg.norm(y))


# -- the change ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (zoo.causal_dot(), zoo.scaled_dot()),
        (zoo.scaled_dot(), zoo.euclidean()),
        (zoo.relative_bias(), zoo.t5_bias()),
        (zoo.causal_dot(), zoo.sigmoid()),
        *((zoo.causal_dot(), wrong) for wrong in mistakes_of(zoo.causal_dot()).values()),
    ],
)
def test_the_change_by_hand(own: rg.Attention, other: rg.Attention) -> None:
    answer = asked(own, repr(other))
    rows, output = by_hand(own, other)
    assert answer["ok"]
    assert answer["error"] is answer["at"] is None
    assert answer["text"] == repr(other)
    assert answer["mathml"] == other.mathml()
    assert answer["change"]["weights"] == pytest.approx(rows.mean())
    assert answer["change"]["output"] == pytest.approx(output)
    assert answer["change"]["exact"]
    told = answer["change"]["rows"]
    assert [one["change"] for one in told] == pytest.approx(sorted(rows, reverse=True)[:5])
    assert all(one["change"] == pytest.approx(rows[one["row"]]) for one in told)


def test_a_layer_changes_nothing_in_itself() -> None:
    for text in (None, "softmax(dot / sqrt(d), mask=j <= i)"):
        answer = asked(zoo.causal_dot(), text)
        assert answer["text"] == answer["own"] == repr(zoo.causal_dot())
        assert answer["change"]["weights"] == answer["change"]["output"] == 0


def test_without_values_there_is_no_output() -> None:
    assert asked(zoo.causal_dot(), "softmax(dot)", values=False)["change"]["output"] is None


def test_a_long_input_is_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = streaming.sample(N, n, cells=4 * n)
    assert rows.tolist() == [0, 2, 4, 6]
    monkeypatch.setattr("regard.viewer.weighing.whatif.sample", lambda queries, keys: rows)
    monkeypatch.setattr(streaming, "BLOCK", 2 * n + 1)
    answer = asked(zoo.causal_dot(), "softmax(dot)")
    found, _ = by_hand(zoo.causal_dot(), rg.Attention(score=rg.dot))
    assert not answer["change"]["exact"]
    assert answer["change"]["weights"] == pytest.approx(found[rows].mean())
    assert {one["row"] for one in answer["change"]["rows"]} == set(rows.tolist())


def test_weights_that_share_over_queries_need_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 2 * n + 1)
    text = "share(exp(s), over=i)(dot / sqrt(d), mask=j <= i)"
    rows, _ = by_hand(zoo.causal_dot(), rg.parse(text))
    assert asked(zoo.causal_dot(), text)["change"]["weights"] == pytest.approx(rows.mean())
    monkeypatch.setattr(streaming, "LARGEST", N * n - 1)
    answer = asked(zoo.causal_dot(), text)
    assert not answer["ok"]
    assert "every weight needs all rows" in answer["error"]
    assert answer["text"] == text


def test_work_is_given_up() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        what_if(lens_of(zoo.causal_dot()), 0, 1, 1, "softmax(dot)", stop)


def test_tensors_change_as_arrays_do() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch to look at what PyTorch computes")
    arrays = {name: torch.tensor(array) for name, array in (("q", q), ("k", k), ("v", v))}
    own, given = (asked(zoo.causal_dot(), "softmax(dot)", **more)["change"] for more in ({}, arrays))
    assert own["weights"] == pytest.approx(given["weights"])
    assert own["output"] == pytest.approx(given["output"])


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "told"),
    [
        ("softmax(dott)", 8, "did you mean dot"),
        ("  softmax(dott)", 10, "did you mean dot"),
        ("softmax(dot", 7, "never closed"),
        ("", 0, "the text is empty"),
        ('softmax(dot + table("other")[i, j])', 20, 'table("other"): a table of this layer, bias; got other'),
        ("softmax(dot + table('other')[i, j])", 20, 'table("other"): a table of this layer, bias; got other'),
        ("dot / sqrt(d)", None, "write softmax(dot / sqrt(d))"),
        ("j <= i", None, "got the mask j <= i"),
        ("softmax(dot + " + "0" * 2000 + ")", None, "at most 2000 characters; got 2015"),
        ('softmax(dot + table("bias")[i])', None, "bias: the formula reads it with 1 axes"),
        ('softmax(dot + table("bias")[h, i + 2000])', None, "must stay within its 1023 entries"),
        ('__import__("os")', 0, "not"),
    ],
)
def test_a_text_that_cannot_be_tried_says_why_and_where(text: str, at: int | None, told: str) -> None:
    answer = asked(zoo.relative_bias(), text)
    assert not answer["ok"]
    assert told in answer["error"]
    assert answer["at"] == at
    assert answer["change"] is None
    assert answer["mistakes"]


def test_mistakes_are_those_of_the_layer() -> None:
    told = asked(zoo.causal_dot(), "softmax(sqdist)")["mistakes"]
    wrong = mistakes_of(zoo.causal_dot())
    assert {one["name"]: one["formula"] for one in told} == {name: repr(made) for name, made in wrong.items()}
    assert all(one["does"] and one["leadsTo"] for one in told)


# -- sliders ---------------------------------------------------------------------------------------------------

BOTH = "softmax(30 * tanh(dot / 30), mask=(j <= i) & (i - j < 4))"
SLID = [
    ("softmax(dot / sqrt(d))", "temperature", 2, "softmax(dot / (2 * sqrt(d)))"),
    ("softmax(dot)", "temperature", 1 / 0.1234567, "softmax(dot / 8.1)"),
    ("softmax(dot / sqrt(d))", "scale", 2, "softmax(2 * dot / sqrt(d))"),
    ("softmax(dot + i - j)", "scale", 0.5, "softmax(dot / 2 + i - j)"),
    ("softmax(dot + i - j)", "temperature", 2, "softmax((dot + i - j) / 2)"),
    ("softmax(dot)", "soft-cap", 30, "softmax(30 * tanh(dot / 30))"),
    ("softmax(50 * tanh(dot / 50))", "soft-cap", 30, "softmax(30 * tanh(dot / 30))"),
    ("softmax(dot, mask=j <= i)", "window", 8, "softmax(dot, mask=(j <= i) & (i - j <= 7))"),
    ("softmax(dot, mask=(j <= i) & (i - j <= 3))", "window", 8, "softmax(dot, mask=(j <= i) & (i - j <= 7))"),
    ("softmax(dot)", "window", 8, "softmax(dot, mask=(i - j <= 7) & (j - i <= 7))"),
    ("softmax(dot, mask=(i - j <= 3) & (j - i <= 3))", "window", 8, "softmax(dot, mask=(i - j <= 7) & (j - i <= 7))"),
    ("softmax(dot, mask=j <= i + 1)", "window", 8, "softmax(dot, mask=(j <= i + 1) & (i - j <= 7) & (j - i <= 7))"),
    ("softmax(dot, mask=j <= i)", "window", 1.3, "softmax(dot, mask=(j <= i) & (i - j <= 0))"),
]


@pytest.mark.parametrize(("text", "name", "value", "expected"), SLID)
def test_a_slider_turns_one_number(text: str, name: str, value: float, expected: str) -> None:
    assert changed(text, {name: value}) == repr(rg.parse(expected))
    assert asked(zoo.causal_dot(), text, {name: value})["text"] == repr(rg.parse(expected))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("softmax(dot)", {"scale": 1, "temperature": 1, "soft-cap": None, "window": None}),
        (BOTH, {"scale": 1, "temperature": 1, "soft-cap": 30, "window": 4}),
        ("each(s)(dot)", {"scale": 1, "window": None}),
    ],
)
def test_sliders_are_offered_with_the_formulas_own_values(text: str, own: dict[str, Any]) -> None:
    answer = asked(zoo.causal_dot(), text, {"window": 3})
    assert {one["name"]: one["own"] for one in answer["sliders"]} == own
    window = next(one for one in answer["sliders"] if one["name"] == "window")
    assert (window["value"], window["low"], window["high"]) == (3, 1, n)


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_at_its_own_value_changes_no_weight(name: str) -> None:
    formula = rg.parse(BOTH)
    assert isinstance(formula, rg.Attention)
    own = SLIDERS[name].own(formula)
    assert own is not None
    assert with_slider(formula, name, own) == formula


def test_changes_join_a_mistake_and_sliders() -> None:
    text = changed("softmax(dot / sqrt(d), mask=j <= i)", {"mistake": "no root of d", "temperature": 2, "window": None})
    assert text == "softmax(dot / 2, mask=j <= i)"
    answer = asked(zoo.causal_dot(), None, '{"mistake": "no mask", "scale": 2}')
    assert answer["text"] == "softmax(2 * dot / sqrt(d))"


@pytest.mark.parametrize(
    ("changes", "kind", "told"),
    [
        ({"mistake": "no such"}, CallError, "mistake: one of softmax over queries"),
        ({"mistake": "d for its root"}, CallError, "one that changes this formula"),
        ({"heat": 2}, CallError, "changes: one of scale, temperature, soft-cap, window, mistake; got 'heat'"),
        ({"temperature": 0}, CallError, "temperature: a finite number above 0; got 0"),
        ({"temperature": float("nan")}, CallError, "temperature: a finite number above 0"),
        ({"temperature": "2"}, KindError, "temperature: a number; got '2'"),
        ({"window": True}, KindError, "window: a number; got 'True'"),
        ([2], KindError, "changes: names and values"),
        ("{", KindError, "changes: names and values"),
    ],
)
def test_changes_that_are_refused(changes: Any, kind: type[RegardError], told: str) -> None:
    with pytest.raises(kind) as refused:
        changed("softmax(dot, mask=j <= i)", changes)
    assert told in str(refused.value)
    answer = asked(zoo.causal_dot(), "softmax(dot, mask=j <= i)", changes)
    assert told in answer["error"]


def test_a_slider_that_has_nothing_to_turn() -> None:
    with pytest.raises(CallError, match="scale: this formula has nothing to turn"):
        with_slider(rg.Attention(score=rg.i - rg.j), "scale", 2)
