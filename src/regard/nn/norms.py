"""A row on a common scale: PyTorch's own modules, with our names for their arguments."""

from __future__ import annotations

from torch import nn


class LayerNorm(nn.LayerNorm):
    """g ⊙ (x − mean(x)) / √(var(x) + ε) + b, over the features of each row."""

    def __init__(self, dim: int, epsilon: float = 1e-5, bias: bool = True) -> None:
        super().__init__(dim, eps=epsilon, bias=bias)


class RMSNorm(nn.RMSNorm):
    """g ⊙ x / √(mean(x²) + ε), over the features of each row. It has no b: `bias` is there for one signature."""

    def __init__(self, dim: int, epsilon: float = 1e-6, bias: bool = False) -> None:
        super().__init__(dim, eps=epsilon)
