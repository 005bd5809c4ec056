"""Images for a lens: as a PNG cropped to whole patches, and as raw patches that attend to each other.

    s_ij = −t ‖x_i − x_j‖²        s_ij = t cos(x_i, x_j)        s_ij = −t (x_i − x_j)ᵀ Σ⁻¹ (x_i − x_j)

A patch is a vector of its pixels, and no model is needed to compare them. t is found so that the patch in the middle of
all reads about twelve: −Σ w log w = log 12.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from ..._arrays import is_array
from ...algebra.errors import CallError, KindError, MissingExtra
from ...algebra.expressions import Expression
from ...algebra.symbols import cosine, sqdist
from ...attention import Attention
from ...geometry.mahalanobis import Mahalanobis
from ...inputs.images import patches, pixels, unit
from ..arrays import four_axes, numpy_of
from ..lenses import Lens
from ..record import Captured
from .standing import Patches, placed

READ = 12  # patches that a patch reads, as the exponential of an entropy
SAMPLE, STEPS = 128, 24  # rows from which that is found, and halvings


def colours(image: Any) -> Any:
    """Pixels (height, width, 3) of uint8: of a path, the bytes of a file, a Pillow image, or an array."""
    if isinstance(image, bytes):
        image = _opened(image)
    array = pixels(image.detach().cpu() if hasattr(image, "detach") else image)
    array = numpy_of(array) if is_array(array) else array
    if array.ndim == 3 and array.shape[-1] not in (1, 2, 3, 4) and array.shape[0] in (1, 3):
        array = np.moveaxis(array, 0, -1)
    if array.ndim not in (2, 3):
        raise CallError(f"image: one, (height, width) or (height, width, channels); got shape {array.shape}")
    shown = array if array.dtype == np.uint8 else (_from_0_to_1(array) * 255).round().astype(np.uint8)
    shown = shown[..., None] if shown.ndim == 2 else shown
    return np.ascontiguousarray(np.repeat(shown[..., :1], 3, axis=-1) if shown.shape[-1] < 3 else shown[..., :3])


def _from_0_to_1(array: Any) -> Any:
    """Numbers from 0 to 1 as they are; others, as a model is given them, stretched to that."""
    numbers = np.asarray(unit(array), np.float32)
    low, high = float(numbers.min(initial=0)), float(numbers.max(initial=0))
    return numbers if low >= 0 and high <= 1 else (numbers - low) / (high - low)


def _opened(content: bytes) -> Any:
    image = pillow()
    try:
        found = image.open(BytesIO(content))
        found.load()
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise KindError(f"image: the bytes of an image file; got others: {error}") from None
    return found


def pillow() -> Any:
    """Pillow's module of images."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow", "lens") from None
    return Image


def png(shown: Any) -> bytes:
    """Pixels as the bytes of a PNG."""
    held = BytesIO()
    pillow().fromarray(shown).save(held, "PNG", optimize=True)
    return held.getvalue()


def cropped(shown: Any, grid: tuple[int, int]) -> Any:
    """Pixels without those at the right and at the bottom that fill no patch of a grid."""
    height, width = (length // count * count for length, count in zip(shown.shape, grid, strict=False))
    if not height or not width:
        raise CallError(f"grid: at most a patch for each pixel of {shown.shape[0]} × {shown.shape[1]}; got {grid}")
    return shown[:height, :width]


# -- raw patches -----------------------------------------------------------------------------------------------------


def lens_of_patches(
    image: Any, size: int | tuple[int, int] = 16, attention: Attention | None = None, *, title: str = "", **tables: Any
) -> Lens:
    """A lens of the patches of an image, each a vector of its pixels from 0 to 1; NumPy alone.

    size:      of a patch in pixels, or (height, width)
    attention: how patches are compared; by Euclidean distance, cosine and Mahalanobis distance unless said otherwise
    """
    shown = colours(image)
    cut = patches(unit(shown), size, rest="crop", layout="hwc")
    x = four_axes(cut.vectors, "image")
    layers = _three(x) if attention is None else [Captured("patches", attention, x, x, x, tables)]
    grid = (cut.grid.rows, cut.grid.columns)
    named, axes = placed(layers, [Patches(grid)])
    side = " × ".join(map(str, cut.grid.size))
    model = f"no model: {len(cut)} patches of {side} pixels, {x.shape[-1]} numbers each"
    return Lens(named, axes, title=title or "Patches of an image", model=model, image=png(cropped(shown, grid)))


def _three(x: Any) -> list[Captured]:
    metric = Mahalanobis.fit(x[0, 0].astype(np.float64))
    precision = {name: table.astype(np.float32) for name, table in metric.tables().items()}
    scores: list[tuple[str, Expression, dict[str, Any]]] = [
        ("Euclidean", -sqdist, {}),
        ("cosine", cosine, {}),
        ("Mahalanobis", metric.score(), precision),
    ]
    return [_compared(name, score, x, tables) for name, score, tables in scores]


def _compared(name: str, score: Expression, x: Any, tables: dict[str, Any]) -> Captured:
    """softmax(t · score) with t found from some rows."""
    rows = np.random.default_rng(0).permutation(x.shape[2])[:SAMPLE]
    found = Attention(score).parts(x, x, start=0, **tables).scores(rows=rows)[0, 0].astype(np.float64)
    return Captured(name, Attention(sharpness(found) * score), x, x, x, tables)


def sharpness(scores: Any) -> float:
    """t at which the middle row of softmax(t · scores) reads about twelve keys; three digits of it, to be shown."""
    spread = float(np.std(scores)) or 1.0
    low, high = np.log(1e-3 / spread), np.log(1e5 / spread)
    wanted = np.log(min(READ, scores.shape[1] / 2))
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy(np.exp(middle) * scores) > wanted else (low, middle)
    return float(f"{np.exp((low + high) / 2):.3g}")


def _entropy(scores: Any) -> float:
    """−Σ w log w of the row in the middle of all."""
    s = scores - scores.max(axis=1, keepdims=True)
    e = np.exp(s)
    z = e.sum(axis=1)
    return float(np.median(np.log(z) - (e * s).sum(axis=1) / z))
