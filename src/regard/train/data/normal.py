"""Pixels as a model reads them: around zero, of about one variance in every channel.

x = (pixel / 255 − mean_c) / std_c          mean_c, std_c over the training images
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

LEVELS = np.arange(256) / 255


@dataclass(frozen=True)
class Normal:
    """The mean and the deviation of each channel, in numbers from 0 to 1: a value that is saved with a model.

    >>> normal = Normal.of(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    >>> normal
    Normal(mean=(0.5,), std=(0.5,))
    >>> normal(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    tensor([[[[-1.,  1.]]]])
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", tuple(map(float, self.mean)))  # lists, where they come from JSON
        object.__setattr__(self, "std", tuple(map(float, self.std)))

    @classmethod
    def of(cls, pixels: Tensor) -> Self:
        """Those of images (count, channels, height, width) of uint8. A channel of one value only is divided by 1."""
        shares = [_shares(pixels[:, channel]) for channel in range(pixels.shape[1])]
        mean = [float(share @ LEVELS) for share in shares]
        std = [float(share @ (LEVELS - m) ** 2) ** 0.5 for share, m in zip(shares, mean, strict=True)]
        return cls(tuple(mean), tuple(s if s > 0 else 1.0 for s in std))

    def __call__(self, pixels: Tensor) -> Tensor:
        """Float32 of pixels (…, channels, height, width): uint8, or floats from 0 to 1."""
        unit = pixels if pixels.is_floating_point() else pixels.float() / 255
        return (unit - self._column(self.mean, unit)) / self._column(self.std, unit)

    def _column(self, numbers: tuple[float, ...], like: Tensor) -> Tensor:
        return torch.tensor(numbers, dtype=like.dtype, device=like.device)[:, None, None]


def _shares(channel: Tensor) -> Any:
    """The share of each of the 256 levels: exact, and without the images as floats."""
    counts = np.zeros(256, dtype=np.int64)
    for part in channel.cpu().split(1024):  # bincount makes int64 of what it counts
        counts += np.bincount(part.numpy().ravel(), minlength=256)
    return counts / counts.sum()
