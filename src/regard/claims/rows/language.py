"""Claims that language decides: what is gained by reading more, by other weights, by positions, and by both sides."""

from __future__ import annotations

from ...experiments.store import outcome
from ..record import Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "L1",
    "C",
    "From bigram to n-gram to self-attention each relaxes the one before: a longer window, then weights from content.",
    Verdict.CONDITION,
    needs=("torch",),
)
def relaxed() -> Measurements:
    """Held-out nats for each character: unigram > bigram > n-gram; weights by place, and weights from content."""
    found = outcome("ngrams").numbers
    first, best, counted = found["attention_1"], found["attention_best"], found["ngram_best"]
    yield Measured(first - found["attention_8"], "nats gained by reading 8 characters and not 1", at_least=0.7)
    yield Measured(found["ngram_0"] - found["ngram_1"], "by a bigram over a unigram, counted", at_least=0.5)
    yield Measured(found["ngram_1"] - counted, "by the best n-gram over a bigram, counted", at_least=1)
    yield Measured(abs(first - found["ngram_1"]), "|self-attention over 1 character − bigram|, nats", at_most=0.1)
    gained = found["placed_best"] - best
    told = "on a short text, in minutes, weights by place alone do as well"
    yield Measured(gained, "nats gained by weights from content", at_least=-0.06, at_most=0.06, detail=told)
    counts = f"{counted:.2f} nats from {found['ngram_best_context']:.0f} characters"
    yield Measured(best - counted, "self-attention − best n-gram after three passes", at_least=0.1, detail=counts)


@claim(
    "N2",
    "B",
    "Other nonlinearities than softmax's exponential work: ReLU and sigmoid among them.",
    Verdict.CONDITION,
    needs=("torch",),
)
def other_weights() -> Measurements:
    """(loss of averaging − loss of ψ) / (loss of averaging − loss of softmax), same model, text, steps and rate."""
    found = outcome("weights").numbers
    for name in ("Euclidean", "10 · cosine"):
        yield Measured(found[f"share of {name}"], f"share of softmax's gain, {name}", at_least=0.85)
    for name in ("relu, shared", "sigmoid"):
        yield Measured(found[f"share of {name}"], f"share of softmax's gain, {name}", at_least=0.5, at_most=1.1)
    yield Measured(found["share of relu / n"], "share of softmax's gain, relu / n, at the rate of softmax", at_most=0.8)
    yield Measured(found["share of cosine"], "share of softmax's gain, cosine without a scale", at_most=0.4)


@claim(
    "P2",
    "CD",
    "Positions must be added: nothing else in attention tells “cat sat” from “sat cat”.",
    Verdict.CONDITION,
    needs=("torch",),
)
def told_by_position() -> Measurements:
    """Accuracy on which word came first, from the mean of the rows; 1/2 is chance."""
    found = outcome("positions").numbers
    yield Measured(found["accuracy, no mask, none"], "without mask and positions", at_least=0.49, at_most=0.51)
    yield Measured(found["accuracy, causal, none"], "with a causal mask alone, without positions", at_least=0.97)
    for name in ("sinusoidal", "learned", "rotary"):
        yield Measured(found[f"accuracy, no mask, {name}"], f"without mask, {name} positions", at_least=0.97)
    yield Measured(found["accuracy, no mask, ALiBi"], "without mask, by |i − j| alone", at_least=0.49, at_most=0.51)
    best = min(found[f"loss, no mask, {name}"] for name in ("sinusoidal", "learned", "rotary", "ALiBi"))
    yield Measured(found["loss, no mask, none"] - best, "nats that positions are worth without mask", at_least=0.15)


@claim(
    "M2",
    "E",
    "An encoder has no mask, a decoder a causal one; together: a source read both ways, a causal target, and across.",
    Verdict.HOLDS,
    needs=("torch",),
)
def sides() -> Measurements:
    """|∂ row / ∂ a later character|, and what each of the trained models can do."""
    found = outcome("sides").numbers
    yield Measured(found["decoder, moved, later"], "decoder: from a later character to an earlier row", at_most=0)
    yield Measured(found["encoder, moved, later"], "encoder: the same", at_least=1e-3)
    yield Measured(found["encoder–decoder, moved, source"], "encoder–decoder: the same in the source", at_least=1e-3)
    yield Measured(found["encoder–decoder, moved, target"], "in the target", at_most=0)
    yield Measured(found["encoder–decoder, moved, cross"], "from the source's end to the target's start", at_least=1e-3)
    gap = found["encoder, gap before"] - found["decoder, gap before"]
    yield Measured(gap, "hidden digits that only the right side tells, encoder − decoder", at_least=0.5)
    yield Measured(found["decoder, writes"], "right translations by the decoder", at_least=0.8)
    yield Measured(found["encoder–decoder, writes"], "right translations by both together", at_least=0.7)
    yield Measured(found["mask forgotten, writes"], "by a decoder whose mask was forgotten", at_most=0.1)
