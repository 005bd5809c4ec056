"""A language model: its equation, its first parameters, and the ids that it takes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.func import functional_call

from layers import BATCH, CLOSE, DIM, EXACT, HEADS, KV_HEADS, POSITIONS, ROWS, TOKENS, WIDTH, loud, normal, whole
from regard import Attention, causal, dot, h, prefix, table, window
from regard.algebra.errors import CallError, FormulaError, KindError
from regard.inputs.positions import Learned, NoPosition
from regard.nn import GPT, Cache, Style
from regard.nn.initial import SPREAD
from regard.nn.style import LLAMA

IDS = whole(BATCH, ROWS)


def model_of(position: str = "rotary", **options: Any) -> GPT:
    return loud(GPT(TOKENS, DIM, 2, HEADS, KV_HEADS, position=POSITIONS[position], width=WIDTH, **options))


@pytest.mark.parametrize("position", ["rotary", "learned", "sum"])
@pytest.mark.parametrize("style", [Style(), LLAMA], ids=["plain", "gated"])
def test_the_model_is_its_equation(position: str, style: Style) -> None:
    model = model_of(position, style=style)
    x = model.decoder(model.embedding.weight[IDS])
    torch.testing.assert_close(model(IDS), x @ model.embedding.weight.T, **CLOSE)


def test_no_token_sees_what_comes_after() -> None:
    model, other = model_of("sum"), whole(BATCH, ROWS, seed=1)
    changed = torch.cat([IDS[:, :5], other[:, 5:]], dim=1)
    torch.testing.assert_close(model(changed)[:, :5], model(IDS)[:, :5], **CLOSE)
    assert not torch.allclose(model(changed)[:, 5:], model(IDS)[:, 5:])


def test_filling_and_a_cache() -> None:
    model, counts, cache = model_of("learned"), [7, 2, 1], Cache()
    with torch.no_grad():
        expected = model(IDS)
        y = model(IDS[:, :7], lengths=counts, cache=cache)
        ids = torch.stack([IDS[text, count] for text, count in enumerate(counts)])
        step = model(ids[:, None], cache=cache)
    for text, count in enumerate(counts):
        torch.testing.assert_close(y[text, :count], expected[text, :count], **CLOSE)
        torch.testing.assert_close(step[text, 0], expected[text, count], **CLOSE)


def test_the_last_map_is_the_embedding_again() -> None:
    tied, free = GPT(TOKENS, 12, 1, 3), GPT(TOKENS, 12, 1, 3, tied=False)
    assert tied.head.weight is tied.embedding.weight
    assert free.head.weight is not free.embedding.weight
    assert free.count() - tied.count() == TOKENS * 12
    copied = copy.deepcopy(tied)
    assert copied.head.weight is copied.embedding.weight
    assert copied.head.weight is not tied.head.weight
    tied(IDS).sum().backward()
    assert tied.embedding.weight.grad is tied.head.weight.grad


def test_parameters_before_training() -> None:
    model = GPT(1009, 64, 2, 4, tied=False)
    for weight in (model.embedding.weight, model.head.weight):
        assert abs(weight.std().item() / SPREAD - 1) < 0.02
    assert model(IDS).log_softmax(-1).abs().sub(6.917).abs().max() < 1  # every token as likely as any other: log 1009


def test_it_remembers_what_it_was_made_of() -> None:
    model = GPT(TOKENS, 12, 1, 3, attention=Attention(mask=window(3)), width=6, tied=False)
    again = GPT(**model.made_of)
    assert again.made_of == model.made_of
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again(IDS), model(IDS), **EXACT)
    assert (model.made_of["tokens"], model.made_of["width"], model.made_of["tied"]) == (TOKENS, 6, False)


def test_the_longest_text_and_its_device() -> None:
    assert model_of("learned").longest == 2 * ROWS
    assert model_of().longest is None
    assert model_of().device == torch.device("cpu")


def test_tables_of_the_call() -> None:
    model = model_of(attention=Attention(dot * table("sharpness")[h], mask=causal))
    sharp = normal(HEADS)
    torch.testing.assert_close(
        model(IDS, sharpness=sharp), model.head(model.decoder(model.embedding(IDS), sharpness=sharp)), **CLOSE
    )
    with pytest.raises(CallError, match="slope: no formula here reads such a table"):
        model(IDS, sharpness=sharp, slope=sharp)


def test_dropout_in_training_alone() -> None:
    model, without = model_of(style=Style(dropout=0.3)), model_of()
    torch.testing.assert_close(model(IDS), without(IDS), **EXACT)
    assert not torch.allclose(model.train()(IDS), model(IDS))


def test_parameters_that_are_replaced_are_used() -> None:
    one, other = model_of("learned"), loud(model_of("learned"), seed=1)
    found = functional_call(one, dict(other.named_parameters()), (IDS,))
    torch.testing.assert_close(found, other(IDS), **EXACT)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_integers_of_every_width(dtype: torch.dtype) -> None:
    torch.testing.assert_close(model_of()(IDS.to(dtype)), model_of()(IDS), **EXACT)


def test_no_texts_and_no_rows() -> None:
    model = model_of("learned")
    assert model(IDS[:0]).shape == (0, ROWS, TOKENS)
    assert model(IDS[:, :0]).shape == (BATCH, 0, TOKENS)


def test_one_graph_under_torch_compile() -> None:
    model = model_of("learned")
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(IDS), model(IDS), **CLOSE)


# -- refusals ----------------------------------------------------------------------------------------------------

WRONG_IDS: list[tuple[Any, type[Exception], str]] = [
    ([[1, 2]], KindError, r"ids: a tensor of integers, \(batch, rows\); got list"),
    (IDS.double(), KindError, r"ids: a tensor of integers, \(batch, rows\); got dtype torch.float64"),
    (IDS > 3, KindError, "ids: a tensor of integers, .*; got dtype torch.bool"),
    (IDS.to(torch.complex64), KindError, "ids: a tensor of integers, .*; got dtype torch.complex64"),
    (IDS[0], CallError, r"ids: \(batch, rows\); got shape \(11,\); add the axis of the batch: ids\[None\]"),
    (IDS[None], CallError, r"ids: \(batch, rows\); got shape \(1, 3, 11\)$"),
    (IDS + 10, CallError, "ids: from 0 to 16, as many as the model knows; got 2.; are they its own"),
    (IDS - 20, CallError, "ids: from 0 to 16, as many as the model knows; got -.*; are they its own"),
]


@pytest.mark.parametrize(("ids", "error", "text"), WRONG_IDS, ids=[text[:50] for _, _, text in WRONG_IDS])
def test_ids_that_are_none(ids: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        model_of()(ids)


def test_models_that_cannot_be_made() -> None:
    for tokens in (0, -1):
        with pytest.raises(CallError, match=f"tokens: an integer of at least 1; got {tokens}"):
            GPT(tokens, 12, 1, 3)
    with pytest.raises(CallError, match="dim: an integer of at least 1; got -12"):
        GPT(TOKENS, -12, 1, 3)
    with pytest.raises(CallError, match="heads: divides dim, 13; got 3; take 1"):
        GPT(TOKENS, 13, 1, 3)
    with pytest.raises(FormulaError, match="attention: a decoder reads what came before"):
        GPT(TOKENS, 12, 1, 3, attention=Attention(mask=prefix(2)))


def test_prompts_longer_than_the_table() -> None:
    model = GPT(TOKENS, 12, 1, 3, position=Learned.random(5, 12))
    with pytest.raises(
        CallError, match="rows: at most 5 in a text, as many as Learned has positions; got 11; shorten the text"
    ):
        model(IDS)


def test_what_follows_a_text_is_said_by_its_last_row() -> None:
    model, lengths = loud(GPT(TOKENS, 12, 2, 3)), [11, 2, 7]
    logits = model(IDS, lengths=lengths)
    wanted = torch.stack([logits[text, count - 1] for text, count in enumerate(lengths)])
    torch.testing.assert_close(model.after(IDS, lengths=lengths), wanted, **CLOSE)
    torch.testing.assert_close(model.after(IDS), model(IDS)[:, -1], **CLOSE)


def test_a_mask_joins_that_of_the_formula() -> None:
    model, mask = loud(GPT(TOKENS, 12, 1, 3, position=NoPosition())), torch.ones(ROWS, ROWS, dtype=torch.bool)
    mask[:, 1] = False
    other = IDS.clone()
    other[:, 1] = (other[:, 1] + 1) % TOKENS
    changed = (model(IDS, mask=mask) - model(other, mask=mask)).abs().amax((0, 2))
    assert (changed > 0).tolist() == [row == 1 for row in range(ROWS)], "the token itself alone sees that it changed"
