"""`generate`: every text by its own history alone, whatever else is in the batch, with a cache and without."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn.generation.histories import TOKENS, Historian, Histories, greedily, histories, logits_of
from regard.inputs import Characters, Words
from regard.nn.generation import Generation, Sampling, generate, greedy, stream

__all__ = ["histories"]  # a fixture

MODEL = Historian()
PROMPTS = st.lists(st.lists(st.integers(0, TOKENS - 1), min_size=1, max_size=7), min_size=1, max_size=5)
SAMPLINGS = [greedy, Sampling(), Sampling(0.8, 5, 0.9)]
LETTERS = Characters.of("abcdefghi j")
WARM = Sampling(1.5)


# -- texts of a batch ----------------------------------------------------------------------------------------------


@given(PROMPTS, st.integers(1, 9), st.sets(st.integers(0, TOKENS - 1), max_size=2), st.booleans())
def test_each_text_is_written_by_its_own_history(
    prompts: list[list[int]], new: int, ends: set[int], cache: bool
) -> None:
    found = generate(MODEL, prompts, new=new, end=tuple(ends), cache=cache)
    assert [text.ids for text in found] == [greedily(prompt, new, tuple(ends)) for prompt in prompts]
    assert [text.prompt for text in found] == prompts
    for text in found:
        by_end = text.ids[-1] in ends
        assert (text.reason, text.stopped_by) == (("end", text.ids[-1]) if by_end else ("length", None))
        assert text.text is None


@settings(max_examples=30)
@given(PROMPTS, st.sampled_from(SAMPLINGS), st.integers(-(2**70), 2**70))
def test_draws_do_not_depend_on_the_batch(prompts: list[list[int]], sampling: Sampling, seed: int) -> None:
    """Alone, in a batch, with others that end early, with a cache or without: a prompt is written the same."""
    options: Any = {"new": 5, "end": (0, 3, 5), "sampling": sampling, "seed": seed}
    together = generate(MODEL, prompts, **options)
    assert together == generate(MODEL, prompts, cache=False, **options)
    first = {tuple(text.prompt): text for text in reversed(together)}
    for prompt in prompts:
        assert generate(MODEL, prompt, **options) == first[tuple(prompt)]
    assert generate(MODEL, [[4, 4, 4, 4], *prompts, [2]], **options)[1:-1] == together or [4, 4, 4, 4] in prompts


def test_a_prompt_that_comes_twice_is_written_twice() -> None:
    texts = generate(MODEL, [[1, 2]] * 5, sampling=WARM, seed=3, new=13)
    assert len({tuple(text.ids) for text in texts}) == 5
    assert texts == generate(MODEL, [[1, 2]] * 5, sampling=WARM, seed=3, new=13)
    assert texts[0] != generate(MODEL, [1, 2], sampling=WARM, seed=4, new=13)


def test_other_prompts_have_other_luck() -> None:
    texts = generate(
        lambda ids, **_: torch.zeros(*ids.shape, TOKENS), [[1], [2], [1, 2]], sampling=WARM, seed=3, new=13
    )
    assert len({tuple(text.ids) for text in texts}) == 3


def test_without_a_seed_pytorch_is_asked() -> None:
    def drawn() -> Any:
        return generate(MODEL, [[1], [2]], sampling=WARM, new=13)

    torch.manual_seed(1)
    first, second = drawn(), drawn()
    torch.manual_seed(1)
    assert drawn() == first != second


@pytest.mark.parametrize("options", [{}, {"sampling": WARM, "seed": 1}])
def test_what_needs_no_chance_takes_none(options: Any) -> None:
    before = torch.get_rng_state()
    generate(MODEL, [1, 2], **options)
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_come_in_the_shares_of_the_sampling() -> None:
    """χ² of first tokens over many seeds, 4.5 standard deviations at most."""
    sampling, count = Sampling(1.2, 6), 3000
    texts = generate(MODEL, [[7, 1]] * count, sampling=sampling, seed=0, new=1)
    P = sampling.probabilities(torch.from_numpy(logits_of((7, 1))))
    seen = torch.bincount(torch.tensor([text.ids[0] for text in texts]), minlength=TOKENS)
    assert not seen[P == 0].any()
    expected = count * P[P > 0]
    assert abs(float(((seen[P > 0] - expected) ** 2 / expected).sum()) - 5) < 4.5 * math.sqrt(10)


def test_log_probabilities_are_those_of_the_model() -> None:
    for sampling in SAMPLINGS:
        text = generate(MODEL, [3, 1, 4], sampling=sampling, seed=1, new=7)
        history = [3, 1, 4]
        for number, found in zip(text.ids, text.log_probabilities, strict=True):
            z = logits_of(tuple(history))
            assert found == pytest.approx(z[number] - np.logaddexp.reduce(z), rel=1e-12)
            history.append(number)


# -- what the model is given -----------------------------------------------------------------------------------------


def test_a_text_that_is_complete_leaves_the_batch() -> None:
    prompts, ends = [[1], [2, 2], [3, 3, 3]], (0, 1, 2, 3)
    lengths = sorted(len(greedily(prompt, 29, ends)) for prompt in prompts)
    assert lengths[0] < lengths[-1]  # else there is nothing to see
    for cache in (True, False):
        model = Historian()
        generate(model, prompts, end=ends, new=29, cache=cache)
        assert [rows for rows, _ in model.shapes] == [sum(step < n for n in lengths) for step in range(lengths[-1])]


def test_the_cache_is_made_once_and_never_grows() -> None:
    Histories.made.clear()
    model = Historian()
    generate(model, [[1, 2, 3], [4]], new=5)
    (cache,) = Histories.made
    assert cache.length == 3 + 5
    assert model.shapes == [(2, 3), *[(2, 1)] * 4]
    generate(model, [1, 2], new=5, cache=False)
    assert len(Histories.made) == 1
    assert model.shapes[5:] == [(1, length) for length in range(2, 7)]


@pytest.mark.parametrize(
    "convert", [list, tuple, np.asarray, torch.tensor, jnp.asarray, lambda ids: [*map(np.int32, ids)]]
)
def test_ids_come_in_any_kind(convert: Any) -> None:
    expected = greedily([3, 1, 4], 5)
    one, (other,) = generate(MODEL, convert([3, 1, 4]), new=5), generate(MODEL, [convert([3, 1, 4])], new=5)
    assert one == other
    assert one.ids == expected
    assert one.prompt == [3, 1, 4]
    assert all(type(number) is int for number in one.prompt + one.ids)


@pytest.mark.parametrize("convert", [np.asarray, torch.tensor, jnp.asarray])
def test_a_matrix_of_ids_is_a_batch(convert: Any) -> None:
    rows = [[3, 1, 4], [1, 5, 9]]
    found = generate(MODEL, convert(rows), new=5)
    assert [text.ids for text in found] == [greedily(row, 5) for row in rows]
    assert [text.ids for text in generate(MODEL, convert(rows[:1]), new=5)] == [greedily(rows[0], 5)]


def test_texts_and_ids_may_stand_in_one_batch() -> None:
    found = generate(MODEL, ["abc", LETTERS.encode("da")], vocabulary=LETTERS, new=4)
    assert [text.ids for text in found] == [greedily(LETTERS.encode(text), 4) for text in ("abc", "da")]
    assert [text.text for text in found] == [LETTERS.decode(text.ids) for text in found]


# -- ends ------------------------------------------------------------------------------------------------------------

NAMED = Words.of("a b c d e f g", specials=("<end>", "<pad>", "<s>"), unknown="<?>")


def test_an_end_token_has_a_name_or_an_id() -> None:
    assert len(NAMED) == TOKENS
    for seed in range(20):
        options: Any = {"vocabulary": NAMED, "sampling": WARM, "seed": seed, "new": 40}
        by_name, by_id = (generate(MODEL, "a b", end=end, **options) for end in ("<end>", 0))
        assert by_name.ids == by_id.ids
        assert by_name.text == by_id.text == NAMED.decode([*by_id.prompt, *by_id.ids[:-1]])[3:]
        assert (by_name.reason, by_name.stopped_by, by_id.stopped_by) == ("end", "<end>", 0)
        both = generate(MODEL, "a b", end=["<end>", 1], **options)
        assert both.ids[-1] in (0, 1)
        assert "<end>" not in both.text
        assert "<pad>" not in both.text


def test_a_stop_text_cuts_the_text_and_not_the_ids() -> None:
    whole = generate(MODEL, "abc", vocabulary=LETTERS, new=29)
    stop = whole.text[11:14]
    text = generate(MODEL, "abc", vocabulary=LETTERS, new=29, stop=stop)
    place = whole.text.index(stop)
    assert text.text == whole.text[:place]
    assert text.ids == whole.ids[: place + 3]
    assert len(text.log_probabilities) == len(text.ids)
    assert (text.reason, text.stopped_by) == ("stop", stop)


def test_the_prompt_is_no_stop_text() -> None:
    whole = generate(MODEL, "abc", vocabulary=LETTERS, new=5)
    assert generate(MODEL, "abc", vocabulary=LETTERS, new=5, stop=("abc", "c" + whole.text)) == whole


# -- the result ------------------------------------------------------------------------------------------------------


def test_a_generation_prints_as_its_text() -> None:
    text = generate(MODEL, "abc", vocabulary=LETTERS, new=29)
    assert str(text) == text.text
    assert repr(text) == f"Generation({text.text!r}, 29 ids after 3, length)"
    bare = Generation([1], [2, 3], None, "end", 3, [-1.0, -2.0])
    assert str(bare) == "[2, 3]"
    assert repr(bare) == "Generation([2, 3], 2 ids after 1, end by 3)"
    long = Generation([1], [2], "x" * 99, "stop", "\n", [-1.0])
    assert repr(long) == f"Generation('{'x' * 59}…, 1 ids after 1, stop by '\\n')"


# -- the state of the model --------------------------------------------------------------------------------------------


class Watched(torch.nn.Module):
    """A model of parts, some in training; it notes what it was when it was called."""

    def __init__(self, fails: int | None = None) -> None:
        super().__init__()
        self.parts, self.fails, self.calls = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()), fails, 0

    def forward(self, ids: Any, **options: Any) -> Any:
        assert not any(part.training for part in self.modules())
        self.calls += 1
        if self.calls == self.fails:
            raise RuntimeError("the model's own")
        return MODEL(ids, **options)


@pytest.mark.parametrize("fails", [None, 1, 3])
def test_the_model_is_left_as_it_was(fails: int | None) -> None:
    model = Watched(fails)
    model.parts[1].eval()
    before = [part.training for part in model.modules()]
    if fails is None:
        generate(model, [1, 2], new=5)
    else:
        with pytest.raises(RuntimeError, match="the model's own"):
            generate(model, [1, 2], new=5)
    assert [part.training for part in model.modules()] == before == [True, True, True, False]
    assert torch.is_grad_enabled()


def test_between_two_pieces_the_model_is_as_it_was() -> None:
    model = Watched()
    for _ in stream(model, [1, 2], new=5):
        assert model.training
        assert torch.is_grad_enabled()
    assert model.calls == 5


# -- progress ----------------------------------------------------------------------------------------------------------


def test_a_bar_tells_how_far_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    quiet = generate(MODEL, [[1], [2, 2]], new=7, end=(0, 1))
    assert capfd.readouterr() == ("", "")
    assert generate(MODEL, [[1], [2, 2]], new=7, end=(0, 1), progress=True) == quiet
    out, err = capfd.readouterr()
    count = sum(len(text.ids) for text in quiet)
    assert out == ""
    assert f"{count}/{count}" in err
    assert "tokens/s" in err
