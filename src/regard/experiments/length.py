"""Do rows have to wait for one another?

    attention    y_i = Σ_j w_ij v_j        reads rows of x, no other y: 1 step for all     4 N d² + N² d products
    LSTM         h_t = f(x_t, h_{t−1})     reads the state before it: N steps in a row     8 N d² products

Counted: operations that must follow one another. Measured on every device that is there: seconds for one pass over N
rows, forward, and forward and backward, for one text and for several at once; in turns, and medians of the ratios
within a round. At N = 4 d both do as many products, and the ratio is of their order alone.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from ..algebra.masks import causal
from ..attention import Attention
from ..nn.attention import SelfAttention
from .distance_drawing import draw_length
from .record import Cell, Experiment, Outcome, Scale, Table, Tell
from .recurrent import Recurrent

DIM, HEADS = 256, 4
EVEN = 4 * DIM  # rows at which both do as many products
LENGTHS = (16, 64, 256, 1024, 4096, 16384)
MOST = {"cpu": 16 * 1024, "mps": 16 * 1024, "cuda": 16 * 16384}  # rows of all texts together, so that it ends soon
LONGEST = {"cpu": 4096, "mps": 4096, "cuda": 16384}
TEXTS = (1, 16)
PASSES = ("forward", "both")
ROUNDS, SHORT = 5, 1024  # four times as many where there are so few rows, and a moment counts for more
COUNTED = (8, 32)  # rows of which operations in a row are counted

Times = dict[str, dict[str, list[float]]]  # seconds by pass and layer, one for each round

LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "attention": lambda dim: SelfAttention(dim, HEADS, attention=Attention(mask=causal)),
    "LSTM": Recurrent,
}


def products(name: str, rows: int) -> int:
    """Multiplications of a forward pass over one text."""
    return 8 * rows * DIM**2 if name == "LSTM" else 4 * rows * DIM**2 + rows**2 * DIM


# -- seconds ---------------------------------------------------------------------------------------------------


def devices() -> list[str]:
    """Those that are there, the processor first."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [device for device, is_there in there.items() if is_there]


def once(layer: nn.Module, x: Tensor, which: str) -> None:
    """One pass."""
    if which == "forward":
        with torch.no_grad():
            layer(x)
    else:
        layer.zero_grad(set_to_none=True)
        layer(x).square().mean().backward()


def seconds(layer: nn.Module, x: Tensor, which: str) -> float:
    """Of one pass, until its last number is there."""
    waits: dict[str, Callable[[], Any]] = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}
    wait = waits.get(x.device.type, lambda: None)
    wait()
    began = perf_counter()
    once(layer, x, which)
    wait()
    return perf_counter() - began


def in_turns(device: str, texts: int, rows: int, rounds: int, seed: int) -> Times:
    """Every pass of every layer in each round, so that a slow moment hits all alike."""
    torch.manual_seed(seed)
    layers = {name: make(DIM).to(device) for name, make in LAYERS.items()}
    x = torch.randn(texts, rows, DIM).to(device)
    found: Times = {which: {name: [] for name in layers} for which in PASSES}
    for turn in range(rounds + 1):
        for which in PASSES:
            for name, layer in layers.items():
                taken = seconds(layer, x, which)
                if turn:  # the first warms up
                    found[which][name].append(taken)
    return found


def ratio(times: dict[str, list[float]]) -> float:
    """LSTM / attention: the median of the rounds' own ratios."""
    return median(one / other for one, other in zip(times["LSTM"], times["attention"], strict=True))


# -- steps -----------------------------------------------------------------------------------------------------


def chain(y: Tensor) -> int:
    """How many operations follow one another on the longest way from the inputs to y."""
    known: dict[Any, int] = {}
    waiting = [y.grad_fn]
    while waiting:
        before = [part for part, _ in waiting[-1].next_functions if part is not None]
        unknown = [part for part in before if part not in known]
        if unknown:
            waiting.extend(unknown)
        else:
            known[waiting.pop()] = 1 + max((known[part] for part in before), default=0)
    return known[y.grad_fn]


def chains(rows: int) -> dict[str, int]:
    """The longest chain behind the last of so many rows; of attention by its definition, on whole matrices."""
    x = torch.zeros(1, rows, 8, requires_grad=True)
    q, k, v = (torch.nn.Linear(8, 8)(x) for _ in range(3))
    attended = Attention(mask=causal)(q, k, v, engine="dense")
    return {"attention": chain(attended[:, -1]), "LSTM": chain(Recurrent(8).unrolled(x)[:, -1])}


def apart(rows: int = 37) -> float:
    """The largest difference between rows of attention that are worked out at once, and each alone, the last first."""
    attention, draw = Attention(mask=causal), torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, rows, 8, generator=draw, dtype=torch.float64)
    alone = [attention(q[:, i : i + 1], k, v, start=i) for i in reversed(range(rows))]
    return float((torch.cat(alone[::-1], dim=1) - attention(q, k, v)).abs().max())


# -- all of it -------------------------------------------------------------------------------------------------


def run(scale: Scale, tell: Tell) -> Outcome:
    """Every device, number of texts and length."""
    points = points_of(devices(), small=scale.share < 0.1)
    series: dict[str, Any] = {"threads": torch.get_num_threads(), "seconds": {}}
    for done, (device, texts, rows) in enumerate(points):
        tell(f"{device}, {texts} at once, {rows} rows", done / len(points))
        rounds = scale.steps(ROUNDS if texts * rows > SHORT else 4 * ROUNDS, least=3)
        times = in_turns(device, texts, rows, rounds, scale.seed)
        series["seconds"].setdefault(device, {}).setdefault(str(texts), {})[str(rows)] = times
    series |= {"chains": {str(rows): chains(rows) for rows in COUNTED}, "apart": apart()}
    return outcome_of(series)


def points_of(there: list[str], *, small: bool) -> list[tuple[str, int, int]]:
    """Device, texts and rows of every measurement; the short ones alone where it is to be small."""
    points = [(device, texts, rows) for device in there for texts in TEXTS for rows in LENGTHS]
    return [
        (device, texts, rows)
        for device, texts, rows in points
        if rows <= (64 if small else LONGEST[device]) and texts * rows <= MOST[device]
    ]


def outcome_of(series: dict[str, Any]) -> Outcome:
    """The answer, made of what was measured."""
    few, many = (series["chains"][str(rows)] for rows in COUNTED)
    numbers = {f"in a row, {name}": (many[name] - few[name]) / (COUNTED[1] - COUNTED[0]) for name in LAYERS}
    numbers |= {"apart": series["apart"], "threads": float(series["threads"])}
    rows: list[tuple[Cell, ...]] = []
    for device, by_texts in series["seconds"].items():
        for texts, by_rows in by_texts.items():
            for n, times in by_rows.items():
                ratios = {which: ratio(times[which]) for which in PASSES}
                numbers |= {f"{device}, {texts} at once, {n} rows, {which}": ratios[which] for which in PASSES}
                rows.append(row_of(device, int(texts), int(n), times, ratios))
    milliseconds = [f"{name}, {which}, ms" for which in PASSES for name in LAYERS]
    columns = ("device", "texts", "rows", *milliseconds, "ratio, forward", "ratio, both", "ratio of products")
    return Outcome(answer(numbers, series), Table(columns, tuple(rows)), numbers, series)


def row_of(device: str, texts: int, n: int, times: Times, ratios: dict[str, float]) -> tuple[Cell, ...]:
    """Milliseconds, and LSTM / attention."""
    taken = [f"{1e3 * median(times[which][name]):.3g}" for which in PASSES for name in LAYERS]
    work = products("LSTM", n) / products("attention", n)
    return (device, texts, n, *taken, *(f"{ratios[which]:.2g}" for which in PASSES), f"{work:.2g}")


def answer(numbers: dict[str, float], series: dict[str, Any]) -> str:
    """In words: steps, then every device."""
    steps = [numbers[f"in a row, {name}"] for name in LAYERS]
    said = (
        f"Each further row adds {steps[0]:g} operations to those of attention that follow one another, "
        f"and {steps[1]:g} to an LSTM's."
    )
    return " ".join([said, *(of_device(device, by_texts, numbers) for device, by_texts in series["seconds"].items())])


def of_device(device: str, by_texts: dict[str, Any], numbers: dict[str, float]) -> str:
    """What the clock says on a device, where both do as many products, or at the longest text there is."""
    rows = EVEN if all(str(EVEN) in by_rows for by_rows in by_texts.values()) else max(map(int, by_texts["1"]))
    ratios = {texts: numbers[f"{device}, {texts} at once, {rows} rows, both"] for texts in by_texts}
    said = " and ".join(f"{share:.2g} times as long with {texts} at once" for texts, share in ratios.items())
    faster = [share > 1.2 for share in ratios.values()]  # less is noise
    won = (
        "rows at once win"
        if all(faster)
        else "rows at once win nothing"
        if not any(faster)
        else "texts at once do as well"
    )
    even = ", as many products in both," if rows == EVEN else ""
    return f"On {device} {rows} rows{even} forward and backward take an LSTM {said}: {won}."


EXPERIMENT = Experiment(
    "length",
    "Do rows have to wait for one another?",
    ("L3",),
    minutes=0.5,
    run=run,
    draw=draw_length,
    size=(10.5, 4.8),
)
