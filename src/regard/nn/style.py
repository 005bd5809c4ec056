"""What the blocks of a model are made of, beside their attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from .feed_forward import FeedForward, GatedFeedForward
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


LLAMA = Style(RMSNorm, GatedFeedForward, "silu", bias=False, epsilon=1e-6)
"""RMS norm, gated SiLU, no biases."""
