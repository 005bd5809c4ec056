"""How much of a gradient arrives i steps before the end of a recurrent net, and of attention.

RNN         ∂h_T / ∂x_{T−i} = U diag(1 − h²) W … W diag(1 − h²)        i factors more for each step back
attention   ∂y_T / ∂x_{T−i}                                            one term, however far
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....algebra.masks import causal
from ....attention import Attention

WIDTH = 32


def recurrent(radius: float, rows: int = 64, seed: int = 0) -> Any:
    """‖∂h_T / ∂x_{T−i}‖ for i = 0, …, rows − 1, of random weights whose largest eigenvalue has this size."""
    rng = np.random.default_rng(seed)
    w, u = rng.standard_normal((2, WIDTH, WIDTH)) / np.sqrt(WIDTH)
    w *= radius / np.abs(np.linalg.eigvals(w)).max()
    u *= 0.3
    h, states = np.zeros(WIDTH), []
    for row in rng.standard_normal((rows, WIDTH)):
        h = np.tanh(h @ w + row @ u)
        states.append(h)
    slope, sizes = np.eye(WIDTH), []
    for h in reversed(states):
        slope = slope * (1 - h**2)
        sizes.append(np.linalg.norm(slope @ u.T))
        slope = slope @ w.T
    return np.array(sizes)


def attending(rows: int = 64, seeds: int = 8) -> Any:
    """‖∂y_T / ∂x_{T−i}‖ of one causal attention with random matrices, by the algebra's own derivative"""
    attention, total = Attention(mask=causal), np.zeros(rows)
    dy = np.zeros((WIDTH, rows, WIDTH))
    dy[:, -1] = np.eye(WIDTH)  # one entry of the last row at a time
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = np.broadcast_to(rng.standard_normal((rows, WIDTH)), dy.shape)
        wq, wk, wv = rng.standard_normal((3, WIDTH, WIDTH)) / np.sqrt(WIDTH)
        dq, dk, dv = attention.vjp(x @ wq, x @ wk, x @ wv, dy)[:3]
        total += np.linalg.norm(dq @ wq.T + dk @ wk.T + dv @ wv.T, axis=(0, 2)) / seeds
    return total[::-1]
