"""A block with one part taken away, at three depths.

x ← x + attention(norm(x))        x ← x + feed_forward(norm(x))

The same text, the same steps; at the greatest depth also at a third of the rate, since what lacks a residual or a norm
may ask for smaller steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from ..nn.style import Part, Style, post_norm
from .blocks_drawing import draw
from .language import RATE, NextCharacter, trained
from .reader import Reader, reader, size
from .record import Cell, Experiment, Outcome, Scale, Table, Tell
from .rewired import Nothing

STEPS = 300
DEPTHS = (1, 2, 4)
WHOLE, POST = "whole, norm before", "whole, norm after"


def no_residual(x: Tensor, norm: Part, f: Part) -> Tensor:
    """f(norm(x)): what was there before is not added."""
    return f(norm(x))


def _unread(block: Any) -> None:
    block.attention = Nothing()


@dataclass(frozen=True)
class Structure:
    """What a block is made of.

    style:  of the model
    change: what is done to each of its blocks
    """

    name: str
    style: Style = field(default_factory=Style)
    change: Callable[[Any], None] = lambda block: None

    def of(self, depth: int, seed: int) -> Reader:
        """The model of a depth."""
        model = reader(seed, depth=depth, style=self.style)
        for block in model.blocks:
            self.change(block)
        return model


STRUCTURES = (
    Structure(WHOLE),
    Structure(POST, Style(residual=post_norm)),
    Structure("no normalisation", Style(norm=nn.Identity)),
    Structure("no feed-forward", Style(feed_forward=Nothing)),
    Structure("no residual", Style(residual=no_residual)),
    Structure("no attention", change=_unread),
)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Every structure at every depth."""
    settings = [(depth, RATE) for depth in DEPTHS] + [(DEPTHS[-1], RATE / 3)]
    jobs = [(structure, depth, rate) for structure in STRUCTURES for depth, rate in settings]
    work, done = sum(depth + 1 for _, depth, _ in jobs), 0
    numbers: dict[str, float] = {"steps": scale.steps(STEPS)}
    for structure, depth, rate in jobs:
        model = structure.of(depth, scale.seed)
        told = partial(_told, tell, f"{structure.name}, depth {depth}", done / work, (depth + 1) / work)
        task = NextCharacter(scale.seed, measured=scale.steps(256))
        history = trained(model, task, scale.steps(STEPS), rate=rate, seed=scale.seed, tell=told)
        slow = "" if rate == RATE else ", slow"
        numbers[f"{structure.name}: {depth}{slow}"] = history.last["loss"]
        numbers[f"{structure.name}: parameters"] = size(model)  # of the last, the deepest
        done += depth + 1
    for structure in STRUCTURES:
        deepest = f"{structure.name}: {DEPTHS[-1]}"
        numbers[f"{structure.name}: best"] = min(numbers[deepest], numbers[f"{deepest}, slow"])
    return outcome_of(numbers)


def _told(tell: Tell, what: str, first: float, share: float, done: float) -> None:
    tell(what, first + share * done)


def outcome_of(numbers: dict[str, float]) -> Outcome:
    """Table and answer from the numbers."""
    deepest = DEPTHS[-1]
    columns = (
        "block",
        *(f"depth {depth}" for depth in DEPTHS),
        f"depth {deepest}, third of the rate",
        "costs",
        "parameters",
    )
    rows = tuple(_row(structure.name, numbers) for structure in STRUCTURES)
    return Outcome(says(numbers), Table(columns, rows), numbers, {"depths": list(DEPTHS)})


def _row(name: str, numbers: dict[str, float]) -> tuple[Cell, ...]:
    nats = [round(numbers[f"{name}: {which}"], 2) for which in (*DEPTHS, f"{DEPTHS[-1]}, slow")]
    return (name, *nats, f"{cost(name, numbers):+.2f}", int(numbers[f"{name}: parameters"]))


def cost(name: str, numbers: dict[str, float]) -> float:
    """Nats by which the deepest model is worse than the whole one, each at its better rate."""
    return numbers[f"{name}: best"] - numbers[f"{WHOLE}: best"]


def says(numbers: dict[str, float]) -> str:
    """The answer in words."""
    costs = {one.name: cost(one.name, numbers) for one in STRUCTURES if one.name not in (WHOLE, POST)}
    ordered = sorted(costs, key=lambda name: -costs[name])
    told = ", ".join(f"{name} {costs[name]:+.2f}" for name in ordered)
    gained = numbers[f"{WHOLE}: {DEPTHS[0]}"] - numbers[f"{WHOLE}: best"]
    return (
        f"At depth {DEPTHS[-1]}, after {numbers['steps']:.0f} steps, "
        f"in nats against {numbers[f'{WHOLE}: best']:.2f}: {told}. "
        f"Norm after in place of before: {cost(POST, numbers):+.2f}. "
        f"From depth {DEPTHS[0]} to {DEPTHS[-1]} the whole block gains {gained:.2f}; "
        f"without residual it {_gained('no residual', numbers)}, "
        f"without attention it {_gained('no attention', numbers)}."
    )


def _gained(name: str, numbers: dict[str, float]) -> str:
    gained = numbers[f"{name}: {DEPTHS[0]}"] - numbers[f"{name}: best"]
    return f"gains {gained:.2f}" if gained >= 0 else f"loses {-gained:.2f}"


EXPERIMENT = Experiment(
    "blocks",
    "Which parts of a block does a language model need?",
    ("T3",),
    3.0,
    run,
    draw,
    (11.0, 5.2),
)
