"""The picture of `direction`: one scene, who reads whom in it, and what is lost without."""

from __future__ import annotations

from typing import Any

import numpy as np

from .picture import COLOURS
from .record import Outcome

GROUND, HULL = 1, 2  # kinds of patches, as in `scenes`
BOAT, WATER = COLOURS[1], COLOURS[0]
ROWS = ("hull → ground", "ground → hull", "stroke → background", "background → stroke")


def draw(outcome: Outcome, figure: Any) -> None:
    """The scene; attention over chance; right answers without it."""
    scene, lifts, lost = figure.subplots(1, 3, width_ratios=(1, 1.15, 1))
    draw_scene(scene, outcome.series)
    colours = [BOAT, WATER, BOAT, WATER]
    numbers, at = outcome.numbers, np.array([4.2, 3.2, 1.2, 0.2])
    _bars(lifts, numbers, at, colours, "after", 1)
    lifts.plot(
        [numbers[f"{name}: before"] for name in ROWS],
        at,
        "D",
        color="white",
        mec="#333333",
        ms=7,
        label="before training",
    )
    lifts.axvline(1, color="#555555", ls=":", lw=1.2)
    lifts.text(1.04, 4.75, "chance", color="#555555", fontsize=10)
    lifts.set(xlabel="attention after training, × chance", title="Who reads whom")
    lifts.set_yticks(at, ROWS)
    lifts.legend(loc="lower right", fontsize=10)
    _bars(lost, numbers, at, colours, "right without", 100)
    lost.plot(
        [100 * numbers[f"{name}: right"] for name in ROWS],
        at,
        "D",
        color="white",
        mec="#333333",
        ms=7,
        label="with them",
    )
    lost.set(xlabel="right answers without these weights, %", title="What is lost without", xlim=(0, 109))
    lost.set_yticks(at, [""] * 4)
    lost.legend(loc="lower left", fontsize=10, facecolor="white", frameon=True, edgecolor="none")
    for panel in (lifts, lost):
        panel.set_ylim(-0.7, 5.1)
        panel.grid(axis="y", visible=False)
        panel.set_axisbelow(True)


def _bars(panel: Any, numbers: dict[str, float], at: Any, colours: list[str], which: str, unit: float) -> None:
    """A bar for each pair, with its spread over seeds."""
    values = [unit * numbers[f"{name}: {which}"] for name in ROWS]
    spread = [unit * numbers[f"{name}: {which}, spread"] for name in ROWS]
    panel.barh(at, values, xerr=spread, color=colours, height=0.7, error_kw={"ecolor": "#333333", "capsize": 3})


def draw_scene(panel: Any, series: dict[str, Any]) -> None:
    """One scene, with lines from a hull and from a patch of ground, as thick as their weights."""
    pixels, kinds, weights = (np.array(series[name]) for name in ("scene", "kinds", "weights"))
    side = int(len(kinds) ** 0.5)
    size = len(pixels) // side
    panel.imshow(
        _coloured(pixels, kinds.reshape(side, side).repeat(size, 0).repeat(size, 1)), extent=(0, side, side, 0)
    )
    places = [(at % side + 0.5, at // side + 0.5) for at in range(len(kinds))]
    for kind, colour, which in ((GROUND, WATER, -1), (HULL, BOAT, 0)):
        reader = int(np.flatnonzero(kinds == kind)[which])
        for at, place in enumerate(places):
            across, down = zip(places[reader], place, strict=True)
            panel.plot(across, down, color=colour, lw=16 * weights[reader, at], solid_capstyle="round")
        panel.plot(*places[reader], "o", color=colour, ms=14, mec="white", mew=2)
    panel.set_title("What one hull (red) and one\npatch of ground (blue) read")
    panel.grid(visible=False)
    panel.axis("off")


def _coloured(pixels: Any, kinds: Any) -> Any:
    """Bright pixels in the colour of their kind: blanks in grey, ground in blue, hulls in red."""
    tints = np.array([[0.55, 0.55, 0.55], [0.35, 0.55, 0.75], [0.85, 0.4, 0.42]])[kinds]
    strength = np.clip((pixels + 1.5) / 3, 0, 1)[..., None] * np.array([0.35, 0.9, 0.9])[kinds][..., None]
    return 1 - strength * (1 - tints)
