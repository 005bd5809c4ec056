"""The picture of `phrases`: what “cat” reads in three phrases, and what the answer rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .picture import COLOURS
from .record import Outcome

READS, WANTED, FAINT = COLOURS[0], COLOURS[1], "#9aa3ad"
BARS = {
    "before training": "before",
    "after training": "after",
    "without the\ndeciding word": "without the deciding word",
    "without one\nother word": "without one other word",
    "every word\nread alike": "equal weights",
}


def draw(outcome: Outcome, figure: Any) -> None:
    """Arcs from “cat” before and after; right answers with and without the weights."""
    words, three = outcome.series["words"], outcome.series["three"]
    panels = figure.subplots(1, 3, width_ratios=(1.2, 1.2, 1))
    for panel, when in zip(panels, ("before", "after"), strict=False):
        for row, phrase in enumerate(words):
            arcs(panel, phrase, three[when][row][0], outcome.series["decisive"][row], level=-2.1 * row)
            panel.text(4.75, -2.1 * row, f"→ {outcome.series['answers'][row]}", va="center", fontsize=13, color=FAINT)
        panel.set(xlim=(-0.5, 6.3), ylim=(-4.6, 1.35), title=f"{when.capitalize()} training: what “cat” reads")
        panel.axis("off")
    bars(panels[2], outcome.numbers)


def arcs(panel: Any, words: Sequence[str], weights: Sequence[float], decisive: int, level: float) -> None:
    """One phrase: a line from “cat” to every other word, as thick as its weight; under each the weight in percent."""
    from matplotlib.patches import Arc

    cat = words.index("cat")
    for at, (word, weight) in enumerate(zip(words, weights, strict=False)):
        colour = WANTED if at == decisive else READS
        look = {"color": colour, "weight": "bold"} if at in (cat, decisive) else {"color": "#333333"}
        panel.text(at, level, word, ha="center", va="center", fontsize=13, **look)
        panel.text(at, level - 0.3, f"{100 * weight:.0f} %", ha="center", va="center", fontsize=10, color=FAINT)
        if at != cat:
            width, height = abs(at - cat), 0.35 + 0.2 * abs(at - cat)
            middle = ((at + cat) / 2, level + 0.2)
            panel.add_patch(Arc(middle, width, 2 * height, theta1=0, theta2=180, color=colour, lw=0.4 + 8 * weight))


def bars(panel: Any, numbers: dict[str, float]) -> None:
    """Right answers from “cat”, with the levels that need no learned weight."""
    names = list(BARS)[::-1]
    shares = [100 * numbers[f"{BARS[name]}: right, cat"] for name in names]
    spread = [100 * numbers[f"{BARS[name]}: right, cat, spread"] for name in names]
    colours = [
        WANTED if "deciding" in name else FAINT if "alike" in name or "before" in name else READS for name in names
    ]
    panel.barh(names, shares, xerr=spread, color=colours, height=0.62, error_kw={"ecolor": "#333333", "capsize": 3})
    for at, (share, off) in enumerate(zip(shares, spread, strict=True)):
        panel.text(share + off + 3, at, f"{share:.0f} %", va="center", fontsize=11)
    for level, told, high in ((numbers["generic"], "word unread", -0.25), (numbers["either"], "read, not whose", 0.1)):
        panel.axvline(100 * level, color="#555555", lw=1, ls=":")
        panel.text(100 * level + 1.5, len(names) + high, told, va="center", fontsize=10, color="#555555")
    panel.set(xlim=(0, 122), ylim=(-0.6, len(names) + 0.35), xlabel="right answers on held-out phrases, %")
    panel.set_xticks(range(0, 101, 25))
    panel.set_title("What the answer rests on")
    panel.grid(axis="y", visible=False)
    panel.set_axisbelow(True)
