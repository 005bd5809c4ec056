"""Claims about programs: that they agree, what they print, and what memory they take."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable

import numpy as np

from ...algebra.masks import causal
from ...attention import Attention, self_attention
from ..measure import gap, normal, on_every_engine
from ..plots import Axis, Dots, Line, Mark, chart, grid
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "I1",
    "E",
    "Plain Python, NumPy and PyTorch give the same output, and that of PyTorch's own function, to 1e-6.",
    Verdict.HOLDS,
    needs=["torch"],
)
def implementations_agree() -> Measurements:
    """y = softmax(q kᵀ / √d) v, by every engine on every kind of array, with and without a causal mask."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    arrays = [normal(seed, 2, 3, 13, width).astype(np.float32) for seed, width in ((2, 5), (3, 5), (5, 7))]
    q, k, v = map(torch.from_numpy, arrays)
    for attention, is_causal in ((Attention(), False), (Attention(mask=causal), True)):
        theirs = scaled_dot_product_attention(q, k, v, is_causal=is_causal).numpy()
        ours = on_every_engine(attention, *arrays)
        what = f"largest difference from PyTorch's own, {'causal' if is_causal else 'no mask'}"
        yield Measured(max(gap(y, theirs) for y in ours.values()), what, at_most=1e-6, detail=", ".join(ours))
    masked, whole = (scaled_dot_product_attention(q, k, v, is_causal=mask).numpy() for mask in (True, False))
    yield Measured(gap(masked, whole), "largest difference that the mask makes", at_least=0.1)


PRINTED, FOUND = (0.37, 0.28, 0.19, 0.16), (0.00, 0.30, 0.56, 0.14)
PRINTED_OUTPUT, FOUND_OUTPUT = (0.41, -0.12, 0.33, 0.07), (0.11, -0.74, -1.09, 0.32)
"""The first row of weights and of the output, as the text prints them and as its program does, to two digits."""


@claim(
    "I2",
    "E",
    "The text's program, with its seed, prints 0.37 0.28 0.19 0.16 as its first row of weights.",
    Verdict.WRONG,
)
def printed_numbers() -> Measurements:
    """w = softmax(X Wq (X Wk)ᵀ / √4) for numbers drawn from Python's generator with seed 0."""
    draw = random.Random(0).gauss  # noqa: S311 - the text's own generator

    def matrix(deviation: float) -> list[list[float]]:
        return [[draw(0, deviation) for _ in range(4)] for _ in range(4)]

    x, Wq, Wk, Wv = (matrix(deviation) for deviation in (1, 0.5, 0.5, 0.5))
    q, k = ((np.array(x) @ np.array(W)).tolist() for W in (Wq, Wk))
    weights, output = Attention().weights(q, k)[0], self_attention(x, Wq, Wk, Wv)[0]
    shown = " ".join(f"{weight:.2f}" for weight in weights)
    yield Measured(gap(weights, PRINTED), "largest difference from the printed row", at_least=0.1, detail=shown)
    yield Measured(gap(weights, FOUND), "the same from 0.00 0.30 0.56 0.14", at_most=0.005)
    yield Measured(gap(output, PRINTED_OUTPUT), "largest difference from the printed output", at_least=0.1)
    yield Measured(gap(output, FOUND_OUTPUT), "the same from 0.11 −0.74 −1.09 0.32", at_most=0.005)
    pairs = {
        "weights, as printed": PRINTED,
        "weights, as computed": weights,
        "output, as printed": PRINTED_OUTPUT,
        "output, as computed": output,
    }
    rows = [[name, *(f"{number:.2f}".replace("-", "−") for number in numbers)] for name, numbers in pairs.items()]
    yield Figure(grid(["first row", "1", "2", "3", "4"], rows), "The text's row beside that of its program, seed 0.")


SIZES = (419, 839, 1669)


@claim(
    "C1",
    "E",
    "To hold every pair takes memory that grows with N²; to stream through blocks of them takes N.",
    Verdict.HOLDS,
)
def memory() -> Measurements:
    """peak bytes ∝ N^p: p = 2 for all pairs at once, p = 1 for a block of queries at a time."""
    attention = Attention(mask=causal)

    def whole(q: np.ndarray) -> np.ndarray:
        return np.asarray(attention(q, q, q))

    def streamed(q: np.ndarray, block: int = 31) -> np.ndarray:
        y = np.empty_like(q)
        for first in range(0, len(q), block):
            y[first : first + block] = attention(q[first : first + block], q, q, start=first)
        return y

    inputs = [normal(2, size, 7) for size in SIZES]
    whole_peaks, streamed_peaks = ([peak_bytes(run, q) for q in inputs] for run in (whole, streamed))
    told = f"{whole_peaks[-1] / 2**20:.0f} MiB at N = {SIZES[-1]}, {streamed_peaks[-1] / 2**20:.1f} MiB in blocks"
    yield Measured(
        exponent(SIZES, whole_peaks), "exponent p, all pairs at once", at_least=1.9, at_most=2.1, detail=told
    )
    yield Measured(exponent(SIZES, streamed_peaks), "exponent p, in blocks of 31 queries", at_least=0.9, at_most=1.1)
    different = gap(whole(inputs[-1]), streamed(inputs[-1]))
    yield Measured(different, "largest difference between the two outputs", at_most=1e-13)
    yield _peaks_drawn(whole_peaks, streamed_peaks)


def _peaks_drawn(whole: list[int], streamed: list[int]) -> Figure:
    """Peak memory against length: all pairs at once, and in blocks."""
    marks = list[Mark]()
    for peaks, tone, name in ((whole, "accent", "all pairs"), (streamed, "ink", "in blocks")):
        sizes = np.array(peaks) / 2**20
        marks += [Line(SIZES, sizes, tone), Dots(SIZES, sizes, tone), Dots(SIZES[-1:], sizes[-1:], tone, [name])]
    across = Axis("N", 0, 1800, {0: "0", **{size: str(size) for size in SIZES}})
    up = Axis("MiB at the most", 0, 1.2 * max(whole) / 2**20)
    return Figure(chart(across, up, *marks), "Twice the length takes four times the memory; in blocks, twice.")


def peak_bytes(run: Callable[[np.ndarray], np.ndarray], q: np.ndarray) -> int:
    """The most bytes that Python and NumPy held at once while it ran, beside what they held before."""
    run(q[:2])  # what the first call keeps for later ones is not counted
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        run(q)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if ours:
            tracemalloc.stop()


def exponent(sizes: tuple[int, ...], values: list[int]) -> float:
    """The slope p of log value = p · log size + c."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
