"""Learn W_Q, W_K and W_V with NumPy alone.

Forward. Every guest x_i, a row of x, is seen in three ways: as one who asks, one who answers, one who gives.

    q = x W_Q        k = x W_K        v = x W_V
    y = attention(q, k, v)
    L = mean_i ‖y_i − t_i‖²

Where vectors are columns, W_Q x_i is written instead: the same numbers, with the matrix on its side.

Backward. The same lines, from the last to the first. Write dA for ∂L/∂A, which has the shape of A.

    dy = 2 (y − t) / count
    dq, dk, dv = attention.vjp(q, k, v, dy)
    dW_Q = xᵀ dq        dW_K = xᵀ dk        dW_V = xᵀ dv        summed over all parties

The line in the middle is the formula's own derivative. For w = softmax(s), s = q kᵀ / √d, y = w v it is

    dv = wᵀ dy        dw = dy vᵀ        ds_ij = w_ij (dw_ij − Σ_m w_im dw_im)
    dq = ds k / √d        dk = dsᵀ q / √d

and any other formula brings another.

Descent. A ball that rolls downhill: each step adds the slope to its speed, and friction takes a tenth of it.

    speed ← 0.9 speed + dW        W ← W − rate · speed
"""

from __future__ import annotations

import numpy as np

from ...attention import Attention
from .record import Learned, Matrices, check_lesson, check_loss
from .task import COLOUR, Parties, Task

KEPT = 0.9  # of the speed, at each step


def initial(task: Task, rng: np.random.Generator) -> Matrices:
    """Matrices that know nothing: random, and small enough that every guest reads all others nearly alike."""
    D, d = task.width, task.names  # d: as many axes as there are names to tell apart
    return Matrices(*(rng.standard_normal((D, columns)) / np.sqrt(D) for columns in (d, d, COLOUR)))


def loss_and_gradient(attention: Attention, W: Matrices, parties: Parties) -> tuple[float, Matrices]:
    """L, and ∂L/∂W for each of the three matrices; p counts parties, N guests, D the entries of a guest."""
    x, t = parties.x, parties.t  # (p, N, D) and (p, N, 3)

    # forward
    q, k, v = x @ W.Q, x @ W.K, x @ W.V  # (p, N, d), (p, N, d) and (p, N, 3)
    y = attention(q, k, v)  # (p, N, 3)
    L = np.mean(np.sum((y - t) ** 2, axis=-1))  # one number

    # backward
    count = x.shape[0] * x.shape[1]  # the mean is over so many guests
    dy = 2 * (y - t) / count  # (p, N, 3), as y
    dq, dk, dv = attention.vjp(q, k, v, dy)  # as q, k and v
    dW = Matrices(*(np.einsum("pnD,pnd->Dd", x, dz) for dz in (dq, dk, dv)))  # xᵀ dz, summed over p: as W

    return float(L), dW


def length(dW: Matrices) -> float:
    """‖dW‖ over all entries of the three."""
    return float(np.sqrt(sum((dw**2).sum() for dw in dW)))


@np.errstate(over="ignore", invalid="ignore")  # a rate that is too large is told as such
def learn(
    attention: Attention = Attention(),  # noqa: B008 - a value that never changes
    steps: int = 400,
    seed: int = 0,
    *,
    rate: float = 0.3,
    batch: int = 50,
    task: Task = Task(),  # noqa: B008
) -> Learned:
    """Start from random matrices and roll downhill, on new parties at every step.

    attention: the formula; any that reads no table
    steps:     how often the matrices are changed
    seed:      of the first matrices and of the parties
    rate:      how far the matrices go for their speed
    batch:     parties at each step
    task:      how many guests, of how many names

    >>> learned = learn(steps=100)
    >>> bool(learned.losses[0] > learned.task.chance > 10 * learned.losses[-1])
    True
    """
    check_lesson(attention, steps, seed, rate, batch, task)
    rng = np.random.default_rng(seed)
    W = before = initial(task, rng)
    speed = Matrices(*(np.zeros_like(w) for w in W))
    losses, lengths = np.empty(steps), np.empty(steps)

    for step in range(steps):
        losses[step], dW = loss_and_gradient(attention, W, task.draw(batch, rng))
        lengths[step] = length(dW)
        check_loss(losses[step], step, rate)
        speed = Matrices(*(KEPT * u + dw for u, dw in zip(speed, dW, strict=True)))
        W = Matrices(*(w - rate * u for w, u in zip(W, speed, strict=True)))

    return Learned(attention, task, seed, before, W, losses, lengths)
