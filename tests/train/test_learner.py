"""One step: what it learns from, what it leaves alone, and that it can be taken again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.algebra.errors import CallError, KindError
from regard.train.batch import Batch
from regard.train.beginning import start
from regard.train.errors import Diverged
from regard.train.learner import Learner, seed_of
from regard.train.machine import Machine
from regard.train.optimiser import AdamW
from regard.train.schedule import Schedule
from small_runs import TASKS, small

SIZE, WIDTH = 7, 5


class Sums:
    """A line through points; one example is no number at a step."""

    def __init__(self, bad: tuple[int, int] | None = None, steep: int | None = None) -> None:
        self.bad, self.steep = bad, steep

    def batch(self, step: int) -> Batch:
        x = torch.randn(SIZE, WIDTH, generator=torch.Generator().manual_seed(step))
        y = x.sum(1, keepdim=True)
        if self.bad is not None and self.bad[0] == step:
            y[self.bad[1]] = math.nan
        return Batch({"x": x, "y": y}, SIZE, [f"row {row} of {step}" for row in range(SIZE)])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        squares: Tensor = ((model(batch["x"]) - batch["y"]) ** 2).sum()
        return squares + squares.mul(0).sqrt() if self.steep is not None else squares  # √0 has no finite slope

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        return {"loss": float(self.loss(model, self.batch(1000))) / SIZE}


def model(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(WIDTH, 3), nn.Dropout(dropout), nn.Linear(3, 1))


def learner(task: Any = None, dropout: float = 0.0, **options: Any) -> Learner:
    return Learner(model(dropout), task or Sums(), Schedule(20, 0.01), **options)


def numbers(one: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in one.parameters()]


def equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(map(torch.equal, one, other))


# -- a step ----------------------------------------------------------------------------------------------------


def test_the_loss_is_the_mean_before_the_step_and_falls() -> None:
    one = learner()
    expected = float(Sums().loss(one.model, Sums().batch(0)).detach()) / SIZE
    taken = [one.advance() for _ in range(20)]
    assert taken[0].loss == pytest.approx(expected, rel=1e-6)
    assert [step.step for step in taken] == list(range(20))
    assert [step.rate for step in taken] == [Schedule(20, 0.01)(step) for step in range(20)]
    assert {step.count for step in taken} == {SIZE}
    assert one.evaluate()["loss"] < 0.9 * learner().evaluate()["loss"]


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_parts_give_the_same_gradient(parts: int) -> None:
    one, other = learner(optimiser=AdamW(clip=0)), learner(optimiser=AdamW(clip=0), accumulate=parts)
    for _ in range(5):
        a, b = one.advance(), other.advance()
        assert (a.loss, a.gradient) == pytest.approx((b.loss, b.gradient), rel=1e-5)
    for mine, theirs in zip(numbers(one.model), numbers(other.model), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def test_more_parts_than_examples() -> None:
    with pytest.raises(CallError, match="batch: at least one example for each of 8 parts"):
        learner(accumulate=8).advance()


def test_seeds_of_parts_and_steps_differ() -> None:
    seeds = [seed_of(seed, step, part) for seed in range(5) for step in range(7) for part in range(3)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


# -- what decides it -------------------------------------------------------------------------------------------


def test_what_was_drawn_before_does_not_matter() -> None:
    one, other = learner(dropout=0.5), learner(dropout=0.5)
    for _ in range(4):
        torch.randn(13)
        assert one.advance() == other.advance()
    assert equal(numbers(one.model), numbers(other.model))
    assert learner(dropout=0.5, seed=1).advance().loss != learner(dropout=0.5).advance().loss


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_what_it_tells_is_all_that_it_goes_on_from(average: float) -> None:
    one = learner(dropout=0.3, average=average)
    for _ in range(3):
        one.advance()
    other = learner(dropout=0.3, average=average)
    other.restore({name: value.clone() for name, value in one.tensors().items()}, one.step, {})
    assert [one.advance() for _ in range(4)] == [other.advance() for _ in range(4)]
    assert equal(numbers(one.measured), numbers(other.measured))


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_measuring_leaves_it_as_it_was(average: float) -> None:
    one, other = learner(dropout=0.3, average=average), learner(dropout=0.3, average=average)
    one.advance()
    other.advance()
    before = torch.get_rng_state()
    assert one.evaluate() == one.evaluate()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(part.training for part in one.model.modules())
    assert torch.is_grad_enabled()
    assert one.advance() == other.advance()


@pytest.mark.parametrize("task", TASKS)
def test_a_task_draws_nothing_when_it_is_measured(task: str, tmp_path: Path) -> None:
    run = start(small(task, tmp_path), tmp_path / "run")
    run.learner.advance()
    before = torch.get_rng_state()
    first = run.learner.evaluate()
    assert isinstance(run.learner.at_rest(lambda one: run.task.sample(one, 5)), str)
    assert run.learner.evaluate() == first
    assert torch.equal(torch.get_rng_state(), before)
    assert all(part.training for part in run.learner.model.modules())


def test_a_measure_that_fails_leaves_it_learning() -> None:
    one = learner()
    with pytest.raises(ZeroDivisionError):
        one.at_rest(lambda _: 1 / 0)
    assert all(part.training for part in one.model.modules())


def test_the_mean_is_what_is_measured() -> None:
    one = learner(average=0.9)
    one.advance()
    assert one.measured is not one.model
    assert one.evaluate() == {"loss": pytest.approx(Sums().evaluate(one.measured)["loss"])}
    assert learner().measured is not None
    plain = learner()
    assert plain.measured is plain.model


# -- what is no number -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_example_that_is_no_number(accumulate: int) -> None:
    one = learner(Sums(bad=(2, 4)), accumulate=accumulate)
    one.advance()
    one.advance()
    before = numbers(one.model)
    with pytest.raises(Diverged) as error:
        one.advance()
    assert str(error.value) == (
        "step 2: the loss is nan, on row 4 of 2; the parameters stand as they were before it; "
        "take a smaller rate, a longer warm-up, or look at these examples"
    )
    assert (error.value.step, error.value.rows, one.step) == (2, ["row 4 of 2"], 2)
    assert equal(numbers(one.model), before)
    assert all(parameter.grad is None for parameter in one.model.parameters())


def test_a_gradient_that_is_no_number() -> None:
    one = learner(Sums(steep=0))
    before = numbers(one.model)
    with pytest.raises(Diverged) as error:
        one.advance()
    assert str(error.value).startswith(
        "step 0: the gradient's length is nan, on row 0 of 0, row 1 of 0, row 2 of 0, row 3 of 0 and 3 more; "
    )
    assert equal(numbers(one.model), before)


# -- refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"accumulate": 0}, CallError, "accumulate: an integer of at least 1; got 0"),
        ({"accumulate": 1.0}, KindError, "accumulate: an integer; got 1.0"),
        ({"seed": -1}, CallError, "seed: an integer of at least 0; got -1"),
        ({"average": 1.0}, CallError, "average: a share from 0 to below 1; got 1.0"),
    ],
)
def test_refused(given: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as error:
        learner(**given)
    assert str(error.value) == says


def test_a_device_that_is_not_here() -> None:
    with pytest.raises(CallError, match=r"^device: one that PyTorch has here; got 'warp'"):
        learner(machine=Machine("warp"))
