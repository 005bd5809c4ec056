"""Each classic mistake trained beside the right formula: what the losses tell, and what they hide.

training      the loss of the last batches
as a whole    held-out windows, scored as in training
one by one    the same characters, each with only the text before it: what counts when the model writes

A model that reads no future has one number for the last two. A mistake that lets the future in lowers the first two and
ruins the third.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, stdev
from typing import Any

from ..algebra.masks import causal
from ..algebra.mistakes import mistakes_of
from ..attention import Attention
from ..nn.generation.sampling import Sampling
from ..nn.generation.writing import generate
from .language import NextCharacter, characters, trained
from .mistakes_drawing import draw
from .reader import Reader, as_whole, held_out_windows, one_by_one, reader
from .record import Cell, Experiment, Outcome, Scale, Table, Tell, shares
from .rewired import Nothing, Rewired, Steps, exchanged, flattened, reshaped, unguarded, viewed

STEPS = 350
SEEDS = 3  # of those in WATCHED
LAST = 20  # batches whose mean is called the training loss
PLACES = range(3, 64, 4)  # of a window, at which it is scored
PROMPT, WRITTEN = "The value of ", 44

RIGHT, NONE, QUERIES = "right", "no attention", "softmax over queries"
WATCHED = (RIGHT, QUERIES)
FLATTERS, HARMLESS = "looks better than it writes", "no harm here"
FORMULAS = (
    "strict mask; no root of d; d for its root; mask after the weights; softmax over heads; softmax over queries; "
    "softmax over the batch; no mask; hidden scores set to 0; shifted mask; inverted mask"
).split("; ")
STEPPED = {
    "query and key swapped": Steps(scores=exchanged),
    "no maximum subtracted": Steps(share=unguarded),
    "heads split by view": Steps(split=viewed, join=flattened),
    "heads joined by view": Steps(join=flattened),
    "key reshaped": Steps(scores=reshaped),
}


@dataclass(frozen=True)
class Variant:
    """A language model with one thing wrong in it.

    make:     the model of a seed
    together: texts that are given to it at a time when it is measured one by one
    """

    name: str
    make: Callable[[int], Reader]
    together: int = 64


def _of_formula(name: str, formula: Attention) -> Variant:
    alone = name == "softmax over the batch"  # who writes one text has no others beside it
    return Variant(name, lambda seed: reader(seed, attention=formula), 1 if alone else 64)


def _of_layer(name: str, change: Callable[[Any], Any]) -> Variant:
    def make(seed: int) -> Reader:
        model = reader(seed)
        for block in model.blocks:
            block.attention = change(block.attention)
        return model

    return Variant(name, make)


def variants() -> tuple[Variant, ...]:
    """The right one, none at all, and each mistake."""
    right = Attention(mask=causal)
    wrong = mistakes_of(right)
    formulas = [_of_formula(RIGHT, right), *(_of_formula(name, wrong[name]) for name in FORMULAS)]
    stepped = [_of_layer(name, partial(Rewired, steps=steps)) for name, steps in STEPPED.items()]
    return (*formulas, _of_layer(NONE, lambda layer: Nothing()), *stepped)


@dataclass(frozen=True)
class Found:
    """What one model came to, in nats for each character."""

    training: float
    whole: float
    single: float
    losses: list[float]
    measures: dict[int, dict[str, float]]
    writes: str

    @property
    def leak(self) -> float:
        """How much worse it is at writing than windows seen as a whole tell."""
        return self.single - self.whole


class Watching(NextCharacter):
    """The task, measured both ways."""

    def __init__(self, seed: int, windows: int, together: int) -> None:
        super().__init__(seed, measured=1)
        self.windows, self.together = held_out_windows(windows), together

    def evaluate(self, model: Any) -> dict[str, float]:
        """As a whole, and one by one."""
        single = one_by_one(model, self.windows, PLACES, self.together)
        return {"loss": as_whole(model, self.windows, PLACES), "single": single}


def found(variant: Variant, seed: int, scale: Scale, tell: Callable[[float], None]) -> Found:
    """A variant, trained and measured."""
    steps = scale.steps(STEPS)
    task = Watching(seed, scale.steps(64 if variant.together > 1 else 16), variant.together)
    model = variant.make(seed)
    every = max(2, steps // 7) if variant.name in WATCHED and seed == scale.seed else None
    history = trained(model, task, steps, seed=seed, every=every, tell=tell)
    last = history.last
    return Found(
        mean(history.losses[-LAST:]),
        last["loss"],
        last["single"],
        history.losses,
        history.measures,
        _written(model, scale),
    )


def _written(model: Reader, scale: Scale) -> str:
    """What the model goes on with after the prompt, drawn at a low temperature."""
    text = generate(
        model,
        PROMPT,
        vocabulary=characters().vocabulary,
        new=scale.steps(WRITTEN),
        sampling=Sampling(temperature=0.5),
        seed=1,
        cache=False,
    ).text
    return " ".join(text.split()) or "(blanks alone)"


def run(scale: Scale, tell: Tell) -> Outcome:
    """Train them all on the same windows, from the same first parameters."""
    jobs = [
        (one, scale.seed + at)
        for one in variants()
        for at in range(scale.steps(SEEDS, least=1) if one.name in WATCHED else 1)
    ]
    told = shares([f"{one.name}, seed {seed}" for one, seed in jobs], tell)
    results: dict[str, list[Found]] = {}
    for one, seed in jobs:
        part = f"{one.name}, seed {seed}"
        results.setdefault(one.name, []).append(found(one, seed, scale, partial(told, part)))
    return outcome_of(results)


def outcome_of(results: dict[str, list[Found]]) -> Outcome:
    """Table, numbers and answer from what each came to."""
    numbers: dict[str, float] = {"noise": _noise([one.single for one in results[RIGHT]])}
    for name, runs in results.items():
        for kind in ("training", "whole", "single"):
            numbers[f"{name}: {kind}"] = mean(getattr(one, kind) for one in runs)
    numbers[f"{QUERIES}: first"] = mean(one.losses[0] for one in results[QUERIES])
    numbers[f"{QUERIES}: least leak"] = min(one.leak for one in results[QUERIES])
    ordered = sorted(results, key=lambda name: numbers[f"{name}: single"])
    rows = tuple(_row(name, numbers, results[name][0].writes) for name in ordered)
    columns = ("what is done", "training", "as a whole", "one by one", "what comes of it", f"writes after “{PROMPT}”")
    return Outcome(says(numbers), Table(columns, rows), numbers, _series(results))


def _noise(values: Sequence[float]) -> float:
    """What seeds alone may do: three times their spread, and never less than 0.03 nats."""
    return max(0.03, 3 * stdev(values)) if len(values) > 1 else 0.03


def _row(name: str, numbers: dict[str, float], writes: str) -> tuple[Cell, ...]:
    losses = [round(numbers[f"{name}: {kind}"], 2) for kind in ("training", "whole", "single")]
    return (name, *losses, kind_of(name, numbers), writes)


def kind_of(name: str, numbers: dict[str, float]) -> str:
    """What comes of a mistake."""
    if name in (RIGHT, NONE):
        return "—"
    single, right, none = (numbers[f"{one}: single"] for one in (name, RIGHT, NONE))
    if single - numbers[f"{name}: whole"] > numbers["noise"]:
        return FLATTERS
    if single - right <= numbers["noise"]:
        return HARMLESS
    return "worse" if single < none else "no better than no attention"


def says(numbers: dict[str, float]) -> str:
    """The answer in words."""
    names = [key.removesuffix(": training") for key in numbers if key.endswith(": training")]
    wrong = [name for name in names if name not in (RIGHT, NONE)]
    kinds = {name: kind_of(name, numbers) for name in wrong}
    leaks, harmless = ([name for name in wrong if kinds[name] == kind] for kind in (FLATTERS, HARMLESS))
    useless = [name for name in leaks if numbers[f"{name}: single"] > numbers[f"{NONE}: single"]]
    better = [name for name in wrong if numbers[f"{name}: whole"] < numbers[f"{RIGHT}: whole"] - numbers["noise"]]
    training, whole, single = (numbers[f"{QUERIES}: {kind}"] for kind in ("training", "whole", "single"))
    right = numbers[f"{RIGHT}: single"]
    return (
        f"Of {len(wrong)} mistakes {len(better)} have a lower held-out loss than the right formula, as long as windows "
        f"are seen as a whole. Asked one character at a time, {len(leaks)} turn out worse than they looked, "
        f"{len(useless)} of them worse than no attention at all. Softmax over the queries: {training:.2f} nats in "
        f"training, {whole:.2f} held out as a whole, {single:.2f} one by one (right: {right:.2f}). "
        f"Without harm here: {', '.join(harmless) or 'none'}."
    )


def _series(results: dict[str, list[Found]]) -> dict[str, Any]:
    curves = {
        name: {
            "training": results[name][0].losses,
            "steps": list(results[name][0].measures),
            "whole": [measures["loss"] for measures in results[name][0].measures.values()],
            "single": [measures["single"] for measures in results[name][0].measures.values()],
        }
        for name in WATCHED
    }
    return {"curves": curves, "uniform": characters().vocabulary_size}


EXPERIMENT = Experiment(
    "mistakes",
    "What do the losses show of a mistake in attention?",
    ("N9",),
    3.0,
    run,
    draw,
    (13.0, 6.6),
)
