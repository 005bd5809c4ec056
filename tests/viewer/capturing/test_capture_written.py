"""Attention that modules write out: kept by q and k where the steps can be followed, else by its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from regard import Attention, causal, d, dot, parse, sqrt
from regard.viewer.capturing import capture
from viewer.capturing import by_hand
from viewer.capturing.by_hand import Hand, made

NEAR = 1e-6


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("attend", by_hand.FOLLOWED.values(), ids=by_hand.FOLLOWED)
def test_steps_are_followed_to_q_and_k(attend: Callable[..., Any], grad: bool) -> None:
    model, x = made(attend)
    with torch.set_grad_enabled(grad):
        before = model(x)
        with capture(model) as seen:
            after = model(x)
    assert torch.equal(before, after)
    (kept,) = seen.layers
    assert (kept.name, seen.missing, seen.notes) == ("1", [], [])
    assert kept.shape == (by_hand.BATCH, by_hand.HEADS, by_hand.LENGTH, by_hand.LENGTH)
    assert kept.q.shape[-1] == by_hand.WIDTH
    assert not kept.q.requires_grad
    torch.testing.assert_close(kept.parts.weights(), model[1].weights.detach(), atol=NEAR, rtol=0)


@pytest.mark.parametrize(
    ("attend", "text"),
    [
        (by_hand.nano, "softmax(dot / sqrt(d), mask=j <= i)"),
        (by_hand.folded, "softmax(dot / sqrt(d), mask=j <= i)"),
        (by_hand.chosen, "softmax(dot, mask=j <= i)"),
        (by_hand.capped, 'softmax(3 * tanh(dot / 3) + table("added")[h, j])'),
        (by_hand.cosines, 'softmax(dot * table("factor")[h])'),
    ],
)
def test_the_formula_says_what_the_module_does(attend: Callable[..., Any], text: str) -> None:
    model, x = made(attend)
    with capture(model) as seen:
        model(x)
    assert seen.layers[0].formula == parse(text)


@pytest.mark.parametrize("attend", by_hand.BY_WEIGHTS.values(), ids=by_hand.BY_WEIGHTS)
def test_weights_are_kept_where_steps_are_lost(attend: Callable[..., Any]) -> None:
    model, x = made(attend)
    with torch.no_grad(), capture(model) as seen:
        model(x)
    (kept,) = seen.layers
    assert torch.equal(kept.parts.weights(), model[1].weights)
    assert kept.q.shape[-1] == 1
    assert seen.notes[0].startswith("1: its weights themselves are kept")


@pytest.mark.parametrize("attend", by_hand.NO_ATTENTION.values(), ids=by_hand.NO_ATTENTION)
def test_other_softmaxes_are_no_attention(attend: Callable[..., Any]) -> None:
    model, x = made(attend)
    with torch.no_grad(), capture(model) as seen:
        model(x)
    assert seen.layers == []
    assert len(seen.missing) == 1


def test_weights_before_dropout_are_kept_and_random_numbers_are_the_same() -> None:
    model, x = made(by_hand.nano)
    model.train()
    torch.manual_seed(5)
    before, drawn = model(x), torch.rand(3)
    torch.manual_seed(5)
    with capture(model) as seen:
        after = model(x)
    assert torch.equal(before, after)
    assert torch.equal(drawn, torch.rand(3))
    torch.testing.assert_close(seen.layers[0].parts.weights(), model[1].weights.detach(), atol=NEAR, rtol=0)


def test_a_softmax_of_scores_that_meets_no_values_is_listed() -> None:
    def lost(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        weights = (q @ k.mT).softmax(-1)
        return torch.stack([row @ v.sum((0, 1)) for row in weights.cumsum(-1).unbind(2)], 2), weights

    model, x = made(lost)
    with capture(model) as seen:
        model(x)
    assert seen.layers == []
    assert [one.name for one in seen.missing] == ["1"]
    assert "no product of that with values" in seen.missing[0].why


def test_a_product_written_in_place_is_followed() -> None:
    def in_place(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        scores = q @ k.mT
        scores.div_(7**0.5).masked_fill_(~self.past[:11, :11], -torch.inf)
        weights = scores.softmax(-1)
        return weights @ v, weights

    model, x = made(in_place)
    with torch.no_grad(), capture(model) as seen:
        model(x)
    assert seen.layers[0].formula == Attention(dot / sqrt(d), mask=causal)


def test_a_step_that_changes_scores_unseen_is_found_out() -> None:
    def unseen(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        scores = q @ k.mT
        scores.flatten(0, 1).mul_(2)  # through a view
        weights = scores.softmax(-1)
        return weights @ v, weights

    model, x = made(unseen)
    with torch.no_grad(), capture(model) as seen:
        model(x)
    assert torch.equal(seen.layers[0].parts.weights(), model[1].weights)
    assert "gives other weights" in seen.notes[0]


def test_a_row_that_reads_nothing_reads_all_alike_under_a_finite_fill() -> None:
    def emptied(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        left_out = ~self.past[:11, :11]
        left_out[5] = True
        weights = (q @ k.mT).masked_fill(left_out, -1e9).softmax(-1)
        return weights @ v, weights

    model, x = made(emptied)
    with torch.no_grad(), capture(model) as seen:
        model(x)
    torch.testing.assert_close(seen.layers[0].parts.weights(), model[1].weights, atol=NEAR, rtol=0)


def test_one_sequence_without_a_batch() -> None:
    class Plain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.weights = (x @ x.T).softmax(-1)
            return self.weights @ x

    model = Plain()
    with capture(model) as seen:
        model(torch.randn(5, 3))
    assert seen.layers[0].shape == (1, 1, 5, 5)
    torch.testing.assert_close(seen.layers[0].parts.weights()[0, 0], model.weights, atol=NEAR, rtol=0)
