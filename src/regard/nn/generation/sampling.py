"""Which token comes next: one draw from what the model holds likely.

    P_t = exp(z_t / T) / Σ_u exp(z_u / T)       z: the logits, T: the temperature
    top-k    the k likeliest tokens stay
    top-p    of those, as few of the likeliest stay as together reach p:  P_(1) + … + P_(n−1) < p ≤ P_(1) + … + P_(n)
    t        the least token with P_0 + … + P_t > u,  u uniform in [0, 1)

P is shared out anew among those that stay. Of tokens that are as likely as each other, the lowest id stays first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from ...algebra.errors import CallError, KindError

HEAD = 256  # of the likeliest tokens so many are looked at first; few distributions need more to reach p


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn from logits: a value, called on logits (…, V), giving ids (…).

    temperature: T; below 1 the likely tokens become likelier, at 0 the likeliest is taken (`greedy`)
    top_k:       how many tokens may be drawn; all unless said otherwise, or if there are fewer
    top_p:       how much of the whole those that may be drawn hold together; all of it unless said otherwise

    >>> import torch
    >>> logits = torch.tensor([[0.0, 2.0, 1.0, 2.0]])
    >>> Sampling(top_k=3).probabilities(logits).round(decimals=3).tolist()
    [[0.0, 0.422, 0.155, 0.422]]
    >>> Sampling(top_p=0.3).probabilities(logits).tolist()
    [[0.0, 1.0, 0.0, 0.0]]
    >>> greedy(logits).tolist()
    [1]
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise CallError(
                f"temperature: a finite number of 0 or more; got {self.temperature!r}; pass 0 for the likeliest token, "
                "1 for the model's own distribution"
            )
        if self.top_k is not None and (not _is_whole(self.top_k) or self.top_k < 1):
            raise CallError(f"top_k: how many tokens may be drawn, at least 1; got {self.top_k!r}; pass None for all")
        if self.top_p is not None and (not _is_number(self.top_p) or not 0 < self.top_p <= 1):
            raise CallError(f"top_p: a share above 0 and at most 1; got {self.top_p!r}; pass None for all tokens")

    def __call__(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One id for each row of logits; u comes from the generator, or from PyTorch's own state."""
        read_logits(logits)
        if self.temperature == 0:
            return logits.argmax(-1)  # nothing is left to chance
        device = torch.device("cpu") if generator is None else generator.device
        return self.drawn(
            logits, torch.rand(logits.shape[:-1], generator=generator, dtype=_wide(device), device=device)
        )

    def probabilities(self, logits: Tensor) -> Tensor:
        """P after temperature, top-k and top-p, (…, V), in float64 (in float32 where the device has no more)."""
        z = read_logits(logits).to(_wide(logits.device))
        if self.temperature == 0:
            return torch.zeros_like(z).scatter(-1, z.argmax(-1, keepdim=True), 1.0)
        z = (z - z.amax(-1, keepdim=True)) / max(self.temperature, torch.finfo(z.dtype).tiny)
        if self.top_k is not None and self.top_k < z.shape[-1]:
            z = z.masked_fill(~_likeliest(z, self.top_k), -math.inf)
        P = z.softmax(-1)
        if self.top_p is None or self.top_p == 1:
            return P
        P = P.masked_fill(~_reaching(P, self.top_p), 0.0)
        return P / P.sum(-1, keepdim=True)

    def drawn(self, logits: Tensor, points: Tensor) -> Tensor:
        """The id of each row at its point u of [0, 1): the least token with P_0 + … + P_t > u."""
        if self.temperature == 0:
            return logits.argmax(-1)  # of equals, the first
        total = self.probabilities(logits).cumsum(-1)
        u = points.to(total.device, total.dtype)[..., None] * total[..., -1:]  # rounding leaves a total beside 1
        return torch.searchsorted(total, u, right=True)[..., 0]


def read_logits(logits: Any, texts: Sequence[int] | None = None) -> Tensor:
    """Logits that are a distribution: no NaN, no +∞, not all −∞. An error names the row, or the text that it is of."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.ndim < 1 or logits.shape[-1] < 1:
        shown = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise KindError(f"logits: a tensor of real numbers, (…, V), one for each token; got {shown}")
    peaks = logits.amax(-1)  # NaN where there is one
    if bool(peaks.isfinite().all()):
        return logits
    row = int((~peaks.isfinite()).flatten().nonzero()[0, 0])
    peak, name = float(peaks.flatten()[row]), f"row {row}" if texts is None else f"text {texts[row]}"
    shown = "NaN" if math.isnan(peak) else "+inf" if peak > 0 else "−inf for every token"
    raise CallError(
        f"logits: finite, or −inf for some tokens, so that one can be drawn; got {shown} in {name}; "
        "look at the model's numbers, for example for an overflow in half precision"
    )


def log_probabilities(logits: Tensor, ids: Tensor) -> Tensor:
    """log P_t of one token in each row, as the model holds it: at temperature 1, among all tokens."""
    z = logits.to(_wide(logits.device))
    return z.gather(-1, ids[..., None])[..., 0] - z.logsumexp(-1)


# -- which tokens stay ---------------------------------------------------------------------------------------------


def _likeliest(x: Tensor, count: int) -> Tensor:
    """Whether each is one of the `count` largest of its row."""
    level = x.topk(count).values[..., -1:]
    return _down_to(x, level, torch.full_like(level, count, dtype=torch.int64))


def _reaching(P: Tensor, p: float) -> Tensor:
    """Whether each is one of the largest of its row that together reach p."""
    falling = _head(P, p)
    before = falling.cumsum(-1).roll(1, -1)
    before[..., 0] = 0.0
    count = (before < p).sum(-1, keepdim=True)
    return _down_to(P, falling.gather(-1, count - 1), count)


def _head(P: Tensor, p: float) -> Tensor:
    """The largest of each row in falling order, as many as reach p and often not all: a sort would take longest."""
    size, tokens = HEAD, P.shape[-1]
    while size < tokens:
        falling = P.topk(size).values
        if bool((falling.cumsum(-1)[..., -1] >= p).all()):
            return falling
        size *= 8
    return P.sort(-1, descending=True).values


def _down_to(x: Tensor, level: Tensor, count: Tensor) -> Tensor:
    """Whether each is above the level, or at it with the first that make up the count."""
    above, at = x > level, x == level
    return above | (at & (at.cumsum(-1) <= count - above.sum(-1, keepdim=True)))


# -- numbers -------------------------------------------------------------------------------------------------------


def _wide(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


greedy = Sampling(temperature=0)
"""The likeliest token; of equals, the lowest id."""
