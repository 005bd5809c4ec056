"""Claims that training decides: far rows, rows at once, the root of d_k, several heads."""

from __future__ import annotations

from ...experiments.store import outcome
from ..record import Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "L2",
    "BE",
    "Between two tokens lies 1 step of attention, but i steps of a recurrent net, which loses what is far away.",
    Verdict.CONDITION,
    needs=("torch",),
)
def recall_at_distance() -> Measurements:
    """‖∂ loss(answer) / ∂ x_{T−i}‖ by i before training; right answers where a key is asked for i rows later alone."""
    found = outcome("recall").numbers
    lstms = ("LSTM", "LSTM, open gate")
    far = max(found[f"distance 64, {kind}"] for kind in lstms)
    yield Measured(
        found["distance 64, attention"] - far, "right answers at distance 64, attention − the better LSTM", at_least=0.5
    )
    yield Measured(found["gradient left, LSTM"], "gradient at distance 64 / at 1, LSTM", at_most=1e-3)
    yield Measured(found["gradient left, attention"], "the same, attention", at_least=0.5, at_most=2)
    near = min(found[f"distance 8, {kind}"] for kind in lstms)
    yield Measured(near, "right answers of both LSTMs at distance 8", at_least=0.9)
    one = min(found[f"pairs 1, {kind}"] for kind in lstms)
    yield Measured(one, "the only pair kept over 64 rows where nearer ones are asked for as well, LSTMs", at_least=0.9)
    kept = max(found[f"pairs 16, {kind}"] for kind in lstms)
    yield Measured(found["pairs 16, attention"] - kept, "one of 16 pairs, attention − the better LSTM", at_least=0.4)


@claim(
    "L3",
    "BCE",
    "Attention works out all positions at once; a recurrent net has to go from one to the next.",
    Verdict.CONDITION,
    needs=("torch",),
)
def rows_at_once() -> Measurements:
    """Operations in a row: constant against ~ N; seconds at N = 4 d, where both do as many products."""
    found = outcome("length").numbers
    yield Measured(found["in a row, attention"], "operations in a row that one more row adds, attention", at_most=0)
    yield Measured(found["in a row, LSTM"], "the same, LSTM", at_least=1)
    yield Measured(found["apart"], "largest difference of rows worked out alone, the last first", at_most=1e-12)
    processor = found["cpu, 16 at once, 1024 rows, both"]
    what = "seconds of an LSTM / of attention on a processor, 16 texts at once: a gain by its threads at most"
    yield Measured(processor, what, at_most=max(2.0, found["threads"]), detail=f"{found['threads']:.0f} threads")
    if "cuda, 1 at once, 1024 rows, both" in found:
        yield Measured(found["cuda, 1 at once, 1024 rows, both"], "the same on a GPU, 1 text", at_least=3)


@claim(
    "N3",
    "BDE",
    "Scores of vectors of spread 1 have variance d_k; without √d_k softmax saturates and its gradients die.",
    Verdict.CONDITION,
    needs=("torch",),
)
def spread_of_scores() -> Measurements:
    """std(q·k) = √d_k;  entropy(w) / ln N;  ‖diag(w) − w wᵀ‖ of the median row, without √d_k over with it."""
    found = outcome("scale").numbers
    yield Measured(found["spread, d_k = 64, without"], "spread of q·k at d_k = 64", at_least=7.8, at_most=8.2)
    yield Measured(found["entropy, d_k = 64, without"], "entropy / ln N without √d_k at 64", at_most=0.2)
    yield Measured(found["entropy, d_k = 64, with √d"], "with √d_k", at_least=0.8)
    kept = {
        d: found[f"median slope, d_k = {d}, without"] / found[f"median slope, d_k = {d}, with √d"] for d in (64, 256)
    }
    yield Measured(kept[64], "gradient of the median row at 64, without / with: as long, on few keys", at_least=0.7)
    yield Measured(found["keys read, d_k = 64, without"], "keys that it is on, e^entropy, of 64", at_most=3)
    yield Measured(kept[256], "gradient of the median row at 256, without / with: it dies here", at_most=0.3)


@claim(
    "N8",
    "E",
    "A missing √d_k is not seen at d_k = 4 and devastating at 64.",
    Verdict.CONDITION,
    needs=("torch",),
)
def missing_root() -> Measurements:
    """Steps to half of the loss, without √d_k over with it, from weights that give q and k spread 1."""
    found = outcome("scale").numbers
    yield Measured(found["slowed, d_k = 64"], "times the steps at d_k = 64", at_least=1.2, at_most=3)
    yield Measured(found["slowed, d_k = 4"], "times the steps at d_k = 4", at_least=0.8, at_most=1.2)
    yield Measured(
        found["right, d_k = 64, without"], "right in the end at 64 without it: not devastating", at_least=0.95
    )
    yield Measured(found["slowed, d_k = 256"], "times the steps at d_k = 256", at_least=2.5)
    yield Measured(found["slowed, d_k = 256, small weights"], "times the steps at 256 from small weights", at_most=1.2)
    yield Measured(
        found["entropy, d_k = 4, without"], "entropy / ln N at the start, d_k = 4", at_least=0.62, at_most=0.71
    )
    yield Measured(found["entropy, d_k = 64, without"], "entropy / ln N at the start, 64", at_least=0.11, at_most=0.17)


@claim(
    "T2",
    "DE",
    "Several heads are several notions of relevance at once, and still one matrix product.",
    Verdict.HOLDS,
    needs=("torch",),
)
def several_heads() -> Measurements:
    """Right answers where each row fetches two partners: one head against two, D² · 4 parameters in both."""
    found = outcome("heads").numbers
    what = "right answers with two heads − with one, attention alone"
    one, two = (f"{heads} heads, attention alone" for heads in (1, 2))
    yield Measured(found[f"least right, {two}"] - found[f"right, {one}"], what, at_least=0.3)
    yield Measured(found[f"right, {one}"] - found["ceiling"], "one head − (1 + 1/V) / 2", at_most=0.05)
    yield Measured(
        found[f"parameters, {two}"] - found[f"parameters, {one}"], "further parameters", at_least=0, at_most=0
    )
    behind = found["least right, 2 heads, with feed-forward"]
    share = found["learned, 1 heads, with feed-forward"]
    yield Measured(behind, "two heads with a feed-forward", at_least=0.95, detail=f"one head learns it in {share:.0%}")
    yield Measured(found["difference"], "largest |all heads at once − a loop over them|", at_most=1e-13)
