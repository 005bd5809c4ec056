"""What a chapter tells is true wherever the reader stands."""

from __future__ import annotations

import re

import numpy as np
import pytest

import regard as rg
from regard.algebra.mistakes import mistakes_of
from regard.course.figures.arrows import pair_of
from regard.course.figures.headed import sentence, slices_of
from regard.course.figures.whispers import whispers_of
from regard.course.programs.c11_transformer.writer import against_counts

COUNTS = {1: 2.9, 2: 2.4, 3: 1.9}


@pytest.mark.parametrize(
    ("nats", "says"),
    [
        (3.4, "Counting is still ahead, even with no context."),
        (2.5, "It beats counting with no context; with one character or two characters, counting is still ahead."),
        (2.0, "It beats counting with no context or one character; with two characters, counting is still ahead."),
        (1.5, "It beats counting with no context, one character or two characters."),
    ],
)
def test_what_the_writer_beats(nats: float, says: str) -> None:
    assert against_counts(nats, COUNTS) == says


@pytest.mark.parametrize(("kept", "told"), [(1.0, "100%"), (0.85, "4.6%"), (0.5, "&lt; 0.1%")])
def test_a_joke_that_fades_is_never_a_rounded_nothing(kept: float, told: str) -> None:
    assert f">{told}</text>" in whispers_of(20, kept)


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_every_matrix_has_its_way_to_the_heads(heads: int) -> None:
    picture = slices_of(6, 8, heads, says="")
    filled = picture.count('stroke="none" stroke-width="0" stroke-linejoin')  # heads of arrows
    assert filled == 2 * heads + 2, "to and from each head, one from V, one to W_O"
    assert f"{heads} × 6 × 6" in picture
    assert "slice of V" in picture


@pytest.mark.parametrize("degrees", [30, 120, 180])
def test_the_arc_of_an_angle_is_on_the_side_that_y_turns_over(degrees: float) -> None:
    turn = np.radians(degrees)
    picture = pair_of([1.0, 0.0], [2 * np.cos(turn), 2 * np.sin(turn)], says="")
    (arc,) = re.findall(r'<path d="M([^"]*)" fill="none" stroke="var\(--faint\)" stroke-width="1.5"', picture)
    heights = np.array(re.findall(r"[\d.]+", arc), float)[1::2]
    assert heights.max() <= 155 + 1e-6, "above the middle of the circle"


def test_one_head_looks_for_the_same_word() -> None:
    tokens, found = sentence("1-encoder-animal")
    first, second, it = (tokens.index(word) for word in ("The", "the", "it"))
    alike = found[0, 8].copy()
    np.fill_diagonal(alike, 0)
    assert (alike[first].argmax(), alike[second].argmax(), alike[it].argmax()) == (second, first, 0)


def test_softmax_over_queries_lets_the_future_into_the_total() -> None:
    right = rg.Attention(mask=rg.causal)
    wrong = mistakes_of(right)["softmax over queries"]
    q, k = np.random.default_rng(7).standard_normal((2, 7, 5))
    other_q, other_k = q.copy(), k.copy()
    other_q[-1], other_k[-1] = np.random.default_rng(8).standard_normal((2, 5))
    moved = {name: np.abs(one.weights(q, k) - one.weights(other_q, other_k))[:-1].max(axis=-1)
             for name, one in {"right": right, "wrong": wrong}.items()}  # fmt: skip
    assert moved["right"].max() == 0
    assert moved["wrong"].min() > 1e-6
    assert np.count_nonzero(np.triu(wrong.weights(q, k), 1)) == 0, "and nothing stands on the future"
    assert np.abs(wrong.weights(q, k).sum(axis=-1) - 1).max() > 0.1
