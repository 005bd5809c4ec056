"""An image with attention painted on it, patch by patch; and points against a line."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Frame


def photograph(image: Any, side: int = 256) -> str:
    """Pixels, or a Pillow image, as a small JPEG inside an address."""
    from PIL import Image

    picture = image if isinstance(image, Image.Image) else Image.fromarray(np.asarray(image))
    width, height = picture.size
    edge = min(width, height)
    box = ((width - edge) // 2, (height - edge) // 2, (width + edge) // 2, (height + edge) // 2)
    held = BytesIO()
    picture.convert("RGB").crop(box).resize((side, side)).save(held, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(held.getvalue()).decode()}"


def painted(address: str, weights: Any | None = None, *, says: str, side: float = 320, lit: int | None = None) -> str:
    """An image; with weights (rows, columns), what is read little of lies in the dark; `lit` frames a patch."""
    drawing = Drawing(side, side)
    drawing.add("image", href=address, x=0, y=0, width=side, height=side)
    if weights is not None:
        weights = np.asarray(weights, float)
        rows, columns = weights.shape
        size, most = side / rows, float(np.quantile(weights, 0.99)) or 1.0
        for at, share in enumerate(weights.reshape(-1)):
            dark = 0.86 * (1 - min(1.0, float(share) / most) ** 0.6)
            place = (at % columns * size, at // columns * size)
            drawing.add("rect", x=place[0], y=place[1], width=size + 0.4, height=size + 0.4, fill="#14100c",
                        opacity=dark)  # fmt: skip
        if lit is not None:
            corner = (lit % columns * size, lit // columns * size)
            drawing.rect(corner, size, size, "none", "#fff", 2.5)
    return drawing.svg(says)


def against_line(fitted: Any, found: Any, *, says: str, across: str, up: str, tone: str = "accent2") -> str:
    """Points (fitted, found) and the line on which they would be equal."""
    drawing, most = Drawing(320, 300), 2.6
    frame = Frame(34, 22, 268, 236, (-most, most), (-most, most))
    drawing.line(frame((-most, 0)), frame((most, 0)), "hair", 1)
    drawing.line(frame((0, -most)), frame((0, most)), "hair", 1)
    drawing.line(frame((-most, -most)), frame((most, most)), "faint", 1.4, "5 5")
    for x, y in zip(fitted, found, strict=True):
        if abs(x) < most and abs(y) < most:
            drawing.circle(frame((float(x), float(y))), 3.2, tone, opacity=0.6)
    drawing.text((frame.left + frame.width / 2, 278), across, "soft", 12.5)
    drawing.text((8, 10), up, "soft", 12.5, "start")
    return drawing.svg(says)
