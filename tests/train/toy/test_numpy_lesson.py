"""The lesson of NumPy: its gradient, its descent, what it learns, and what it refuses."""

from __future__ import annotations

import inspect
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from regard import Attention, causal, cosine, d, dot, i, log, n, relu, share, sigmoid, sqdist, sqrt, table
from regard.algebra.errors import CallError, KindError
from regard.train.toy import Learned, Matrices, Task, learn, numpy_lesson
from regard.train.toy.numpy_lesson import KEPT, initial, length, loss_and_gradient

TASK = Task(guests=5, names=7)
FORMULAS = {
    "softmax": Attention(),
    "sigmoid": Attention(weight=sigmoid, score=dot / sqrt(d) - log(n)),
    "share of relu": Attention(weight=share(relu)),
    "Euclidean": Attention(score=-sqdist / 2),
    "cosine": Attention(score=cosine),
    "causal": Attention(mask=causal),
}


@pytest.fixture(scope="module")
def learned() -> Learned:
    return learn()


# -- the gradient ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMULAS)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    rng = np.random.default_rng(11)
    W, parties, attention = initial(TASK, rng), TASK.draw(3, rng), FORMULAS[name]
    _, dW = loss_and_gradient(attention, W, parties)
    for which, w in enumerate(W):
        towards, epsilon = rng.standard_normal(w.shape), 1e-5
        high, low = (
            loss_and_gradient(attention, W._replace(**{"QKV"[which]: w + step * towards}), parties)[0]
            for step in (epsilon, -epsilon)
        )
        assert (dW[which] * towards).sum() == pytest.approx((high - low) / (2 * epsilon), rel=1e-6)


def test_softmax_is_differentiated_as_the_lesson_says() -> None:
    rng = np.random.default_rng(5)
    q, k = rng.standard_normal((2, 5, 7))
    v, dy = rng.standard_normal((2, 5, 3))
    w = np.exp(q @ k.T / np.sqrt(7))
    w /= w.sum(-1, keepdims=True)
    dw = dy @ v.T
    ds = w * (dw - (w * dw).sum(-1, keepdims=True))
    by_hand = ds @ k / np.sqrt(7), ds.T @ q / np.sqrt(7), w.T @ dy
    for ours, expected in zip(Attention().vjp(q, k, v, dy), by_hand, strict=True):
        assert np.allclose(ours, expected, rtol=1e-12, atol=1e-14)


def test_shapes() -> None:
    rng = np.random.default_rng(0)
    W = initial(TASK, rng)
    assert [w.shape for w in W] == [(17, 7), (17, 7), (17, 3)]
    assert [w.shape for w in loss_and_gradient(Attention(), W, TASK.draw(2, rng))[1]] == [w.shape for w in W]


def test_the_length_is_that_of_all_entries() -> None:
    assert length(Matrices(np.full((1, 1), 2.0), np.full((1, 1), 3.0), np.full((1, 1), 6.0))) == 7


# -- the descent -----------------------------------------------------------------------------------------------


def test_the_ball_rolls_as_the_lesson_says() -> None:
    """W_t − W_{t+1} = rate · speed_t, so that two steps in a row tell the gradient between them."""
    walk = [learn(steps=steps, rate=0.2, batch=3, task=TASK).after for steps in (1, 2, 3)]
    rng = np.random.default_rng(0)
    before, *parties = initial(TASK, rng), *(TASK.draw(3, rng) for _ in range(3))
    moves = [[a - b for a, b in zip(one, other, strict=True)] for one, other in pairwise([before, *walk])]
    speed = [np.zeros_like(w) for w in before]
    for at, drawn, move in zip([before, *walk], parties, moves, strict=False):
        dW = loss_and_gradient(Attention(), at, drawn)[1]
        speed = [KEPT * u + dw for u, dw in zip(speed, dW, strict=True)]
        for went, u in zip(move, speed, strict=True):
            assert np.allclose(went, 0.2 * u, rtol=1e-10, atol=1e-14)


def test_a_lesson_is_a_function_of_its_seed() -> None:
    one, same, other = (learn(steps=3, seed=seed, batch=2) for seed in (0, 0, 1))
    assert np.array_equal(one.losses, same.losses)
    assert np.array_equal(one.after.Q, same.after.Q)
    assert not np.array_equal(one.losses, other.losses)


def test_what_is_recorded() -> None:
    lesson = learn(steps=4, batch=2, task=TASK)
    rng = np.random.default_rng(0)
    W = initial(TASK, rng)
    loss, dW = loss_and_gradient(Attention(), W, TASK.draw(2, rng))
    assert all(np.array_equal(a, b) for a, b in zip(lesson.before, W, strict=True))
    assert (lesson.losses[0], lesson.lengths[0]) == (loss, length(dW))
    assert lesson.losses.shape == lesson.lengths.shape == (4,)


# -- what is learned -------------------------------------------------------------------------------------------


def test_the_loss_falls_from_chance_to_nearly_nothing(learned: Learned) -> None:
    chance = learned.task.chance
    assert chance < learned.losses[0] < 2 * chance
    assert learned.losses[-20:].max() < chance / 1000
    assert learned.lengths[-20:].max() < learned.lengths.max() / 10


def test_new_guests_find_their_partners(learned: Learned) -> None:
    before, after = learned.reached(learned.before), learned.reached()
    assert before.partner == pytest.approx(1 / 6, abs=0.02)
    assert after.partner > 0.95
    assert after.partner + after.others == pytest.approx(1)
    assert (after.found, after.loss < 0.001) == (1, True)


def test_every_new_guest_looks_at_its_partner(learned: Learned) -> None:
    x, _, _, partner = learned.new(200)
    weights = learned.weights(learned.after, x)
    assert np.take_along_axis(weights, partner[..., None], -1).min() > 0.9


def test_no_step_saw_the_new_parties() -> None:
    lesson, rng = learn(steps=1, batch=40), np.random.default_rng(0)
    from_the_start = lesson.task.draw(40, np.random.default_rng(0)).x
    initial(lesson.task, rng)
    seen, new = lesson.task.draw(40, rng).x, lesson.new(40).x
    assert not np.isin(new[..., -1], [seen[..., -1], from_the_start[..., -1]]).any()  # colours are never drawn twice


def test_the_matrices_read_the_right_parts(learned: Learned) -> None:
    assert max(learned.shares(learned.before)) < 0.3
    assert min(learned.shares(learned.after)) > 0.95
    colour = learned.task.parts["colour"]
    assert np.allclose(learned.after.V[colour], np.eye(3), atol=0.1)


REACHED = {  # the loss stays below, the weight on the partner above, after a quarter of the steps
    "sigmoid": (0.15, 0.7),
    "share of relu": (0.002, 0.98),
    "Euclidean": (0.002, 0.95),
    "cosine": (0.37, 0.37),
}


@pytest.mark.parametrize("name", REACHED)
def test_other_formulas(name: str) -> None:
    lesson, (loss, partner) = learn(FORMULAS[name], steps=100), REACHED[name]
    reached = lesson.reached()
    assert reached.loss < loss
    assert reached.partner > partner
    assert reached.found > 0.99


def test_cosine_stays_below_its_bound() -> None:
    """A cosine lies between −1 and 1, so no guest outweighs another by more than e²."""
    assert learn(FORMULAS["cosine"], steps=50).reached().partner < np.e / (np.e + 5 / np.e)


# -- refusals --------------------------------------------------------------------------------------------------

BIASED = Attention(score=dot / sqrt(d) + table("bias")[i])


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"steps": 0}, CallError, "steps: an integer of at least 1; got 0"),
        ({"steps": -3}, CallError, "steps: an integer of at least 1; got -3"),
        ({"steps": 2.0}, KindError, r"steps: an integer; got 2\.0"),
        ({"seed": -1}, CallError, "seed: an integer of at least 0; got -1"),
        ({"batch": 0}, CallError, "batch: an integer of at least 1; got 0"),
        ({"rate": float("nan")}, CallError, "rate: a finite number above 0; got nan"),
        ({"rate": 0}, CallError, "rate: a finite number above 0; got 0"),
        ({"rate": "0.3"}, KindError, "rate: a number; got '0.3'"),
        ({"task": 6}, KindError, r"task: a Task, as in Task\(guests=6, names=8\); got 6"),
        ({"attention": "softmax"}, KindError, r"attention: an Attention, as in Attention\(weight=sigmoid\); got 'soft"),
        ({"attention": BIASED}, CallError, r"attention: .* no table; got .*, which reads bias; nn\.SelfAttention"),
    ],
)
def test_what_nothing_is_learned_from(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        learn(**options)


@pytest.mark.parametrize("rate", [30.0, 1e250])
def test_a_rate_that_is_too_large_is_named(rate: float) -> None:
    with pytest.raises(
        CallError, match=r"rate: small enough .*; got \S+, and a loss of \w+ after \d+ steps; try rate="
    ):
        learn(rate=rate)


# -- the file --------------------------------------------------------------------------------------------------


def test_the_lesson_is_short() -> None:
    assert len(inspect.getsource(numpy_lesson).splitlines()) < 150


NUMPY_ALONE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "rich", "matplotlib", "sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())

from regard.train.toy import learn
assert learn(steps=2, batch=1).losses.shape == (2,)
"""


def test_numpy_alone_is_needed() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", NUMPY_ALONE], check=True)
