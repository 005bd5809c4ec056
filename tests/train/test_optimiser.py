"""AdamW as it is written; who decays, and what is cut."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from regard.algebra.errors import CallError
from regard.nn.gpt import GPT
from regard.train.optimiser import AdamW, moments, remember


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 3), nn.LayerNorm(3), nn.Linear(3, 2))


def learned(one: nn.Module, optimiser: Any, steps: int, seed: int = 0) -> None:
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        for parameter in one.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=draw)
        for group in optimiser.param_groups:
            group["lr"] = 0.01
        optimiser.step()


def test_every_parameter_stands_in_one_group_and_matrices_decay() -> None:
    gpt = GPT(11, 6, 2, 3)
    groups = AdamW(decay=0.3).of(gpt).param_groups
    found = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, found)) == sorted(map(id, gpt.parameters()))
    for group in groups:
        for parameter in group["params"]:
            assert group["weight_decay"] == (0.3 if parameter.ndim >= 2 else 0.0)


def test_what_does_not_learn_is_left_out() -> None:
    one = model()
    next(one.parameters()).requires_grad_(False)
    found = [parameter for group in AdamW().of(one).param_groups for parameter in group["params"]]
    assert len(found) == len(list(one.parameters())) - 1


def test_the_formula() -> None:
    decay, (b1, b2), rate, epsilon = 0.3, (0.8, 0.9), 0.01, 1e-8
    matrix, vector = nn.Parameter(torch.randn(3, 2)), nn.Parameter(torch.randn(3))
    one = nn.ParameterList([matrix, vector])
    theirs = [parameter.detach().double().clone() for parameter in one]
    m, v = [torch.zeros_like(p) for p in theirs], [torch.zeros_like(p) for p in theirs]
    optimiser = AdamW(decay, betas=(b1, b2)).of(one)
    for t in range(1, 8):
        for at, parameter in enumerate(one):
            g = torch.sin(parameter.detach() * t)
            parameter.grad = g
            g = g.double()
            m[at], v[at] = b1 * m[at] + (1 - b1) * g, b2 * v[at] + (1 - b2) * g**2
            hat, scale = m[at] / (1 - b1**t), v[at] / (1 - b2**t)
            lam = decay if parameter.ndim == 2 else 0.0
            theirs[at] = theirs[at] - rate * (hat / (scale.sqrt() + epsilon) + lam * theirs[at])
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    for parameter, expected in zip(one, theirs, strict=True):
        torch.testing.assert_close(parameter.detach().double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("clip", "left"), [(0.5, 0.5), (7.0, 2.0), (0.0, 2.0)])
def test_a_longer_gradient_is_cut(clip: float, left: float) -> None:
    one = nn.Linear(4, 1, bias=False)
    one.weight.grad = torch.ones(1, 4)
    assert AdamW(clip=clip).clipped(one) == 2.0
    assert float(one.weight.grad.norm()) == pytest.approx(left, rel=1e-4)


def test_moments_come_back_bit_for_bit() -> None:
    one, other = model(), model()
    optimisers = [AdamW().of(one), AdamW().of(other)]
    learned(one, optimisers[0], 3)
    other.load_state_dict(one.state_dict())
    remember(other, optimisers[1], {name: value.clone() for name, value in moments(one, optimisers[0]).items()})
    learned(one, optimisers[0], 2, seed=1)
    learned(other, optimisers[1], 2, seed=1)
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_before_the_first_step_there_is_nothing_to_remember() -> None:
    one = model()
    optimiser = AdamW().of(one)
    assert moments(one, optimiser) == {}
    remember(one, optimiser, {})
    assert not optimiser.state


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"decay": -0.1}, "decay: a number from 0; got -0.1"),
        ({"decay": math.nan}, "decay: a number from 0; got nan"),
        ({"clip": math.inf}, "clip: a number from 0; got inf"),
        ({"clip": "1"}, "clip: a number from 0; got '1'"),
        ({"betas": (0.9, 1.0)}, "betas: two numbers from 0 to below 1; got (0.9, 1.0)"),
        ({"betas": (0.9,)}, "betas: two numbers from 0 to below 1; got (0.9,)"),
    ],
)
def test_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(CallError) as error:
        AdamW(**given)
    assert str(error.value) == says
