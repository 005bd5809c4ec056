"""A vision transformer: an image as a text of patches.

x = W patches(image)        x ← [class; x] + p        x ← Encoder(x)        logits = W x_class
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._checks import check_count
from ..algebra.errors import CallError, KindError
from ..attention import Attention
from ..inputs.grid import pair
from ..inputs.images import class_token, patches
from ..inputs.positions.added import Learned
from ..inputs.positions.base import Position
from .checks import check_dtype
from .initial import initialise
from .models import Model, drawn_seed, remembered
from .stacks import Encoder, Formulas
from .style import Style
from .summary import Sizes

POOLS = ("class", "mean")


class ViT(Model):
    """Images in, the logits of classes out (Dosovitskiy et al.: An Image is Worth 16x16 Words).

    image, patch: (height, width) in pixels, or one number for both
    pool:         what the classes are read from: "class", a token of its own that stands first; "mean", of all rows
    position:     a vector for each place, learned, unless said otherwise

    >>> model = ViT(8, patch=2, classes=10, dim=32, depth=2, heads=4, channels=1)
    >>> model(torch.zeros(3, 1, 8, 8)).shape
    torch.Size([3, 10])
    """

    @remembered
    def __init__(
        self,
        image: int | tuple[int, int],
        patch: int | tuple[int, int],
        classes: int,
        dim: int,
        depth: int,
        heads: int,
        attention: Formulas = Attention(),  # noqa: B008 - a value that never changes
        position: Position | None = None,
        style: Style = Style(),  # noqa: B008
        *,
        kv_heads: int | None = None,
        channels: int = 3,
        pool: str = "class",
        **options: Any,
    ) -> None:
        for name, size in (("classes", classes), ("dim", dim), ("channels", channels)):
            check_count(name, size, 1)
        self.image, self.patch, self.channels, self.pool = pair(image), pair(patch), channels, pool
        if any(size % part for size, part in zip(self.image, self.patch, strict=True)):
            raise CallError(f"patch: divides the image, {_by(self.image)}; got {_by(self.patch)}")
        if pool not in POOLS:
            raise CallError(f"pool: one of {', '.join(POOLS)}; got {pool!r}")
        height, width = self.patch
        self.count_of_rows = (self.image[0] // height) * (self.image[1] // width) + (pool == "class")
        position = Learned.random(self.count_of_rows, dim, seed=drawn_seed()) if position is None else position
        self.embedding = nn.Linear(height * width * channels, dim)
        self.token = nn.Parameter(torch.zeros(dim)) if pool == "class" else None
        self.encoder = Encoder(dim, depth, heads, kv_heads, attention, position, style, **options)
        self.head = nn.Linear(dim, classes)
        initialise(self.embedding)
        initialise(self.head)

    def forward(self, images: Tensor, **tables: Tensor) -> Tensor:
        """Logits (batch, classes) of images (batch, channels, height, width)."""
        y = self.rows(images, **tables)
        pooled = y[:, 0] if self.token is not None else y.mean(1)
        logits: Tensor = self.head(pooled)
        return logits

    def rows(self, images: Tensor, **tables: Tensor) -> Tensor:
        """What the encoder makes of each patch, (batch, rows, dim); the class token stands first."""
        if not isinstance(images, Tensor):
            raise KindError(
                f"images: a tensor, (batch, {self.channels}, {self.image[0]}, {self.image[1]}); "
                f"got {type(images).__name__}; torch.as_tensor makes one of an array"
            )
        if images.ndim != 4 or tuple(images.shape[1:]) != (self.channels, *self.image):
            raise CallError(
                f"images: (batch, {self.channels}, {self.image[0]}, {self.image[1]}); got shape {tuple(images.shape)}"
            )
        if not images.is_floating_point():
            raise KindError(
                f"images: real floating numbers; got dtype {images.dtype}; images / 255 makes them of bytes"
            )
        check_dtype(images, self.embedding.weight, "images")
        x = self.embedding(patches(images, self.patch, rest="refuse", layout="bchw").vectors)
        if self.token is not None:
            x = class_token(x, self.token.to(x.dtype))  # that of autocast, where it is on
        y: Tensor = self.encoder(x, **tables)
        return y

    def sizes(self, part: str, rows: int) -> Sizes:
        """The class token stands before the patches, and the head reads one row."""
        return Sizes(1, 1) if part == "head" else Sizes(rows - (part == "embedding" and self.token is not None), rows)

    def _rows(self, rows: int | None) -> int:
        if rows is not None:
            raise CallError(f"rows: an image has as many as it has patches; got {rows!r}; leave it out")
        return self.count_of_rows


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]}"
