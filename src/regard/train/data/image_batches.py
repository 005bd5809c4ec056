"""Batches of images: each is a function of the seed and the step, so that a resumed run sees what it would have seen.

rows = order(seed, step)      x = normal(augmentation(pixels[rows] / 255, draws(seed, step)))      labels[rows]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...algebra.errors import KindError
from .augmentation import Augmentation
from .draws import Draws
from .images import Images, Part
from .order import Order, in_order


class ImageBatch(NamedTuple):
    """Some images, as a model reads them."""

    pixels: Tensor  # (batch, channels, height, width), float32
    labels: Tensor  # (batch,), int64
    rows: Tensor  # (batch,), int64: where they stand in their part


@dataclass(frozen=True, eq=False)
class ImageBatches:
    """The training images, batch of them at a time; and those held out, unchanged and in their order.

    >>> from regard.train.data.images import read_images
    >>> batches = ImageBatches(read_images(), batch=32, seed=1)
    >>> pixels, labels, rows = batches[100]
    >>> pixels.shape, labels.shape
    (torch.Size([32, 1, 8, 8]), torch.Size([32]))
    """

    images: Images
    batch: int
    seed: int = 0
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.images, Images):
            raise KindError(f"images: what read_images gives; got {type(self.images).__name__}")
        if not isinstance(self.augmentation, Augmentation | None):
            raise KindError(f"augmentation: one such as Shift(1), or None; got {self.augmentation!r}")
        _ = self.order  # refuses what is no batch and no seed

    @cached_property
    def order(self) -> Order:
        """Which rows each step sees."""
        return Order(len(self.images.training), self.batch, self.seed)

    def __getitem__(self, step: int) -> ImageBatch:
        """The images of a step, changed by the augmentation."""
        return self._batch(self.images.training, self.order[step], Draws(self.seed, "augmentation", step))

    def __iter__(self) -> Iterator[ImageBatch]:
        raise KindError("batches: steps have no end; write batches[step]")

    def held_out(self, batch: int | None = None) -> Iterator[ImageBatch]:
        """The images held out, each once, without augmentation."""
        part = self.images.held_out
        return (self._batch(part, rows, None) for rows in in_order(len(part), self.batch if batch is None else batch))

    def _batch(self, part: Part, rows: Any, draws: Draws | None) -> ImageBatch:
        where = torch.from_numpy(rows).to(part.labels.device)
        pixels = part.pixels[where].float() / 255
        if self.augmentation is not None and draws is not None:
            pixels = self.augmentation(pixels, draws)
        return ImageBatch(self.images.normal(pixels), part.labels[where], where)
