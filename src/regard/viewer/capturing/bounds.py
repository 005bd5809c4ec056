"""How many bytes a capture keeps: said before it runs where the model's config tells, and bounded while it runs.

bytes = batch · layers · (H + 2 G) · N · D · bytes of a number        H heads of queries, G of keys and values
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

HEADS = ("num_attention_heads", "n_head", "num_heads", "encoder_attention_heads", "n_heads", "decoder_attention_heads")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")
WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
UNKNOWN = 2**33  # bytes of memory, where the system does not tell


def foreseen(
    model: torch.nn.Module, tokens: int, *, batch: int = 1, values: bool = True, half: bool = False
) -> int | None:
    """The bytes of q, k and v that a capture of so many tokens keeps; None where the model's config does not tell.

    Masks and biases come on top. Models of two sides count their encoder.
    """
    config = getattr(model, "config", None)
    config = getattr(config, "get_text_config", lambda: config)()
    heads, layers, whole = (_said(config, names) for names in (HEADS, LAYERS, WIDTH))
    if heads is None or layers is None:
        return None
    width = _said(config, ("head_dim", "d_kv")) or (None if whole is None else whole // heads)
    if width is None:
        return None
    shared = _said(config, ("num_key_value_heads",)) or heads
    dtype = next((weight.dtype for weight in model.parameters()), torch.float32)
    return batch * layers * tokens * width * (heads + shared * (1 + values)) * (2 if half else dtype.itemsize)


def free_memory(device: torch.device) -> int:
    """Bytes that are free where a model runs."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    told = Path("/proc/meminfo")
    if told.exists():
        for line in told.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):
        return UNKNOWN


def shown(size: int) -> str:
    """Bytes as a person reads them."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.3g} {unit}"
    return f"{size} bytes"


def _said(config: Any, names: tuple[str, ...]) -> int | None:
    found = (getattr(config, name, None) for name in names)
    return next((value for value in found if isinstance(value, int) and value > 0), None)
