"""What the blocks of a model are made of, beside their attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from .._checks import check_count, check_number
from ..algebra.errors import KindError
from .checks import check_share
from .feed_forward import FeedForward, GatedFeedForward, activation_of
from .norms import LayerNorm, RMSNorm

Part = Callable[[Tensor], Tensor]
Residual = Callable[[Tensor, Part, Part], Tensor]


def pre_norm(x: Tensor, norm: Part, f: Part) -> Tensor:
    """x + f(norm(x)): the way most models go today; a final norm follows the last block."""
    return x + f(norm(x))


def post_norm(x: Tensor, norm: Part, f: Part) -> Tensor:
    """norm(x + f(x)): the first transformer, and BERT."""
    return norm(x + f(x))


@dataclass(frozen=True)
class Style:
    """What blocks are made of; the style of GPT-2 unless said otherwise.

    norm:         LayerNorm or RMSNorm, or your own: norm(dim, epsilon, bias)
    feed_forward: FeedForward or GatedFeedForward, or your own: feed_forward(dim, hidden, activation, bias, dropout)
    activation:   "gelu", "gelu_tanh", "silu", "relu", "relu_squared"
    hidden:       the width inside the feed-forward; its own rule unless said otherwise
    residual:     pre_norm or post_norm
    bias:         whether linear maps and LayerNorm add a vector
    epsilon:      of the norm
    dropout:      the share dropped in training, of weights and of what each part adds
    """

    norm: Any = LayerNorm
    feed_forward: Any = FeedForward
    activation: str = "gelu"
    hidden: int | None = None
    residual: Residual = pre_norm
    bias: bool = True
    epsilon: float = 1e-5
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name, parts in PARTS.items():
            check_part(name, getattr(self, name), parts)
        if self.feed_forward in (FeedForward, GatedFeedForward):  # one of your own may know others
            activation_of(self.activation)
        if self.hidden is not None:
            check_count("hidden", self.hidden, 1)
        check_number("epsilon", self.epsilon, 0)
        check_share(self.dropout)

    def norm_of(self, dim: int) -> nn.Module:
        """A norm of this style."""
        made: nn.Module = self.norm(dim, self.epsilon, self.bias)
        return made

    def last_norm_of(self, dim: int) -> nn.Module:
        """The norm behind the last block, where blocks norm before and not after."""
        return nn.Identity() if self.residual is post_norm else self.norm_of(dim)

    def feed_forward_of(self, dim: int) -> nn.Module:
        """A feed-forward of this style."""
        made: nn.Module = self.feed_forward(dim, self.hidden, self.activation, self.bias, self.dropout)
        return made


PARTS: dict[str, tuple[Any, ...]] = {
    "norm": (LayerNorm, RMSNorm),
    "feed_forward": (FeedForward, GatedFeedForward),
    "residual": (pre_norm, post_norm),
}


def check_part(name: str, part: object, ours: tuple[Any, ...]) -> None:
    """Refuse a part that cannot be called: a name in place of what it names."""
    if not callable(part):
        names = " or ".join(one.__name__ for one in ours)
        raise KindError(f"{name}: {names} itself, or your own; got {part!r}; import it: from regard.nn import …")


def check_style(style: object) -> None:
    """Refuse what is no style."""
    if not isinstance(style, Style):
        raise KindError(
            f"style: a Style, such as LLAMA, BERT_STYLE or Style(norm=RMSNorm), from regard.nn; got {style!r}"
        )


LLAMA = Style(RMSNorm, GatedFeedForward, "silu", bias=False, epsilon=1e-6)
"""RMS norm, gated SiLU, no biases."""
