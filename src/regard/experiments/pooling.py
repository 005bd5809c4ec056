"""A class token, or the mean of all patches: what a vision transformer reads its answer from.

logits = W y_class        pool="class": a vector of its own stands before the patches, and gathers what it needs
logits = W mean_i y_i     pool="mean":  no such vector, and no weights that decide what counts

Both start from the same numbers and see the same batches, at two rates: what is best for one need not be for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..nn.vit import ViT
from ..train.batch import Batch
from ..train.data.image_batches import ImageBatches
from ..train.data.images import Images, read_images
from ..train.fitting import fit
from ..train.learner import Taken
from ..train.schedule import Schedule
from .picture import COLOURS
from .record import Cell, Experiment, Outcome, Scale, Table, Tell, shares

POOLS = {"class": "class token", "mean": "mean of the patches"}
RATES = (0.002, 0.005)
DIM, DEPTH, HEADS, STEPS, BATCH, SEEDS, LOOKS = 32, 2, 4, 1000, 64, 3, 20


@dataclass(frozen=True)
class Digits:
    """Which digit it is: batches of images, the loss on them, the share of held-out ones that are told right."""

    batches: ImageBatches

    def batch(self, step: int) -> Batch:
        """The images of a step."""
        drawn = self.batches[step]
        return Batch({"pixels": drawn.pixels, "labels": drawn.labels}, len(drawn.labels))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Cross-entropy."""
        return cross_entropy(model(batch["pixels"]), batch["labels"], reduction="sum")

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """On the images that were held out."""
        told = [(model(part.pixels), part.labels) for part in self.batches.held_out(256)]
        logits, labels = torch.cat([logits for logits, _ in told]), torch.cat([labels for _, labels in told])
        right = (logits.argmax(1) == labels).double().mean()
        return {"loss": float(cross_entropy(logits, labels)), "right": float(right)}


def seer(images: Images, pool: str) -> ViT:
    """A small vision transformer for images."""
    channels, height, width = images.shape
    sizes = {"dim": DIM, "depth": DEPTH, "heads": HEADS, "channels": channels}
    return ViT((height, width), images.patch, classes=len(images.classes), pool=pool, **sizes)


def twins(images: Images, seed: int) -> dict[str, ViT]:
    """One with a class token and one without; everything else in them is the same, number for number."""
    torch.manual_seed(seed)
    models = {pool: seer(images, pool) for pool in POOLS}
    kept = {name: tensor.clone() for name, tensor in models["class"].state_dict().items() if name != "token"}
    places = next(name for name in kept if "placement" in name)
    kept[places] = kept[places][1:]  # the first is the class token's own
    models["mean"].load_state_dict(kept)
    return models


def run(scale: Scale, tell: Tell) -> Outcome:
    """Every rate, every seed, both ways."""
    images, steps = read_images(seed=scale.seed), scale.steps(STEPS)
    seeds = range(scale.seed * SEEDS, scale.seed * SEEDS + scale.steps(SEEDS, 1))
    runs = [(rate, seed, pool) for rate in RATES for seed in seeds for pool in POOLS]
    told, curves = shares([str(one) for one in runs], tell), {}
    for rate, seed, pool in runs:
        model, task = twins(images, seed)[pool], Digits(ImageBatches(images, BATCH, seed))
        step = partial(_passed_on, partial(told, str((rate, seed, pool))), steps)
        history = fit(model, task, Schedule(steps, rate), every=max(2, steps // LOOKS), seed=seed, told=step)
        curves[rate, seed, pool] = history.series("right")
    return outcome(curves, 1 / len(images.classes))


def _passed_on(told: Callable[[float], None], steps: int, taken: Taken) -> None:
    told(taken.step / steps)


def outcome(curves: dict[tuple[float, int, str], tuple[list[int], list[float]]], chance: float) -> Outcome:
    """Means over seeds, and how far seeds lie apart."""
    numbers, ends = {"chance": chance, "seeds": float(len({seed for _, seed, _ in curves}))}, {}
    for rate in RATES:
        for pool in POOLS:
            found = [right[-1] for (r, _, p), (_, right) in curves.items() if (r, p) == (rate, pool)]
            ends[rate, pool] = found
            numbers |= {f"{pool}, {rate}": float(np.mean(found)), f"{pool}, {rate}, spread": float(np.std(found))}
        apart = np.subtract(ends[rate, "class"], ends[rate, "mean"])
        numbers |= {f"class − mean, {rate}": float(apart.mean()), f"class − mean, {rate}, spread": float(apart.std())}
    for pool in POOLS:
        numbers[f"{pool}, best"] = max(numbers[f"{pool}, {rate}"] for rate in RATES)
    numbers["spread"] = float(np.sqrt(np.mean([np.var(found) for found in ends.values()])))
    rates = [numbers[f"{pool}, {RATES[0]}"] - numbers[f"{pool}, {_best(numbers)}"] for pool in POOLS]
    numbers["rate"] = float(np.abs(rates).mean())
    drawn = [
        {"rate": r, "seed": s, "pool": p, "steps": at, "right": right} for (r, s, p), (at, right) in curves.items()
    ]
    return Outcome(says(numbers), _table(numbers), numbers, {"curves": drawn})


def _best(numbers: dict[str, float]) -> float:
    """The rate at which both together do best."""
    return max(RATES, key=lambda rate: sum(numbers[f"{pool}, {rate}"] for pool in POOLS))


def _table(numbers: dict[str, float]) -> Table:
    def percent(name: str) -> str:
        return f"{100 * numbers[name]:.1f} ± {100 * numbers[f'{name}, spread']:.1f}"

    names = (*POOLS, "class − mean")
    rows: list[tuple[Cell, ...]] = [(rate, *(percent(f"{name}, {rate}") for name in names)) for rate in RATES]
    return Table(("rate", *(f"{told}, % right" for told in POOLS.values()), "difference, points"), tuple(rows))


def says(numbers: dict[str, float]) -> str:
    """The answer."""
    token, mean, spread = (100 * numbers[name] for name in ("class, best", "mean, best", "spread"))
    ahead = "the class token" if token > mean else "the mean"
    alike = abs(token - mean) <= max(2 * spread, 0.5)
    verdict = "nothing between them that seeds do not do as well" if alike else f"{ahead} is ahead of what seeds do"
    return (
        f"At its best rate the class token tells {token:.1f} % of held-out digits right, the mean of the patches "
        f"{mean:.1f} %, where one seed differs from another by {spread:.1f} points: {verdict}. "
        f"The rate {RATES[0]:g} in place of {_best(numbers):g} changes {100 * numbers['rate']:.1f} points."
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Curves at the best rate; the ends at every rate, seed by seed."""
    curves, ends = figure.subplots(1, 2, width_ratios=(1.25, 1))
    best, numbers = _best(outcome.numbers), outcome.numbers
    for at, (pool, told) in enumerate(POOLS.items()):
        runs = [one for one in outcome.series["curves"] if one["pool"] == pool]
        shown = [one for one in runs if one["rate"] == best]
        rights = 100 * np.array([one["right"] for one in shown])
        colour = COLOURS[at]
        curves.plot(shown[0]["steps"], rights.mean(0), color=colour, label=told, lw=2.6)
        curves.fill_between(shown[0]["steps"], rights.min(0), rights.max(0), color=colour, alpha=0.2, lw=0)
        for place, rate in enumerate(RATES):
            right = [100 * one["right"][-1] for one in runs if one["rate"] == rate]
            across = place + 0.24 * (at - 0.5)
            ends.plot([across] * len(right), right, "o", color=colour, alpha=0.55, ms=7)
            ends.plot([across - 0.09, across + 0.09], [np.mean(right)] * 2, color=colour, lw=3)
    curves.axhline(100 * numbers["chance"], color="#555555", ls=":", lw=1)
    curves.text(curves.get_xlim()[1], 100 * numbers["chance"] + 1.5, "chance", ha="right", color="#555555", fontsize=10)
    curves.set(
        xlabel="steps", ylabel="held-out digits told right, %", ylim=(0, 102), title=f"On the way, rate {best:g}"
    )
    curves.legend(loc="lower right", bbox_to_anchor=(1, 0.12), fontsize=12)
    ends.set(xlabel="rate", ylabel="held-out digits told right, %", title="At the end: a dot for each seed")
    ends.set_xticks(range(len(RATES)), [f"{rate:g}" for rate in RATES])
    ends.set_ylim(min(80, ends.get_ylim()[0]), 101)  # far enough that a point looks like a point
    ends.grid(axis="x", visible=False)


EXPERIMENT = Experiment(
    "pooling",
    "Does a vision transformer need a class token?",
    ("T4",),
    2.5,
    run,
    draw,
)
