"""Phrases about a cat: one word decides, nothing else tells, and what is taken away is exactly what is named."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.attention import Attention
from regard.experiments import phrase_reader, phrases
from regard.experiments.looking import weights_while
from regard.experiments.phrase_family import ANSWERS, CONTEXTS, FRAMES, LONGEST, THREE, WORDS, Family, Frame, Phrase
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent

FAMILY = Family()
DRAWN = FAMILY.draw(37, np.random.default_rng(3), held_out=True, alone=0.3)


@pytest.fixture(scope="module")
def small() -> Outcome:
    return phrases.run(Scale(0.02), silent)


@pytest.fixture(scope="module")
def reader() -> phrase_reader.Reader:
    torch.manual_seed(5)
    return phrase_reader.Reader(Attention()).eval()


# -- the family ------------------------------------------------------------------------------------------------


def test_the_deciding_word_decides() -> None:
    for phrase in DRAWN:
        frame = next(frame for frame in FRAMES if phrase.answer in frame.decides.values())
        assert frame.decides[phrase.words[phrase.decisive]] == phrase.answer
        assert phrase.words[phrase.cat] == "cat"
        assert phrase.words.count("cat") == 1


@pytest.mark.parametrize("frame", FRAMES)
def test_nothing_else_in_a_phrase_tells(frame: Frame) -> None:
    rests = defaultdict(list)
    for phrase in frame.phrases():
        rests[phrase.words[: phrase.decisive] + phrase.words[phrase.decisive + 1 :]].append(phrase.answer)
    assert all(sorted(answers) == sorted(frame.decides.values()) for answers in rests.values())


def test_a_sentence_before_it_tells_neither() -> None:
    behind = FAMILY.draw(3000, np.random.default_rng(7), alone=0)
    pairs = Counter((one.answer, _dogs_word(one.words)) for one in behind)
    for frame in FRAMES:
        counts = np.array([[pairs[answer, word] for word in frame.decides] for answer in frame.decides.values()])
        assert counts.sum() == pytest.approx(1000, abs=1)  # of the same frame, always
        assert 60 < counts.min() < counts.max() < 180  # 111 on average: independent


def _dogs_word(words: tuple[str, ...]) -> str:
    sentence = words[: words.index(".")]
    assert "dog" in sentence
    (word,) = [word for word in sentence if any(word in frame.decides for frame in FRAMES)]
    return word


def test_what_is_held_out_is_never_learned_from() -> None:
    learned, held = ({one.words for frame in part for one in frame} for part in FAMILY.parts)
    assert not learned & held
    assert learned | held == {one.words for frame in FRAMES for one in frame.phrases()}
    assert {tuple(text.split()) for text in THREE} <= held
    assert [one.answer for one in FAMILY.three()] == ["mat", "terminal", "happy"]
    assert {one.words[-len(one.words) :] for one in FAMILY.draw(500, np.random.default_rng(0), alone=1)} <= learned


def test_where_the_cat_stands_does_not_tell_the_answer() -> None:
    for part in FAMILY.parts[0]:
        places = defaultdict(set)
        for phrase in part:
            places[phrase.answer].update(phrase.after(context).cat for context in ((), *CONTEXTS[0]))
        first, *others = places.values()
        assert len(first) >= 3
        assert others == [first, first]


def test_no_answer_stands_in_a_text() -> None:
    assert not set(ANSWERS) & set(WORDS)
    assert {word for part in CONTEXTS for words in part for word in words} < set(WORDS)
    assert max(len(one.words) for one in FAMILY.draw(2000, np.random.default_rng(2), alone=0)) <= LONGEST


def test_batches_are_functions_of_seed_and_step() -> None:
    task = phrase_reader.Next(FAMILY, seed=3)
    assert torch.equal(task.batch(5)["ids"], task.batch(5)["ids"])
    assert not torch.equal(task.batch(5)["ids"], task.batch(6)["ids"])
    assert not torch.equal(task.batch(5)["ids"], phrase_reader.Next(FAMILY, seed=4).batch(5)["ids"])


# -- what is read, and taken away ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", phrase_reader.REMOVED)
def test_exactly_the_named_weights_are_removed(reader: phrase_reader.Reader, name: str) -> None:
    batch = phrase_reader.batch_of(DRAWN)
    gone = phrase_reader.REMOVED[name](batch)
    (full,) = weights_while(reader, lambda: reader(batch))
    (cut,) = weights_while(reader, lambda: reader(batch, phrase_reader.removed(batch, gone)))
    for at, phrase in enumerate(DRAWN):
        rows = [phrase.cat, phrase.last]
        rest = [row for row in range(len(phrase.words)) if row not in rows]
        assert torch.equal(full[at, 0, rest], cut[at, 0, rest])
        left = full[at, 0, rows].masked_fill(gone[at], 0) if phrase.cat != phrase.last else None
        if left is not None:
            torch.testing.assert_close(cut[at, 0, rows], left / left.sum(-1, keepdim=True))


def test_what_may_be_removed_is_told_apart() -> None:
    batch = phrase_reader.batch_of(DRAWN)
    one, rest, wanted = phrase_reader.one_other(batch), phrase_reader.others(batch), phrase_reader.decisive(batch)
    assert one.sum(-1).eq(1).all()
    assert not (one & ~rest).any()
    assert not (rest & wanted).any()
    for at, phrase in enumerate(DRAWN):
        kept = {phrase.decisive, phrase.cat}
        assert set(range(len(phrase.words))) - set(rest[at, 0].nonzero()[:, 0].tolist()) == kept


def test_equal_weights_are_equal() -> None:
    batch = phrase_reader.batch_of(DRAWN)
    weights = phrase_reader.read(phrase_reader.Reader(phrase_reader.ALIKE).eval(), batch)
    torch.testing.assert_close(weights.amax(-1), 1 / batch["lengths"][:, None].expand(-1, 2))


def test_the_two_kinds_of_reader_differ_in_their_formula_alone() -> None:
    sizes = []
    for attention in (Attention(), phrase_reader.ALIKE):
        torch.manual_seed(0)
        sizes.append({name: tensor.sum() for name, tensor in phrase_reader.Reader(attention).state_dict().items()})
    assert sizes[0] == sizes[1]


def test_equal_weights_do_not_see_whose_word_it_is() -> None:
    """Two words that change their places leave Σ_j v_j as it was: no norm binds a word to its place."""
    phrase = FRAMES[0].phrases()[0].after(CONTEXTS[0][-1])
    words = list(phrase.words)
    other = next(at for at, word in enumerate(words) if word in FRAMES[0].decides)
    words[other], words[phrase.decisive] = words[phrase.decisive], words[other]
    assert words != list(phrase.words)
    batch = phrase_reader.batch_of([phrase, Phrase(tuple(words), phrase.cat, phrase.decisive, phrase.answer)])
    told = phrase_reader.asked(phrase_reader.Reader(phrase_reader.ALIKE).eval()(batch), batch)
    torch.testing.assert_close(told[0], told[1])
    chosen = phrase_reader.asked(phrase_reader.Reader(Attention()).eval()(batch), batch)
    assert not torch.allclose(chosen[0], chosen[1], atol=1e-6, rtol=1e-6)


# -- the experiment --------------------------------------------------------------------------------------------


def test_a_small_share_of_it_runs(small: Outcome, tmp_path: Path) -> None:
    assert len(small.table.rows) == len(phrases.ROWS)
    assert all(np.isfinite(number) for number in small.numbers.values())
    assert Outcome.of_json(small.json()).numbers == small.numbers
    assert drawn(phrases.EXPERIMENT, small, tmp_path / "phrases.png").stat().st_size > 10_000


def test_the_answer_follows_the_numbers(small: Outcome) -> None:
    learned = {"after": 0.99, "without the deciding word": 0.33, "without one other word": 0.98, "equal weights": 0.6}
    numbers = small.numbers | {f"{name}: right, cat": share for name, share in learned.items()}
    assert "what the answer rests on" in phrases.says(numbers)
    assert "99 % of the held-out" in phrases.says(numbers)
    assert "rests on no weight in particular" in phrases.says(numbers | {"without the deciding word: right, cat": 0.97})
    assert "already leans" in phrases.says(numbers | {"before: weight, cat": 0.5})
