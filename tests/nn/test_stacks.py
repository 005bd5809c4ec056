"""Encoders and decoders: block after block, what order and padding change, and what they must not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from layers import (
    BATCH,
    CLOSE,
    DIM,
    EXACT,
    FORMULAS,
    HEADS,
    KV_HEADS,
    POSITIONS,
    ROWS,
    WIDTH,
    decoder,
    loud,
    normal,
    unequal,
)
from regard import Attention, causal, documents, dot, h, i, j, prefix, table, window
from regard.algebra.errors import CallError, FormulaError, KindError
from regard.inputs.positions import ALiBi, Learned, Offsets, Relative, Rotary
from regard.nn import Decoder, Encoder, Style, post_norm
from regard.nn.initial import SPREAD

X = normal(BATCH, ROWS, DIM)
MEMORY, COUNTS = normal(BATCH, 7, DIM, seed=1), [7, 3, 1]
every_position = pytest.mark.parametrize("position", [name for name in POSITIONS if name != "dynamic"])


def encoder_of(position: str = "none", **options: Any) -> Encoder:
    return loud(Encoder(DIM, 2, HEADS, KV_HEADS, position=POSITIONS[position], width=WIDTH, **options))


# -- block after block -------------------------------------------------------------------------------------------


@every_position
def test_a_stack_is_its_blocks(position: str) -> None:
    model = encoder_of(position)
    x, rows = model.placed(X)
    torch.testing.assert_close(x, model.placement.position.add(X), **EXACT)
    for block in model.blocks:
        x = block(x, rows)
    torch.testing.assert_close(model(X), model.norm(x), **EXACT)


def test_no_norm_behind_blocks_that_norm_after() -> None:
    model = encoder_of(style=Style(residual=post_norm))
    assert isinstance(model.norm, torch.nn.Identity)
    torch.testing.assert_close(model(X), model.blocks[1](model.blocks[0](X)), **CLOSE)


def test_formulas_take_turns() -> None:
    formulas = [Attention(mask=window(3)), Attention(), Attention(mask=causal)]
    model = Decoder(DIM, 5, HEADS, attention=formulas, position=ALiBi(), width=WIDTH)
    full, near = ALiBi().join(Attention(mask=causal)), ALiBi().join(Attention(mask=window(3)))
    assert [block.attention.attention for block in model.blocks] == [near, full, full, near, full]


def test_parameters_before_training() -> None:
    depth = 8
    model = Encoder(64, depth, 4)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            assert (parameter == (1 if name.endswith("weight") else 0)).all()
        elif name.endswith("bias"):
            assert (parameter == 0).all()
        else:
            expected = SPREAD / (2 * depth) ** 0.5 if ".out." in name else SPREAD
            assert abs(parameter.std().item() / expected - 1) < 0.05, name  # 4096 numbers: 1.1 % is one deviation


# -- what order changes ------------------------------------------------------------------------------------------


@settings(max_examples=20)
@drawn(st.permutations(range(ROWS)))
def test_without_a_position_rows_are_a_set(order: list[int]) -> None:
    model = encoder_of()
    torch.testing.assert_close(model(X[:, order]), model(X)[:, order], **CLOSE)


@pytest.mark.parametrize("position", [name for name in POSITIONS if name != "none"])
def test_a_position_tells_rows_apart(position: str) -> None:
    model = encoder_of(position)
    assert (model(X.flip(1)) - model(X).flip(1)).abs().max() > 0.01


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_row_of_a_decoder_sees_what_comes_after(formula: str) -> None:
    model = decoder(formula, "sum")
    with torch.no_grad():
        before = model(X)
        for place in (0, 4, 10):
            changed = X.clone()
            changed[:, place:] += normal(BATCH, ROWS - place, DIM, seed=3)
            after = model(changed)
            torch.testing.assert_close(after[:, :place], before[:, :place], **CLOSE)
            assert ((after - before)[:, place:].abs().amax(-1) > 1e-6).all()


# -- filling -----------------------------------------------------------------------------------------------------


@every_position
@pytest.mark.parametrize("filling", [0.0, 1e100, float("nan")])
def test_texts_of_unequal_length_are_each_by_itself(position: str, filling: float) -> None:
    counts = [11, 5, 1]
    for model in (encoder_of(position), decoder("softmax", position)):
        y = model(unequal(X, counts, filling), lengths=counts)
        for text, count in enumerate(counts):
            torch.testing.assert_close(y[text, :count], model(X[text : text + 1, :count])[0], **CLOSE)


def test_no_gradient_reaches_filling() -> None:
    counts, x = [11, 5, 1], X.clone().requires_grad_()
    inside = torch.arange(ROWS) < torch.tensor(counts)[:, None]
    (encoder_of("sum")(x, lengths=counts) * inside[..., None]).square().sum().backward()
    assert x.grad is not None
    assert (x.grad[~inside] == 0).all()
    assert (x.grad[inside] != 0).all()


def test_masks_of_the_caller() -> None:
    model, pairs = encoder_of("rotary"), normal(ROWS, ROWS) > 0
    torch.testing.assert_close(model(X, mask=pairs), model(X, mask=pairs.expand(BATCH, HEADS, -1, -1)), **CLOSE)
    triangle = torch.ones(ROWS, ROWS).tril().bool()
    same = loud(Encoder(DIM, 2, HEADS, KV_HEADS, Attention(mask=causal), Rotary(), width=WIDTH))
    torch.testing.assert_close(model(X, mask=triangle), same(X), **CLOSE)


# -- tables ------------------------------------------------------------------------------------------------------


def test_tables_of_the_call_reach_every_block() -> None:
    parts = torch.tensor([[0] * 4 + [1] * 7, [0] * 11, [0] * 10 + [1]])
    model = loud(Encoder(DIM, 2, HEADS, attention=Attention(mask=documents("parts")), width=WIDTH))
    y = model(X, parts=parts)
    torch.testing.assert_close(y[0, :4], model(X[:1, :4], parts=parts[:1, :4])[0], **CLOSE)
    torch.testing.assert_close(y[2, 10:], model(X[2:, 10:], parts=parts[2:, 10:])[0], **CLOSE)
    with pytest.raises(CallError, match="piece: no formula here reads such a table; got one; leave it out"):
        model(X, parts=parts, piece=parts)


def test_a_learned_table_for_each_block() -> None:
    attention = Attention(dot + table("offset")[h, i - j + ROWS])
    offset = torch.nn.Parameter(torch.zeros(HEADS, 2 * ROWS))
    model = loud(Encoder(DIM, 2, HEADS, attention=attention, width=WIDTH, tables={"offset": offset}))
    model(X).square().sum().backward()
    one, other = (block.attention.tables.offset.grad for block in model.blocks)
    assert (one != 0).any()
    assert not torch.allclose(one, other)


# -- memory ------------------------------------------------------------------------------------------------------


def test_a_decoder_reads_a_memory_and_not_its_filling() -> None:
    model = loud(Decoder(DIM, 2, HEADS, position=Rotary(), cross=Attention(), width=WIDTH))
    y = model(X, unequal(MEMORY, COUNTS, float("nan")), memory_lengths=COUNTS)
    for text, count in enumerate(COUNTS):
        alone = model(X[text : text + 1], MEMORY[text : text + 1, :count])
        torch.testing.assert_close(y[text], alone[0], **CLOSE)
    with pytest.raises(CallError, match="memory: this block needs the memory that it reads; got none"):
        model(X)
    with pytest.raises(CallError, match=r"memory: this block reads no memory: make it with cross=Attention\(\); got"):
        decoder()(X, MEMORY)


# -- as any module of PyTorch ------------------------------------------------------------------------------------


def test_state_goes_into_another_and_copies_are_their_own() -> None:
    one, other = encoder_of("sum"), loud(encoder_of("sum"), seed=1)
    copied = copy.deepcopy(one)
    assert not torch.allclose(one(X), other(X))
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(other(X), one(X), **EXACT)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
    torch.testing.assert_close(copied(X), other(X), **EXACT)


def test_parameters_that_are_replaced_are_used() -> None:
    one, other = encoder_of("sum"), loud(encoder_of("sum"), seed=1)
    found = functional_call(one, dict(other.named_parameters()), (X,))
    torch.testing.assert_close(found, other(X), **EXACT)


def test_every_parameter_has_a_gradient() -> None:
    model = encoder_of("sum")
    model(X).square().sum().backward()
    assert not [name for name, value in model.named_parameters() if value.grad is None or not value.grad.any()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("position", ["rotary", "sum"])
def test_in_every_precision(dtype: torch.dtype, position: str) -> None:
    model = loud(Encoder(DIM, 2, HEADS, KV_HEADS, position=POSITIONS[position], width=WIDTH), spread=0.2)
    expected = model(X)
    found = model.to(dtype)(X.to(dtype))
    assert found.dtype == dtype
    error = (found.double() - expected).abs().max() / expected.abs().max()
    assert error < 30 * torch.finfo(dtype).eps  # two blocks of some ten roundings each


def test_where_linear_maps_are_narrow_and_the_rest_is_not() -> None:
    model = loud(Encoder(DIM, 2, HEADS, position=POSITIONS["sum"], width=WIDTH), spread=0.2).float()
    x = X.float()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(x)
    error = (found - model(x)).abs().max() / model(x).abs().max()
    assert 0 < error < 30 * torch.finfo(torch.bfloat16).eps


@pytest.mark.parametrize("position", ["rotary", "sum"])
def test_one_graph_under_torch_compile(position: str) -> None:
    model = encoder_of(position)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    lengths = torch.tensor([11, 5, 1])

    def gradients(run: Any) -> list[Tensor]:
        return list(torch.autograd.grad(run(X, lengths=lengths).square().sum(), list(model.parameters())))

    torch.testing.assert_close(compiled(X, lengths=lengths), model(X, lengths=lengths), **CLOSE)
    for own, plain in zip(gradients(compiled), gradients(model), strict=True):
        torch.testing.assert_close(own, plain, **CLOSE)


def test_shapes_without_numbers() -> None:
    with torch.device("meta"):
        model = Encoder(DIM, 2, HEADS, position=POSITIONS["sum"], width=WIDTH)
        assert model(torch.zeros(2, 3, DIM)).device.type == "meta"


# -- refusals ----------------------------------------------------------------------------------------------------

MADE_WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: Encoder(12, 0, 3), CallError, "depth: an integer of at least 1; got 0"),
    (lambda: Encoder(12, 2.0, 3), KindError, "depth: an integer; got 2.0"),
    (lambda: Encoder(12, 1, 5), CallError, "heads: divides dim, 12; got 5; take 4"),
    (lambda: Encoder(12, 1, 3, attention=[]), CallError, "attention: at least one formula; got an empty list"),
    (
        lambda: Encoder(12, 1, 3, attention=[causal]),
        KindError,
        "attention: an Attention, or a list of them; got j <= i",
    ),
    (lambda: Decoder(12, 1, 3, attention=Attention(mask=prefix(3))), FormulaError, "attention: a decoder reads what"),
    (lambda: Decoder(12, 1, 3, attention=[Attention(), Attention(mask=j >= i)]), FormulaError, "a decoder reads what"),
    (lambda: Encoder(12, 1, 3, position=Relative.random(4, Offsets(2))), CallError, "position: made for the layer's 3"),
    (lambda: Encoder(12, 1, 3, position=Rotary), KindError, "position: a value such as Rotary"),
]


@pytest.mark.parametrize(("make", "error", "text"), MADE_WRONG, ids=[text[:40] for _, _, text in MADE_WRONG])
def test_stacks_that_cannot_be_made(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_the_longest_text() -> None:
    assert encoder_of("rotary").longest is None
    model = Encoder(12, 1, 3, position=Learned.random(5, 12) + Rotary())
    assert model.longest == 5
    with pytest.raises(
        CallError, match="rows: at most 5 in a text, as many as Sum has positions; got 6; shorten the text, or"
    ):
        model(torch.zeros(1, 6, 12))


def test_blocks_hold_the_tables_that_they_read() -> None:
    plain, biased = Attention(mask=causal), Attention(dot + table("bias")[h], mask=causal)
    far = Attention(dot + table("far")[h])
    tables = {"bias": nn.Parameter(torch.ones(HEADS)), "far": nn.Parameter(torch.ones(HEADS))}
    stack = Decoder(DIM, 2, HEADS, attention=[plain, biased], width=WIDTH, cross=far, memory=7, tables=tables)
    held = [name for name, _ in stack.named_parameters() if ".tables." in name]
    assert held == ["blocks.0.cross.tables.far", "blocks.1.attention.tables.bias", "blocks.1.cross.tables.far"]
    assert stack(torch.zeros(2, 5, DIM), torch.zeros(2, 3, 7)).shape == (2, 5, DIM)
    with pytest.raises(CallError, match="bent: no formula here reads such a table; got one; leave it out"):
        Decoder(DIM, 2, HEADS, width=WIDTH, tables={"bent": torch.ones(3)})
