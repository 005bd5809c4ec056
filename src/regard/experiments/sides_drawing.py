"""What an encoder, a decoder and both can do, as a picture."""

from __future__ import annotations

from typing import Any

from .record import Outcome

CHANCE = 0.1  # of naming a digit
ASKED_FOR = {
    "gap before": "name a hidden digit,\nanswer to its right",
    "gap after": "name a hidden digit,\nanswer to its left",
    "writes": "write a right\ntranslation",
}
"""What is asked of each, as the numbers are named, and in words."""


def draw(outcome: Outcome, figure: Any) -> None:
    """What each can do: a group of bars for each thing that is asked."""
    axes = figure.subplots()
    colours = {"encoder": "C2", "decoder": "C0", "encoder–decoder": "C4", "mask forgotten": "C5"}
    for at, (name, colour) in enumerate(colours.items()):
        for group, what in enumerate(ASKED_FOR):
            value, place = outcome.numbers.get(f"{name}, {what}"), group + 0.21 * (at - 1.5)
            axes.bar(place, value or 0, width=0.19, color=colour, label=name if group == 0 else None)
            shown = "–" if value is None else f"{100 * value:.0f} %"
            axes.annotate(shown, (place, value or 0), (0, 3), textcoords="offset points", ha="center", fontsize=10)
    axes.set_xticks(range(len(ASKED_FOR)), list(ASKED_FOR.values()))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.plot([-0.45, 1.45], [CHANCE, CHANCE], color="#d1495b", linestyle="--", linewidth=1.4)
    axes.annotate(
        "chance", (0.5, CHANCE), (0, 4), textcoords="offset points", ha="center", color="#d1495b", fontsize=10
    )
    axes.grid(axis="x", visible=False)
    axes.set_axisbelow(True)
    axes.set(ylim=(0, 1.12), ylabel="right, of held-out dates", title="07 mar 84=84-03-07, or 07.03.84")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=4)
