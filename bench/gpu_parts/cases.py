"""What is measured, in which order, and what it must reach. Knows names alone: no PyTorch is loaded here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LABELS = {
    "softmax": "softmax",
    "causal": "causal",
    "alibi": "ALiBi",
    "alibi_causal": "ALiBi, causal",
    "alibi_both": "ALiBi, |i − j|",
    "euclidean": "Euclidean",
    "relative": "learned relative table",
    "soft_cap": "soft-cap 30",
    "window": "window 1 024",
    "documents": "8 documents",
    "sigmoid": "sigmoid",
    "relu": "ReLU",
    "cosine": "cosine",
}
PEERS = {
    "regard": "regard",
    "regard_triton": "regard, Triton template",
    "cudnn": "cuDNN",
    "flash": "flash",
    "flex": "FlexAttention",
    "compiled": "compiled eager",
    "eager": "eager",
}
OWN = ("regard", "regard_triton")
PASSES = {"kernels": ("cudnn", "flash"), "flex": ("flex",), "eager": ("eager", "compiled")}  # regard is in each
WITHOUT_FLEX = ("sigmoid", "relu")  # FlexAttention always divides by a sum of exponentials
WITHOUT_SDPA = ("window", "documents")
DIRECTIONS = ("forward", "backward")
AT = 8192  # the length of the goals

# (formula, width, peer): how many times as fast as the peer, forward and backward
GOALS: dict[tuple[str, int, str], tuple[float, float]] = {
    ("softmax", 128, "cudnn"): (1.02, 0.90),
    ("causal", 128, "cudnn"): (1.00, 0.88),
    ("alibi", 128, "flex"): (1.25, 1.20),
    ("alibi_causal", 128, "flex"): (1.25, 1.20),
    ("euclidean", 128, "flex"): (1.25, 1.20),
    ("relative", 128, "flex"): (2.00, 1.30),
    ("soft_cap", 128, "flex"): (2.40, 1.90),
    ("window", 128, "flex"): (1.40, 1.30),
    ("documents", 128, "flex"): (1.40, 1.30),
    ("sigmoid", 128, "cudnn"): (1.08, 0.88),
    ("relu", 128, "cudnn"): (1.20, 0.92),
    ("softmax", 64, "cudnn"): (1.10, 0.88),
}
TRITON_OF_CUDNN, TRITON_OF_FLEX = 0.85, 1.05  # softmax forward; everything that FlexAttention can do
OF_COPY = 0.80  # of the bandwidth of a copy, decoding at 64 k keys
FIRST_SECONDS = 5.0  # a first call


@dataclass(frozen=True)
class Sizes:
    """How large the cases are: heads × width and tokens × batch stay the same."""

    features: int = 2048
    tokens: int = 16384
    widths: tuple[int, ...] = (128, 64)
    lengths: tuple[int, ...] = (8192, 2048, 16384, 65536)
    window: int = 1024
    keys: int = 65536  # of decoding
    decoding_width: int = 128
    decoding_heads: tuple[tuple[int, int], ...] = ((32, 8), (32, 32))
    decoding_batches: tuple[int, ...] = (1, 4)
    ceiling: int = 8192  # the side of the matrices whose product is the ceiling
    copied: int = 2**31  # bytes
    scratch: int = 2**28  # bytes, read between runs so that no cache helps


REAL = Sizes()
REHEARSAL = Sizes(64, 256, (32, 16), (128, 64), 48, 192, 16, ((4, 2), (4, 4)), (1,), 128, 2**16, 2**12)


@dataclass(frozen=True)
class Case:
    """One formula at one size, in one direction."""

    formula: str
    width: int
    n: int
    direction: str
    batch: int
    heads: int

    def operations(self, share: float) -> float:
        """4 · N² · d for each head, × 2.5 going back, × the share of pairs that the mask admits."""
        pairs = self.batch * self.heads * self.n**2 * share
        return 4 * pairs * self.width * (2.5 if self.direction == "backward" else 1)

    def facts(self) -> dict[str, Any]:
        """Its fields, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Job:
    """A piece of work: a case beside the peers of one pass, one step of decoding, or one first call."""

    part: str  # "speed", "decoding" or "first"
    name: str
    rank: int
    peers: tuple[str, ...]
    what: Any


@dataclass(frozen=True)
class Step:
    """A few queries against a long cache."""

    formula: str
    queries: int
    keys: int
    batch: int
    heads: int
    key_heads: int
    width: int

    def bytes(self) -> int:
        """Of keys and values read once, queries read and results written, two bytes each."""
        cache = 2 * self.batch * self.key_heads * self.keys * self.width
        return 2 * (cache + 2 * self.batch * self.heads * self.queries * self.width)

    def facts(self) -> dict[str, Any]:
        """Its fields, for JSON."""
        return asdict(self)


def goals(case: dict[str, Any]) -> list[tuple[str, str, float]]:
    """(own, peer, least ratio) for a case."""
    formula, width, forward = case["formula"], case["width"], case["direction"] == "forward"
    if case["n"] != AT:
        return []
    found = [
        ("regard", peer, least[0 if forward else 1])
        for (name, wide, peer), least in GOALS.items()
        if (name, wide) == (formula, width)
    ]
    if width == 128 and formula == "softmax" and forward:
        found.append(("regard_triton", "cudnn", TRITON_OF_CUDNN))
    if width == 128 and formula not in WITHOUT_FLEX:
        found.append(("regard_triton", "flex", TRITON_OF_FLEX))
    return found


def cases(
    sizes: Sizes, formulas: list[str], widths: list[int], lengths: list[int], directions: list[str]
) -> list[Case]:
    """Those that were asked for, the most important first."""
    found = [
        Case(formula, width, n, direction, max(1, sizes.tokens // n), sizes.features // width)
        for n in lengths
        for width in widths
        for formula in formulas
        for direction in directions
    ]
    return sorted(found, key=lambda case: _rank(case, sizes))


def _rank(case: Case, sizes: Sizes) -> int:
    """0: the goals' own cases; 1: the rest at that length; then by length, softmax and causal before the others."""
    at = case.n == sizes.lengths[0]
    of_goals = any(name == case.formula and sizes.widths[width != 128] == case.width for name, width, _ in GOALS)
    if at:
        return 0 if of_goals else 1
    plain = case.formula in ("softmax", "causal", "window")
    return 2 + (0 if plain else 4) + (sizes.lengths.index(case.n) if case.n in sizes.lengths else 3)


def speed_jobs(sizes: Sizes, found: list[Case], peers: list[str]) -> list[Job]:
    """Cases × passes: kernels that need no compiler first, FlexAttention next, whole matrices last."""
    own = tuple(peer for peer in OWN if peer in peers)
    jobs = []
    for case in found:
        beside_in = {
            name: tuple(peer for peer in others if peer in peers and can(peer, case.formula))
            for name, others in PASSES.items()
        }
        for late, (name, beside) in enumerate(beside_in.items()):
            if beside or (name == "kernels" and not any(beside_in.values())):
                rank = 100 * _rank(case, sizes) + (1000 if name == "eager" else 50 * late)
                key = f"speed {name} {case.formula} {case.width} {case.n} {case.direction}"
                jobs.append(Job("speed", key, rank, own + beside, case))
    return jobs


def can(peer: str, formula: str) -> bool:
    """Whether a peer can say the formula, or stands beside it as a yardstick."""
    if peer in ("cudnn", "flash"):
        return formula not in WITHOUT_SDPA
    return peer != "flex" or formula not in WITHOUT_FLEX


def decoding_jobs(sizes: Sizes, peers: list[str]) -> list[Job]:
    """One and sixteen queries, heads grouped and not."""
    jobs = []
    for batch in sizes.decoding_batches:
        for heads, key_heads in sizes.decoding_heads:
            for queries in (1, 16):
                for formula in ("softmax", "soft_cap"):
                    step = Step(formula, queries, sizes.keys, batch, heads, key_heads, sizes.decoding_width)
                    beside = tuple(
                        peer
                        for peer in ("regard", "cudnn", "flash", "flex")
                        if peer in peers and (formula == "softmax" or peer in ("regard", "flex"))
                    )
                    key = f"decoding {formula} {queries} {heads}/{key_heads} batch {batch}"
                    late = 0 if formula == "softmax" else 120
                    jobs.append(Job("decoding", key, 75 + late, beside, step))
    return jobs


def first_jobs(sizes: Sizes, peers: list[str]) -> list[Job]:
    """First calls in fresh processes with empty caches; FlexAttention's for two formulas, to compare."""
    width, n = sizes.widths[0], sizes.lengths[0]
    asked = [("regard", formula) for formula in ("softmax", "causal", "soft_cap", "relative", "window", "documents")]
    asked += [("flex", formula) for formula in ("softmax", "soft_cap")]
    return [
        Job("first", f"first {peer} {formula}", 80 if peer == "regard" else 250, (peer,), (peer, formula, width, n))
        for peer, formula in asked
        if peer in peers
    ]
