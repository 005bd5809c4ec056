"""The same lesson in PyTorch: the same matrices, the same parties, the same curve.

    y = attention(x W_Q, x W_K, x W_V)        L = mean_i ‖y_i − t_i‖²        L.backward()

Only the forward lines are left: PyTorch remembers each operation and walks back by itself, where numpy_lesson has the
algebra's derivative. `engine="dense"` writes any formula as plain operations of PyTorch, so that no derivative of
regard's takes part. SGD with momentum is the ball that rolls downhill.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...attention import Attention
from .numpy_lesson import KEPT, initial, length
from .record import Learned, Matrices, check_lesson, check_loss
from .task import Task


def loss_of(attention: Attention, W: Matrices, x: Any, t: Any) -> Any:
    """L, as a number that remembers where it comes from."""
    y = attention(x @ W.Q, x @ W.K, x @ W.V, engine="dense")
    return ((y - t) ** 2).sum(-1).mean()


@np.errstate(over="ignore", invalid="ignore")  # a rate that is too large is told as such
def learn_with_torch(
    attention: Attention = Attention(),  # noqa: B008 - a value that never changes
    steps: int = 400,
    seed: int = 0,
    *,
    rate: float = 0.3,
    batch: int = 50,
    task: Task = Task(),  # noqa: B008
) -> Learned:
    """What `learn` does, with the gradients of PyTorch; the arguments are the same."""
    check_lesson(attention, steps, seed, rate, batch, task)
    rng = np.random.default_rng(seed)
    before = initial(task, rng)
    W = Matrices(*(torch.tensor(w, requires_grad=True) for w in before))
    ball = torch.optim.SGD(W, lr=rate, momentum=KEPT)
    losses, lengths = np.empty(steps), np.empty(steps)

    for step in range(steps):
        parties = task.draw(batch, rng)
        L = loss_of(attention, W, torch.from_numpy(parties.x), torch.from_numpy(parties.t))
        ball.zero_grad()
        L.backward()
        losses[step], lengths[step] = L.item(), length(Matrices(*(w.grad.numpy() for w in W)))
        check_loss(losses[step], step, rate)
        ball.step()

    return Learned(attention, task, seed, before, Matrices(*(w.detach().numpy() for w in W)), losses, lengths)
