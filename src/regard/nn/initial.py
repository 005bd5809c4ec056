"""Parameters before training.

    W ~ N(0, σ²), σ = 0.02        b = 0        and σ / √(2 L) for what each of L blocks adds to its rows

so that the rows are about as large behind the last block as before the first (Radford et al.: GPT-2).
"""

from __future__ import annotations

import math

from torch import nn

SPREAD = 0.02


def initialise(model: nn.Module, depth: int = 1) -> None:
    """Draw every linear map and embedding anew."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            adds = name.endswith((".out",))
            nn.init.normal_(module.weight, std=SPREAD / math.sqrt(2 * depth) if adds else SPREAD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
