"""Attention rollout against the plain product of matrices, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import regard as rg
from regard import zoo
from regard.algebra.errors import CallError, KindError, RegardError
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured
from regard.viewer.weighing import streaming
from regard.viewer.weighing.rollout import rollout
from regard.viewer.work import Stop, Stopped

B, N, D = 2, 11, 5
RNG = np.random.default_rng(31)
FORMULAS = [zoo.causal_dot(), zoo.scaled_dot(), zoo.euclidean(), rg.Attention(mask=(rg.j <= rg.i) & (rg.i > 2))]


def layer(formula: rg.Attention, heads: int, places: int = N) -> Captured:
    q, k = (RNG.normal(size=(B, heads, places, D)) for _ in range(2))
    return Captured(f"layer of {heads}", formula, q, k, query="text", key="text")


def lens_of(layers: list[Captured], **more: Axis) -> Lens:
    axes = {"text": Axis("text", tuple("abcdefghijk"))} | more
    return Lens(layers, [axes] * B)


LENS = lens_of([layer(formula, heads) for formula, heads in zip(FORMULAS, (2, 3, 5, 7), strict=True)])


def by_hand(lens: Lens, batch: int, how: str, residual: float) -> Any:
    """A_L ⋯ A_1, whole."""
    product = np.eye(N)
    for captured in lens.layers:
        weights = captured.formula.weights(captured.q, captured.k)[batch]
        fused = weights.mean(0) if how == "mean" else weights.max(0)
        fused = np.stack([row / row.sum() if row.sum() else np.eye(N)[i] for i, row in enumerate(fused)])
        product = (residual * np.eye(N) + (1 - residual) * fused) @ product
    return product


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("residual", [0, 0.5, 0.3, 1])
def test_a_product_of_matrices(how: str, residual: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 41)
    whole = by_hand(LENS, 1, how, residual)
    for query in (0, 4, N - 1):
        found = rollout(LENS, 1, query, how, residual, Stop())
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, whole[query], atol=1e-6)
    mean = rollout(LENS, 1, None, how, residual, Stop())
    np.testing.assert_allclose(mean, whole.mean(0), atol=1e-6)
    assert mean.sum() == pytest.approx(1)


def test_a_residual_of_one_passes_itself_on() -> None:
    np.testing.assert_array_equal(rollout(LENS, 0, 3, "mean", 1, Stop()), np.eye(N)[3])


def test_a_row_that_reads_nothing_passes_itself_on() -> None:
    lens = lens_of([layer(FORMULAS[3], 2)])
    np.testing.assert_array_equal(rollout(lens, 0, 1, "mean", 0.5, Stop()), np.eye(N)[1])


def test_the_order_of_layers_counts() -> None:
    back = lens_of(list(reversed(LENS.layers)))
    assert not np.allclose(rollout(LENS, 0, 4, "mean", 0.5, Stop()), rollout(back, 0, 4, "mean", 0.5, Stop()))


def test_tensors_roll_out_as_arrays_do() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch to look at what PyTorch computes")
    layers = [replace(one, q=torch.tensor(one.q), k=torch.tensor(one.k), known={}) for one in LENS.layers]
    found = (rollout(lens, 1, 4, "max", 0.5, Stop()) for lens in (LENS, lens_of(layers)))
    np.testing.assert_allclose(*found, atol=1e-6)


# -- refusals --------------------------------------------------------------------------------------------------

CROSS = replace(layer(zoo.scaled_dot(), 2), name="cross", query="answer")
OTHER = replace(layer(zoo.scaled_dot(), 2), name="patches", query="image", key="image")
NEGATIVE = replace(layer(rg.Attention(weight=rg.each(rg.s)), 2), name="signed")
LONG = replace(layer(zoo.scaled_dot(), 1, 4099), query="long", key="long")
AXES = {"answer": Axis("answer", tuple("ABCDEFGHIJK")), "image": Axis("image", tuple("ABCDEFGHIJK"))}


@pytest.mark.parametrize(
    ("lens", "options", "kind", "told"),
    [
        (lens_of([CROSS], **AXES), {}, CallError, "got cross with 11 queries along answer and 11 keys along text"),
        (lens_of([LENS.layers[0], OTHER], **AXES), {}, CallError, "all layers share one axis; got 11 places of text"),
        (lens_of([NEGATIVE]), {}, CallError, "weights of at least 0; got negative ones in signed"),
        (lens_of([LONG], long=Axis("long", ("x",) * 4099)), {}, CallError, "up to 4096 places; got 4099"),
        (LENS, {"how": "sum"}, CallError, "how: one of mean, max; got 'sum'"),
        (LENS, {"residual": 1.5}, CallError, "residual: from 0 to 1; got 1.5"),
        (LENS, {"residual": -0.5}, CallError, "residual: a finite number of at least 0; got -0.5"),
        (LENS, {"residual": "half"}, KindError, "residual: a number; got 'half'"),
        (LENS, {"query": N}, CallError, "query: from 0 to 10; got 11"),
    ],
)
def test_refusals_say_why(lens: Lens, options: dict[str, Any], kind: type[RegardError], told: str) -> None:
    asked = {"query": 0, "how": "mean", "residual": 0.5} | options
    with pytest.raises(kind) as refused:
        rollout(lens, 0, stop=Stop(), **asked)
    assert told in str(refused.value)


def test_work_is_given_up() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        rollout(LENS, 0, 0, "mean", 0.5, stop)
