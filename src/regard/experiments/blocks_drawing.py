"""The picture of the blocks: loss against depth on the left, what each part is worth on the right."""

from __future__ import annotations

from typing import Any

from .picture import COLOURS
from .record import Outcome

KEPT = ("whole, norm before", "whole, norm after")


def draw(outcome: Outcome, figure: Any) -> None:
    """A line and a bar for each structure, in one colour."""
    depth, costs = figure.subplots(1, 2, width_ratios=(1, 1.1))
    names = [str(name) for name in outcome.table.column("block")]
    colours = dict(zip(names, COLOURS, strict=False))
    _draw_depth(depth, names, colours, outcome)
    _draw_costs(costs, names, colours, outcome.numbers)


def _draw_depth(axes: Any, names: list[str], colours: dict[str, str], outcome: Outcome) -> None:
    depths = outcome.series["depths"]
    for name in names:
        nats = [outcome.numbers[f"{name}: {depth}"] for depth in depths[:-1]] + [outcome.numbers[f"{name}: best"]]
        axes.plot(depths, nats, marker="o", color=colours[name], label=name, zorder=3 if name == KEPT[0] else 2)
    axes.set_xticks(depths)
    axes.set(title="Held-out loss by depth", xlabel="blocks", ylabel="nats for each character")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=10)


def _draw_costs(axes: Any, names: list[str], colours: dict[str, str], numbers: dict[str, float]) -> None:
    whole = numbers[f"{KEPT[0]}: best"]
    shown = sorted(names[1:], key=lambda name: numbers[f"{name}: best"])
    costs = [numbers[f"{name}: best"] - whole for name in shown]
    bars = axes.barh(range(len(shown)), costs, 0.62, color=[colours[name] for name in shown])
    axes.bar_label(bars, fmt="%+.2f", padding=4, color="#333333")
    axes.axvline(0, color="#555555", linewidth=1.0)
    axes.set_yticks(range(len(shown)), [name.removeprefix("whole, ") for name in shown])
    axes.invert_yaxis()
    axes.set_axisbelow(True)
    axes.margins(x=0.15)
    axes.set(title="Against the whole block, four deep", xlabel="worse by so many nats for each character")
    axes.grid(axis="y", visible=False)
