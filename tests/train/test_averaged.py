"""The mean over steps, as it is written."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from regard.algebra.errors import CallError
from regard.train.averaged import Averaged


def moved(model: nn.Module, step: int) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.sin(torch.arange(parameter.numel()) + step).reshape(parameter.shape))


def test_the_mean_over_all_steps() -> None:
    model, kappa = nn.Linear(3, 2), 0.7
    averaged, seen = Averaged(model, kappa), []
    for step in range(23):
        moved(model, step)
        averaged.follow(step)
        seen.append({name: value.double().clone() for name, value in model.state_dict().items()})
        shares = [kappa ** (step - s) for s in range(step + 1)]
        for name, value in averaged.model.state_dict().items():
            mean = sum(share * one[name] for share, one in zip(shares, seen, strict=True)) / sum(shares)
            torch.testing.assert_close(value.double(), mean, rtol=1e-5, atol=1e-5)


def test_nothing_is_the_model_itself() -> None:
    model = nn.Linear(3, 2)
    averaged = Averaged(model, 0)
    before = model.weight.detach().clone()
    averaged.follow(3)
    assert averaged.model is model
    assert averaged.tensors() == {}
    assert torch.equal(model.weight, before)
    averaged.restore({})


def test_it_does_not_learn_and_does_not_touch_the_model() -> None:
    model = nn.Linear(3, 2)
    averaged = Averaged(model, 0.9)
    before = model.weight.detach().clone()
    averaged.follow(0)
    assert torch.equal(model.weight, before)
    assert not averaged.model.training
    assert not any(parameter.requires_grad for parameter in averaged.model.parameters())


def test_it_comes_back() -> None:
    model = nn.Linear(3, 2)
    averaged, again = Averaged(model, 0.9), Averaged(nn.Linear(3, 2), 0.9)
    moved(model, 1)
    averaged.follow(0)
    again.restore(averaged.tensors())
    assert all(torch.equal(one, again.tensors()[name]) for name, one in averaged.tensors().items())


@pytest.mark.parametrize("share", [1.0, -0.1, math.nan, "much"])
def test_refused(share: Any) -> None:
    with pytest.raises(CallError) as error:
        Averaged(nn.Linear(3, 2), share)
    assert str(error.value) == f"average: a share from 0 to below 1; got {share!r}"
