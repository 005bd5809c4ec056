"""Three phrases about a cat: what is read before training, what after it, and what is lost without it.

A reader learns what comes next in a family of phrases, and is asked about those that were held out. Beside it one
learns that reads every word alike: what it cannot answer is what the weights are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from ..attention import Attention
from ..train.batch import Batch
from ..train.fitting import fit
from ..train.schedule import Schedule
from .phrase_drawing import draw
from .phrase_family import Family
from .phrase_reader import ALIKE, PLACES, REMOVED, Next, Reader, batch_of, decisive, read, right
from .record import Experiment, Outcome, Scale, Table, Tell, shares

STEPS, RATE, SEEDS, TESTED = 400, 1e-2, 5, 900


def looked_at(model: nn.Module, batch: Batch) -> dict[str, list[float]]:
    """At each place: the share of right answers, the weight on the deciding word, how often no word has more."""
    weights, wanted = read(model, batch), decisive(batch)
    most = (weights.argmax(-1) == batch["decisive"][:, None]).double()
    return {
        "right": right(model, batch),
        "weight": (weights * wanted).sum(-1).mean(0).tolist(),
        "most": most.mean(0).tolist(),
    }


def lesson(attention: Attention, seed: int, scale: Scale, told: Callable[[float], Any]) -> dict[str, Any]:
    """One reader, looked at before and after."""
    torch.manual_seed(seed)
    model, family = Reader(attention).eval(), Family(scale.seed)
    held = batch_of(
        family.draw(scale.steps(TESTED, 90), np.random.default_rng([seed, 1 << 32]), held_out=True, alone=0)
    )
    three = batch_of(family.three())
    found: dict[str, Any] = {"before": looked_at(model, held), "three before": read(model, three).tolist()}
    schedule = Schedule(scale.steps(STEPS), RATE)
    fit(model, Next(family, seed), schedule, seed=seed, told=lambda taken: told(taken.step / schedule.steps))
    found |= {"after": looked_at(model, held), "three after": read(model, three).tolist()}
    return found | {name: {"right": right(model, held, gone(held))} for name, gone in REMOVED.items()}


def run(scale: Scale, tell: Tell) -> Outcome:
    """Readers that choose what they read, and readers that cannot."""
    seeds = range(scale.seed * SEEDS, scale.seed * SEEDS + scale.steps(SEEDS, 1))
    parts = [f"{name}, {seed}" for name in ("learned weights", "equal weights") for seed in seeds]
    told = shares(parts, tell)
    found = {
        name: [lesson(formula, seed, scale, partial(told, f"{name}, {seed}")) for seed in seeds]
        for name, formula in (("learned weights", Attention()), ("equal weights", ALIKE))
    }
    return outcome(found["learned weights"], found["equal weights"], scale)


def outcome(learned: list[dict[str, Any]], alike: list[dict[str, Any]], scale: Scale) -> Outcome:
    """Means and spreads over seeds."""
    held = batch_of(Family(scale.seed).draw(TESTED, np.random.default_rng(0), held_out=True, alone=0))
    numbers = {
        "share": float((1 / held["lengths"]).mean()),
        "generic": 1 / 3,
        "either": 2 / 3,
        "seeds": float(len(learned)),
    }
    numbers |= _over([one["before"] for one in learned], "before") | _over([one["after"] for one in learned], "after")
    for name in REMOVED:
        numbers |= _over([one[name] for one in learned], f"without {name}")
    numbers |= _over([one["after"] for one in alike], "equal weights")
    three = {when: learned[0][f"three {when}"] for when in ("before", "after")}
    numbers["three most"] = _most(three["after"])
    phrases = Family().three()
    series = {"three": three, "words": [one.words for one in phrases], "decisive": [one.decisive for one in phrases]}
    series["answers"] = [one.answer for one in phrases]
    return Outcome(says(numbers), _table(numbers), numbers, series)


def _over(found: Iterable[dict[str, list[float]]], name: str) -> dict[str, float]:
    """Mean and spread over seeds of each measure at each place."""
    rows = list(found)
    numbers = {}
    for measure in rows[0]:
        for at, place in enumerate(PLACES):
            values = [row[measure][at] for row in rows]
            numbers[f"{name}: {measure}, {place}"] = float(np.mean(values))
            numbers[f"{name}: {measure}, {place}, spread"] = float(np.std(values))
    return numbers


def _most(weights: list[list[list[float]]]) -> float:
    """In how many of the three phrases “cat” reads the deciding word most."""
    pairs = zip(weights, Family().three(), strict=True)
    return float(sum(int(np.argmax(rows[0])) == phrase.decisive for rows, phrase in pairs))


ROWS = {
    "before training": "before",
    "after training": "after",
    "… without the deciding word's weight": "without the deciding word",
    "… without one other word's": "without one other word",
    "… without all other words'": "without all other words",
    "trained, every word read alike": "equal weights",
}


def _table(numbers: dict[str, float]) -> Table:
    def percent(name: str) -> str:
        return f"{100 * numbers[name]:.0f} ± {100 * numbers[f'{name}, spread']:.0f}" if name in numbers else ""

    columns = ("", "right from “cat”, %", "right from the last word, %", "weight of “cat” on the deciding word, %")
    measures = [f"right, {place}" for place in PLACES] + ["weight, cat"]
    rows = [(shown, *(percent(f"{name}: {measure}") for measure in measures)) for shown, name in ROWS.items()]
    return Table(columns, tuple(rows))


def says(numbers: dict[str, float]) -> str:
    """The answer."""
    before, after = (100 * numbers[f"{when}: weight, cat"] for when in ("before", "after"))
    full, cut, other, alike = (
        100 * numbers[f"{name}: right, cat"]
        for name in ("after", "without the deciding word", "without one other word", "equal weights")
    )
    share = 100 * numbers["share"]
    meant = "says nothing" if before < 1.5 * share else "already leans to it"
    useful = full - cut > 3 * max(full - other, 5)
    ended = "the learned weights are what the answer rests on" if useful else "it rests on no weight in particular"
    return (
        f"Before training “cat” gives the deciding word {before:.0f} % of its weight, where an equal share is "
        f"{share:.0f} %: it {meant}. After training it is {after:.0f} %, and {full:.0f} % of the held-out phrases end "
        f"right. Without that weight {cut:.0f} % do, without another word's {other:.0f} %, and {alike:.0f} % where a "
        f"reader is trained to read every word alike: {ended}."
    )


EXPERIMENT = Experiment(
    "phrases",
    "What does “cat” have to read, and does it learn to?",
    ("P5",),
    1.0,
    run,
    draw,
    (13.0, 5.6),
)
