"""Words with one role lie together: the vectors with which a pretrained model begins, before it has read anything.

cos(x_a − m, x_b − m)        m: the mean over the vocabulary, which all vectors share
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .picture import COLOURS
from .pretrained import Reader, minilm
from .record import Cell, Experiment, Outcome, Scale, Table, Tell

GROUPS = {
    "animals": "cat dog horse cow mouse bird",
    "what one does": "typed walked jumped wrote asked cooked",
    "colours": "red blue green yellow black white",
    "numbers": "two three four five six seven",
    "cities": "london paris berlin rome madrid tokyo",
    "where": "under over behind between inside above",
}


def run(scale: Scale, tell: Tell) -> Outcome:  # noqa: ARG001 - as every experiment; 36 words are little
    """Every pair of words."""
    tell("MiniLM", 0.0)
    cosines = similarities(minilm(), [word for words in GROUPS.values() for word in words.split()])
    tell("MiniLM", 1.0)
    return outcome(cosines)


def similarities(reader: Reader, words: list[str]) -> Tensor:
    """The cosine of every pair of words."""
    places = reader.tokenizer.convert_tokens_to_ids(words)
    vectors = reader.embeddings[places] - reader.embeddings.mean(0)
    units = vectors / vectors.norm(dim=-1, keepdim=True)
    return units @ units.T


def outcome(cosines: Tensor) -> Outcome:
    """Means within groups and between them, and how often the nearest word is of the same group."""
    words = [word for group in GROUPS.values() for word in group.split()]
    label = torch.tensor([at for at, group in enumerate(GROUPS.values()) for _ in group.split()])
    same = label[:, None] == label
    others = ~torch.eye(len(words), dtype=torch.bool)
    nearest = (cosines - 2 * torch.eye(len(words))).argmax(-1)
    at = {word: place for place, word in enumerate(words)}
    numbers = {
        "within a group": float(cosines[same & others].mean()),
        "between groups": float(cosines[~same].mean()),
        "nearest of the same group": float((label[nearest] == label).double().mean()),
        "nearest by chance": float((same & others).double().mean() * len(words) / (len(words) - 1)),
        "cat and dog": float(cosines[at["cat"], at["dog"]]),
        "cat and typed": float(cosines[at["cat"], at["typed"]]),
    }
    means = [
        [float(cosines[label == a][:, label == b][others[label == a][:, label == b]].mean()) for b in range(6)]
        for a in range(6)
    ]
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, *row) for name, row in zip(GROUPS, means, strict=True))
    return Outcome(
        says(numbers), Table(("mean cosine", *GROUPS), rows), numbers, {"cosines": cosines.tolist(), "words": words}
    )


def says(numbers: dict[str, float]) -> str:
    """The answer."""
    return (
        f"Among 36 words of six roles the nearest word has the same role {numbers['nearest of the same group']:.0%} of "
        f"the time (by chance {numbers['nearest by chance']:.0%}): cosine {numbers['within a group']:.2f} within a "
        f"role, {numbers['between groups']:.2f} between roles; cat and dog {numbers['cat and dog']:.2f}, "
        f"cat and typed {numbers['cat and typed']:.2f}."
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Every pair of words, group by group; and the cosines of cat."""
    grid, bars = figure.subplots(1, 2, width_ratios=(1.2, 1))
    words, cosines = outcome.series["words"], outcome.series["cosines"]
    picture = grid.imshow(cosines, cmap="Blues", vmin=0, vmax=0.6)
    grid.set_xticks([])
    grid.set_yticks(range(len(words)), words, fontsize=7)
    grid.grid(visible=False)
    figure.colorbar(picture, ax=grid, label="cosine", shrink=0.8)
    near = sorted(zip(cosines[words.index("cat")], words, strict=True), reverse=True)[1:]
    animals = GROUPS["animals"].split()
    colours = [COLOURS[0] if word in animals else "#bbbbbb" for _, word in near]
    bars.barh([word for _, word in near], [cosine for cosine, _ in near], color=colours)
    bars.tick_params(axis="y", labelsize=7)
    bars.invert_yaxis()
    bars.set(xlabel="cosine with cat", title="Animals, and all others")
    bars.grid(axis="y", visible=False)


EXPERIMENT = Experiment(
    "roles",
    "Do words with one role lie together?",
    ("P6",),
    0.1,
    run,
    draw,
    (10.0, 5.5),
)
