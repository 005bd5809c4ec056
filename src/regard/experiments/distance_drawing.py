"""Pictures of the experiments on distance and length."""

from __future__ import annotations

import math
import statistics
from typing import Any

from .pairs import VALUES
from .picture import COLOURS
from .record import Outcome

GREY = "#777777"
COLOUR = {"attention": COLOURS[0], "LSTM": COLOURS[1], "LSTM, open gate": COLOURS[2]}


def spread(axes: Any, at: list[float], values: list[list[float]], label: str, colour: str) -> None:
    """The mean of the seeds as a line, from the least to the most as a band."""
    axes.plot(
        at, [statistics.mean(seeds) for seeds in values], "o-", color=colour, label=label, clip_on=False, zorder=3
    )
    axes.fill_between(
        at, [min(seeds) for seeds in values], [max(seeds) for seeds in values], color=colour, alpha=0.15, lw=0
    )


def doubling(axes: Any, at: list[int], name: str) -> None:
    """An axis on which each step is a doubling, with plain numbers."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(at, [str(one) for one in at])
    axes.set_xlabel(name)


def reference(axes: Any, at: float, label: str, side: str = "left") -> None:
    """A dashed line with its name at one side."""
    axes.axhline(at, color=GREY, ls="--", lw=1.2)
    x = {"left": 0.02, "right": 0.98}[side]
    place = {"xycoords": ("axes fraction", "data"), "xytext": (0, 4), "textcoords": "offset points"}
    axes.annotate(label, (x, at), ha=side, color=GREY, **place)


# -- recall ----------------------------------------------------------------------------------------------------


def draw_recall(outcome: Outcome, figure: Any) -> None:
    """Gradient by distance, right answers by distance, right answers by pairs."""
    slopes, far, many = figure.subplots(1, 3)
    for kind, slope in outcome.series["gradient"].items():
        slopes.plot(range(1, len(slope) + 1), [one / slope[0] for one in slope], color=COLOUR[kind], label=kind)
    slopes.set(yscale="log", xlabel="distance, in rows", ylabel="gradient of the answer's loss\n(at distance 1: 1)")
    slopes.set_title("Before training:\nwhat arrives of the gradient")
    slopes.legend(loc="lower left")
    shares(far, outcome, "distance", "distance, in rows")
    far.set_title("Trained at one distance:\nis the key still known?")
    shares(many, outcome, "pairs", "pairs that may be asked for, in 65 rows")
    many.set_title("Trained at all distances:\nhow many are kept?")


def shares(axes: Any, outcome: Outcome, curve: str, name: str) -> None:
    """Right answers along a curve, a line for each core."""
    for kind, points in outcome.series[curve].items():
        spread(
            axes,
            [int(at) for at in points],
            [[100 * one for one in seeds] for seeds in points.values()],
            kind,
            COLOUR[kind],
        )
    doubling(axes, [int(at) for at in outcome.series[curve]["attention"]], name)
    axes.set(ylim=(0, 102), ylabel="right answers, %")
    reference(axes, 100 * outcome.numbers["chance"], "chance")


# -- length ----------------------------------------------------------------------------------------------------


def draw_length(outcome: Outcome, figure: Any) -> None:
    """Milliseconds by rows, forward and backward: a panel for each number of texts."""
    seconds = outcome.series["seconds"]
    texts = list(next(iter(seconds.values())))
    for axes, count in zip(figure.subplots(1, len(texts), sharey=True), texts, strict=True):
        for device, style in zip(seconds, ("o-", "s--"), strict=False):
            times(axes, seconds[device][count], f" {device}" if len(seconds) > 1 else "", style)
        doubling(axes, sorted({int(n) for device in seconds for n in seconds[device][count]}), "rows")
        axes.set(yscale="log")
        axes.set_title(f"{count} text{'' if count == '1' else 's'} at once ({' and '.join(seconds)})")
        axes.label_outer()
        axes.margins(x=0.12)
    figure.axes[0].set_ylabel("milliseconds, forward and backward")
    figure.axes[0].legend(loc="upper left")


def times(axes: Any, by_rows: dict[str, Any], device: str, style: str) -> None:
    """A line for each layer."""
    at = [int(n) for n in by_rows]
    for name in ("attention", "LSTM"):
        milliseconds = [1e3 * statistics.median(times["both"][name]) for times in by_rows.values()]
        axes.plot(at, milliseconds, style, color=COLOUR[name], label=f"{name}{device}")


# -- scale -----------------------------------------------------------------------------------------------------

WAYS = {"with √d": COLOURS[0], "without": COLOURS[1]}


def draw_scale(outcome: Outcome, figure: Any) -> None:
    """Above, what is seen before training by d_k; below, the losses at three of them."""
    above, below = figure.subplots(2, 3)
    spreads(above[0], outcome)
    by_width(above[1], outcome, "entropy")
    above[1].set(title="Before: how even are the weights?", ylabel="entropy / ln N", ylim=(0, 1.05))
    above[1].legend(loc="lower left")
    by_width(above[2], outcome, "median slope")
    above[2].set(title="Before: gradient of the softmax", ylabel="‖∂w/∂s‖, median row", ylim=(-0.005, None))
    starts = [start for start in outcome.series["training"] if "small" not in start]
    for axes, start in zip(below, starts, strict=True):
        curves(axes, outcome.series["training"][start])
        axes.set_title(f"Training at {start.replace('d_k', '$d_k$')}")
        axes.label_outer()
    below[0].set_ylabel("loss, nats for each answer")


def spreads(axes: Any, outcome: Outcome) -> None:
    """The spread of q·k on the line √d_k."""
    widths = {int(width): found["spread"] for width, found in outcome.series["before"]["without"].items()}
    axes.plot(list(widths), [width**0.5 for width in widths], color=GREY, ls="--", lw=1.2)
    axes.plot(list(widths), list(widths.values()), "o", color=WAYS["without"], clip_on=False)
    axes.annotate("$\\sqrt{d_k}$", (16, 4), (-34, 12), textcoords="offset points", color=GREY)
    axes.set_yscale("log", base=2)
    axes.set_yticks([2**n for n in range(6)], [str(2**n) for n in range(6)])
    axes.set(title="Before training: spread of q·k", ylabel="standard deviation")
    fourfold(axes, list(widths))


def by_width(axes: Any, outcome: Outcome, what: str) -> None:
    """Two lines, with √d_k and without."""
    for way, widths in outcome.series["before"].items():
        values = [found[what] for found in widths.values()]
        axes.plot([int(width) for width in widths], values, "o-", color=WAYS[way], label=way)
    fourfold(axes, [int(width) for width in outcome.series["before"]["without"]])


def fourfold(axes: Any, widths: list[int]) -> None:
    """An axis of widths, each four times the last."""
    axes.set_xscale("log", base=4)
    axes.minorticks_off()
    axes.set_xticks(widths, [str(width) for width in widths])
    axes.set_xlabel("$d_k$")


def curves(axes: Any, ways: dict[str, Any]) -> None:
    """The mean loss of the seeds at each step, from the least to the most as a band."""
    for way, seeds in ways.items():
        steps = list(zip(*(one["losses"] for one in seeds), strict=True))
        axes.plot(range(1, len(steps) + 1), [statistics.mean(step) for step in steps], color=WAYS[way], label=way)
        axes.fill_between(
            range(1, len(steps) + 1), list(map(min, steps)), list(map(max, steps)), color=WAYS[way], alpha=0.15, lw=0
        )
    axes.set(xlabel="steps", ylim=(0, 2.6))
    reference(axes, math.log(VALUES), "guessing", "right")


# -- heads -----------------------------------------------------------------------------------------------------

KINDS = {"attention alone": COLOURS[0], "with feed-forward": COLOURS[3]}


def draw_heads(outcome: Outcome, figure: Any) -> None:
    """Right answers by heads, losses of attention alone, and what one head and two heads read."""
    rights, losses, reads = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for kind, colour in KINDS.items():
        by_heads = outcome.series[kind]
        spread(
            rights,
            [int(n) for n in by_heads],
            [[100 * one["right"] for one in seeds] for seeds in by_heads.values()],
            kind,
            colour,
        )
        for heads, style in (("1", "-"), ("2", "--")):
            steps = list(zip(*(one["losses"] for one in by_heads[heads]), strict=True))
            losses.plot(range(1, len(steps) + 1), [statistics.mean(step) for step in steps], style, color=colour,
                        label=f"{kind}, {heads} head{'s' if heads == '2' else ''}")  # fmt: skip
    doubling(rights, [int(n) for n in outcome.series["attention alone"]], "heads, with as many parameters")
    rights.set(ylim=(0, 102), ylabel="right answers, %", title="Both partners fetched?")
    reference(rights, 100 * outcome.numbers["ceiling"], "one partner, or both alike", "right")
    reference(rights, 100 * outcome.numbers["chance"], "chance")
    rights.legend(loc="lower right", bbox_to_anchor=(1, 0.12))
    losses.set(xlabel="steps", ylabel="loss, nats for each answer", ylim=(0, None), title="How fast?")
    losses.legend(loc="upper right", fontsize=9)
    read_by(reads, outcome)


def read_by(axes: Any, outcome: Outcome) -> None:
    """Bars: what each head reads of the first partner, of the second, and of all others; the first seed."""
    alone = outcome.series["attention alone"]
    bars = {"one\nhead": alone["1"][0]["read"][0]}
    bars |= {f"head {at + 1}\nof 2": read for at, read in enumerate(alone["2"][0]["read"])}
    for place, read in enumerate(bars.values()):
        left = 0.0
        for name, colour, share in zip(("first", "second", "others"), (*COLOURS[1:3], "#d5d9de"), read, strict=True):
            axes.barh(place, 100 * share, left=left, color=colour)
            if share > 0.15:
                axes.text(
                    left + 50 * share,
                    place,
                    name,
                    ha="center",
                    va="center",
                    color="white" if name == "first" else "black",
                )
            left += 100 * share
    axes.set_yticks(range(len(bars)), list(bars))
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set(xlabel="weight on each partner, %", title="Attention alone: who is read?", xlim=(0, 100))
