"""AdamW, and what it is told.

m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²        θ ← θ − η (m̂ / (√v̂ + ε) + λ θ)

Matrices decay (λ), vectors do not: a norm's gain has no reason to be small. A gradient longer than `clip` is cut to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..algebra.errors import CallError


@dataclass(frozen=True)
class AdamW:
    """What the optimiser is made of.

    decay: λ, of matrices
    clip:  the length of a gradient above which it is cut; 0 for any
    betas: β₁ and β₂
    """

    decay: float = 0.1
    clip: float = 1.0
    betas: tuple[float, float] = (0.9, 0.95)

    def __post_init__(self) -> None:
        for name in ("decay", "clip"):
            number = getattr(self, name)
            if not isinstance(number, int | float) or not 0 <= number < float("inf"):
                raise CallError(f"{name}: a number from 0; got {number!r}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise CallError(f"betas: two numbers from 0 to below 1; got {self.betas!r}")

    def of(self, model: Any) -> Any:
        """The optimiser of a model; its rate is set at every step."""
        import torch

        learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
        groups = [
            {"params": [one for one in learned if one.ndim >= 2], "weight_decay": self.decay},
            {"params": [one for one in learned if one.ndim < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW([group for group in groups if group["params"]], lr=1.0, betas=self.betas)

    def clipped(self, model: Any) -> float:
        """The length of the whole gradient before it is cut."""
        from torch import nn

        return float(nn.utils.clip_grad_norm_(model.parameters(), self.clip or float("inf")))


MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what PyTorch's AdamW keeps of each parameter


def moments(model: Any, optimiser: Any) -> dict[str, Any]:
    """What an optimiser remembers, by the names of the model's parameters."""
    return {
        f"{kind}.{name}": optimiser.state[parameter][kind]
        for name, parameter in model.named_parameters()
        for kind in MOMENTS
        if parameter in optimiser.state
    }


def remember(model: Any, optimiser: Any, kept: dict[str, Any]) -> None:
    """Give it back what `moments` took."""
    for name, parameter in model.named_parameters():
        found: dict[str, Any] = {kind: kept[f"{kind}.{name}"] for kind in MOMENTS if f"{kind}.{name}" in kept}
        if found:
            optimiser.state[parameter] = {
                kind: value.to("cpu" if kind == "step" else parameter.device) for kind, value in found.items()
            }
