"""The picture of the mistakes: one training on the left, where all of them end on the right."""

from __future__ import annotations

import math
from typing import Any

from .picture import COLOURS
from .record import Outcome

DARK, RED, GREEN, GREY = COLOURS[0], COLOURS[1], COLOURS[3], COLOURS[5]
MARKS = (("training", "|", GREY), ("as a whole", "o", GREEN), ("one by one", "o", RED))
LABELS = {"training": "training", "as a whole": "held out, seen as a whole", "one by one": "held out, one by one"}


def draw(outcome: Outcome, figure: Any) -> None:
    """Curves of the wrong axis; one line for each mistake."""
    curves, ends = figure.subplots(1, 2, width_ratios=(1, 1.7))
    _draw_curves(curves, outcome.series)
    _draw_ends(ends, outcome)
    handles, labels = ends.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _draw_curves(axes: Any, series: dict[str, Any]) -> None:
    wrong, right = series["curves"]["softmax over queries"], series["curves"]["right"]
    axes.plot(*_smooth(wrong["training"]), color=GREY)
    axes.plot(wrong["steps"], wrong["whole"], color=GREEN, marker="o", markersize=4)
    axes.plot(wrong["steps"], wrong["single"], color=RED, marker="o", markersize=4)
    axes.plot(right["steps"], right["single"], color=DARK, linestyle="--")
    middle = len(wrong["steps"]) // 2
    for values, text, colour in (
        (wrong["single"], "one by one", RED),
        (right["single"], "the right formula", DARK),
        (wrong["whole"], "seen as a whole", GREEN),
    ):
        at = (wrong["steps"][middle], values[middle])
        axes.annotate(text, at, (9, 8), textcoords="offset points", color=colour)
    axes.axhline(math.log(series["uniform"]), color=GREY, linestyle=":", linewidth=1.2)
    axes.annotate("guessing", (wrong["steps"][-1], math.log(series["uniform"])), (-4, 4), textcoords="offset points",
                  ha="right", color="#555555")  # fmt: skip
    axes.set(
        title="Softmax over queries, step by step", xlabel="steps", ylabel="nats for each character", ylim=(0, None)
    )


def _smooth(losses: list[float], width: int = 10) -> tuple[list[float], list[float]]:
    """Means of neighbouring losses, each over the middle of its steps."""
    width = min(width, len(losses))
    starts = range(0, len(losses) - width + 1, width)
    return [at + width / 2 for at in starts], [sum(losses[at : at + width]) / width for at in starts]


def _draw_ends(axes: Any, outcome: Outcome) -> None:
    table = outcome.table
    names = [str(name) for name in table.column("what is done")]
    places = range(len(names), 0, -1)
    low, high = (table.column(column) for column in ("as a whole", "one by one"))
    axes.hlines(places, low, high, color="#d0d0d0", linewidth=3, zorder=1)
    for column, marker, colour in MARKS:
        axes.scatter(table.column(column), places, marker=marker, s=70, color=colour, label=LABELS[column], zorder=2)
    for name, align in (("right", "right"), ("no attention", "left")):
        value = high[names.index(name)]
        axes.axvline(value, color=DARK, linestyle="--", linewidth=1.2, zorder=0)
        axes.annotate(name, (value, len(names) + 0.6), ha=align, color=DARK, annotation_clip=False)
    axes.set_yticks(list(places), names)
    axes.set(
        title="Where each mistake ends\n",
        xlabel="nats for each character",
        xlim=(0, None),
        ylim=(0.3, len(names) + 0.5),
    )
    axes.grid(axis="y", visible=False)
