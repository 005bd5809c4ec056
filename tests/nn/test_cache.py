"""The cache: any way to cut a text into passes gives what one pass over the whole gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from layers import BATCH, CLOSE, DIM, EXACT, FORMULAS, HEADS, POSITIONS, ROWS, WIDTH, decoder, loud, normal, unequal
from regard import Attention, causal, documents
from regard.algebra.errors import CallError, KindError
from regard.inputs.positions import DynamicNTK, Learned, Rotary
from regard.nn import Cache, Decoder, SelfAttention

X = normal(BATCH, ROWS, DIM)
LAST = 4  # rows behind each prompt
every_formula = pytest.mark.parametrize("formula", FORMULAS)
every_position = pytest.mark.parametrize("position", POSITIONS)


@pytest.fixture(autouse=True)
def _no_gradients() -> Any:
    with torch.no_grad():
        yield


def room(position: str) -> int | None:
    return ROWS if position == "dynamic" else None


def whole_pass(formula: str, position: str, x: Tensor = X) -> Tensor:
    """Without a cache; a position that depends on the length is told it by an empty one."""
    return decoder(formula, position)(x, cache=Cache(room(position)) if position == "dynamic" else None)


def cut(x: Tensor, sizes: list[int]) -> list[Tensor]:
    return list(x.split(sizes, dim=1))


@st.composite
def sizes(draw: Any, total: int = ROWS) -> list[int]:
    """Numbers that sum to the total, some of them 0."""
    ends = sorted(draw(st.lists(st.integers(0, total), max_size=5)))
    return [b - a for a, b in zip([0, *ends], [*ends, total], strict=True)]


# -- passes ------------------------------------------------------------------------------------------------------


@every_formula
@every_position
def test_a_prompt_and_steps_are_one_pass(formula: str, position: str) -> None:
    cache = Cache(room(position))
    parts = [decoder(formula, position)(part, cache=cache) for part in cut(X, [5, 1, 1, 3, 1])]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole_pass(formula, position), **CLOSE)
    assert cache.lengths == cache.start == ROWS


@settings(max_examples=60)
@given(st.sampled_from(sorted(FORMULAS)), st.sampled_from(sorted(POSITIONS)), sizes())
def test_every_cut_is_one_pass(formula: str, position: str, parts: list[int]) -> None:
    cache = Cache(room(position))
    rows = [decoder(formula, position)(part, cache=cache) for part in cut(X, parts)]
    torch.testing.assert_close(torch.cat(rows, dim=1), whole_pass(formula, position), **CLOSE)


def continued(model: Decoder, cache: Cache, counts: list[int], texts: list[int], steps: int) -> Tensor:
    """So many single rows of each text from its count on."""
    found = []
    for step in range(steps):
        rows = torch.stack([X[text, counts[text] + step] for text in texts])
        found.append(model(rows[:, None], cache=cache))
    return torch.cat(found, dim=1)


@every_formula
@every_position
def test_prompts_of_unequal_length(formula: str, position: str) -> None:
    filling = float("inf") if position in ("rotary", "sum") else float("nan")
    model, cache, counts = decoder(formula, position), Cache(room(position)), [7, 2, 1]
    expected = whole_pass(formula, position)
    y = model(unequal(X, counts, filling)[:, :7], lengths=counts, cache=cache)
    for text, count in enumerate(counts):
        torch.testing.assert_close(y[text, :count], expected[text, :count], **CLOSE)
    assert cache.lengths == counts
    rows = continued(model, cache, counts, [0, 1, 2], LAST)
    for text, count in enumerate(counts):
        torch.testing.assert_close(rows[text], expected[text, count : count + LAST], **CLOSE)
    assert cache.lengths == [count + LAST for count in counts]


@settings(max_examples=40)
@given(st.data())
def test_every_unequal_cut_is_one_pass(data: Any) -> None:
    formula, position = data.draw(st.sampled_from(["softmax", "bias"])), data.draw(st.sampled_from(["rotary", "sum"]))
    model, cache, expected = decoder(formula, position), Cache(), whole_pass(formula, position)
    done = [0] * BATCH
    for _ in range(data.draw(st.integers(1, 4))):
        counts = [data.draw(st.integers(0, min(4, ROWS - count))) for count in done]
        x = torch.full((BATCH, 4, DIM), float("nan"), dtype=torch.float64)
        for text, count in enumerate(counts):
            x[text, :count] = X[text, done[text] : done[text] + count]
        y = model(x, lengths=counts, cache=cache)
        for text, count in enumerate(counts):
            torch.testing.assert_close(y[text, :count], expected[text, done[text] : done[text] + count], **CLOSE)
        done = [before + count for before, count in zip(done, counts, strict=True)]
        assert cache.lengths == (done[0] if len(set(done)) == 1 else done)


def test_masks_and_tables_of_the_caller_reach_over_the_rows_before() -> None:
    attention = Attention(Attention().score, mask=causal & documents("parts"))
    model = loud(Decoder(DIM, 2, HEADS, attention=attention, width=WIDTH))
    parts, mask = torch.tensor([[0] * 4 + [1] * 7, [0] * 11, [0, 1] * 5 + [0]]), normal(ROWS, ROWS) > -1
    expected, cache = model(X, mask=mask, parts=parts), Cache()
    first = model(X[:, :6], mask=mask[:6, :6], cache=cache, parts=parts[:, :6])
    second = model(X[:, 6:], mask=mask[6:], cache=cache, parts=parts)
    torch.testing.assert_close(torch.cat([first, second], dim=1), expected, **CLOSE)
    with pytest.raises(CallError, match=r"mask: for 1 rows and 12 keys of 3 texts; got shape \(11, 11\)"):
        model(X[:, :1], mask=mask, cache=cache, parts=parts)


def test_a_layer_by_itself() -> None:
    layer = loud(SelfAttention(DIM, HEADS, 2, Attention(mask=causal), POSITIONS["sum"], width=WIDTH))
    cache = Cache()
    parts = [layer(part, cache=cache) for part in cut(X, [4, 6, 1])]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(X), **CLOSE)


def test_under_inference_mode() -> None:
    cache, x = Cache(), X.clone().requires_grad_()
    with torch.inference_mode():
        parts = [decoder()(part, cache=cache) for part in cut(x, [4, 7])]
    torch.testing.assert_close(torch.cat(parts, dim=1), decoder()(X), **CLOSE)


# -- which texts are kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [[2, 0], [1, 1, 0, 2, 1], [1], [0, 1, 2]])
@pytest.mark.parametrize("counts", [[5, 2, 1], [5, 5, 5]])
@pytest.mark.parametrize("kind", [list, torch.tensor])
def test_texts_in_another_order_twice_or_not_at_all(texts: list[int], counts: list[int], kind: Any) -> None:
    model, cache, expected = decoder(), Cache(), whole_pass("softmax", "rotary")
    model(X[:, :5], lengths=counts, cache=cache)
    cache.keep(kind(texts))
    assert cache.most == max(counts[text] for text in texts)
    rows = continued(model, cache, counts, texts, 2)
    for row, text in enumerate(texts):
        torch.testing.assert_close(rows[row], expected[text, counts[text] : counts[text] + 2], **CLOSE)


def test_no_text_at_all() -> None:
    cache = Cache()
    decoder()(X[:, :5], lengths=[5, 2, 1], cache=cache)
    cache.keep([])
    assert decoder()(X[:0, :1], cache=cache).shape == (0, 1, DIM)


# -- room ----------------------------------------------------------------------------------------------------------


def test_room_grows_and_the_rows_stay() -> None:
    model, x = decoder("window", "alibi"), normal(BATCH, 150, DIM)
    for counts in (None, [60, 3, 1]):
        cache = Cache()
        first = model(x[:, :60], lengths=counts, cache=cache)
        before = cache.bytes
        rows = [first, *(model(x[:, place : place + 1], cache=cache) for place in range(60, 150))]
        assert cache.bytes > before
        torch.testing.assert_close(torch.cat(rows, dim=1)[0], model(x)[0], **CLOSE)


def test_room_of_a_said_length_is_taken_at_once() -> None:
    cache = Cache(ROWS)
    decoder()(X[:, :1], cache=cache)
    before = cache.bytes
    assert before == 2 * 2 * BATCH * 2 * ROWS * WIDTH * 8  # keys and values of two layers in two heads of float64
    decoder()(X[:, 1:], cache=cache)
    assert cache.bytes == before
    assert repr(cache) == "Cache(11 of 11 rows, 2 layers, 0.0 MiB)"


# -- refusals ------------------------------------------------------------------------------------------------------


def test_more_rows_than_there_is_room() -> None:
    cache = Cache(6)
    decoder()(X[:, :6], cache=cache)
    with pytest.raises(CallError, match=r"cache: room for 6 rows of a text; got 7; make a longer Cache\(length=7\)"):
        decoder()(X[:, 6:7], cache=cache)


@pytest.mark.parametrize("length", [0, -3, 2.5, True, "7"])
def test_lengths_that_are_none(length: Any) -> None:
    with pytest.raises(CallError, match="length: how many rows a text may have, at least 1; got"):
        Cache(length)


def test_another_batch() -> None:
    cache = Cache()
    decoder()(X, cache=cache)
    with pytest.raises(CallError, match="cache: holds 3 texts in 2 heads of width 4; got rows of 2 texts in 2 heads"):
        decoder()(X[:2], cache=cache)


def test_another_model() -> None:
    cache = Cache()
    decoder()(X, cache=cache)
    with pytest.raises(CallError, match=r"cache: holds 11 rows of other layers; .* has its own Cache"):
        decoder("window", "alibi")(X, cache=cache)


def test_a_pass_that_failed_leaves_the_cache_as_it_was() -> None:
    model, cache = loud(Decoder(DIM, 1, HEADS, position=Learned.random(ROWS, DIM), width=WIDTH)), Cache()
    first = model(X[:, :9], cache=cache)
    with pytest.raises(
        CallError, match="rows: at most 11 in a text, as many as Learned has positions; got 13; shorten the text"
    ):
        model(X[:, :4], cache=cache)
    rows = model(X[:, 9:], cache=cache)
    torch.testing.assert_close(torch.cat([first, rows], dim=1), model(X), **CLOSE)


def test_gradients_are_not_kept() -> None:
    with (
        torch.enable_grad(),
        pytest.raises(CallError, match=r"cache: keeps numbers and no gradients; .* torch.no_grad"),
    ):
        decoder()(X, cache=Cache())


def test_a_position_that_asks_for_the_length() -> None:
    layer = SelfAttention(8, 2, attention=FORMULAS["softmax"], position=Rotary(scaling=DynamicNTK(2.0, 5)))
    text = r"cache: Rotary.*DynamicNTK.* asks for the length of the whole text, .*; say it: Cache\(length=…\)"
    with pytest.raises(CallError, match=text):
        layer(torch.zeros(2, 3, 8), cache=Cache())


@pytest.mark.parametrize("texts", [torch.tensor([True, False, True]), [0.5], [[0, 1]], 1])
def test_texts_that_are_no_numbers(texts: Any) -> None:
    cache = Cache()
    decoder()(X[:, :5], lengths=[5, 2, 1], cache=cache)
    with pytest.raises(KindError, match="texts: the numbers of those to keep, integers in one row; got dtype"):
        cache.keep(texts)
    torch.testing.assert_close(
        continued(decoder(), cache, [5, 2, 1], [0, 1, 2], 1)[:, 0],
        torch.stack([whole_pass("softmax", "rotary")[text, count] for text, count in enumerate([5, 2, 1])]),
        **CLOSE,
    )


def test_a_memory_is_mapped_once() -> None:
    made = []

    def offered() -> tuple[Tensor, Tensor]:
        made.append(1)
        return X, X

    cache = Cache()
    for _ in range(3):
        torch.testing.assert_close(cache.once("layer", offered)[0], X, **EXACT)
    assert len(made) == 1
    cache.keep([2, 1])
    torch.testing.assert_close(cache.once("layer", offered)[1], X[[2, 1]], **EXACT)


def test_a_prompt_in_inference_mode_and_steps_outside_of_it() -> None:
    model, x, cache = decoder(), normal(BATCH, ROWS, DIM), Cache()
    with torch.inference_mode():
        first = model(x[:, :7], cache=cache)
    with torch.no_grad():
        rest = model(x[:, 7:], cache=cache)
        torch.testing.assert_close(torch.cat([first, rest], 1), model(x), **CLOSE)
