"""One pair explained: every formula of the zoo, computed again by hand, and what a masked pair says."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import regard as rg
from regard import zoo
from regard.algebra.mistakes import mistakes_of
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured
from regard.viewer.weighing.pair import explain

B, H, N, n, D, E = 2, 3, 7, 11, 5, 2
START = n - N
RNG = np.random.default_rng(19)
q, k, v = (RNG.normal(size=(B, heads, places, width)) for heads, places, width in ((H, N, D), (1, n, D), (1, n, E)))
TABLES: dict[str, Any] = {
    "M": RNG.normal(size=(D, D)), "P": RNG.normal(size=(D, D)), "bias": RNG.normal(size=(H, 1023)),
    "temperature": np.array(3.0), "prompt": np.array([2, 6]), "ids": np.array([0] * 6 + [1] * 5),
    "weight": np.array(2.0), "sink": RNG.normal(size=H), "weights": RNG.uniform(size=(B, H, N + START, n)),
}  # fmt: skip
PAIRS = [(0, 0, 0, 0), (1, 2, 3, 5), (1, 1, 6, 10), (0, 2, 2, 9), (1, 0, 4, 4)]


def lens_of(formula: rg.Attention, values: bool = True, **arrays: Any) -> Lens:
    given = {"q": q, "k": k, "v": v if values else None} | arrays
    tables = {name: TABLES[name] for name in formula.ranks}
    axes = {"query": Axis("query", tuple("abcdefg")), "key": Axis("key", tuple("ABCDEFGHIJK"))}
    return Lens([Captured("layer", formula, tables=tables, start=START, **given)], [axes, axes])


# -- the zoo by hand -------------------------------------------------------------------------------------------


def bucket(i: int, j: int) -> int:
    distance, half, near = abs(i - j), 16, 8
    far = near + math.floor((half - near) * math.log(max(distance, 1) / near) / math.log(128 / near) + 1e-4)
    return (distance if distance < near else min(far, half - 1)) + (half if j > i else 0)


Vector = Any
SCORES: dict[str, Callable[[Vector, Vector, int, int, int, int], float]] = {
    "unscaled_dot": lambda x, y, b, h, i, j: x @ y,
    "bilinear": lambda x, y, b, h, i, j: x @ TABLES["M"] @ y,
    "cosine_similarity": lambda x, y, b, h, i, j: 3 * x @ y / math.sqrt((x @ x) * (y @ y)),
    "euclidean": lambda x, y, b, h, i, j: -((x - y) @ (x - y)) / 2,
    "mahalanobis": lambda x, y, b, h, i, j: -((x - y) @ TABLES["P"] @ (x - y)) / 2,
    "alibi": lambda x, y, b, h, i, j: x @ y / math.sqrt(D) - 2 ** (-8 * (h + 1) / H) * (i - j),
    "relative_bias": lambda x, y, b, h, i, j: x @ y / math.sqrt(D) + TABLES["bias"][h, i - j + 511],
    "t5_bias": lambda x, y, b, h, i, j: x @ y + TABLES["bias"][h, bucket(i, j)],
    "soft_cap": lambda x, y, b, h, i, j: 30 * math.tanh(x @ y / math.sqrt(D) / 30),
    "sigmoid": lambda x, y, b, h, i, j: x @ y / math.sqrt(D) - math.log(n),
}
MASKS: dict[str, Callable[[int, int, int], bool]] = {
    "causal_dot": lambda b, i, j: j <= i,
    "alibi": lambda b, i, j: j <= i,
    "sliding_window": lambda b, i, j: j <= i < j + 4,
    "prefix_lm": lambda b, i, j: j <= i or j < TABLES["prompt"][b],
    "document_packing": lambda b, i, j: j <= i and TABLES["ids"][i] == TABLES["ids"][j],
    "learned_sinks": lambda b, i, j: j <= i,
}
CURVES: dict[str, Callable[[float], float]] = {
    "sigmoid": lambda s: 1 / (1 + math.exp(-s)),
    "relu_over_n": lambda s: max(s, 0) / n,
    "squared_relu": lambda s: max(s, 0) ** 2,
}
SINKS: dict[str, Callable[[int], float]] = {
    "softmax_plus_one": lambda h: 1.0,
    "learned_sinks": lambda h: math.exp(TABLES["sink"][h]),
}
EACH = {"sigmoid", "relu_over_n"}
NARROW = {"sliding_window": zoo.sliding_window(4)}


def by_hand(name: str, b: int, h: int, row: int, j: int) -> dict[str, float]:
    score = SCORES.get(name, lambda x, y, b, h, i, j: x @ y / math.sqrt(D))
    mask, curve = MASKS.get(name, lambda b, i, j: True), CURVES.get(name, math.exp)
    i = START + row
    s = [score(q[b, h, row], k[b, 0, other], b, h, i, other) for other in range(n)]
    psi = [curve(s[other]) if mask(b, i, other) else 0.0 for other in range(n)]
    sink = SINKS.get(name, lambda h: 0.0)(h)
    total = 1.0 if name in EACH else sink + sum(psi)
    w = np.array(psi) / total if total else np.zeros(n)
    y = w @ v[b, 0]
    return {
        "score": s[j], "ψ": psi[j], "Z": total, "sink": sink, "weight": w[j], "rank": int((w > w[j]).sum()),
        "share": np.linalg.norm(w[j] * v[b, 0, j]) / np.linalg.norm(y),
        "cosine": v[b, 0, j] @ y / np.linalg.norm(v[b, 0, j]) / np.linalg.norm(y),
    }  # fmt: skip


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_every_formula_of_the_zoo_by_hand(name: str) -> None:
    lens = lens_of(NARROW.get(name, zoo.ENTRIES[name].formula))
    for b, h, row, j in PAIRS:
        told, hand = explain(lens, 0, h, b, row, j), by_hand(name, b, h, row, j)
        steps = {step["name"]: step["value"] for step in told["steps"]}
        assert told["steps"][-1]["name"] == "weight"
        assert steps["weight"] == told["weight"] == pytest.approx(hand["weight"], abs=1e-12)
        assert steps["score"] == pytest.approx(hand["score"])
        assert steps["ψ"] == pytest.approx(hand["ψ"])
        assert ("Z" in steps) == (name not in EACH)
        if "Z" in steps:
            assert steps["Z"] == pytest.approx(hand["Z"])
            assert steps.get("log Z", math.log(hand["Z"])) == pytest.approx(math.log(hand["Z"]))
        assert ("sink" in steps) == (name in SINKS)
        assert steps.get("sink", 0) == pytest.approx(hand["sink"])
        assert told["rank"] == hand["rank"]
        assert told["value"]["share"] == pytest.approx(hand["share"])
        if hand["weight"]:
            assert told["value"]["cosine"] == pytest.approx(hand["cosine"])
        assert told["value"]["norm"] == pytest.approx(np.linalg.norm(v[b, 0, j]))
        allowed = MASKS.get(name, lambda b, i, j: True)(b, START + row, j)
        assert told["admitted"] == steps["mask"] == allowed
        assert bool(told["forbidden"]) == (not allowed)


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_steps_are_mathematics_json_and_come_from_steps_before(name: str) -> None:
    told = explain(lens_of(zoo.ENTRIES[name].formula), 0, 1, 1, 3, 4)
    json.dumps(told, allow_nan=False)
    known: set[str] = set()
    for step in told["steps"]:
        assert set(step) == {"name", "mathml", "value", "says", "from"}
        assert step["says"]
        assert set(step["from"]) <= known
        assert step["name"] not in known
        assert ET.fromstring(step["mathml"]).tag.endswith("math")
        known.add(step["name"])


@pytest.mark.parametrize("name", [name for name, entry in zoo.ENTRIES.items() if entry.formula.pairs])
def test_products_sum_to_the_pair(name: str) -> None:
    told = explain(lens_of(zoo.ENTRIES[name].formula), 0, 2, 1, 3, 4)
    (pair,) = told["pairs"]
    assert len(told["products"]) == D
    assert sum(told["products"]) == pytest.approx(pair["value"]) == pytest.approx(told["steps"][0]["value"])
    assert told["q"] == q[1, 2, 3].tolist()
    assert told["k"] == k[1, 0, 4].tolist()
    assert told["dot"] == pytest.approx(q[1, 2, 3] @ k[1, 0, 4])


def test_products_of_a_metric_that_is_not_symmetric() -> None:
    told = explain(lens_of(zoo.bilinear()), 0, 2, 1, 3, 4)
    expected = [q[1, 2, 3, c] * sum(TABLES["M"][c, e] * k[1, 0, 4, e] for e in range(D)) for c in range(D)]
    np.testing.assert_allclose(told["products"], expected)


# -- what is said ----------------------------------------------------------------------------------------------


def said(told: dict[str, Any], name: str) -> str:
    return str(next(step["says"] for step in told["steps"] if step["name"] == name))


def test_the_parts_of_a_score_are_told_in_order() -> None:
    told = explain(lens_of(zoo.alibi()), 0, 1, 0, 3, 2)
    names = [step["name"] for step in told["steps"]]
    assert names[:3] == ["q·k", "√d", "q·k / √d"]
    assert "i − j" in names
    assert "d = 5 is the width of a key" in said(told, "√d")
    assert said(told, "i − j").startswith("7 − 2")
    assert told["labels"] == {"query": "d", "key": "C"}


def test_a_table_is_told_with_its_index() -> None:
    told = explain(lens_of(zoo.t5_bias()), 0, 2, 0, 6, 9)
    assert said(told, "bias[…]").startswith(f"bias[2, {bucket(10, 9)}]")
    told = explain(lens_of(zoo.t5_bias()), 0, 2, 0, 6, 10)
    assert said(told, "bias[…]").startswith("bias[2, 0]")


def test_a_masked_pair_says_which_rule_forbids_it() -> None:
    lens = lens_of(zoo.document_packing())
    told = explain(lens, 0, 1, 0, 3, 2)  # i = 7 in the second document, j = 2 in the first
    assert told["weight"] == 0
    assert told["forbidden"] == ["ids[b, i] = ids[b, j]: 1 = 0 does not hold"]
    assert "1 = 0 does not hold" in told["steps"][-1]["says"]
    steps = {step["name"]: step["value"] for step in told["steps"]}
    assert (steps["j ≤ i"], steps["ids[b, i] = ids[b, j]"], steps["mask"]) == (True, False, False)
    both = explain(lens, 0, 1, 0, 0, 9)  # i = 4
    assert len(both["forbidden"]) == 2
    assert both["forbidden"][0] == "j ≤ i: 9 ≤ 4 does not hold"


def test_alternatives_of_a_mask_are_one_rule() -> None:
    told = explain(lens_of(zoo.prefix_lm()), 0, 1, 1, 0, 9)
    assert told["forbidden"] == ["j ≤ i or j < prompt[b]: 9 ≤ 4 or 9 < 6 does not hold"]


def test_a_table_that_has_no_entry_for_a_masked_pair() -> None:
    formula = rg.Attention(
        score=rg.dot + rg.table("sink")[rg.i - 4 - rg.j], mask=(rg.j <= rg.i - 4) & (rg.i - rg.j < 7)
    )
    told = explain(lens_of(formula), 0, 1, 1, 6, 9)
    steps = {step["name"]: step["value"] for step in told["steps"]}
    assert told["weight"] == 0
    assert steps["score"] is None
    assert any("outside of the table" in step["says"] for step in told["steps"])
    json.dumps(told, allow_nan=False)


def test_the_sink_tells_its_share() -> None:
    told, hand = explain(lens_of(zoo.learned_sinks()), 0, 2, 1, 3, 4), by_hand("learned_sinks", 1, 2, 3, 4)
    assert f"{100 * hand['sink'] / hand['Z']:.5g} % of Z" in said(told, "sink")
    assert said(told, "Z") == "ψ summed over the 8 admitted keys of its row, and the sink"


def test_scores_beyond_every_number_are_told_by_logarithms() -> None:
    lens = lens_of(zoo.unscaled_dot(), q=1000 * q)
    b, h, row = 1, 2, 3
    j = int(np.argmax(k[b, 0] @ q[b, h, row]))
    told = explain(lens, 0, h, b, row, j)
    json.dumps(told, allow_nan=False)
    steps = {step["name"]: step["value"] for step in told["steps"]}
    assert steps["ψ"] is steps["Z"] is None
    assert steps["log Z"] == pytest.approx(steps["score"])
    assert told["weight"] == pytest.approx(1)
    assert "too large" in said(told, "ψ")


# -- other totals, formulas and arrays -------------------------------------------------------------------------


@pytest.mark.parametrize("over", "ijhb")
def test_totals_over_every_index(over: str) -> None:
    formula = rg.Attention(weight=rg.share(rg.exp, over=getattr(rg, over)), mask=rg.causal)
    weights = formula.weights(q, k, start=START)
    for b, h, row, j in PAIRS:
        told = explain(lens_of(formula), 0, h, b, row, j)
        assert told["weight"] == pytest.approx(weights[b, h, row, j], abs=1e-12)
        assert told["rank"] == (weights[b, h, row] > weights[b, h, row, j]).sum()


WRONG = mistakes_of(zoo.causal_dot())


@pytest.mark.parametrize("name", WRONG)
def test_every_mistake_is_explained_as_well(name: str) -> None:
    weights = WRONG[name].weights(q, k, start=START)
    scores = WRONG[name].scores(q, k, start=START)
    lens = lens_of(zoo.causal_dot())
    for b, h, row, j in PAIRS:
        told = explain(lens, 0, h, b, row, j, WRONG[name])
        steps = {step["name"]: step for step in told["steps"]}
        assert told["weight"] == pytest.approx(weights[b, h, row, j], abs=1e-12)
        assert steps["score"]["value"] == pytest.approx(scores[b, h, row, j])
        assert set().union(*(step["from"] for step in told["steps"])) <= set(steps)


def test_a_choice_tells_the_branch_that_is_taken() -> None:
    formula = WRONG["hidden scores set to 0"]
    lens = lens_of(zoo.causal_dot())
    admitted, hidden = (explain(lens, 0, 1, 1, row, j, formula) for row, j in ((3, 2), (0, 9)))
    assert said(admitted, "score").startswith("2 ≤ 7 holds: ")
    assert said(hidden, "score") == "9 ≤ 4 does not hold: 0"
    assert hidden["steps"][0]["name"] == "score"
    assert "q·k" in [step["name"] for step in admitted["steps"]]


def test_two_reads_of_one_table_have_two_names() -> None:
    far, near = rg.maximum(0, rg.minimum(500, rg.i - rg.j)), rg.maximum(0, rg.minimum(400, rg.j - rg.i))
    formula = rg.Attention(score=rg.table("bias")[rg.h, far] + rg.table("bias")[rg.h, near])
    told = explain(lens_of(formula), 0, 1, 1, 3, 2)
    values = [step["value"] for step in told["steps"] if step["name"].startswith("bias")]
    assert sorted(values) == sorted([TABLES["bias"][1, 5], TABLES["bias"][1, 0]])
    assert len({step["name"] for step in told["steps"]}) == len(told["steps"])


def test_a_table_may_be_named_like_a_step() -> None:
    told = explain(lens_of(rg.Attention(score=rg.dot * rg.table("weight"), mask=rg.causal)), 0, 1, 1, 3, 2)
    names = [step["name"] for step in told["steps"]]
    assert names[:3] == ["q·k", "weight′", "score"]
    assert names.count("weight") == 1
    assert told["steps"][2]["from"] == ["q·k", "weight′"]


def test_a_mask_after_the_weights_counts_what_it_forbids() -> None:
    formula = rg.Attention(weight=rg.share(rg.exp, among=rg.everywhere), mask=rg.causal)
    told = explain(lens_of(formula), 0, 1, 0, 0, 9)
    assert told["weight"] == 0
    assert "counted in Z" in said(told, "ψ")
    assert next(step["value"] for step in told["steps"] if step["name"] == "ψ") > 0


def test_another_formula_on_the_same_vectors() -> None:
    lens, other = lens_of(zoo.causal_dot()), zoo.euclidean()
    assert explain(lens, 0, 1, 1, 3, 4, other) == explain(lens_of(other), 0, 1, 1, 3, 4)


def test_weights_alone_are_a_table() -> None:
    table = rg.table("weights")[rg.b, rg.h, rg.i, rg.j]
    told = explain(lens_of(rg.Attention(score=table, weight=rg.each(rg.s)), values=False), 0, 1, 1, 3, 4)
    assert told["weight"] == TABLES["weights"][1, 1, START + 3, 4]
    assert told["products"] is None
    assert told["value"] is None
    assert said(told, "weights[b, h, i, j]").startswith("weights[1, 1, 7, 4]")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_give_plain_values(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="pip install torch to explain what PyTorch computes")
    arrays = {name: torch.tensor(value).to(getattr(torch, dtype)) for name, value in (("q", q), ("k", k), ("v", v))}
    lens = lens_of(zoo.causal_dot(), **arrays)
    told = explain(lens, 0, 2, 1, 3, 5)
    json.dumps(told, allow_nan=False)
    expected = lens.layers[0].parts.weights(batch=1, heads=2, rows=3)[0, 0, 0, 5]
    assert told["weight"] == pytest.approx(float(expected), abs=1e-6)
    assert told["weight"] == pytest.approx(by_hand("causal_dot", 1, 2, 3, 5)["weight"], abs=2e-2)
