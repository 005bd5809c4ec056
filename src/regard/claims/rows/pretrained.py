"""Claims that pretrained models decide: what heads read, where words lie, and what is said when a word is not read."""

from __future__ import annotations

from ...experiments.store import outcome
from ..record import Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "N7",
    "C",
    "Softmax concentrates: most tokens contribute almost nothing.",
    Verdict.CONDITION,
    needs=("torch", "transformers"),
)
def concentrates() -> Measurements:
    """exp(entropy) / tokens, and the share of weights below a quarter of an even share, over all heads."""
    found = outcome("attended").numbers
    for name, least in (("SmolLM2", 0.5), ("MiniLM", 0.35)):
        little = found[f"{name}: weights below a quarter of an even share"]
        told = "most of them" if little > 0.5 else "not most of them"
        yield Measured(
            little,
            f"of the weights in {name} below a quarter of an even share",
            at_least=least,
            at_most=0.7,
            detail=told,
        )
        read = found[f"{name}: share of tokens read, median head"]
        yield Measured(read, f"of the tokens read by the median head of {name}", at_least=0.1, at_most=0.4)


@claim(
    "E1",
    "E",
    "Trained heads show a bright diagonal, and heads that link a pronoun, a verb, a bracket to what it belongs to.",
    Verdict.CONDITION,
    needs=("torch", "transformers"),
)
def linked() -> Measurements:
    """Mean weights in MiniLM and SmolLM2; a head is chosen on half of the sentences and measured on the others."""
    found = outcome("attended").numbers
    for name, of in (("MiniLM", 1.3), ("SmolLM2", 2.0)):
        diagonal, even = found[f"{name}: on the diagonal"], found[f"{name}: even share"]
        yield Measured(
            diagonal / even, f"weight on the diagonal of {name} / an even share: not bright", at_least=0.8, at_most=of
        )
    first = found["SmolLM2: on the first token, layers from 3"] / found["SmolLM2: even share"]
    yield Measured(first, "weight on the first token of SmolLM2 / an even share, from layer 3 on", at_least=5)
    for what, times in (
        ("pronoun → whom it means", 3),
        ("verb → its subject", 3),
        ("closing bracket → its opening one", 8),
    ):
        weight, mean = found[f"{what}: elsewhere"], found[f"{what}: mean head"]
        yield Measured(
            weight / mean, f"{what}: one head / the mean head", at_least=times, detail=f"weight {weight:.2f}"
        )


@claim(
    "P6",
    "C",
    "Words with one role lie together: cat near dog, and far from typed.",
    Verdict.HOLDS,
    needs=("torch", "transformers"),
)
def together() -> Measurements:
    """Cosines between 36 words of six roles, as MiniLM has them before it reads anything."""
    found = outcome("roles").numbers
    yield Measured(found["nearest of the same group"], "of the words nearest to one of the same role", at_least=0.9)
    yield Measured(found["nearest by chance"], "by chance", at_most=0.2)
    yield Measured(found["cat and dog"] - found["cat and typed"], "cosine of cat with dog − with typed", at_least=0.2)
    yield Measured(
        found["within a group"] - found["between groups"], "mean cosine within − between roles", at_least=0.15
    )


@claim(
    "P8",
    "C",
    "Misplaced attention gives generic predictions.",
    Verdict.HOLDS,
    needs=("torch", "transformers"),
)
def generic() -> Measurements:
    """SmolLM2 names capitals and opposites; weights on the word that decides are blocked in a third of its layers."""
    found = outcome("blocked").numbers
    for family in ("capitals", "opposites"):
        whole, last, other = (
            found[f"{family}: {kind}: divergence"] for kind in ("nothing", "last third of layers", "the word before it")
        )
        yield Measured(
            last / whole, f"answers to different {family} apart, blocked in the last third / not", at_most=0.1
        )
        yield Measured(
            other / whole, "the same, where the word before it is blocked in all layers", at_least=0.6, at_most=1.1
        )
        right = found[f"{family}: nothing: right"] - found[f"{family}: last third of layers: right"]
        yield Measured(right, "right answers lost", at_least=0.5)
