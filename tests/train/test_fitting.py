"""Step after step in memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.train import Batch, Schedule, fit
from regard.train.learner import Taken


class Double:
    def batch(self, step: int) -> Batch:
        x = torch.randn(11, 1, generator=torch.Generator().manual_seed(step))
        return Batch({"x": x}, 11, list(range(11)))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return ((model(batch["x"]) - 2 * batch["x"]) ** 2).sum()

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert not model.training
        return {"loss": float(self.loss(model, self.batch(99))) / 11}


def test_a_model_learns_and_what_was_seen_is_told() -> None:
    torch.manual_seed(0)
    model, told = nn.Linear(1, 1), list[Taken]()
    history = fit(model, Double(), Schedule(30, 0.1), every=7, told=told.append)
    assert list(history.measures) == [7, 14, 21, 28, 30]
    assert history.losses == [taken.loss for taken in told]
    assert len(history.losses) == 30
    steps, losses = history.series("loss")
    assert steps == [7, 14, 21, 28, 30]
    assert losses[-1] == history.last["loss"] < 0.3 * losses[0]
    assert history.seconds > 0
    assert not model.training


def test_measured_at_the_end_alone_where_nothing_is_said() -> None:
    assert list(fit(nn.Linear(1, 1), Double(), Schedule(3, 0.1)).measures) == [3]


def test_the_same_seed_gives_the_same_model() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(1, 3), nn.Dropout(0.5), nn.Linear(3, 1))
        found.append((fit(model, Double(), Schedule(5, 0.1), seed=3).losses, model[0].weight.detach()))
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])
