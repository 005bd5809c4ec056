"""Misplaced attention: weights on the word that matters are blocked in a pretrained model, and it says what is usual.

    mask_ij = own_ij and not (j is the named word and i stands after it)

"The capital of Italy is" without Italy can only answer as for any country. Blocked are all layers, or a third of them;
beside it a word that matters less ("of") is blocked. Predictions are generic where they no longer differ between
prompts: the mean Jensen–Shannon divergence between the answers to two of them, in nats (log 2 is the most).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import hf
from ..algebra.masks import given
from ..attention import Attention
from .picture import COLOURS
from .pretrained import Reader, smollm2
from .record import Cell, Experiment, Outcome, Scale, Table, Tell

CAPITALS = (
    "Italy Rome, Spain Madrid, Japan Tokyo, Russia Moscow, China Beijing, England London, Greece Athens, Egypt Cairo, "
    "Austria Vienna, Poland Warsaw, Cuba Havana, Ireland Dublin, Norway Oslo, Portugal Lisbon, Peru Lima, Turkey Ankara"
)
OPPOSITES = (
    "hot cold, big small, tall short, old young, fast slow, rich poor, hard soft, dark light, wet dry, happy sad, "
    "good bad, early late"
)
FAMILIES = {
    "capitals": ("The capital of France is Paris. The capital of Germany is Berlin. The capital of", CAPITALS),
    "opposites": ("The opposite of up is down. The opposite of open is closed. The opposite of", OPPOSITES),
}
THIRDS = ("first third of layers", "second third of layers", "last third of layers")
KINDS = ("nothing", "the word before it", *THIRDS, "the named word")


@dataclass(frozen=True)
class Prompt:
    """Token numbers, where the named word stands among them, and the token of the right answer."""

    tokens: Tensor
    named: range
    answer: int


def prompts(reader: Reader, family: str) -> list[Prompt]:
    """The prompts of a family."""
    lead, pairs = FAMILIES[family]
    made = []
    for pair in pairs.split(", "):
        named, answer = pair.split()
        before, middle, after, told = (
            reader.tokenizer(text)["input_ids"] for text in (lead, f" {named}", " is", f" {answer}")
        )
        where = range(len(before), len(before) + len(middle))
        made.append(Prompt(torch.tensor([before + middle + after]), where, told[0]))
    return made


def kept(prompt: Prompt, kind: str) -> Tensor:
    """Which pairs stay: (1, 1, n, n)."""
    n = prompt.tokens.shape[1]
    stays = torch.ones(1, 1, n, n, dtype=torch.bool)
    if kind != "nothing":
        blocked = [prompt.named.start - 1] if kind == "the word before it" else list(prompt.named)
        stays[..., prompt.named.stop :, blocked] = False
    return stays


def layers_of(kind: str, layers: int) -> range:
    """In which layers pairs are blocked."""
    third = layers // 3
    at = THIRDS.index(kind) if kind in THIRDS else None
    return range(layers) if at is None else range(at * third, (at + 1) * third)


@torch.no_grad()  # type: ignore[untyped-decorator]
def answers(reader: Reader, prompt: Prompt, kind: str) -> Tensor:
    """The distribution of the next token."""
    inside = layers_of(kind, reader.model.config.num_hidden_layers)
    chosen = {f"layers.{layer}." for layer in inside}
    with hf.use(
        reader.model, _without, where=lambda name: any(part in f"{name}." for part in chosen), kept=kept(prompt, kind)
    ):
        return reader.model(prompt.tokens).logits[0, -1].double().softmax(-1)


def _without(own: Attention) -> Attention:
    stays = given("kept")
    return Attention(own.score, own.weight, stays if own.mask is None else own.mask & stays)


def divergence(answers: Tensor) -> float:
    """The mean Jensen–Shannon divergence between two of several distributions, in nats.

    >>> round(divergence(torch.eye(3, dtype=torch.double)), 4)  # log 2
    0.6931
    """
    middle = (answers[:, None] + answers) / 2
    apart = torch.special.xlogy(answers[:, None], answers[:, None]) - torch.special.xlogy(answers[:, None], middle)
    both = (apart + apart.transpose(0, 1)).sum(-1) / 2
    return float(both.sum() / (len(answers) * (len(answers) - 1)))


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both families, blocked in every way."""
    reader = smollm2()
    numbers: dict[str, float] = {}
    usual: dict[str, str] = {}
    for at, family in enumerate(FAMILIES):
        asked = prompts(reader, family)
        asked = asked[: scale.steps(len(asked))]
        for place, kind in enumerate(KINDS):
            tell(f"{family}: {kind}", (at + place / len(KINDS)) / len(FAMILIES))
            said = torch.stack([answers(reader, prompt, kind) for prompt in asked])
            right = torch.tensor([prompt.answer for prompt in asked])
            numbers |= {
                f"{family}: {kind}: right": float((said.argmax(-1) == right).double().mean()),
                f"{family}: {kind}: probability": float(said.gather(1, right[:, None]).mean()),
                f"{family}: {kind}: divergence": divergence(said),
            }
            usual[family] = reader.tokenizer.decode([int(said.mean(0).argmax())]).strip()
    return outcome(numbers, usual)


def outcome(numbers: dict[str, float], usual: dict[str, str]) -> Outcome:
    """A row for each way of blocking."""
    names = ("right", "divergence")
    columns = tuple(f"{family}, {name}" for family in FAMILIES for name in names)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (kind, *(numbers[f"{family}: {kind}: {name}"] for family in FAMILIES for name in names)) for kind in KINDS
    )
    return Outcome(says(numbers, usual), Table(("blocked", *columns), rows), numbers, {"usual": usual})


def says(numbers: dict[str, float], usual: dict[str, str]) -> str:
    """The answer."""
    told = "; ".join(
        f"{family}: {numbers[f'{family}: nothing: right']:.0%} right, "
        f"{numbers[f'{family}: the named word: right']:.0%} with the named word blocked "
        f"(then “{usual[family]}” for each), "
        f"{numbers[f'{family}: the word before it: right']:.0%} with the word before it blocked"
        for family in FAMILIES
    )
    apart = {kind: numbers[f"capitals: {kind}: divergence"] for kind in (*THIRDS, "nothing")}
    least = min(THIRDS, key=lambda kind: apart[kind])
    return (
        f"Without the weights on the word that matters the answer is generic. {told}. Of thirds of the layers the "
        f"{least.split()[0]} matters most: answers then differ by {apart[least]:.3f} nats in place of "
        f"{apart['nothing']:.3f}."
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Right answers, and how far answers lie apart, for each way of blocking."""
    for axes, name, label in zip(
        figure.subplots(1, 2, sharey=True),
        ("right", "divergence"),
        ("right answers", "answers apart, nats"),
        strict=True,
    ):
        for at, family in enumerate(FAMILIES):
            down = [place + 0.36 * (at - 0.5) for place in range(len(KINDS))]
            axes.barh(
                down,
                [outcome.numbers[f"{family}: {kind}: {name}"] for kind in KINDS],
                0.34,
                color=COLOURS[at],
                label=family,
            )
        axes.set_yticks(range(len(KINDS)), [f"the named word,\n{kind}" if kind in THIRDS else kind for kind in KINDS])
        axes.set(xlabel=label)
        axes.grid(axis="y", visible=False)
    axes.invert_yaxis()
    axes.legend(fontsize=11, loc="lower right")


EXPERIMENT = Experiment(
    "blocked",
    "What does a model say when it may not look at the word that matters?",
    ("P8",),
    1.0,
    run,
    draw,
    (10.0, 4.5),
)
