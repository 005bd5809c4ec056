"""What the heads of pretrained models attend to: how few tokens count, and whether heads do what they are said to do.

    exp(H_i) / n_i,  H_i = −Σ_j w_ij log w_ij        the share of the tokens that row i reads, 1 where all count alike

A head is chosen on every second sentence and measured on the others, so that one of many is not found by luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .links import BRACKETS, PRONOUNS, VERBS, Sentence, bracketed, marked
from .picture import COLOURS
from .pretrained import TEXTS, Read, Reader, minilm, smollm2
from .record import Experiment, Outcome, Scale, Table, Tell

LITTLE = 0.25  # of an even share: what almost nothing is


@dataclass(frozen=True)
class Link:
    """One head that links places: its weight where it was chosen, where it was not, and that of the mean head."""

    what: str
    head: tuple[int, int]
    chosen: float
    elsewhere: float
    mean: float


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both models, on whole texts and on sentences with a link."""
    tell("MiniLM", 0.0)
    encoder = minilm()
    numbers = _numbers("MiniLM", [encoder.read(text) for text in TEXTS[: scale.steps(len(TEXTS))]])
    links = [
        linked("pronoun → whom it means", encoder, [marked(line) for line in PRONOUNS]),
        linked("verb → its subject", encoder, [marked(line) for line in VERBS]),
    ]
    tell("SmolLM2", 0.4)
    decoder = smollm2()
    numbers |= _numbers("SmolLM2", [decoder.read(text) for text in TEXTS[: scale.steps(len(TEXTS))]])
    links.append(linked("closing bracket → its opening one", decoder, [bracketed(line) for line in BRACKETS]))
    tell("SmolLM2", 1.0)
    for link in links:
        numbers |= {f"{link.what}: elsewhere": link.elsewhere, f"{link.what}: mean head": link.mean}
    rows = tuple(
        (link.what, f"{link.head[0]}.{link.head[1]}", link.chosen, link.elsewhere, link.mean) for link in links
    )
    table = Table(("link", "layer.head", "weight, chosen on", "on the other sentences", "of the mean head"), rows)
    return Outcome(says(numbers), table, numbers, {"links": [list(row) for row in rows]})


def _numbers(name: str, texts: list[Read]) -> dict[str, float]:
    """Means over texts, rows and heads; the first row of a decoder reads one token and counts nowhere."""
    found = [measured(read.weights, read.causal) for read in texts]
    return {f"{name}: {what}": sum(one[what] for one in found) / len(found) for what in found[0]}


def measured(weights: Tensor, causal: bool) -> dict[str, float]:
    """Of weights (layers, heads, n, n): how widely rows read, and how much lies on the diagonal and the first token."""
    n = weights.shape[-1]
    rows = torch.arange(n)
    counts = (rows + 1 if causal else torch.full((n,), n)).to(weights.dtype)
    some = rows >= n // 2  # rows with enough to read
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    read = (entropy.exp() / counts)[..., some].mean(-1)
    admitted = rows <= rows[:, None] if causal else torch.ones(n, n, dtype=torch.bool)
    little = (weights < LITTLE / counts[:, None]) & admitted
    diagonal = weights.diagonal(dim1=-2, dim2=-1)[..., some].mean(-1)
    first = weights[..., some, 0].mean(-1)
    return {
        "share of tokens read, median head": float(read.median()),
        "weights below a quarter of an even share": float(
            little[..., some, :].sum() / admitted[some].sum() / read.numel()
        ),
        "on the diagonal": float(diagonal.mean()),
        "on the diagonal, brightest head": float(diagonal.max()),
        "on the first token": float(first.mean()),
        "on the first token, layers from 3": float(first[3:].mean()),
        "even share": float((1 / counts[some]).mean()),
    }


def linked(what: str, reader: Reader, sentences: list[Sentence]) -> Link:
    """The head that links best on every second sentence, and what it does on the others."""
    found = [_weight(reader.read(sentence.text), sentence) for sentence in sentences]
    chosen, others = (torch.stack(found[at::2]).mean(0) for at in (0, 1))
    best = int(chosen.flatten().argmax())
    head = divmod(best, chosen.shape[1])
    return Link(what, head, float(chosen[head]), float(others[head]), float(others.mean()))


def _weight(read: Read, sentence: Sentence) -> Tensor:
    """The mean weight of its links, for each layer and head."""
    spots = [(read.token_at(start), read.token_at(end)) for start, end in sentence.links]
    return torch.stack([read.weights[:, :, query, key] for query, key in spots]).mean(0)


def says(numbers: dict[str, float]) -> str:
    """The answer."""
    few = "; ".join(
        f"in {name} the median head reads {numbers[f'{name}: share of tokens read, median head']:.0%} of the tokens, "
        f"and {numbers[f'{name}: weights below a quarter of an even share']:.0%} of its weights are next to nothing"
        for name in ("MiniLM", "SmolLM2")
    )
    first = numbers["SmolLM2: on the first token, layers from 3"]
    links = [(what.partition(":")[0], weight) for what, weight in numbers.items() if what.endswith(": elsewhere")]
    told = ", ".join(f"{what} {weight:.2f}" for what, weight in links)
    return (
        f"Attention concentrates: {few}. The diagonal is not what is bright: it holds "
        f"{numbers['MiniLM: on the diagonal']:.0%} and {numbers['SmolLM2: on the diagonal']:.0%}, the first token of "
        f"SmolLM2 {first:.0%} from layer 3 on. Heads that link exist (weights on sentences they were not chosen on): "
        f"{told}."
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Where the weight goes; and the heads that link, beside the mean head."""
    places, heads = figure.subplots(1, 2, width_ratios=(1, 1.25))
    names = ("on the diagonal", "on the first token", "even share")
    for at, model in enumerate(("MiniLM", "SmolLM2")):
        across = [place + 0.38 * (at - 0.5) for place in range(len(names))]
        places.bar(
            across, [outcome.numbers[f"{model}: {name}"] for name in names], 0.36, color=COLOURS[at], label=model
        )
    places.set_xticks(range(len(names)), ["diagonal", "first token", "even share"])
    places.set(ylabel="mean weight of a row", title="Where the weight goes")
    places.legend(fontsize=11)
    rows = outcome.series["links"]
    for at, (_, head, chosen, elsewhere, mean) in enumerate(rows):
        heads.plot([mean, elsewhere], [at, at], color="#bbbbbb", lw=2, zorder=1)
        heads.plot(mean, at, "o", color="#999999", ms=8, label=None if at else "mean of all heads")
        heads.plot(elsewhere, at, "o", color=COLOURS[0], ms=9, label=None if at else "on other sentences")
        heads.plot(chosen, at, "o", mfc="none", mec=COLOURS[0], ms=9, label=None if at else "where it was chosen")
        heads.text(max(elsewhere, chosen) + 0.03, at, f"head {head}", va="center", fontsize=11)
    heads.set_yticks(range(len(rows)), [row[0].replace(" → ", " →\n") for row in rows])
    heads.set(xlim=(0, 1.1), ylim=(-0.6, len(rows) - 0.4), xlabel="weight", title="The head that links best")
    heads.invert_yaxis()
    heads.legend(fontsize=10, loc="upper right")


EXPERIMENT = Experiment(
    "attended",
    "What do the heads of pretrained models attend to?",
    ("N7", "E1"),
    0.5,
    run,
    draw,
    (11.0, 4.5),
)
