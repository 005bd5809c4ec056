"""A text encoder: its equation, segments, and one vector for each text."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.func import functional_call

from layers import BATCH, CLOSE, DIM, EXACT, HEADS, ROWS, TOKENS, WIDTH, loud, whole
from regard import Attention, window
from regard.algebra.errors import CallError, KindError
from regard.inputs.positions import ALiBi, Learned
from regard.nn import BERT, LayerNorm

IDS, SEGMENTS, COUNTS = whole(BATCH, ROWS), whole(BATCH, ROWS, below=3), [11, 5, 1]


def model_of(**options: Any) -> BERT:
    options = {"width": WIDTH, "segments": 3, "position": Learned.random(ROWS, DIM), **options}
    return loud(BERT(TOKENS, DIM, 2, HEADS, **options))


@pytest.mark.parametrize("segments", [None, SEGMENTS])
def test_the_model_is_its_equation(segments: Any) -> None:
    model = model_of()
    parts = torch.zeros_like(IDS) if segments is None else segments
    position = model.encoder.placement.tables["position"]
    x = model.norm(model.embedding.weight[IDS] + model.segments.weight[parts] + position[:ROWS])
    for block in model.encoder.blocks:
        x = block.attention_norm(x + block.attention(x))
        x = block.feed_forward_norm(x + block.feed_forward(x))
    torch.testing.assert_close(model(IDS, segments), x, **CLOSE)


def test_what_it_is_made_of_unless_said_otherwise() -> None:
    model = BERT(TOKENS, 12, 1, 3)
    assert model.encoder.longest == 512
    assert model.segments.num_embeddings == 2
    assert isinstance(model.norm, LayerNorm)
    assert model.norm.eps == 1e-12


@pytest.mark.parametrize(
    "options", [{}, {"position": ALiBi()}, {"attention": [Attention(), Attention(mask=window(3))]}]
)
def test_filling_changes_nothing(options: Any) -> None:
    model = model_of(**options)
    y, vectors = model(IDS, SEGMENTS, lengths=COUNTS), model.embed(IDS, lengths=COUNTS)
    for text, count in enumerate(COUNTS):
        alone = IDS[text : text + 1, :count]
        torch.testing.assert_close(y[text, :count], model(alone, SEGMENTS[text : text + 1, :count])[0], **CLOSE)
        torch.testing.assert_close(vectors[text], model.embed(alone)[0], **CLOSE)


@pytest.mark.parametrize("lengths", [COUNTS, torch.tensor(COUNTS), None])
def test_one_vector_for_each_text_is_the_mean_of_its_rows(lengths: Any) -> None:
    model = model_of()
    y, found = model(IDS, lengths=lengths), model.embed(IDS, lengths=lengths)
    for text, count in enumerate(COUNTS if lengths is not None else [ROWS] * BATCH):
        mean = y[text, :count].mean(0)
        torch.testing.assert_close(found[text], mean / mean.norm(), **CLOSE)


def test_a_text_without_rows_has_no_direction() -> None:
    assert (model_of().embed(IDS, lengths=[11, 0, 3])[1] == 0).all()


def test_parameters_that_are_replaced_are_used() -> None:
    one, other = model_of(), loud(model_of(), seed=1)
    torch.testing.assert_close(functional_call(one, dict(other.named_parameters()), (IDS,)), other(IDS), **EXACT)


def test_one_graph_under_torch_compile() -> None:
    model, lengths = model_of(), torch.tensor(COUNTS)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(IDS, SEGMENTS, lengths=lengths), model(IDS, SEGMENTS, lengths=lengths), **CLOSE)


def test_refusals() -> None:
    model = model_of()
    with pytest.raises(KindError, match=r"ids: a tensor of integers, \(batch, rows\); got list"):
        model([[1, 2]])
    with pytest.raises(KindError, match=r"segments: a tensor of integers, \(batch, rows\); got list"):
        model(IDS, [[1, 2]])
    with pytest.raises(CallError, match="segments: from 0 to 2, as many as the model knows; got 3"):
        model(IDS, SEGMENTS + 1)
    with pytest.raises(CallError, match=r"segments: one for each of the ids, \(3, 11\); got shape \(3, 7\)"):
        model(IDS, SEGMENTS[:, :7])
    with pytest.raises(CallError, match="lengths: from 0 to the 11 rows of x; got 12"):
        model.embed(IDS, lengths=[12, 1, 1])
    with pytest.raises(
        CallError, match="rows: at most 11 in a text, as many as Learned has positions; got 22; shorten the text"
    ):
        model(IDS.repeat(1, 2))
    with pytest.raises(CallError, match="segments: an integer of at least 1; got 0"):
        BERT(TOKENS, 12, 1, 3, segments=0)
