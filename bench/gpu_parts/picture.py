"""The picture: one panel for each direction, formulas downwards, a bar for each peer, the ceiling as a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cases import DIRECTIONS, LABELS, PEERS
from .kept import Document
from .tables import spaced

PAPER, INK, SOFT, HAIR = "#fcfaf7", "#221d1a", "#736c66", "#dfdcd7"  # the page's colours (viewer/page/style.css)
COLOURS = {
    "regard": "#cf411b",  # its accent
    "cudnn": "#356890",
    "flash": "#81b1d5",
    "flex": "#e0a526",
    "compiled": "#8d8781",
}
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Avenir Next", "Source Sans 3", "Noto Sans", "Segoe UI", "Liberation Sans", "DejaVu Sans"],
    "font.size": 11, "svg.fonttype": "path", "text.color": INK, "axes.labelcolor": SOFT, "axes.edgecolor": HAIR,
    "xtick.color": SOFT, "ytick.color": INK, "figure.facecolor": PAPER, "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER, "axes.grid": True, "axes.grid.axis": "x", "grid.color": HAIR, "grid.linewidth": 0.7,
    "axes.axisbelow": True,
}  # fmt: skip
GAP = 1.15  # between formulas, in bars


def draw(document: Document, out: Path) -> list[Path]:
    """Write OUT.svg and OUT.png: the size with the most formulas, N 8 192 and width 128 where they were measured."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = _chosen(document)
    with mpl.rc_context(STYLE):
        names = [name for name in LABELS if any(case["formula"] == name for case in shown)]
        peers = [peer for peer in COLOURS if any(_value(case, peer) for case in shown)]
        directions = [way for way in DIRECTIONS if any(case["direction"] == way for case in shown)]
        places, low = _places(shown, names, peers)
        figure = Figure(figsize=(10.8, 2.0 + 0.135 * low))
        panels = figure.subplots(1, len(directions), sharey=True, squeeze=False)[0]
        for axes, direction in zip(panels, directions, strict=True):
            _panel(axes, [case for case in shown if case["direction"] == direction], places, peers, direction)
            axes.set_ylim(low, -GAP)
        _frame(figure, document, shown, peers)
        paths = [out.with_name(out.name + ending) for ending in (".svg", ".png")]
        out.parent.mkdir(parents=True, exist_ok=True)
        for path in paths:
            figure.savefig(path, dpi=170, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _chosen(document: Document) -> list[dict[str, Any]]:
    sizes = {(case["width"], case["n"]) for case in document["speed"]}

    def worth(size: tuple[int, int]) -> tuple[bool, int, int]:
        count = sum((case["width"], case["n"]) == size for case in document["speed"])
        return size == (128, 8192), count, size[0]

    best = max(sizes, key=worth)
    return [case for case in document["speed"] if (case["width"], case["n"]) == best]


def _places(shown: list[dict[str, Any]], names: list[str], peers: list[str]) -> tuple[dict[str, float], float]:
    """The middle of each formula's bars, counted in bars from above, and where the last one ends."""
    middles, below = {}, 0.0
    for name in names:
        some = [case for case in shown if case["formula"] == name]
        count = max(sum(_value(case, peer) is not None for peer in peers) for case in some)
        middles[name] = below + (count - 1) / 2
        below += count + GAP
    return middles, below - 0.5


def _value(case: dict[str, Any], peer: str) -> float | None:
    """TFLOP/s of a bar."""
    facts = case["peers"].get(peer, {})
    return facts["TFLOPs"][1] if "TFLOPs" in facts and not facts.get("stands_for") else None


def _yardstick(case: dict[str, Any]) -> float | None:
    """TFLOP/s of cuDNN's softmax on the same arrays, where it cannot say the formula."""
    facts = case["peers"].get("cudnn", {})
    return facts["TFLOPs"][1] if "TFLOPs" in facts and facts.get("stands_for") else None


def _panel(axes: Any, some: list[dict[str, Any]], places: dict[str, float], peers: list[str], direction: str) -> None:
    """One direction: each formula has as many bars as peers that can say it, around its own line."""
    ceiling = sorted(case["ceiling"][1] for case in some)[len(some) // 2]
    reach = 1.13 * max([ceiling, *(value for case in some for peer in peers if (value := _value(case, peer)))])
    for case in some:
        bars, middle = [peer for peer in peers if _value(case, peer)], places[case["formula"]]
        half = len(bars) / 2
        if mark := _yardstick(case):
            ends = [middle - half - 0.4, middle + half + 0.4]
            axes.plot([mark, mark], ends, color=COLOURS["cudnn"], linewidth=1.6, zorder=1)
        for place, peer in enumerate(bars):
            _bar(axes, case, peer, middle + place + 0.5 - half)
    axes.axvline(ceiling, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"matrix product {ceiling:,.3g}", (ceiling, 1), (-4, 5), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="right", color=SOFT, fontsize=9.5,
    )  # fmt: skip
    axes.set_xlim(0, reach)
    axes.set_yticks(list(places.values()), [LABELS[name] for name in places])
    axes.set_title(direction, loc="left", fontsize=13, fontweight="bold", pad=16)
    axes.set_xlabel("TFLOP/s, admitted pairs counted")
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)


def _bar(axes: Any, case: dict[str, Any], peer: str, y: float) -> None:
    """A bar and its number; regard's with the quartiles."""
    from matplotlib.patheffects import withStroke

    low, value, high = case["peers"][peer]["TFLOPs"]
    axes.barh(y, value, 0.88, color=COLOURS[peer], linewidth=0)
    number: dict[str, Any] = {"color": SOFT, "fontsize": 7.6}
    if peer == "regard":
        axes.plot([low, high], [y, y], color=INK, linewidth=1.1, solid_capstyle="butt")
        number = {"color": COLOURS[peer], "fontsize": 8.8, "fontweight": "bold"}
    axes.annotate(
        f"{value:.0f}" if value >= 10 else f"{value:.2g}", (max(value, high) if peer == "regard" else value, y), (3, 0),
        textcoords="offset points", va="center_baseline", zorder=5,
        path_effects=[withStroke(linewidth=2.5, foreground=PAPER)], **number,
    )  # fmt: skip


def _frame(figure: Any, document: Document, shown: list[dict[str, Any]], peers: list[str]) -> None:
    """Title, legend, and the line that says where this was measured."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    case, run = shown[0], document["runs"][shown[0]["run"]]
    machine = run.get("machine", {})
    chip = machine.get("gpu", machine.get("processor", "")).removeprefix("NVIDIA ")
    shape = f"N {spaced(case['n'])}, width {case['width']}, {case['heads']} heads, batch {case['batch']}"
    tall = figure.get_figheight()
    figure.subplots_adjust(left=0.165, right=0.985, top=1 - 1.25 / tall, bottom=0.72 / tall, wspace=0.05)
    figure.text(0.015, 1 - 0.34 / tall, "regard beside the fastest attention there is", fontsize=16, fontweight="bold")
    figure.text(0.985, 1 - 0.34 / tall, f"{chip}, bfloat16, {shape}", ha="right", color=SOFT)
    handles: list[Any] = [Patch(color=COLOURS[peer], label=PEERS[peer]) for peer in peers]
    if any(_yardstick(found) for found in shown):
        handles.append(
            Line2D([], [], color=COLOURS["cudnn"], linewidth=1.6, label="cuDNN's softmax on the same arrays")
        )
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.008, 1 - 0.42 / tall), ncols=len(handles), frameon=False,
        handlelength=1.1, handleheight=0.9, columnspacing=1.3, fontsize=10,
    )  # fmt: skip
    versions = ", ".join(
        f"{name} {machine['versions'][name]}" for name in ("torch", "triton") if machine.get("versions", {}).get(name)
    )
    figure.text(
        0.015, 0.13 / tall, f"{versions}; {run['made'][:10]}; medians of interleaved rounds", color=SOFT, fontsize=9
    )
    if document["rehearsal"]:
        figure.text(
            0.56, 0.5, "REHEARSAL: NOT A MEASUREMENT", fontsize=30, color=INK, alpha=0.16, rotation=12, ha="center",
            va="center", fontweight="bold",
        )  # fmt: skip
