"""The picture of the roles: the party on the left, the language model on the right."""

from __future__ import annotations

from typing import Any

from .picture import COLOURS
from .record import Outcome


def draw(outcome: Outcome, figure: Any) -> None:
    """Two bars for each tie, and a point."""
    party, language = figure.subplots(1, 2, width_ratios=(1.5, 1))
    names = [str(name) for name in outcome.table.column("roles")]
    _draw_party(party, names[:-1], outcome)
    _draw_language(language, names, outcome.numbers)


def _draw_party(axes: Any, names: list[str], outcome: Outcome) -> None:
    numbers, height = outcome.numbers, 0.38
    for how, label, colour, shift in (
        ("mapped", "a learned map stands behind", COLOURS[0], -0.2),
        ("as it is", "what arrives is heard as it is", COLOURS[2], 0.2),
    ):
        shares = [100 * numbers[f"{name}: {how}"] for name in names]
        bars = axes.barh([at + shift for at in range(len(names))], shares, height, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f", padding=3, color="#333333")
    axes.axvline(100 * outcome.series["chance"], color="#555555", linestyle=":", linewidth=1.2)
    axes.annotate(
        "chance", (100 * outcome.series["chance"], -0.75), (3, 0), textcoords="offset points", color="#555555"
    )
    axes.set_yticks(range(len(names)), names)
    axes.set(
        title="A party: the story of the guest asked for", xlabel="guests who hear the right story, %", xlim=(0, 109)
    )
    axes.set_ylim(len(names) - 0.5, -0.9)
    axes.set_axisbelow(True)
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def _draw_language(axes: Any, names: list[str], numbers: dict[str, float]) -> None:
    nats = [numbers[f"{name}: nats"] for name in names]
    colours = [COLOURS[0]] * (len(names) - 1) + [COLOURS[5]]
    axes.hlines(range(len(names)), min(nats), nats, color="#d8d8d8", linewidth=3, zorder=1)
    axes.scatter(nats, range(len(names)), color=colours, s=80, zorder=2)
    for at, value in enumerate(nats):
        axes.annotate(f"{value:.2f}", (value, at), (9, -4), textcoords="offset points", color="#333333")
    axes.axvline(nats[0], color=COLOURS[0], linestyle="--", linewidth=1.2, zorder=0)
    axes.set_yticks(range(len(names)), names)
    axes.set(title="A language model on held-out text", xlabel="nats for each character (less is better)")
    axes.set_ylim(len(names) - 0.5, -0.9)
    axes.set_axisbelow(True)
    axes.margins(x=0.18)
    axes.grid(axis="y", visible=False)
