"""Phrases about a cat, each with one word on which the next word depends.

    the cat sat on the → mat        the cat jumped on the → table        the cat climbed on the → roof

Three phrases alone can be told apart by where “cat” stands. Here they are three frames: in each, names and other words
change, and one of three words decides what comes next; nothing else in the phrase tells. A sentence about a dog may
stand before it, of the same frame, whose deciding word decides nothing: whoever reads all words alike knows two of
them, and not which counts.

    right answers    1/3               without the deciding word
                     1/3 + 2/3 · 1/2   behind such a sentence, for whoever knows both words but not which is the cat's
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import TypeVar

import numpy as np

T = TypeVar("T")

PLAIN = ("", "big", "old", "shy", "wild", "young")
MANNER = ("", "calmly", "quickly", "twice", "again", "slowly")
NAMES = ("brian", "anna", "carol", "david", "emma", "frank")
WARMTH, COLOURS = ("warm", "soft", "tired", "small"), ("black", "white", "grey", "brown")
WHOSE = ("the", "my", "your", "our")
DECISIVE = "*"


@dataclass(frozen=True)
class Phrase:
    """Words, the places of the animal and of the word that decides, and the word that comes next."""

    words: tuple[str, ...]
    cat: int
    decisive: int
    answer: str

    @property
    def last(self) -> int:
        """The place of the last word."""
        return len(self.words) - 1

    def after(self, context: tuple[str, ...]) -> Phrase:
        """The same phrase behind a sentence."""
        shift = len(context)
        return Phrase((*context, *self.words), self.cat + shift, self.decisive + shift, self.answer)


@dataclass(frozen=True)
class Frame:
    """slots:   the words that may stand at each place; "" for none, `DECISIVE` where the deciding word stands
    decides: what comes next, by the deciding word
    """

    slots: tuple[tuple[str, ...], ...]
    decides: dict[str, str]

    def phrases(self, animal: str = "cat") -> list[Phrase]:
        """Every phrase of the frame."""
        choices = [slot if slot != (DECISIVE,) else tuple(self.decides) for slot in self.slots]
        texts = [tuple(word for word in words if word) for words in product(*choices)]
        return [self._phrase(tuple(animal if word == "cat" else word for word in words), animal) for words in texts]

    def _phrase(self, words: tuple[str, ...], animal: str) -> Phrase:
        decisive = next(at for at, word in enumerate(words) if word in self.decides)
        return Phrase(words, words.index(animal), decisive, self.decides[words[decisive]])


CAT, HERE = ("cat",), (DECISIVE,)
FRAMES = (
    Frame((WHOSE, PLAIN, CAT, HERE, ("on",), ("the",)), {"sat": "mat", "jumped": "table", "climbed": "roof"}),
    Frame((NAMES, MANNER, HERE, CAT, ("into",), ("the",)), {"typed": "terminal", "carried": "room", "packed": "box"}),
    Frame((HERE, WHOSE[1:], WARMTH, COLOURS, CAT), {"is": "happy", "bring": "here", "let": "outside"}),
)
THREE = ("the cat sat on the", "brian typed cat into the", "is your warm black cat")
"""The phrases that the frames are made from: none of them is ever learned from."""


@dataclass(frozen=True)
class Family:
    """Phrases to learn from, and a quarter of all that are held out, `THREE` among them."""

    seed: int = 0

    @cached_property
    def parts(self) -> tuple[list[list[Phrase]], list[list[Phrase]]]:
        """For each frame what is learned from; for each what is held out."""
        split = [self._split(frame) for frame in FRAMES]
        return [learned for learned, _ in split], [held for _, held in split]

    def _split(self, frame: Frame) -> tuple[list[Phrase], list[Phrase]]:
        found = frame.phrases()
        order = np.random.default_rng([self.seed, 7]).permutation(len(found))
        held = {int(at) for at in order[: len(found) // 4]}
        held |= {at for at, phrase in enumerate(found) if " ".join(phrase.words) in THREE}
        return [one for at, one in enumerate(found) if at not in held], [found[at] for at in sorted(held)]

    def draw(self, count: int, rng: np.random.Generator, *, held_out: bool = False, alone: float = 0.5) -> list[Phrase]:
        """So many phrases, of each frame as many; a share of them stands alone, the others behind a sentence."""
        frames = [at % len(FRAMES) for at in range(count)]
        picked = [_one(self.parts[held_out][frame], rng) for frame in frames]
        contexts = [() if rng.random() < alone else _one(CONTEXTS[frame], rng) for frame in frames]
        return [phrase.after(context) for phrase, context in zip(picked, contexts, strict=True)]

    def three(self) -> list[Phrase]:
        """The three phrases."""
        known = {" ".join(phrase.words): phrase for frame in FRAMES for phrase in frame.phrases()}
        return [known[text] for text in THREE]


def _one(things: Sequence[T], rng: np.random.Generator) -> T:
    return things[int(rng.integers(len(things)))]


def _sentence(words: tuple[str, ...]) -> tuple[str, ...]:
    """A phrase that is ended without its answer: 'on the' becomes 'on it'."""
    return (*words[:-1], "it", ".") if words[-1] == "the" else (*words, ".")


CONTEXTS = [[_sentence(phrase.words) for phrase in frame.phrases("dog")] for frame in FRAMES]
"""Sentences about a dog, frame by frame."""
WORDS = ("·", *sorted({word for frame in FRAMES for one in frame.phrases() for word in one.words} | {"dog", "it", "."}))
"""The vocabulary; the first fills texts up to one length."""
ANSWERS = tuple(answer for frame in FRAMES for answer in frame.decides.values())
LONGEST = max(map(len, chain(*CONTEXTS))) + max(len(one.words) for frame in FRAMES for one in frame.phrases())
"""How many words a text has at most."""
