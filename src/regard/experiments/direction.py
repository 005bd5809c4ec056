"""Boat and water: who needs whom, in a trained vision transformer.

lift(a → b) = mean over i in a of  Σ_{j in b} w_ij / (share of b among the patches)        1 by chance

and what is lost if the patches of a do not read those of b. In `scenes` relevance has a direction by construction: a
hull is a boat or a hut by the ground in the picture; ground is what it is by itself. In digits, of strokes and
background, nobody has said what has to read what.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..inputs.images import patches
from ..nn.vit import ViT
from ..train.batch import Batch
from ..train.data.image_batches import ImageBatches
from ..train.data.images import Images, read_images
from ..train.fitting import fit
from ..train.schedule import Schedule
from .direction_drawing import draw
from .looking import weights_while
from .pooling import Digits, seer
from .record import Cell, Experiment, Outcome, Scale, Table, Tell, shares
from .scenes import BLANK, GROUND, HULL, NAMES, PATCH, SIDE, Scenes, drawn_scenes

DIM, DEPTH, HEADS, BATCH, RATE, SEEDS, TESTED = 32, 2, 2, 64, 5e-3, 3, 256
STEPS = {"scenes": 400, "digits": 1000}
PAIRS = {
    "hull → ground": ("scenes", HULL, GROUND),
    "ground → hull": ("scenes", GROUND, HULL),
    "stroke → background": ("digits", HULL, GROUND),
    "background → stroke": ("digits", GROUND, HULL),
}
"""Readers and what they read; in digits strokes are in the place of hulls, the background in that of the ground."""


def reads(model: ViT, pixels: Tensor, mask: Tensor | None = None) -> Tensor:
    """y (pictures, patches, dim), with the mask (pictures, 1, patches, patches) in every layer."""
    x = model.embedding(patches(pixels, model.patch, rest="refuse", layout="bchw").vectors)
    y: Tensor = model.encoder(x, mask=mask)
    return y


class Naming:
    """The name of each patch of a scene."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def batch(self, step: int) -> Batch:
        """New scenes at every step."""
        scenes = drawn_scenes(BATCH, self.seed, step)
        return Batch({"pixels": scenes.pixels, "names": scenes.names}, scenes.names.numel())

    def loss(self, model: Any, batch: Batch) -> Tensor:
        """Cross-entropy over all patches."""
        return cross_entropy(
            model.head(reads(model, batch["pixels"])).flatten(0, 1), batch["names"].flatten(), reduction="sum"
        )

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Nothing on the way."""
        return {}


# -- what is measured ------------------------------------------------------------------------------------------


def lift(weights: list[Tensor], kinds: Tensor, readers: int, read: int) -> float:
    """Σ_j in `read` of w_ij over what chance gives it, the mean over readers, heads and layers."""
    w = torch.stack(weights).mean((0, 2)).double()  # (pictures, patches, patches)
    on = (kinds == read).double()[:, None]
    rows, share = (w * on).sum(-1), on.mean(-1)
    counted = (kinds == readers) & (share > 0)
    return float((rows / share.clamp_min(1e-9))[counted].mean())


def cut(kinds: Tensor, readers: int, read: int) -> Tensor:
    """A mask under which readers of one kind do not read patches of another."""
    return ~((kinds == readers)[:, :, None] & (kinds == read)[:, None, :])[:, None]


def named_right(model: ViT, scenes: Scenes, kind: int, mask: Tensor | None = None) -> float:
    """The share of patches of a kind that get their name."""
    with torch.no_grad():
        told = model.head(reads(model, scenes.pixels, mask)).argmax(-1)
    return float((told == scenes.names)[scenes.kinds == kind].double().mean())


def told_right(model: ViT, pixels: Tensor, labels: Tensor, mask: Tensor | None = None) -> float:
    """The share of digits that are told right."""
    with torch.no_grad():
        told = model.head(reads(model, pixels, mask).mean(1)).argmax(-1)
    return float((told == labels).double().mean())


def ink(pixels: Tensor, patch: int) -> Tensor:
    """Kinds of the patches of digits, by their mean ink of 0 … 255: stroke from a half, background to a tenth."""
    dark = patches(pixels.double() / 255, patch, rest="refuse", layout="bchw").vectors.mean(-1)
    return torch.where(dark >= 0.5, HULL, torch.where(dark <= 0.1, GROUND, BLANK))


# -- the two lessons -------------------------------------------------------------------------------------------


def scene_lesson(seed: int, scale: Scale, told: Callable[[float], Any]) -> dict[str, Any]:
    """A vision transformer that names the patches of scenes."""
    torch.manual_seed(seed)
    sizes = {"dim": DIM, "depth": DEPTH, "heads": HEADS, "channels": 1}
    model = ViT(SIDE * PATCH, PATCH, classes=len(NAMES), pool="mean", **sizes).eval()
    scenes = drawn_scenes(TESTED, seed, (1 << 31) - 1)
    kinds, look = scenes.kinds, partial(_look, model, scenes.pixels)
    found = _lifts("scenes", "before", look(), kinds)
    schedule = Schedule(scale.steps(STEPS["scenes"]), RATE)
    fit(model, Naming(seed), schedule, seed=seed, told=lambda taken: told(taken.step / schedule.steps))
    found |= _lifts("scenes", "after", look(), kinds)
    for name, (_, readers, read) in _of("scenes"):
        found[f"{name}: right"] = named_right(model, scenes, readers)
        found[f"{name}: right without"] = named_right(model, scenes, readers, cut(kinds, readers, read))
    weights = torch.stack(look()).mean((0, 2))[0]
    return {
        "numbers": found,
        "scene": scenes.pixels[0, 0].tolist(),
        "kinds": kinds[0].tolist(),
        "weights": weights.tolist(),
    }


def digit_lesson(images: Images, seed: int, scale: Scale, told: Callable[[float], Any]) -> dict[str, Any]:
    """A vision transformer that tells digits from the mean of their patches."""
    torch.manual_seed(seed)
    model, batches = seer(images, "mean").eval(), ImageBatches(images, BATCH, seed)
    part = images.held_out
    pixels, kinds = images.normal(part.pixels.float() / 255), ink(part.pixels, images.patch)
    look = partial(_look, model, pixels)
    found = _lifts("digits", "before", look(), kinds)
    schedule = Schedule(scale.steps(STEPS["digits"]), RATE)
    fit(model, Digits(batches), schedule, seed=seed, told=lambda taken: told(taken.step / schedule.steps))
    found |= _lifts("digits", "after", look(), kinds)
    for name, (_, readers, read) in _of("digits"):
        found[f"{name}: right"] = told_right(model, pixels, part.labels)
        found[f"{name}: right without"] = told_right(model, pixels, part.labels, cut(kinds, readers, read))
    return {"numbers": found}


def _look(model: ViT, pixels: Tensor) -> list[Tensor]:
    return weights_while(model, lambda: reads(model, pixels))


def _of(world: str) -> list[tuple[str, tuple[str, int, int]]]:
    return [(name, pair) for name, pair in PAIRS.items() if pair[0] == world]


def _lifts(world: str, when: str, weights: list[Tensor], kinds: Tensor) -> dict[str, float]:
    return {f"{name}: {when}": lift(weights, kinds, readers, read) for name, (_, readers, read) in _of(world)}


# -- the experiment --------------------------------------------------------------------------------------------


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both lessons for every seed."""
    images = read_images(seed=scale.seed)
    seeds = range(scale.seed * SEEDS, scale.seed * SEEDS + scale.steps(SEEDS, 1))
    told = shares([f"{world}, {seed}" for world in STEPS for seed in seeds], tell)
    scenes = [scene_lesson(seed, scale, partial(told, f"scenes, {seed}")) for seed in seeds]
    digits = [digit_lesson(images, seed, scale, partial(told, f"digits, {seed}")) for seed in seeds]
    found = [{**one["numbers"], **other["numbers"]} for one, other in zip(scenes, digits, strict=True)]
    numbers = {"seeds": float(len(found))}
    for name in found[0]:
        values = [one[name] for one in found]
        numbers |= {name: float(np.mean(values)), f"{name}, spread": float(np.std(values))}
    series = {name: scenes[0][name] for name in ("scene", "kinds", "weights")}
    return Outcome(says(numbers), _table(numbers), numbers, series)


def _table(numbers: dict[str, float]) -> Table:
    def shown(name: str, of: float, digits: int) -> str:
        return f"{of * numbers[name]:.{digits}f} ± {of * numbers[f'{name}, spread']:.{digits}f}"

    columns = (
        "who reads whom",
        "before training, × chance",
        "after, × chance",
        "right, %",
        "right without these weights, %",
    )
    rows: list[tuple[Cell, ...]] = []
    for name in PAIRS:
        lifts = [shown(f"{name}: {when}", 1, 2) for when in ("before", "after")]
        rows.append((name, *lifts, *(shown(f"{name}: {which}", 100, 1) for which in ("right", "right without"))))
    return Table(columns, tuple(rows))


def says(numbers: dict[str, float]) -> str:
    """The answer."""
    there, back, stroke, ground = (numbers[f"{name}: after"] for name in PAIRS)
    lost = {name: 100 * (numbers[f"{name}: right"] - numbers[f"{name}: right without"]) for name in PAIRS}
    needed, idle, *_ = lost.values()
    clear = there > 2 * back and needed > 10 > idle
    relevance = "relevance has a direction" if clear else "no clear direction is seen, even"
    mutual = 0.7 < stroke / ground < 1.4
    return (
        f"In scenes a hull reads the ground {there:.1f} times as much as chance, the ground reads the hull {back:.1f} "
        f"times; without the first {needed:.0f} points of right names are lost, without the second {idle:.0f}: "
        f"{relevance} where the task has one. In digits strokes read the background {stroke:.1f} times as much as "
        f"chance, the background the strokes {ground:.1f} times, and {lost['stroke → background']:.0f} and "
        f"{lost['background → stroke']:.0f} points are lost without: {'no' if mutual else 'a'} direction there."
    )


EXPERIMENT = Experiment(
    "direction",
    "Does the boat read the water more than the water reads the boat?",
    ("K4",),
    1.5,
    run,
    draw,
    (13.0, 5.0),
)
