"""Parameters and operations: those that PyTorch itself counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.algebra.errors import CallError
from regard.nn import BERT, GPT, EncoderDecoder, ViT
from regard.nn.attention import Projected

IDS = torch.zeros(1, 11, dtype=torch.int64)
MODELS: dict[str, tuple[Any, Any, int | None]] = {
    "GPT": (lambda: GPT(17, 12, 2, 6, 2, width=4), lambda model: model(IDS), 11),
    "untied": (lambda: GPT(17, 12, 3, 3, tied=False), lambda model: model(IDS), 11),
    "BERT": (lambda: BERT(17, 12, 2, 3), lambda model: model(IDS), 11),
    "ViT": (lambda: ViT(8, 2, 5, 12, 2, 3), lambda model: model(torch.zeros(1, 3, 8, 8)), None),
    "ViT, mean": (lambda: ViT(8, 2, 5, 12, 2, 3, pool="mean"), lambda model: model(torch.zeros(1, 3, 8, 8)), None),
    "both": (lambda: EncoderDecoder((17, 19), 12, 2, 3), lambda model: model(IDS, IDS), 11),
}


def pairs_of(model: nn.Module, rows: int) -> int:
    """Scores and weighted sums, which PyTorch's counter does not see in its own kernel on the CPU."""
    layers = [module for module in model.modules() if isinstance(module, Projected)]
    return sum(2 * rows * rows * layer.heads * 2 * layer.width for layer in layers)


@pytest.mark.parametrize("name", MODELS)
def test_operations_and_parameters_are_those_that_pytorch_counts(name: str) -> None:
    make, run, rows = MODELS[name]
    model = make().eval()
    found = model.summary(rows)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        run(model)
    assert found.operations == counter.get_total_flops() + pairs_of(model, found.rows)
    assert found.parameters == model.count() == sum(p.numel() for p in model.parameters())
    assert found.bytes == 4 * found.parameters


def test_the_cache_of_a_row() -> None:
    assert GPT(17, 12, 3, 6, 2, width=4).summary(5).cache == 3 * 2 * 2 * 4 * 4, "layers, k and v, heads, width, bytes"
    assert BERT(17, 12, 2, 3).summary(5).cache == 0


def test_it_prints_as_a_table() -> None:
    lines = str(GPT(17, 12, 2, 3).summary(11)).splitlines()
    assert lines[0].split() == ["part", "parameters", "operations"]
    assert any(line.startswith("decoder.blocks.attention × 2 ") for line in lines)


@pytest.mark.parametrize(("make", "rows", "text"), [
    (lambda: GPT(17, 12, 1, 3), None, "rows: how long the text is, at least 1; got None"),
    (lambda: GPT(17, 12, 1, 3), 0, "rows: how long the text is, at least 1; got 0"),
    (lambda: ViT(8, 2, 5, 12, 1, 3), 7, "rows: an image has as many as it has patches; got 7; leave it out"),
])  # fmt: skip
def test_refusals(make: Any, rows: int | None, text: str) -> None:
    with pytest.raises(CallError, match=text):
        make().summary(rows)
