"""Which kinds of positions tell order, with a causal mask and without one.

none         nothing
sinusoidal   x_i + p_i, p_i of waves
learned      x_i + p_i, p_i learned
rotary       R_i q_i · R_j k_j
ALiBi        s_ij − slope · |i − j|

Two tasks. In the first, order alone decides: a row of words holds “cat” and “sat”, and which came first is asked of the
mean of all rows. Held-out rows come with their mirror images, whose answer is the other: who knows the words, but not
their order, is right in exactly half of them. The second is language: the next character under the mask, hidden
characters without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..algebra.masks import causal
from ..algebra.symbols import i, j
from ..attention import Attention
from ..inputs.positions import ALiBi, Learned, NoPosition, Position, Rotary, Sinusoidal
from ..nn.initial import SPREAD
from ..nn.stacks import Encoder
from ..train.batch import Batch
from .language import DIM, WINDOW, Filler, HiddenCharacters, NextCharacter, characters, small_gpt, trained
from .record import Cell, Experiment, Outcome, Scale, Table, Tell, shares


@dataclass(frozen=True)
class Waves(Position):
    """x_i + spread · √2 · p_i, of sinusoidal p: numbers of that spread, as those that they are added to."""

    spread: float

    def add(self, x: Any, at: Any = 0) -> Any:
        size = self.spread * math.sqrt(2)
        return Sinusoidal().add(x / size, at) * size


POSITIONS: dict[str, Callable[[int, int, float], Position]] = {
    "none": lambda rows, dim, spread: NoPosition(),
    "sinusoidal": lambda rows, dim, spread: Waves(spread),
    "learned": lambda rows, dim, spread: Learned.random(rows, dim, spread=spread),
    "rotary": lambda rows, dim, spread: Rotary(),
    "ALiBi": lambda rows, dim, spread: ALiBi(distance=abs(i - j)),
}
"""By name, for so many rows of such a width and spread of numbers: what is added is as large as they are."""
MASKS = {"causal": Attention(mask=causal), "no mask": Attention()}


# -- cat sat, or sat cat? --------------------------------------------------------------------------------------

CAT, SAT, OTHERS = 0, 1, 10  # two words that matter, and ten that do not
LENGTH, WIDTH = 8, 32
ROWS = 64  # rows of words in a batch


@dataclass
class WhichFirst:
    """1 where “sat” comes before “cat”."""

    seed: int = 0
    measured: int = 512

    def batch(self, step: int) -> Batch:
        """Rows of words, and the answers."""
        return self._rows(np.random.default_rng([self.seed, step]), ROWS)

    def _rows(self, rng: np.random.Generator, count: int) -> Batch:
        words = rng.integers(2, 2 + OTHERS, (count, LENGTH))
        places = np.argsort(rng.random((count, LENGTH)), axis=1)[:, :2]
        np.put_along_axis(words, places, np.array([[CAT, SAT]]), axis=1)
        answers = places[:, 1] < places[:, 0]
        return Batch({"words": torch.from_numpy(words), "answers": torch.from_numpy(answers).long()}, count)

    def held_out(self) -> Batch:
        """Rows that no step draws, and their mirror images."""
        rows = self._rows(np.random.default_rng([self.seed, 0, 1]), self.measured)
        words, answers = rows["words"], rows["answers"]
        both = {"words": torch.cat([words, words.flip(1)]), "answers": torch.cat([answers, 1 - answers])}
        return Batch(both, 2 * len(rows))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The sum over the rows."""
        return cross_entropy(model(batch["words"]), batch["answers"], reduction="sum")

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The share of held-out rows that are answered rightly."""
        batch = self.held_out()
        right = (model(batch["words"]).argmax(1) == batch["answers"]).double().mean()
        return {"loss": float(self.loss(model, batch)) / batch.count, "accuracy": float(right)}


class Answerer(nn.Module):
    """Words in, logits of two answers out, from the mean of the rows: by itself it knows no order."""

    def __init__(self, attention: Attention, position: Position, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(2 + OTHERS, WIDTH)
        self.encoder = Encoder(WIDTH, 2, 4, attention=attention, position=position)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, words: Tensor) -> Tensor:
        y: Tensor = self.head(self.encoder(self.embedding(words)).mean(1))
        return y


# -- both tasks, all positions ---------------------------------------------------------------------------------

ORDER_STEPS, ORDER_RATE = 300, 3e-3
TEXT_STEPS = 500
LITTLE = 0.1  # nats


def ordered(mask: str, position: str, scale: Scale, tell: Callable[[float], None]) -> float:
    """The accuracy on which came first."""
    model = Answerer(MASKS[mask], POSITIONS[position](LENGTH, WIDTH, 1.0), scale.seed)
    task, steps = WhichFirst(scale.seed), scale.steps(ORDER_STEPS)
    return trained(model, task, steps, rate=ORDER_RATE, seed=scale.seed, tell=tell).last["accuracy"]


def read(mask: str, position: str, scale: Scale, tell: Callable[[float], None]) -> float:
    """Nats for each character: of the next one under the mask, of hidden ones without."""
    made, asked = {"causal": (small_gpt, NextCharacter), "no mask": (Filler, HiddenCharacters)}[mask]
    tokens, placed = characters(), POSITIONS[position](WINDOW, DIM, SPREAD)
    model = made(tokens.vocabulary_size, seed=scale.seed, attention=MASKS[mask], position=placed)
    task = asked(scale.seed, tokens, scale.steps(400, least=8))
    return trained(model, task, scale.steps(TEXT_STEPS), seed=scale.seed, tell=tell).last["loss"]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Train both tasks with every position, under both masks."""
    pairs = [(mask, position) for mask in MASKS for position in POSITIONS]
    told = shares([f"{task}, {mask}, {position}" for task in ("order", "text") for mask, position in pairs], tell)
    accuracy, loss = {}, {}
    for mask, position in pairs:
        accuracy[mask, position] = ordered(mask, position, scale, partial(told, f"order, {mask}, {position}"))
    for mask, position in pairs:
        loss[mask, position] = read(mask, position, scale, partial(told, f"text, {mask}, {position}"))
    return outcome_of(accuracy, loss)


def outcome_of(accuracy: dict[tuple[str, str], float], loss: dict[tuple[str, str], float]) -> Outcome:
    """The table and the answer, from accuracies and nats by mask and position."""
    numbers = {f"accuracy, {mask}, {position}": value for (mask, position), value in accuracy.items()}
    numbers |= {f"loss, {mask}, {position}": value for (mask, position), value in loss.items()}
    columns = (
        "positions", "which came first, causal", "which came first, no mask",
        "next character (causal), nats", "hidden characters (no mask), nats",
    )  # fmt: skip
    rows = tuple((position, *_cells(position, accuracy, loss)) for position in POSITIONS)
    return Outcome(answer(numbers), Table(columns, rows), numbers)


def _cells(position: str, accuracy: dict[tuple[str, str], float], loss: dict[tuple[str, str], float]) -> Iterator[Cell]:
    yield from (f"{accuracy[mask, position]:.1%}" for mask in MASKS)
    yield from (round(loss[mask, position], 3) for mask in MASKS)


def answer(numbers: dict[str, float]) -> str:
    """What the numbers say."""
    alone, unmasked = numbers["accuracy, causal, none"], numbers["accuracy, no mask, none"]
    first = (
        f"Without positions and without a mask, which of “cat” and “sat” came first is told in {unmasked:.1%} of rows"
    )
    tells = "a causal mask alone already tells order" if alone > 0.9 else "a causal mask alone does not help much"
    blind = numbers["accuracy, no mask, ALiBi"] < 0.6
    distance = " ALiBi's |i − j| fails there too: distance is not direction." if blind else ""
    return f"{first}; {tells} ({alone:.1%}).{distance} {_in_language(numbers)}"


def _in_language(numbers: dict[str, float]) -> str:
    """What each position gains over none, under the mask and without it."""
    gains = {
        position: [numbers[f"loss, {mask}, none"] - numbers[f"loss, {mask}, {position}"] for mask in MASKS]
        for position in POSITIONS
        if position != "none"
    }
    best = max(gains, key=lambda position: sum(gains[position]))
    causal, free = gains[best]
    little = [position for position, gained in gains.items() if max(gained) < LITTLE]
    hardly = f"; {' and '.join(little)} less than {LITTLE} in so short a training" if little else ""
    return f"In language {best} gains most, {causal:.2f} nats under the mask and {free:.2f} without it{hardly}."


# -- the picture -----------------------------------------------------------------------------------------------


def draw(outcome: Outcome, figure: Any) -> None:
    """Left: which came first. Right: language. Two bars for each position."""
    left, right = figure.subplots(1, 2)
    titles = {"accuracy": "“cat sat” or “sat cat”?", "loss": "Language: lower is better"}
    for axes, (kind, title) in zip((left, right), titles.items(), strict=True):
        for shift, (mask, colour) in zip((-0.2, 0.2), {"causal": "C0", "no mask": "C2"}.items(), strict=True):
            values = [outcome.numbers[f"{kind}, {mask}, {position}"] for position in POSITIONS]
            places = [place + shift for place in range(len(values))]
            label = {"accuracy": mask, "loss": f"{mask}: {'next' if mask == 'causal' else 'hidden'} character"}[kind]
            axes.bar(places, values, width=0.36, color=colour, label=label)
            for place, value in zip(places, values, strict=True):
                shown = f"{100 * value:.0f}" if kind == "accuracy" else f"{value:.2f}"
                axes.annotate(shown, (place, value), (0, 2), textcoords="offset points", ha="center", fontsize=9)
        axes.set_xticks(range(len(POSITIONS)), list(POSITIONS))
        axes.grid(axis="x", visible=False)
        axes.set_axisbelow(True)
        axes.set_title(title)
    left.axhline(0.5, color="#d1495b", linestyle="--", linewidth=1.4)
    left.annotate("chance", (4.75, 0.5), (0, 3), textcoords="offset points", color="#d1495b", fontsize=10)
    left.set_xlim(-0.6, 5.4)
    left.set_ylim(0, 1.22)
    left.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    left.set_ylabel("rows answered rightly")
    losses = [value for name, value in outcome.numbers.items() if name.startswith("loss")]
    right.set_ylim(min(losses) * 0.8, max(losses) * 1.12)
    right.set_ylabel("held-out nats per character")
    for axes in (left, right):
        axes.legend(loc="upper center", ncols=2, fontsize=10)


EXPERIMENT = Experiment(
    "positions",
    "Must positions be added for a model to know order?",
    ("P2",),
    2.0,
    run,
    draw,
    (11.0, 4.5),
)
