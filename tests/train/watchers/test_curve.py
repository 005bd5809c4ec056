"""The picture, the samples and the board of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from regard.train.beginning import resume, start
from regard.train.watchers.board import Board
from regard.train.watchers.curve import Curve, smoothed
from regard.train.watchers.samples import Samples
from small_runs import Ends, Killed, done, small


def test_a_picture_stands_after_each_measurement(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        done(start(small("text", tmp_path), tmp_path / "run"), Curve(), Ends(5))
    path = tmp_path / "run" / "curve.png"
    first = path.read_bytes()
    done(resume(tmp_path / "run"), Curve())
    assert path.read_bytes() != first
    with Image.open(path) as picture:
        assert np.asarray(picture.convert("L")).std() > 5, "something is drawn"
    assert not list(path.parent.glob(".*"))


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_of_hardly_any_steps(steps: int, tmp_path: Path) -> None:
    assert (done(start(small("text", tmp_path, steps=steps), tmp_path / "run"), Curve()) / "curve.png").exists()


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=60))
def test_the_mean_over_the_steps_around_each(numbers: list[float]) -> None:
    reach = max(1, round(len(numbers) * 0.05 / 2))
    expected = [np.mean(numbers[max(0, at - reach) : at + reach + 1]) for at in range(len(numbers))]
    assert smoothed(numbers) == pytest.approx(expected, abs=1e-9)


def test_samples_are_files_and_come_again_the_same(tmp_path: Path) -> None:
    whole = done(start(small("text", tmp_path), tmp_path / "whole"), Samples())
    with pytest.raises(Killed):
        done(start(small("text", tmp_path), tmp_path / "run"), Samples(), Ends(9))
    again = done(resume(tmp_path / "run"), Samples())
    told = [
        {path.name: path.read_text(encoding="utf-8") for path in (one / "samples").iterdir()} for one in (whole, again)
    ]
    assert told[0] == told[1]
    assert sorted(told[0]) == ["000004.txt", "000008.txt", "000011.txt"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of tensorboard's reader
def test_the_board_has_every_step_of_a_run_that_was_ended(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with pytest.raises(Killed):
        done(start(small("text", tmp_path), tmp_path / "run"), Board(), Ends(8))
    folder = done(resume(tmp_path / "run"), Board())
    found = EventAccumulator(str(folder / "tensorboard"))
    found.Reload()
    assert sorted({event.step for event in found.Scalars("train/loss")}) == list(range(11))
    assert sorted({event.step for event in found.Scalars("held out/loss")}) == [4, 8, 11]
