"""Batches of images: what a step sees depends on the seed and the step alone, and labels stay with their images."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.algebra.errors import CallError, KindError
from regard.train.data.augmentation import Noise, Several, Shift
from regard.train.data.image_batches import ImageBatches
from regard.train.data.images import read_images

DIGITS = read_images()
CHANGE = Several((Shift(1), Noise(0.1)))


def test_a_resumed_run_sees_the_same() -> None:
    straight = ImageBatches(DIGITS, 37, seed=3, augmentation=CHANGE)
    seen = [straight[step] for step in range(45)]  # beyond one epoch
    resumed = ImageBatches(read_images(), 37, seed=3, augmentation=CHANGE)
    for step in (44, 38, 7):
        assert all(torch.equal(one, other) for one, other in zip(resumed[step], seen[step], strict=True))


@pytest.mark.parametrize("augmentation", [None, CHANGE])
def test_other_steps_and_seeds_see_others(augmentation: Any) -> None:
    batches = ImageBatches(DIGITS, 37, 3, augmentation)
    assert not torch.equal(batches[0].pixels, batches[1].pixels)
    assert not torch.equal(batches[0].pixels, ImageBatches(DIGITS, 37, 4, augmentation)[0].pixels)


def test_the_same_row_is_changed_anew_in_each_epoch() -> None:
    batches = ImageBatches(DIGITS, len(DIGITS.training), augmentation=Noise(0.1))
    first, second = (batches[step].pixels[batches[step].rows.argsort()] for step in (0, 1))
    assert not (first == second).flatten(1).all(1).any()


def test_images_keep_their_labels_and_rows() -> None:
    pixels, labels, rows = ImageBatches(DIGITS, 37)[2]
    assert torch.equal(pixels, DIGITS.normal(DIGITS.training.pixels[rows]))
    assert torch.equal(labels, DIGITS.training.labels[rows])
    assert (pixels.dtype, labels.dtype, rows.dtype) == (torch.float32, torch.int64, torch.int64)


def test_an_epoch_has_every_image_once() -> None:
    batches = ImageBatches(DIGITS, 719)  # half of them
    assert torch.cat([batches[4].rows, batches[5].rows]).sort().values.tolist() == list(range(1438))


def test_held_out_images_come_once_unchanged_and_in_order() -> None:
    batches = ImageBatches(DIGITS, 37, augmentation=CHANGE)
    for parts in (list(batches.held_out()), list(batches.held_out(100))):
        assert torch.equal(torch.cat([part.pixels for part in parts]), DIGITS.normal(DIGITS.held_out.pixels))
        assert torch.equal(torch.cat([part.labels for part in parts]), DIGITS.held_out.labels)
        assert torch.cat([part.rows for part in parts]).tolist() == list(range(359))
    assert len(list(batches.held_out(100))) == 4


def test_refusals() -> None:
    with pytest.raises(KindError, match="images: what read_images gives; got Tensor"):
        ImageBatches(DIGITS.training.pixels, 3)
    with pytest.raises(KindError, match=r"augmentation: one such as Shift\(1\), or None; got 'shift'"):
        ImageBatches(DIGITS, 3, augmentation="shift")  # type: ignore[arg-type]
    with pytest.raises(CallError, match="batch: at least 1; got 0"):
        ImageBatches(DIGITS, 0)
    with pytest.raises(CallError, match="batch: at least 1; got 0"):
        ImageBatches(DIGITS, 3).held_out(0)
    with pytest.raises(KindError, match=r"steps have no end; write batches\[step\]"):
        iter(ImageBatches(DIGITS, 3))
