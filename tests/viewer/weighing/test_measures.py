"""Measures of heads: on weights that were made to do one thing, each is exactly what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import regard as rg
from regard import zoo
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured
from regard.viewer.weighing import streaming
from regard.viewer.weighing.measures import MEASURES, measures
from regard.viewer.work import Stop, Stopped

WEIGHTS = rg.Attention(score=rg.table("weights")[rg.b, rg.h, rg.i, rg.j], weight=rg.each(rg.s))
WORDS = ("[CLS]", "a", "b", ",", "c", "a", "b", ".", "c", "a", "[SEP]")
TEXT = Axis("text", WORDS, frozenset({0, 10}))
RNG = np.random.default_rng(29)


def lens_of(formula: rg.Attention, axis: Axis, heads: int = 1, **tables: Any) -> Lens:
    q, k = (RNG.normal(size=(2, heads, len(axis), 5)) for _ in range(2))
    captured = Captured("layer", formula, q, k, tables=tables, query=axis.name, key=axis.name)
    return Lens([captured], [{axis.name: axis}] * 2)


def of_weights(weights: Any, axis: Axis) -> dict[str, Any]:
    """The measures of weights (heads, N, N), by name, for the second batch item."""
    weights = np.asarray(weights, dtype=np.float64)
    both = np.stack([np.full_like(weights, np.nan), weights])
    return named(lens_of(WEIGHTS, axis, len(weights), weights=both))


def named(lens: Lens) -> dict[str, Any]:
    names, values = measures(lens, 0, 1, Stop())
    assert values.dtype == np.float32
    assert values.shape == (lens.layers[0].shape[1], len(names))
    assert all(set(one) == {"name", "what"} and one["what"] for one in names)
    return {one["name"]: values[:, place] for place, one in enumerate(names)}


def loop(weights: Any, aim: Any, rows: Any = None) -> float:
    """The mean over rows of the weight on keys that `aim(i, j)` holds for, of rows that have one."""
    N = len(weights)
    found = []
    for i in range(N) if rows is None else rows:
        keys = [j for j in range(N) if aim(i, j)]
        if keys:
            found.append(sum(weights[i][j] for j in keys))
    return float(np.mean(found)) if found else np.nan


AIMS = {
    "previous": lambda i, j: j == i - 1,
    "next": lambda i, j: j == i + 1,
    "itself": lambda i, j: j == i,
    "first": lambda i, j: j == 0 and i > 0,
    "special": lambda i, j: j in (0, 10),
    "same": lambda i, j: i != j and WORDS[i] == WORDS[j] and i not in (0, 10),
    "induction": lambda i, j: 0 < j < i and WORDS[j - 1] == WORDS[i],
    "local": lambda i, j: abs(i - j) <= 3,
    "punctuation": lambda i, j: WORDS[j] in (",", "."),
}


def test_text_by_a_loop() -> None:
    weights = RNG.dirichlet(np.ones(11), size=(3, 11))
    found = of_weights(weights, TEXT)
    assert set(found) == {*AIMS, "broad", "most"}
    for name, aim in AIMS.items():
        expected = [loop(one, aim) for one in weights]
        np.testing.assert_allclose(found[name], expected, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(found["most"], weights.max(2).mean(1), rtol=1e-6)
    entropy = -(weights * np.log(weights)).sum(2)
    np.testing.assert_allclose(found["broad"], (np.exp(entropy) / 11).mean(1), rtol=1e-6)


@pytest.mark.parametrize(("name", "shift"), [("previous", -1), ("itself", 0), ("next", 1)])
def test_a_shifted_identity(name: str, shift: int) -> None:
    found = of_weights([np.eye(11, k=shift)], TEXT)
    assert {one: found[one][0] for one in ("previous", "itself", "next")} == {
        "previous": 0, "itself": 0, "next": 0, name: 1
    }  # fmt: skip
    assert found["local"][0] == pytest.approx((11 - abs(shift)) / 11)


def test_an_induction_head_on_a_repeated_sequence() -> None:
    period, size = 7, 21
    axis = Axis("text", tuple("abcdefg" * 3))
    weights = np.zeros((size, size))
    for i in range(period, size):
        weights[i, i - period + 1] = 1
    found = of_weights([weights, np.eye(size, k=-period)], axis)
    assert found["induction"].tolist() == [1, 0]
    assert found["same"].tolist() == [0, pytest.approx(14 / 21)]
    assert np.isnan(found["special"]).all()


def test_rows_that_follow_a_pair_of_equal_tokens_do_not_count_themselves() -> None:
    found = of_weights([np.eye(3)], Axis("text", ("x", "x", "y")))
    assert np.isnan(found["induction"][0])  # the place after the first x is the second x itself


def test_a_causal_head_reads_earlier_places_alone() -> None:
    axis = Axis("text", ("a", "b", "a", "c", "b"))
    found = named(lens_of(rg.Attention(score=0 * rg.i, mask=rg.causal), axis))
    uniform = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    assert found["same"][0] == pytest.approx(np.mean([uniform[2, 0], uniform[4, 1]]))
    assert found["broad"][0] == pytest.approx(1)
    assert found["next"][0] == 0
    assert found["first"][0] == pytest.approx(uniform[1:, 0].mean())
    assert found["most"][0] == pytest.approx(uniform.max(1).mean())


def test_patches_have_neighbours_rows_and_columns() -> None:
    rows, columns = 3, 5
    axis = Axis("patches", ("[CLS]", *map(str, range(15))), frozenset({0}), (rows, columns))
    weights = RNG.dirichlet(np.ones(16), size=(2, 16))
    found = of_weights(weights, axis)
    assert set(found) == {"itself", "first", "special", "neighbours", "same row", "same column", "broad", "most"}

    def at(place: int) -> tuple[int, int]:
        return divmod(place - 1, columns)

    def apart(i: int, j: int) -> tuple[int, int]:
        return abs(at(i)[0] - at(j)[0]), abs(at(i)[1] - at(j)[1])

    aims = {
        "neighbours": lambda i, j: i > 0 and j > 0 and sum(apart(i, j)) == 1,
        "same row": lambda i, j: i > 0 and j > 0 and apart(i, j)[0] == 0,
        "same column": lambda i, j: i > 0 and j > 0 and apart(i, j)[1] == 0,
    }
    for name, aim in aims.items():
        np.testing.assert_allclose(found[name], [loop(one, aim) for one in weights], rtol=1e-6, err_msg=name)


def test_queries_of_another_axis_have_no_places_among_the_keys() -> None:
    q, k = RNG.normal(size=(1, 2, 3, 5)), RNG.normal(size=(1, 2, 11, 5))
    captured = Captured("cross", rg.Attention(), q, k, query="answer", key="text")
    lens = Lens([captured], [{"answer": Axis("answer", ("x", "y", "z")), "text": TEXT}])
    names, values = measures(lens, 0, 0, Stop())
    assert [one["name"] for one in names] == ["first", "special", "broad", "most"]
    weights = rg.Attention().weights(q, k)[0]
    np.testing.assert_allclose(values[:, 0], weights[:, :, 0].mean(1), rtol=1e-6)


def test_queries_that_continue_their_keys_have_places() -> None:
    q, k = RNG.normal(size=(1, 1, 3, 5)), RNG.normal(size=(1, 1, 11, 5))
    captured = Captured("cached", zoo.causal_dot(), q, k, start=8, query="new", key="text")
    lens = Lens([captured], [{"new": Axis("new", WORDS[8:]), "text": TEXT}])
    names, values = measures(lens, 0, 0, Stop())
    weights = zoo.causal_dot().weights(q, k)[0, 0]
    previous = [one["name"] for one in names].index("previous")
    assert values[0, previous] == pytest.approx(np.mean([weights[row, 7 + row] for row in range(3)]))


def test_all_heads_in_blocks_are_all_heads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lens = lens_of(zoo.causal_dot(), TEXT, heads=3)
    whole = measures(lens, 0, 1, Stop())[1]
    monkeypatch.setattr(streaming, "BLOCK", 3 * 11 * 2)
    np.testing.assert_allclose(measures(lens, 0, 1, Stop())[1], whole, rtol=1e-6)
    weights = zoo.causal_dot().weights(lens.layers[0].q, lens.layers[0].k)[1]
    np.testing.assert_allclose(whole[:, 2], np.trace(weights, axis1=1, axis2=2) / 11, rtol=1e-6)


def test_a_long_input_is_sampled() -> None:
    assert len(streaming.sample(5000, 100_000)) == 2**22 // 100_000
    assert len(streaming.sample(5000, 100, 2048)) == 2048
    assert streaming.sample(5, 7).tolist() == [0, 1, 2, 3, 4]
    ends = streaming.sample(100_000, 100_000)
    assert (ends[0], ends[-1]) == (0, 99_999)


def test_negative_weights_have_no_entropy() -> None:
    found = of_weights([2 * np.eye(11) - np.eye(11, k=1) / 2], TEXT)
    assert found["broad"][0] == pytest.approx(1 / 11)  # of the last row, which has no negative one
    assert found["itself"][0] == 2


def test_a_row_that_may_read_one_key_is_neither_broad_nor_narrow() -> None:
    narrow = rg.Attention(score=rg.where(rg.equal(rg.i, rg.j), 1000, 0), mask=rg.causal)
    found = named(lens_of(narrow, TEXT))
    assert found["broad"][0] == pytest.approx(np.mean([1 / (i + 1) for i in range(1, 11)]))


def test_special_places_are_no_punctuation() -> None:
    found = of_weights([np.full((3, 3), 1 / 3)], Axis("text", ("?", ".", "x"), frozenset({0})))
    assert found["punctuation"][0] == pytest.approx(1 / 3)


def test_names_are_told_once() -> None:
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)


def test_work_is_given_up() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        measures(lens_of(zoo.causal_dot(), TEXT), 0, 1, stop)


def test_tensors_measure_as_arrays_do() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch to measure what PyTorch computes")
    lens = lens_of(zoo.causal_dot(), TEXT, heads=3)
    (own,) = lens.layers
    other = Captured("layer", own.formula, torch.tensor(own.q), torch.tensor(own.k), query="text", key="text")
    found = (measures(one, 0, 1, Stop())[1] for one in (lens, Lens([other], lens.axes)))
    np.testing.assert_allclose(*found, rtol=1e-6)
