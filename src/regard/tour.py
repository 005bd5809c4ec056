"""Five formulas, their mathematics, and what they attend to in a sentence: what `make run` shows."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .attention import Attention
from .zoo import alibi, causal_dot, euclidean, scaled_dot, squared_relu

if TYPE_CHECKING:
    from rich.console import Console

SENTENCE = "the cat sat on the mat and the dog sat too"
HEADS = 8
STOPS = (
    ("Similar words read each other: cat, sat and mat share letters.", scaled_dot),
    ("The same, but no word reads what comes after it.", causal_dot),
    ("Near words count more; how much, the head decides (this is the first of eight).", alibi),
    ("Distance in place of the dot product: a word is nearest to itself.", euclidean),
    ("Another ψ: what is below zero is not read at all.", squared_relu),
)


def tour(console: Console) -> None:
    """Print the five formulas with their equation and their weights on a sentence."""
    from rich.text import Text

    from .terminal import matrix, show_mathematics

    words = SENTENCE.split()
    x = np.stack([vectors(words)] * HEADS)[None]  # the same vectors in every head
    console.print(Text.assemble(("regard", "bold"), ": attention, written once."))
    console.print(
        "y_i = Σ_j w_ij v_j,  w_ij = ψ(s_ij) / Z_i,  s_ij = score(q_i, k_j, i, j, h, b)\n", style="dim", highlight=False
    )
    console.print(f"“{SENTENCE}”: each word is a vector of its letters and pairs of letters.\n", highlight=False)
    for sentence, make in STOPS:
        attention: Attention = make()
        console.print(Text(sentence, style="bold"))
        show_mathematics(attention)
        console.print(matrix(attention.weights(x, x)[0, 0], words, words))
        console.print()
    command = command_name()
    for arguments in ('formula "softmax(-sqrt(sqdist), mask=j <= i)"', "zoo", "claims", "--help"):
        console.print(f"{command} {arguments}", style="dim", highlight=False, markup=False, soft_wrap=True)


def command_name() -> str:
    """How this very command is called from here: by name if it is on the path, otherwise by its place."""
    beside = Path(sys.executable).parent / "regard"
    if shutil.which("regard") or not beside.exists():
        return "regard"
    return str(beside.relative_to(Path.cwd())) if beside.is_relative_to(Path.cwd()) else str(beside)


def vectors(words: list[str], length: float = 4.0) -> Any:
    """Words as centred counts of their letters and neighbouring letters, all of one length."""
    counts = [Counter([*word, *(a + b for a, b in zip(f"^{word}", f"{word}$", strict=False))]) for word in words]
    features = sorted(set().union(*counts))
    raw = np.array([[count[feature] for feature in features] for count in counts], dtype=float)
    raw -= raw.mean(axis=0)
    return length * raw / np.linalg.norm(raw, axis=1, keepdims=True)
