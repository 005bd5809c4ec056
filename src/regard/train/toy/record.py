"""What a lesson starts from, what it leaves behind, and what that is worth on parties that were never seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._checks import check_count, check_number
from ..._shapes import Array, Float
from ...algebra.errors import CallError, KindError
from ...attention import Attention
from .task import Parties, Task

NEW = 1000  # parties to measure on


class Matrices(NamedTuple):
    """W_Q, W_K and W_V; or anything that there is once for each of them, as their gradients."""

    Q: Float[Array, "D d"]
    K: Float[Array, "D d"]
    V: Float[Array, "D colour"]


class Reached(NamedTuple):
    """What a lesson is worth on parties that it never saw: means over all guests.

    loss:    ‖y − t‖²
    partner: the weight on the guest whom one seeks
    others:  the weight on all the others together
    found:   the share of guests whose largest weight is on the right one
    """

    loss: float
    partner: float
    others: float
    found: float


@dataclass(frozen=True, eq=False)
class Learned:
    """A lesson that was learned.

    before, after: the matrices
    losses:        L before each step: the first is that of the matrices before
    lengths:       ‖∂L/∂W‖ there, over all three matrices
    """

    attention: Attention
    task: Task
    seed: int
    before: Matrices
    after: Matrices
    losses: Float[Array, " steps"]
    lengths: Float[Array, " steps"]

    def new(self, parties: int = NEW) -> Parties:
        """Parties that no step saw."""
        return self.task.draw(parties, np.random.default_rng([self.seed, 1]))

    def weights(self, W: Matrices, x: Float[Array, "p N D"]) -> Float[Array, "p N N"]:
        """w_ij of guests, with the matrices before or after."""
        return self.attention.weights(x @ W.Q, x @ W.K)

    def answers(self, W: Matrices, x: Float[Array, "p N D"]) -> Float[Array, "p N colour"]:
        """y_i of guests, with the matrices before or after."""
        return self.attention(x @ W.Q, x @ W.K, x @ W.V)

    def shares(self, W: Matrices) -> tuple[float, float]:
        """Of ‖W_Q W_Kᵀ‖², what lies where `sought` meets `name`; of ‖W_V‖², what lies in the rows of `colour`."""
        parts, product = self.task.parts, W.Q @ W.K.T
        meeting, giving = product[parts["sought"], parts["name"]], W.V[parts["colour"]]
        return float((meeting**2).sum() / (product**2).sum()), float((giving**2).sum() / (W.V**2).sum())

    def reached(self, W: Matrices | None = None) -> Reached:
        """What the matrices are worth on new parties; those after the last step unless said otherwise."""
        W, (x, t, _, partner) = W or self.after, self.new()
        w = self.weights(W, x)
        on_partner = np.take_along_axis(w, partner[..., None], -1)[..., 0]
        loss = ((self.answers(W, x) - t) ** 2).sum(-1).mean()
        others, found = (w.sum(-1) - on_partner).mean(), (w.argmax(-1) == partner).mean()
        return Reached(float(loss), float(on_partner.mean()), float(others), float(found))


def apart(one: Learned, other: Learned) -> float:
    """The largest difference of two curves, in shares of the loss at that step."""
    smallest = np.finfo(np.float64).tiny  # a loss of exactly 0 has no shares
    return float(np.max(np.abs(one.losses - other.losses) / np.maximum(one.losses, smallest)))


def check_lesson(attention: object, steps: int, seed: int, rate: float, batch: int, task: object) -> None:
    """Refuse what nothing can be learned from."""
    if not isinstance(attention, Attention):
        raise KindError(f"attention: an Attention, as in Attention(weight=sigmoid); got {attention!r}")
    if attention.ranks:
        raise CallError(
            f"attention: a formula of q and k alone, since three matrices are learned and no table; got {attention!r}, "
            f"which reads {', '.join(attention.ranks)}; nn.SelfAttention learns tables, too"
        )
    if not isinstance(task, Task):
        raise KindError(f"task: a Task, as in Task(guests=6, names=8); got {task!r}")
    check_count("steps", steps, 1)
    check_count("seed", seed, 0)
    check_count("batch", batch, 1)
    check_number("rate", rate, 0, above=True)


def check_loss(loss: float, step: int, rate: float) -> None:
    """Refuse to go on where the numbers have run away."""
    if not np.isfinite(loss):
        raise CallError(
            f"rate: small enough for the loss to stay finite; got {rate:g}, and a loss of {loss} after {step} steps; "
            f"try rate={rate / 3:.2g}"
        )
