"""Images and their classes: p(class | patches)."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...algebra.errors import CallError
from ...nn.vit import ViT
from ..batch import Batch
from ..data.augmentation import Augmentation, Flip, Several, usual_augmentation
from ..data.image_batches import ImageBatch, ImageBatches
from ..data.images import Images, Part, read_image, read_images
from ..folder import Folder, read_json, write_json
from ..settings import ImageData, Settings
from .parts import parts_of


def _usual(images: Images) -> Augmentation:
    return usual_augmentation(images)


def _flipped(images: Images) -> Augmentation:
    return Several((usual_augmentation(images), Flip()))


AUGMENTATIONS: dict[str, Any] = {"usual": _usual, "none": lambda images: None, "flip": _flipped}


class Pictures:
    """Images in patches, and a ViT that reads them."""

    data: ClassVar[type[ImageData]] = ImageData
    unit: ClassVar[str] = "nats for each image"

    def __init__(self, images: Images, settings: Settings) -> None:
        self.images, self.settings, self.asked = images, settings, cast(ImageData, settings.data)
        if self.asked.augment not in AUGMENTATIONS:
            raise CallError(f"augment: one of {', '.join(AUGMENTATIONS)}; got {self.asked.augment!r}")
        augmentation = AUGMENTATIONS[self.asked.augment](images)
        self.batches = ImageBatches(images, settings.learning.batch, settings.learning.seed, augmentation)

    # -- data ---------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, settings: Settings, progress: Any = None) -> Self:
        """From their source."""
        data: Any = settings.data
        images = read_images(
            data.source, size=_size(data.size), colour=data.colour, held_out=data.held_out, progress=progress
        )
        return cls(images, settings)

    @classmethod
    def kept(cls, folder: Folder, settings: Settings) -> Self:
        """From the folder of a run."""
        told = read_json(folder.data / "images.json")
        with np.load(folder.data / "images.npz", allow_pickle=False) as held:
            training, held_out = (
                Part(torch.from_numpy(held[f"x_{part}"]), torch.from_numpy(held[f"y_{part}"])) for part in PARTS
            )
        return cls(Images(training, held_out, tuple(told["classes"]), told["name"], tuple(told["notes"])), settings)

    def keep(self, folder: Folder) -> None:
        """Write the images into the folder of a run."""
        images = self.images
        folder.data.mkdir(exist_ok=True)
        parts = dict(zip(PARTS, (images.training, images.held_out), strict=True))
        arrays = {f"{kind}_{name}": part_of(part) for name, part in parts.items() for kind, part_of in KINDS.items()}
        np.savez(folder.data / "images.npz", **arrays)
        told = {"name": images.name, "classes": list(images.classes), "notes": list(images.notes)}
        write_json(folder.data / "images.json", told)

    @property
    def notes(self) -> list[str]:
        """What is learned from, in words."""
        images, (channels, height, width) = self.images, self.images.shape
        first = (
            f"{images.name}: {len(images.training):,} images to learn from, {len(images.held_out):,} held out, "
            f"{height} × {width} in {channels} {'channel' if channels == 1 else 'channels'}; "
            f"{len(images.classes)} classes; patches of {self.patch} × {self.patch}"
        )
        return [first, *images.notes]

    @property
    def patch(self) -> int:
        """The side of a patch."""
        return int(self.asked.patch or self.images.patch)

    # -- learning -----------------------------------------------------------------------------------------------

    def model(self) -> ViT:
        """A model of the settings, with new parameters."""
        channels, *size = self.images.shape
        shape = self.settings.shape
        rows = (size[0] // self.patch) * (size[1] // self.patch) + (self.asked.pool == "class")
        return ViT(
            (size[0], size[1]), self.patch, len(self.images.classes), shape.dim, shape.depth, shape.heads,
            channels=channels, pool=self.asked.pool, **parts_of(shape, rows),
        )  # fmt: skip

    def batch(self, step: int) -> Batch:
        """The images of a step."""
        return _batch(self.batches[step])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """−Σ log p(class)."""
        return functional.cross_entropy(model(batch["pixels"]).float(), batch["labels"], reduction="sum")

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """On all images that were held out."""
        device = next(model.parameters()).device
        nats, right = 0.0, 0
        for images in self.batches.held_out(256):
            logits, labels = model(images.pixels.to(device)).float(), images.labels.to(device)
            nats += float(functional.cross_entropy(logits, labels, reduction="sum"))
            right += int((logits.argmax(-1) == labels).sum())
        count = len(self.images.held_out)
        return {"loss": nats / count, "accuracy": right / count}

    final = evaluate

    # -- to look at ---------------------------------------------------------------------------------------------

    def answer(self, model: nn.Module, asked: str, length: int) -> str:
        """An image file, and the classes that the model takes it for, the likeliest first."""
        pixels = self.images.normal(read_image(asked, self.images.shape)[None])
        chances = model(pixels.to(next(model.parameters()).device)).float().softmax(-1)[0]
        likely = chances.argsort(descending=True)[:3].tolist()
        return f"{asked}: " + ", ".join(f"{self.images.classes[one]} {float(chances[one]):.1%}" for one in likely)

    def sample(self, model: nn.Module, length: int) -> str:
        """What it takes the first held-out images for, and what they are."""
        device = next(model.parameters()).device
        images = next(iter(self.batches.held_out(max(1, min(length, 20)))))
        taken = model(images.pixels.to(device)).argmax(-1).tolist()
        names, labels = self.images.classes, images.labels.tolist()
        lines = (
            f"{names[label]:>12} taken for {names[guess]}{'' if guess == label else '   ✗'}"
            for label, guess in zip(labels, taken, strict=True)
        )
        return "\n".join(lines)


PARTS = ("train", "test")
KINDS: dict[str, Any] = {"x": lambda part: part.pixels.numpy(), "y": lambda part: part.labels.numpy()}


def _batch(images: ImageBatch) -> Batch:
    rows = [f"training image {int(row)}" for row in images.rows]
    return Batch({"pixels": images.pixels, "labels": images.labels}, len(images.labels), rows)


def _size(text: str | None) -> int | tuple[int, int] | None:
    """Pixels from text: 32, or 32x24."""
    if text is None:
        return None
    parts = text.split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) for part in parts):
        raise CallError(f"size: pixels, as in 32 or 32x24 (height x width); got {text!r}")
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
