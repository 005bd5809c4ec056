"""Claims about what attention is built of, decided by training: the axis of softmax, the three roles, the block."""

from __future__ import annotations

from ...attention import Attention
from ...experiments.store import outcome
from ..measure import gap, normal, on_every_engine
from ..plots import bars
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "N9",
    "E",
    "Under softmax over the wrong axis the loss still falls a little, and validation shows that something is wrong.",
    Verdict.WRONG,
    needs=("torch",),
)
def wrong_axis_in_training() -> Measurements:
    """Held-out nats under w_ij = exp(s_ij) / Σ_i exp(s_ij), i ≥ j: windows as a whole, and character by character."""
    numbers = outcome("mistakes").numbers
    training, whole, single = (numbers[f"softmax over queries: {kind}"] for kind in ("training", "whole", "single"))
    right = numbers["right: whole"]
    what = "held-out nats of whole windows, less those of the right formula: validation looks far better"
    yield Measured(whole - right, what, at_most=-0.8, detail=f"{whole:.2f} against {right:.2f}")
    fallen = numbers["softmax over queries: first"] - training
    yield Measured(
        fallen, "nats by which the training loss falls: not a little", at_least=3, detail=f"to {training:.2f}"
    )
    what = "nats one by one, less those of the right formula: it cannot write"
    yield Measured(single - numbers["right: single"], what, at_least=0.5, detail=f"{single:.2f}")
    what = "nats between both ways to measure it, the least of the seeds: what the total tells of the future"
    yield Measured(numbers["softmax over queries: least leak"], what, at_least=1)
    honest = abs(numbers["right: single"] - numbers["right: whole"])
    yield Measured(honest, "the same of the right formula", at_most=1e-3)
    nats = {"right, windows": right, "right, one by one": numbers["right: single"], "wrong axis, windows": whole}
    nats["wrong axis, one by one"] = single
    told = "Nats on held-out text. Windows as a whole flatter the mistake; character by character it shows."
    yield Figure(bars(nats, {"wrong axis, windows", "wrong axis, one by one"}), told)


@claim(
    "V1",
    "ABDE",
    "Values decouple what is sent from what is matched, and may have another width than keys.",
    Verdict.CONDITION,
    needs=("torch",),
)
def values_decouple() -> Measurements:
    """v = W_v x against v = x, where Σ_j w_ij v_j is heard as it is, and where a learned map follows."""
    numbers = outcome("values").numbers
    own, sent = "W_q, W_k, W_v", "v = x"
    yield Measured(numbers[f"{sent}: as it is, most"], "share heard rightly with v = x, as it is", at_most=0.3)
    yield Measured(numbers[f"{own}: as it is, least"], "the same with v = W_v x", at_least=0.95)
    what = "with v = x and a learned map behind: Σ w (xW) = (Σ w x) W"
    yield Measured(numbers[f"{sent}: mapped, least"], what, at_least=0.95)
    lost = numbers[f"{sent}: nats"] - numbers[f"{own}: nats"]
    yield Measured(lost, "nats that v = x costs a language model of four heads", at_least=0.05)
    yield Measured(
        _other_width(), "largest error with values of another width than keys, on every engine", at_most=1e-5
    )


def _other_width() -> float:
    q, k, v = normal(2, 7, 5), normal(3, 11, 5), normal(5, 11, 3)
    found = on_every_engine(Attention(), q, k, v)
    expected = Attention().weights(q, k) @ v
    return max(gap(y, expected) for y in found.values())


@claim(
    "V2",
    "E",
    "Make one of any two among query, key and value, and attention stops working.",
    Verdict.WRONG,
    needs=("torch",),
)
def roles_made_one() -> Measurements:
    """q = k, k = v, q = v: guests who hear the right story, and the share of what attention brings that is kept."""
    numbers = outcome("values").numbers
    for tie in ("k = v", "q = v"):
        yield Measured(numbers[f"{tie}: mapped, least"], f"share heard rightly with {tie}", at_least=0.95)
    what = "share heard rightly with q = k: s_ij = s_ji, and no two ask for each other"
    yield Measured(numbers["q = k: mapped, most"], what, at_most=0.5)
    none, own = numbers["no attention: nats"], numbers["W_q, W_k, W_v: nats"]
    kept = {tie: (none - numbers[f"{tie}: nats"]) / (none - own) for tie in ("q = k", "k = v", "q = v", "q = k = v")}
    detail = ", ".join(f"{tie} {share:.0%}" for tie, share in kept.items())
    what = "share of what attention brings a language model that is kept with two roles in one, at least"
    yield Measured(min(kept["q = k"], kept["k = v"], kept["q = v"]), what, at_least=0.35, detail=detail)
    yield Measured(kept["q = k = v"], "the same with all three in one", at_most=0.35)
    ties = ("k = v", "q = v", "q = k", "q = k = v")
    heard = {tie: numbers[f"{tie}: mapped"] for tie in ties}
    told = "Share of the guests that hear the right story. Two of the three ties leave it as it was."
    yield Figure(bars(heard, {"k = v", "q = v"}, most=1), told)


@claim(
    "T3",
    "A",
    "A block is made of attention, feed-forward, residual and normalisation; a model of such blocks needs them all.",
    Verdict.HOLDS,
    needs=("torch",),
)
def parts_of_a_block() -> Measurements:
    """Held-out nats of four blocks without a part, less those of four whole blocks, each at its better rate."""
    numbers = outcome("blocks").numbers
    whole = numbers["whole, norm before: best"]
    least = {"no attention": 0.15, "no feed-forward": 0.1, "no residual": 0.3, "no normalisation": 0.1}
    for name, bound in least.items():
        yield Measured(numbers[f"{name}: best"] - whole, f"nats that it costs: {name}", at_least=bound)
    moved = numbers["whole, norm after: best"] - whole
    yield Measured(moved, "nats that it costs to norm after in place of before", at_least=-0.2, at_most=0.2)
