"""What happens to each row by itself, after attention has mixed them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own name

from .._checks import check_count
from ..algebra.errors import CallError

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "relu_squared": lambda x: F.relu(x).square(),
}
ALIASES = {"swish": "silu", "swiglu": "silu", "gelu_new": "gelu_tanh", "relu2": "relu_squared"}


def activation_of(name: str) -> Activation:
    """The function of that name."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        known = ALIASES.get(name) if isinstance(name, str) else None
        hint = "" if known is None else f"; pass {known!r}"
        raise CallError(f"activation: one of {', '.join(ACTIVATIONS)}; got {name!r}{hint}")
    return ACTIVATIONS[name]


class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2, with f = GELU unless said otherwise.

    hidden: the width between; 4 · dim unless said otherwise
    """

    def __init__(
        self, dim: int, hidden: int | None = None, activation: str = "gelu", bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_count("dim", dim, 1)
        hidden = 4 * dim if hidden is None else hidden
        check_count("hidden", hidden, 1)
        self.into, self.out = nn.Linear(dim, hidden, bias), nn.Linear(hidden, dim, bias)
        self.activation, self.dropout = activation_of(activation), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.out(self.activation(self.into(x))))


class GatedFeedForward(nn.Module):
    """W_2 (f(W_g x) ⊙ W_1 x), with f = SiLU unless said otherwise (Shazeer: GLU Variants Improve Transformer).

    hidden: the width between; ⌈8/3 · dim⌉ to the next multiple of 8 unless said otherwise: as many parameters as a
            FeedForward of 4 · dim
    """

    def __init__(
        self, dim: int, hidden: int | None = None, activation: str = "silu", bias: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_count("dim", dim, 1)
        hidden = -(-8 * dim // 24) * 8 if hidden is None else hidden
        check_count("hidden", hidden, 1)
        self.gate, self.into = nn.Linear(dim, hidden, bias), nn.Linear(dim, hidden, bias)
        self.out = nn.Linear(hidden, dim, bias)
        self.activation, self.dropout = activation_of(activation), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.out(self.activation(self.gate(x)) * self.into(x)))
