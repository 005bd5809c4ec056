"""One model, one text, and a different way from scores to weights each time.

softmax        exp(s) / Σ exp        s = q·k / √d
Euclidean      exp(s) / Σ exp        s = −‖q − k‖² / (2 √d)
cosine         exp(s) / Σ exp        s = τ cos(q, k), τ = 10 and τ = 1
relu, shared   relu(s) / Σ relu      s = q·k / √d
relu / n       relu(s) / n           n: how many keys a row reads; nothing is shared
sigmoid        σ(s − log n)          nothing is shared

All learn at one rate, 0.006. Tried once at 0.003, 0.012 and 0.024 as well, softmax, sigmoid, shared relu and cosine are
best there; relu / n ends 0.07 nats lower at 0.012, and keeps its place.

Below them stands what they have to beat: the plain average of all characters before, and no look back at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..algebra.masks import causal, window
from ..algebra.symbols import cosine, d, dot, i, log, relu, sigmoid, sqdist, sqrt
from ..algebra.weights import share
from ..attention import Attention
from ..train.fitting import History
from .language import NextCharacter, characters, small_gpt, trained
from .record import Experiment, Outcome, Scale, Table, Tell, shares

n = i + 1  # under a causal mask
FORMULAS = {
    "softmax": Attention(score=dot / sqrt(d), mask=causal),
    "Euclidean": Attention(score=-sqdist / (2 * sqrt(d)), mask=causal),
    "10 · cosine": Attention(score=10 * cosine, mask=causal),
    "cosine": Attention(score=cosine, mask=causal),
    "relu, shared": Attention(score=dot / sqrt(d), weight=share(relu), mask=causal),
    "relu / n": Attention(score=dot / sqrt(d) / n, weight=relu, mask=causal),  # relu(s / n) = relu(s) / n
    "sigmoid": Attention(score=dot / sqrt(d) - log(n), weight=sigmoid, mask=causal),
}
REFERENCES = {
    "plain average": Attention(score=0, mask=causal),
    "no look back": Attention(mask=window(1)),
}
SEEDS = 2
STEPS = 400
EVERY = 80


def run(scale: Scale, tell: Tell) -> Outcome:
    """Train the same model with each."""
    seeds = SEEDS if scale.share == 1 else 1
    runs = [(name, seed) for name in FORMULAS for seed in range(seeds)] + [(name, 0) for name in REFERENCES]
    told = shares([f"{name}, seed {seed}" for name, seed in runs], tell)
    found: dict[str, list[History]] = {}
    for name, seed in runs:
        hear = partial(told, f"{name}, seed {seed}")
        found.setdefault(name, []).append(learned(name, replace(scale, seed=scale.seed + seed), hear))
    curves = {name: [history.series("loss") for history in histories] for name, histories in found.items()}
    return outcome_of({name: [losses[-1] for _, losses in each] for name, each in curves.items()}, curves)


def learned(name: str, scale: Scale, tell: Callable[[float], None]) -> History:
    """The model with one of the formulas: of one seed, all begin with the same parameters and see the same text."""
    tokens, seed = characters(), scale.seed
    model = small_gpt(tokens.vocabulary_size, seed=seed, attention={**FORMULAS, **REFERENCES}[name])
    task = NextCharacter(seed, tokens, scale.steps(300, least=8))
    return trained(model, task, scale.steps(STEPS), seed=seed, every=scale.steps(EVERY), tell=tell)


def outcome_of(final: dict[str, list[float]], curves: dict[str, Any]) -> Outcome:
    """The table and the answer, from the last losses of each seed."""
    mean = {name: float(np.mean(losses)) for name, losses in final.items()}
    floor = mean["plain average"]
    gained = {name: (floor - loss) / (floor - mean["softmax"]) for name, loss in mean.items()}
    spread = max(max(losses) - min(losses) for losses in final.values())
    numbers = {f"loss of {name}": loss for name, loss in mean.items()}
    numbers |= {f"share of {name}": gained[name] for name in FORMULAS}
    numbers |= {"spread": spread}
    rows = tuple(
        (name, repr(formula), round(mean[name], 3), f"{gained[name]:.0%}")
        for name, formula in {**FORMULAS, **REFERENCES}.items()
    )
    columns = ("weights", "formula", "held-out nats", "of what softmax gains over averaging")
    return Outcome(answer(numbers), Table(columns, rows), numbers, {"curves": curves, "spread": spread})


def answer(numbers: dict[str, float]) -> str:
    """What the numbers say."""
    share_of = {name: numbers[f"share of {name}"] for name in FORMULAS if name != "softmax"}
    if numbers["loss of softmax"] >= numbers["loss of plain average"]:
        return "Softmax itself gains nothing over the plain average in this time: nothing to compare."
    even = [name for name, gained in share_of.items() if gained > 0.9]
    some = [name for name, gained in share_of.items() if 0.25 < gained <= 0.9]
    none = [name for name, gained in share_of.items() if gained <= 0.25]
    told = [
        f"Of what softmax gains over the plain average in this time ({numbers['loss of plain average']:.2f} to "
        f"{numbers['loss of softmax']:.2f} nats), {_listed(even, share_of)} reach all or nearly all" if even else "",
        f"{_listed(some, share_of)} a good part" if some else "",
        f"{_listed(none, share_of)} hardly any" if none else "",
    ]  # fmt: skip
    return f"{'; '.join(part for part in told if part)}. Seeds differ by at most {numbers['spread']:.2f} nats."


def _listed(names: list[str], share_of: dict[str, float]) -> str:
    return ", ".join(f"{name} ({share_of[name]:.0%})" for name in names)


# -- the picture -----------------------------------------------------------------------------------------------


def draw(outcome: Outcome, figure: Any) -> None:
    """Left: how the loss falls. Right: where it ends, with a dot for each seed."""
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    curves = outcome.series["curves"]
    names = sorted(curves, key=lambda name: outcome.numbers[f"loss of {name}"])
    for place, name in enumerate(names):
        steps = curves[name][0][0]
        losses = np.mean([losses for _, losses in curves[name]], axis=0)
        reference = name in REFERENCES
        look = {"color": "#777777", "linestyle": "--"} if reference else {"color": f"C{list(FORMULAS).index(name)}"}
        left.plot(steps, losses, **look)
        right.barh(place, losses[-1], height=0.7, color=look["color"], alpha=0.45 if reference else 0.9)
        ends = [each[1][-1] for each in curves[name]]
        right.plot(ends, [place] * len(ends), "o", color="#222222", markersize=3)
        right.text(max(ends), place, f"  {losses[-1]:.2f}", va="center", fontsize=10)
    last = [outcome.numbers[f"loss of {name}"] for name in names]
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.grid(axis="y", visible=False)
    right.set_axisbelow(True)
    right.set_xlim(min(last) - 0.15, max(last) + 0.12)
    right.set(xlabel="held-out nats per character", title="Where it ends")
    left.set(xlabel="steps", ylabel="held-out nats per character", title="How the loss falls (dashed: to beat)")


EXPERIMENT = Experiment(
    "weights",
    "Do other weights than softmax work as well?",
    ("N2",),
    2.5,
    run,
    draw,
)
