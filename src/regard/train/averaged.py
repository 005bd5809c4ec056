"""The mean over the parameters of the last steps, which does better than any one of them.

θ̄_t = Σ_s κ^(t−s) θ_s / Σ_s κ^(t−s)        over the steps s ≤ t; what was drawn before the first is not in it
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ..algebra.errors import CallError


class Averaged:
    """θ̄ of a model.

    share: κ, what is left of the mean at each step; 0 for the parameters themselves
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        if not isinstance(share, int | float) or not 0 <= share < 1:
            raise CallError(f"average: a share from 0 to below 1; got {share!r}")
        self.source, self.share = model, share
        self.model = copy.deepcopy(model).eval().requires_grad_(requires_grad=False) if share else model

    def follow(self, step: int) -> None:
        """Take in the parameters after a step."""
        if not self.share:
            return
        new = (1 - self.share) / (1 - self.share ** (step + 1))
        with torch.no_grad():
            ours, theirs = list(self.model.parameters()), list(self.source.parameters())
            torch._foreach_lerp_(ours, theirs, new)

    def tensors(self) -> dict[str, Tensor]:
        """θ̄ by name; none where it is θ itself."""
        return self.model.state_dict() if self.share else {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `tensors` told."""
        if self.share:
            self.model.load_state_dict(tensors)
