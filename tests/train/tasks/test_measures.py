"""What tasks draw and what they measure, beside the same worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.train.beginning import start
from small_runs import TASKS, small

SHARE = 0.4


def task_of(task: str, folder: Path, **given: Any) -> Any:
    return start(small(task, folder, **given), folder / "run").task


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_is_a_function_of_its_step(task: str, tmp_path: Path) -> None:
    found = task_of(task, tmp_path)
    first, again, next_ = found.batch(3), found.batch(3), found.batch(4)
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.tensors.items())
    assert list(map(str, first.rows)) == list(map(str, again.rows)) != list(map(str, next_.rows))
    assert len(first) == len(first.rows) == 5


# -- texts -----------------------------------------------------------------------------------------------------


def test_noise_exchanges_a_share_of_what_is_read(tmp_path: Path) -> None:
    """At most `noise` of the tokens of a window, half of it on the average; never what is to be learned."""
    text, changed = task_of("text", tmp_path, noise=SHARE, batch=64), list[Tensor]()
    for step in range(20):
        batch, plain = text.batch(step), text.batches[step]
        assert torch.equal(batch["targets"], plain.targets)
        changed.append(batch["inputs"] != plain.inputs)
    others = 1 - 1 / len(text.tokens.vocabulary)  # one drawn anew may be the same
    assert torch.stack(changed).double().mean() == pytest.approx(SHARE / 2 * others, rel=0.1)
    assert len({tuple(one.flatten().tolist()) for one in changed}) == 20, "other places at each step"


def test_no_noise_reads_what_stands_there(tmp_path: Path) -> None:
    text = task_of("text", tmp_path, noise=0.0)
    assert torch.equal(text.batch(3)["inputs"], text.batches[3].inputs)


def test_the_loss_of_a_text(tmp_path: Path) -> None:
    run = start(small("text", tmp_path), tmp_path / "run")
    text, model = run.task, run.learner.model.eval()
    nats, count = 0.0, 0
    for windows in text.held_out:
        with torch.no_grad():
            p = model(windows.inputs).double().log_softmax(-1)
        for row, targets in enumerate(windows.targets.tolist()):
            counted = [(at, target) for at, target in enumerate(targets) if target >= 0]
            nats -= sum(float(p[row, at, target]) for at, target in counted)
            count += len(counted)
    with torch.no_grad():
        found = text.final(model)
    assert count == text.tokens.held_out_count
    assert found["loss"] == pytest.approx(nats / count, rel=1e-5)
    assert found["nats_per_character"] == pytest.approx(nats / text.tokens.held_out_characters, rel=1e-5)


def test_a_place_is_told_in_characters(tmp_path: Path) -> None:
    text = task_of("text", tmp_path, noise=0.0)
    batch, whole = text.batch(2), text.tokens.split.corpus.text
    for row, place in enumerate(batch.rows):
        at = int(str(place).removeprefix("characters from ").replace(",", ""))
        assert whole[at : at + 7] == text.tokens.vocabulary.decode(batch["inputs"][row])


def test_a_text_longer_than_the_context_is_gone_on_with(tmp_path: Path) -> None:
    run = start(small("text", tmp_path, position="learned"), tmp_path / "run")
    asked = "reads what stands before it "
    found = run.learner.at_rest(lambda model: run.task.answer(model, asked, 9))
    assert found.startswith(asked)
    assert len(found) == len(asked) + 9


# -- images and pairs ------------------------------------------------------------------------------------------


class First(nn.Module):
    """Takes every image for the first of three classes, with a chance of e / (e + 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.tensor([1.0, 0.0, 0.0]).expand(len(pixels), 3)


def test_the_share_of_images_that_is_right(tmp_path: Path) -> None:
    pictures = task_of("images", tmp_path)
    labels = pictures.images.held_out.labels.tolist()
    found, share = pictures.evaluate(First()), labels.count(0) / len(labels)
    assert found["accuracy"] == share
    assert found["loss"] == pytest.approx(math.log(math.e + 2) - share, rel=1e-6)


def test_the_share_of_pairs_that_is_right_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(small("pairs", tmp_path), tmp_path / "run")
    task, texts = run.task, run.task.pairs.held_out
    answers = dict(zip(texts.sources, texts.targets, strict=True))

    def wrong_once(model: Any, source: Tensor, lengths: Tensor) -> list[str]:
        asked = [task.vocabulary.decode(ids[:length]) for ids, length in zip(source, lengths.tolist(), strict=True)]
        return [answers[one] if one != texts.sources[0] else f"{answers[one]}0" for one in asked]

    monkeypatch.setattr(task, "write", wrong_once)
    assert run.learner.at_rest(task.final)["exact"] == 1 - 1 / len(texts)
    assert run.learner.at_rest(lambda model: task.sample(model, 99)).count("✗") == 1
