"""Who may read whom: an encoder, a decoder, and both.

encoder           every row reads every row                                  fills what is hidden
decoder           a row reads the rows before it                             writes what comes next
encoder–decoder   the source reads itself both ways, the target what came    writes the target, having read the source
                  before in it, and all of the source
mask forgotten    a decoder's task without its mask: the next character is among those that are read

Each is trained on lines `07 mar 84=84-03-07`, and asked what it can: to name a hidden digit whose answer stands to
its right, to its left, and to write a translation. Of the two translations of a date an encoder, which fills all places
by themselves and at once, may mix both; who writes from left to right can keep to the one that was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..inputs.positions import Learned
from ..nn.encoder_decoder import EncoderDecoder
from ..nn.gpt import GPT
from ..nn.stacks import Encoder
from ..train.batch import Batch
from ..train.data.windows import IGNORED
from . import dates
from .dates import AFTER, BEFORE, EQUALS, HIDDEN, LINE, SOURCE, TARGET, TOKENS
from .language import nats, trained
from .record import Cell, Experiment, Outcome, Scale, Table, Tell, shares
from .sides_drawing import ASKED_FOR, draw

DIM, DEPTH, HEADS = 64, 2, 4
LINES, STEPS, RATE = 32, 1200, 5e-3
ASKED = 256  # held-out lines


GAPS: dict[str, dict[str, Any]] = {
    "encoder": {"gap before": BEFORE, "gap after": AFTER},
    "decoder": {"gap before": BEFORE, "gap after": AFTER},
    "encoder–decoder": {"gap after": AFTER},  # its source is never a target
}


# -- models and what they learn --------------------------------------------------------------------------------


class EncoderOnly(nn.Module):
    """Ids in, logits out; no mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, DIM)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.encoder = Encoder(DIM, DEPTH, HEADS, position=Learned.random(LINE, DIM))

    def forward(self, ids: Tensor) -> Tensor:
        return self.encoder(self.embedding(ids)) @ self.embedding.weight.T


@dataclass
class Lines:
    """Lines by their step; what is asked of them is said below."""

    seed: int

    def batch(self, step: int) -> Batch:
        """Lines with what is predicted of them."""
        rng = np.random.default_rng([self.seed, step])
        tensors = self.asked(dates.lines(rng, LINES), rng)
        return Batch(tensors, int((tensors["targets"] != IGNORED).sum()))

    def asked(self, lines: Tensor, rng: np.random.Generator) -> dict[str, Tensor]:
        """What a model sees, and what it is to say: the next character of each."""
        return {"inputs": lines[:, :-1], "targets": lines[:, 1:]}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The sum over all that is predicted."""
        return nats(model(batch["inputs"]), batch["targets"].contiguous())

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The loss on held-out dates."""
        rng = np.random.default_rng([self.seed, 0, 1])
        tensors = self.asked(dates.lines(rng, ASKED, held_out=True), rng)
        batch = Batch(tensors, int((tensors["targets"] != IGNORED).sum()))
        return {"loss": float(self.loss(model, batch)) / batch.count}


class HiddenPlaces(Lines):
    """What is hidden: a fifth of the places, or the whole translation, in turn."""

    def asked(self, lines: Tensor, rng: np.random.Generator) -> dict[str, Tensor]:
        hidden = torch.from_numpy(rng.random(tuple(lines.shape)) < 0.2)
        hidden[::2] = torch.arange(LINE) > EQUALS
        return {"inputs": lines.masked_fill(hidden, HIDDEN), "targets": lines.masked_fill(~hidden, IGNORED)}


class Pairs(Lines):
    """The translation, after the date as a source of its own; the target begins with =."""

    def asked(self, lines: Tensor, rng: np.random.Generator) -> dict[str, Tensor]:
        return {"inputs": lines[:, :-1], "targets": lines[:, EQUALS + 1 :]}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        line = batch["inputs"]
        return nats(model(line[:, :SOURCE], line[:, EQUALS:]), batch["targets"].contiguous())


MODELS: dict[str, tuple[Callable[[], nn.Module], type[Lines]]] = {
    "encoder": (EncoderOnly, HiddenPlaces),
    "decoder": (lambda: GPT(TOKENS, DIM, DEPTH, HEADS, position=Learned.random(LINE, DIM)), Lines),
    "encoder–decoder": (lambda: EncoderDecoder(TOKENS, DIM, DEPTH, HEADS, position=Learned.random(LINE, DIM)), Pairs),
    "mask forgotten": (EncoderOnly, Lines),
}


# -- what they can do ------------------------------------------------------------------------------------------


def next_logits(model: nn.Module, line: Tensor) -> Tensor:
    """(lines, tokens): of the character after the line so far."""
    if isinstance(model, EncoderDecoder):
        logits: Tensor = model(line[:, :SOURCE], line[:, EQUALS:])[:, -1]
        return logits
    return torch.as_tensor(model(line)[:, -1])


def logits_at(name: str, model: nn.Module, lines: Tensor, place: int) -> Tensor:
    """Of the character that is hidden at a place: from both sides by an encoder, from what came before by others."""
    if name != "encoder":
        return next_logits(model, lines[:, :place])
    hidden = lines.clone()
    hidden[:, place] = HIDDEN
    return torch.as_tensor(model(hidden)[:, place])


def named(name: str, model: nn.Module, lines: Tensor, places: tuple[int, ...]) -> float:
    """The share of hidden characters that are named rightly."""
    found = [logits_at(name, model, lines, place).argmax(1) == lines[:, place] for place in places]
    return float(torch.stack(found).double().mean())


def translated(name: str, model: nn.Module, lines: Tensor, seed: int) -> float:
    """The share of dates after which a right translation is drawn."""
    drawn = torch.Generator().manual_seed(seed)
    line = lines[:, : EQUALS + 1]
    if name == "encoder":  # all places at once
        hidden = torch.cat([line, torch.full((len(line), TARGET), HIDDEN)], 1)
        chosen = torch.multinomial(model(hidden)[:, EQUALS + 1 :].flatten(0, 1).softmax(-1), 1, generator=drawn)
        return float(dates.right(torch.cat([line, chosen.reshape(-1, TARGET)], 1)).double().mean())
    for _ in range(TARGET):
        line = torch.cat([line, torch.multinomial(next_logits(model, line).softmax(-1), 1, generator=drawn)], 1)
    return float(dates.right(line).double().mean())


def moved(model: Callable[[Tensor], Tensor], ids: Tensor, place: int, row: int) -> float:
    """How far what stands in a row moves when the character at a place is another."""
    other = ids.clone()
    other[:, place] = (other[:, place] + 1) % HIDDEN
    return float((model(ids)[:, row] - model(other)[:, row]).abs().max())


def reading(name: str, model: Any, lines: Tensor) -> dict[str, float]:
    """What reaches an earlier row from a later one; in an encoder–decoder for each of its three attentions."""
    if name != "encoder–decoder":
        return {"later": moved(model, lines, LINE - 1, 0)}
    date, translation = lines[:, :SOURCE], lines[:, EQUALS:-1]
    memory = model.encode(date)
    return {
        "source": moved(model.encode, date, SOURCE - 1, 0),
        "target": moved(lambda target: model.decode(target, memory), translation, TARGET - 1, 0),
        "cross": moved(lambda source: model(source, translation), date, SOURCE - 1, 0),
    }


# -- all of it -------------------------------------------------------------------------------------------------


def run(scale: Scale, tell: Tell) -> Outcome:
    """Train each, and ask."""
    told, steps = shares(list(MODELS), tell), scale.steps(STEPS)
    asked = dates.lines(np.random.default_rng([scale.seed, 1, 1]), ASKED, held_out=True)
    numbers: dict[str, float] = {}
    for name, (made, task) in MODELS.items():
        torch.manual_seed(scale.seed)
        model = made()
        history = trained(model, task(scale.seed), steps, rate=RATE, seed=scale.seed, tell=partial(told, name))
        with torch.no_grad():
            numbers |= {f"{name}, {what}": number for what, number in abilities(name, model, asked, scale.seed).items()}
        numbers[f"{name}, loss"] = history.last["loss"]
    return outcome_of(numbers)


def abilities(name: str, model: nn.Module, asked: Tensor, seed: int) -> dict[str, float]:
    """Accuracies, and what reaches whom."""
    found = {"writes": translated(name, model, asked, seed)}
    found |= {what: named(name, model, asked, places) for what, places in GAPS.get(name, {}).items()}
    return {**found, **{f"moved, {where}": by for where, by in reading(name, model, asked).items()}}


MASKS = {"encoder": "none", "decoder": "causal", "encoder–decoder": "none + causal + cross", "mask forgotten": "none"}


def outcome_of(numbers: dict[str, float]) -> Outcome:
    """The table and the answer."""
    columns = (
        "model", "mask", "held-out loss", "hidden digit, answer to its right", "hidden digit, answer to its left",
        "writes a right translation",
    )  # fmt: skip
    rows = tuple((name, mask, *_cells(name, numbers)) for name, mask in MASKS.items())
    return Outcome(answer(numbers), Table(columns, rows), numbers)


def _cells(name: str, numbers: dict[str, float]) -> Iterator[Cell]:
    yield round(numbers[f"{name}, loss"], 3)
    for what in ASKED_FOR:
        yield f"{numbers[f'{name}, {what}']:.0%}" if f"{name}, {what}" in numbers else "–"


def answer(numbers: dict[str, float]) -> str:
    """What the numbers say."""
    both, left = numbers["encoder, gap before"], numbers["decoder, gap before"]
    writes = {name: numbers[f"{name}, writes"] for name in MODELS}
    sees = "needs both sides" if both > left + 0.3 else "does not need both sides"
    prompt = (
        "; a decoder with the date as its prompt does as well as one that reads it by cross-attention"
        if abs(writes["decoder"] - writes["encoder–decoder"]) < 0.1
        else ""
    )
    return (
        f"A hidden digit whose answer stands to its right {sees}: {both:.0%} by the encoder, {left:.0%} by the "
        f"decoder. A right translation is written by the encoder in {writes['encoder']:.0%}, by the decoder in "
        f"{writes['decoder']:.0%} and by both together in {writes['encoder–decoder']:.0%} of cases{prompt}. "
        f"A decoder without its mask has a loss of {numbers['mask forgotten, loss']:.2f} and writes "
        f"{writes['mask forgotten']:.0%}."
    )


EXPERIMENT = Experiment(
    "sides",
    "What can an encoder, a decoder and both together do?",
    ("M2",),
    1.0,
    run,
    draw,
    (10.0, 5.0),
)
