"""Images changed a little, so that a model learns what does not change: values, each with numbers drawn for a step.

    Shift   by whole pixels           Flip     left and right
    Rotate  around the middle         Zoom     around the middle
    Noise   on every pixel            Several  one after the other

pixels (batch, channels, height, width) are floats from 0 to 1; every image has its own draw.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from ...algebra.errors import CallError, KindError
from .draws import Draws
from .images import Images

GREY_SHARE, COLOUR_SHARE = 14, 8  # of the shorter side, by which images are shifted
SURVEYED = 1000  # images, of whose borders the background is told


class Augmentation(ABC):
    """A change of images that keeps their class: augmentation(pixels, draws)."""

    @abstractmethod
    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """The changed images: a function of the pixels and of what is drawn."""


@dataclass(frozen=True)
class Shift(Augmentation):
    """Each image by up to so many whole pixels up or down, and left or right.

    fill: the brightness from 0 to 1 of what comes in; None repeats the border
    """

    pixels: int = 1
    fill: float | None = None

    def __post_init__(self) -> None:
        _check("pixels", self.pixels, 0, math.inf, int)
        if self.fill is not None:
            _check("fill", self.fill, 0, 1)

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """y[r, c] = x[r − down, c − right]."""
        count, _, height, width = pixels.shape
        down, right = _tensor(draws.integers(-self.pixels, self.pixels, 2, count), pixels)
        r = torch.arange(height, device=pixels.device) - down[:, None]  # (batch, height)
        c = torch.arange(width, device=pixels.device) - right[:, None]  # (batch, width)
        at = torch.arange(count, device=pixels.device)[:, None, None]
        moved = pixels.movedim(1, -1)[at, r.clamp(0, height - 1)[:, :, None], c.clamp(0, width - 1)[:, None, :]]
        if self.fill is not None:
            inside = ((r >= 0) & (r < height))[:, :, None] & ((c >= 0) & (c < width))[:, None, :]
            moved = torch.where(inside[..., None], moved, self.fill)
        return moved.movedim(-1, 1).contiguous()


@dataclass(frozen=True)
class Flip(Augmentation):
    """Left and right exchanged in half of the images. Not for digits and letters: theirs is another sign."""

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """y[r, c] = x[r, width − 1 − c]."""
        flipped = _tensor(draws.uniform(len(pixels)) < 0.5, pixels)
        return torch.where(flipped[:, None, None, None], pixels.flip(-1), pixels)


@dataclass(frozen=True)
class Rotate(Augmentation):
    """Each image by up to so many degrees to either side; the border is repeated."""

    degrees: float = 10.0

    def __post_init__(self) -> None:
        _check("degrees", self.degrees, 0, 180)

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """y(p) = x(R p), of points p from the middle."""
        angle = math.radians(self.degrees) * _sides(draws, pixels)
        return _warped(pixels, angle.cos(), -angle.sin(), angle.sin(), angle.cos())


@dataclass(frozen=True)
class Zoom(Augmentation):
    """Each image larger or smaller by up to that share; the border is repeated."""

    share: float = 0.1

    def __post_init__(self) -> None:
        _check("share", self.share, 0, 0.9)

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """y(p) = x(p / z), of points p from the middle."""
        inverse = 1 / (1 + self.share * _sides(draws, pixels))
        return _warped(pixels, inverse, 0 * inverse, 0 * inverse, inverse)


@dataclass(frozen=True)
class Noise(Augmentation):
    """Normal noise of that deviation on every pixel, which stays from 0 to 1."""

    std: float = 0.05

    def __post_init__(self) -> None:
        _check("std", self.std, 0, 1)

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """y = x + std · z."""
        return (pixels + self.std * _tensor(draws.normal(*pixels.shape), pixels).to(pixels.dtype)).clamp(0, 1)


@dataclass(frozen=True)
class Several(Augmentation):
    """One change after the other, each with draws of its own."""

    changes: tuple[Augmentation, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", tuple(self.changes))
        for place, change in enumerate(self.changes):
            if not isinstance(change, Augmentation):
                raise KindError(f"changes[{place}]: an augmentation, such as Shift(1); got {change!r}")

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """The last of the changes, of the first."""
        for place, change in enumerate(self.changes):
            pixels = change(pixels, draws.apart(place))
        return pixels


def usual_augmentation(images: Images) -> Augmentation:
    """Small shifts, by a fourteenth of the shorter side in grey and an eighth in colour.

    Where that is no pixel, as of 8 × 8, small turns, zooms and noise: a whole pixel is a large part of such an image.
    Where most pixels along the borders have one brightness, it is what comes in. There is no flip: whether a mirrored
    image is of the same class, only who knows the classes can say.
    """
    channels, height, width = images.shape
    by = min(height, width) // (GREY_SHARE if channels == 1 else COLOUR_SHARE)
    if not by:
        return Several((Rotate(15), Zoom(0.15), Noise(0.1)))
    return Shift(by, _background(images.training.pixels[:SURVEYED]))


def _background(pixels: Tensor) -> float | None:
    """The brightness of most pixels along the borders, if there is one."""
    sides = (pixels[..., 0, :], pixels[..., -1, :], pixels[..., :, 0], pixels[..., :, -1])
    counts = torch.bincount(torch.cat([side.reshape(-1) for side in sides]).long())
    return float(counts.argmax()) / 255 if 2 * counts.max() > counts.sum() else None


# -- inside ----------------------------------------------------------------------------------------------------


def _tensor(drawn: Any, pixels: Tensor) -> Tensor:
    return torch.from_numpy(drawn).to(pixels.device)


def _sides(draws: Draws, pixels: Tensor) -> Tensor:
    """A number from −1 to 1 for each image."""
    return _tensor(2 * draws.uniform(len(pixels)) - 1, pixels).to(pixels.dtype)


def _warped(pixels: Tensor, xx: Tensor, xy: Tensor, yx: Tensor, yy: Tensor) -> Tensor:
    """y(p) = x(A p), A = [[xx, xy], [yx, yy]], p in pixels from the middle; between pixels, by the neighbours."""
    ratio, zero = pixels.shape[2] / pixels.shape[3], torch.zeros_like(xx)  # PyTorch counts each side from −1 to 1
    rows = [torch.stack([xx, xy * ratio, zero], -1), torch.stack([yx / ratio, yy, zero], -1)]
    grid = affine_grid(torch.stack(rows, 1), list(pixels.shape), align_corners=False)
    return grid_sample(pixels, grid, mode="bilinear", padding_mode="border", align_corners=False)


def _check(name: str, value: object, low: float, high: float, kind: Any = int | float) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise KindError(f"{name}: {'an integer' if kind is int else 'a number'}; got {value!r}")
    if not low <= value <= high:
        upper = "" if high == math.inf else f" to {high}"
        raise CallError(f"{name}: from {low}{upper or ' on'}; got {value}")
