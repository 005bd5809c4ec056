"""One block reads as its equation, in both orders of norm and residual."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from layers import BATCH, CLOSE, DIM, EXACT, HEADS, KV_HEADS, ROWS, WIDTH, loud, normal
from regard import Attention, causal
from regard.nn import Block, GatedFeedForward, LayerNorm, RMSNorm, Style, post_norm, pre_norm
from regard.nn.style import LLAMA

X, MEMORY = normal(BATCH, ROWS, DIM), normal(BATCH, 7, DIM, seed=1)
CAUSAL = Attention(mask=causal)


def block_of(style: Style, cross: Attention | None = None, **options: Any) -> Block:
    return loud(Block(DIM, HEADS, KV_HEADS, CAUSAL, cross=cross, style=style, width=WIDTH, **options))


def written_out(block: Block, x: Tensor, memory: Tensor | None, *, before: bool) -> Tensor:
    """The equation of the block, line by line."""
    if before:
        x = x + block.attention(block.attention_norm(x))
        x = x if memory is None else x + block.cross(block.cross_norm(x), memory)
        return x + block.feed_forward(block.feed_forward_norm(x))
    x = block.attention_norm(x + block.attention(x))
    x = x if memory is None else block.cross_norm(x + block.cross(x, memory))
    return block.feed_forward_norm(x + block.feed_forward(x))


@pytest.mark.parametrize("residual", [pre_norm, post_norm])
@pytest.mark.parametrize("memory", [None, MEMORY], ids=["alone", "with a memory"])
def test_a_block_is_its_equation(residual: Any, memory: Tensor | None) -> None:
    block = block_of(Style(residual=residual), None if memory is None else Attention())
    expected = written_out(block, X, memory, before=residual is pre_norm)
    torch.testing.assert_close(block(X, None, memory), expected, **CLOSE)


def test_the_style_says_what_it_is_made_of() -> None:
    block = block_of(Style(RMSNorm, GatedFeedForward, "relu", 7, bias=False, epsilon=0.25, dropout=0.125), Attention())
    assert isinstance(block.attention_norm, RMSNorm)
    assert block.attention_norm.eps == 0.25
    assert isinstance(block.feed_forward, GatedFeedForward)
    assert block.feed_forward.into.out_features == 7
    assert not [name for name, _ in block.named_parameters() if name.endswith("bias")]
    assert block.attention.dropout == block.cross.dropout == block.dropout.p == block.feed_forward.dropout.p == 0.125


def test_styles() -> None:
    assert isinstance(Style().norm_of(3), LayerNorm)
    assert isinstance(Style(residual=post_norm).last_norm_of(3), torch.nn.Identity)
    assert isinstance(LLAMA.last_norm_of(3), RMSNorm)
    assert Style() == Style()
    assert hash(Style()) == hash(Style())


def test_dropout_of_weights_and_of_what_each_part_adds() -> None:
    block = block_of(Style(dropout=0.5))
    torch.testing.assert_close(block(X), block_of(Style())(X), **EXACT)
    torch.manual_seed(0)
    first = block.train()(X)
    assert not torch.allclose(first, block(X))
    torch.manual_seed(0)
    torch.testing.assert_close(block(X), first, **EXACT)


@pytest.mark.parametrize("part", ["attention", "cross", "feed_forward"])
def test_what_a_part_adds_is_dropped_entry_by_entry(part: str) -> None:
    block = block_of(Style(dropout=0.5), Attention(), dropout=0.0).train()
    for other in {"attention", "cross", "feed_forward"} - {part}:
        for parameter in getattr(block, other).out.parameters():
            torch.nn.init.zeros_(parameter)
    kept = (block(X, None, MEMORY) != X).double().mean().item()
    assert 0.4 < kept < 0.6  # of 429 entries: 2.4 % is one deviation


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_forgetting_and_running_again_changes_no_gradient(dropout: float) -> None:
    block = block_of(Style(dropout=dropout)).train()

    def gradients(run: Any) -> list[Tensor]:
        x = X.clone().requires_grad_()
        torch.manual_seed(0)
        return list(torch.autograd.grad(run(x).square().sum(), [x, *block.parameters()]))

    kept, again = gradients(block), gradients(lambda x: checkpoint(block, x, use_reentrant=False))
    for own, plain in zip(again, kept, strict=True):
        torch.testing.assert_close(own, plain, **CLOSE)
