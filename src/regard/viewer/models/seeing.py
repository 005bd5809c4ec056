"""Images as bytes: opened with care, and looked at by the shipped vision model or as raw patches."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from ...algebra.errors import CallError, KindError, MissingExtra
from .live import Kept, Live, Say

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
PIXELS = 2**25  # of an image, before it is decoded
PATCHES = 2**14  # raw ones, of an image
PATCH = 16  # pixels of a raw one


def opened(content: bytes) -> Any:
    """A Pillow image, turned upright; its size is looked at before it is decoded."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtra("pillow", "lens") from None
    try:
        image = Image.open(BytesIO(content), formats=FORMATS)
        if image.width * image.height > PIXELS:
            raise CallError(
                f"image: at most {PIXELS:,} pixels; got {image.width:,} × {image.height:,}; make it smaller"
            )
        image.load()
        return ImageOps.exif_transpose(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, CallError):
            raise
        raise KindError(f"image: one of {', '.join(FORMATS)}, whole; got bytes that are none") from None


def live_images(kept: Kept) -> Live:
    """What looks at images without a model being named: the shipped one where torch is, or raw patches."""
    if kept.patch is None and find_spec("torch") is not None:
        return Live(words="the vision model of this package", image=_by_model)
    side = kept.patch or PATCH
    return Live(words=f"raw patches of {side} × {side} pixels", image=_by_patches(side))


def _by_model(content: bytes, say: Say) -> Any:
    from ..vision import lens_of_image

    opened(content)
    say("running the vision model")
    return lens_of_image(content)


def _by_patches(side: int) -> Callable[[bytes, Say], Any]:
    def look(content: bytes, say: Say) -> Any:
        from ..entering.pictures import lens_of_patches

        image = opened(content)
        count = (image.width // side) * (image.height // side)
        if not 1 < count <= PATCHES:
            change = "make it smaller, or --patch larger" if count > 1 else "make it larger, or --patch smaller"
            raise CallError(f"image: from 2 to {PATCHES:,} patches of {side} × {side} pixels; got {count:,}; {change}")
        say("comparing patches")
        return lens_of_patches(image, side)

    return look
