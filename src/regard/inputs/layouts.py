"""The axes of an image: "hw", "hwc" or "chw", with a "b" in front for each axis of a batch.

hw    (…, height, width)
hwc   (…, height, width, channels)
chw   (…, channels, height, width)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._arrays import Library
from ..algebra.errors import CallError


def moved(xp: Library, array: Any, source: int, target: int) -> Any:
    """The array with one axis at another place: `moveaxis`, in terms that torch.vmap knows."""
    axes = list(range(array.ndim))
    axes.insert(target % array.ndim, axes.pop(source % array.ndim))
    return xp.permute_dims(array, tuple(axes))


CHANNELS_LAST: dict[str, Callable[[Library, Any], Any]] = {  # from the layout to (…, height, width, channels)
    "hw": lambda xp, image: image[..., None],
    "hwc": lambda xp, image: image,
    "chw": lambda xp, image: moved(xp, image, -3, -1),
}
LAID_OUT: dict[str, Callable[[Library, Any], Any]] = {  # and back
    "hw": lambda xp, image: image[..., 0],
    "hwc": lambda xp, image: image,
    "chw": lambda xp, image: moved(xp, image, -1, -3),
}
FEW = range(1, 5)  # an axis of such a length is taken for that of the channels


def layout_of(shape: tuple[int, ...], asked: str | None, known: str | None) -> str:
    """The layout of the last axes: as the kind of the image says, as asked for, or as the lengths tell."""
    if known is not None:
        return _agreed("b" * (len(shape) - len(known)), known, asked)
    return _told(shape) if asked is None else _named(shape, asked)


def _agreed(batch: str, known: str, asked: str | None) -> str:
    if asked not in (None, batch + known):
        raise CallError(f"layout: {batch + known!r}, as the image's mode says; got {asked!r}; leave it out")
    return known


def _named(shape: tuple[int, ...], asked: str) -> str:
    axes = asked.lstrip("b") if isinstance(asked, str) else asked
    if axes not in list(LAID_OUT):
        raise CallError(
            f"layout: 'hw', 'hwc' or 'chw', with a 'b' in front for each axis of a batch; got {asked!r}; "
            "name every axis of the image"
        )
    if len(asked) != len(shape):
        fit = "b" * (len(shape) - len(axes)) + axes
        hint = f"pass {fit!r}" if len(fit) == len(shape) else "pass a layout of the axes that it has"
        raise CallError(f"layout: {asked!r} names {len(asked)} axes; got an image of shape {shape}; {hint}")
    return axes


def _told(shape: tuple[int, ...]) -> str:
    if len(shape) < 2:
        raise CallError(f"image: at least the two axes height and width; got shape {shape}")
    if len(shape) == 2:
        return "hw"
    last, third = shape[-1] in FEW, shape[-3] in FEW
    if last == third:
        batch = "b" * (len(shape) - 3)
        raise CallError(
            f"layout: told where either the last axis or the third to last is 1 to 4 long; got shape {shape}, where "
            f"{'both are' if last else 'neither is'}; pass layout='{batch}hwc', '{batch}chw' or '{batch}bhw'"
        )
    return "hwc" if last else "chw"
