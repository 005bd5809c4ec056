"""Which characters are learned from, and which are held out.

    text = block 0 | block 1 | block 2 | …          block b is held out if  ⌊(b + 1) f + ½⌋ > ⌊b f + ½⌋

f is the share that is held out, below one half: of ten blocks with f = 1/10, the fifth. A text changes as it goes on,
so blocks from everywhere are a fairer sample than its last tenth. Blocks end where paragraphs do, or else lines or
words. Block 0 is learned from: every held-out character has text before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from ...algebra.errors import CallError, KindError
from .corpora import Corpus

BLOCK = 4000  # characters: about a page
ENDS = ("\n\n", "\n", " ")  # where a block may end, the best first


class Span(NamedTuple):
    """What stands from start up to, and without, stop."""

    start: int
    stop: int


@dataclass(frozen=True)
class Split:
    """A corpus in two parts, as spans of its characters; neighbouring blocks of one part are one span."""

    corpus: Corpus
    training: tuple[Span, ...]
    held_out: tuple[Span, ...]

    @property
    def training_texts(self) -> list[str]:
        """The text of each span to learn from."""
        return [self.corpus.text[start:stop] for start, stop in self.training]

    @property
    def held_out_texts(self) -> list[str]:
        """The text of each span that is held out."""
        return [self.corpus.text[start:stop] for start, stop in self.held_out]


def split(corpus: Corpus, held_out: float = 0.1, block: int = BLOCK) -> Split:
    """The corpus in two parts, of which `held_out` is the share of the second: the same for the same text.

    >>> parts = split(Corpus("one\\n\\ntwo\\n\\nthree\\n\\nfour\\n\\nfive", "numbers"), held_out=0.3, block=6)
    >>> parts.training_texts, parts.held_out_texts
    (['one\\n\\n', 'three\\n\\nfour\\n\\nfive'], ['two\\n\\n'])
    """
    share, size = _share(held_out), _block(block)
    corpus.require(math.ceil(1 / share) + 1, "so that each part has some")
    cuts = _cuts(corpus.text, min(size, int(len(corpus) * share)))
    blocks = [(_is_held_out(place, share), Span(*ends)) for place, ends in enumerate(pairwise(cuts))]
    runs = [(held, [span for _, span in run]) for held, run in groupby(blocks, key=lambda block: block[0])]
    joined = [(held, Span(spans[0].start, spans[-1].stop)) for held, spans in runs]
    training, kept = (tuple(span for held, span in joined if held == part) for part in (False, True))
    return Split(corpus, training, kept)


def characters_needed(context: int, held_out: float = 0.1) -> int:
    """How many characters there must be so that one window, and what comes after it, is held out.

    >>> characters_needed(context=128)
    1290
    """
    return math.ceil((context + 1) / _share(held_out))


def _is_held_out(place: int, share: float) -> bool:
    return math.floor((place + 1) * share + 0.5) > math.floor(place * share + 0.5)


def _cuts(text: str, size: int) -> list[int]:
    """Where blocks of about this size begin and end: near its multiples, nearer than half of it."""
    inner = (_end_near(text, target, (size - 1) // 2) for target in range(size, len(text) - size // 2, size))
    return [0, *inner, len(text)]


def _end_near(text: str, target: int, reach: int) -> int:
    """The place nearest to the target at which something ends."""
    first, last = target - reach, target + reach
    for end in ENDS:
        before = text.rfind(end, first - len(end), target + len(end) - 1) + len(end)
        after = text.find(end, target, last) + len(end)
        found = [place for place in (before, after) if first <= place <= last]
        if found:
            return min(found, key=lambda place: abs(place - target))
    return target


def _share(held_out: object) -> float:
    if not isinstance(held_out, int | float) or isinstance(held_out, bool):
        raise KindError(f"held_out: a number, the share that is held out; got {held_out!r}")
    if not 0 < held_out < 0.5:
        raise CallError(f"held_out: above 0 and below 1/2; got {held_out}; a tenth is usual: held_out=0.1")
    return float(held_out)


def _block(block: object) -> int:
    if not isinstance(block, int) or isinstance(block, bool):
        raise KindError(f"block: an integer, the characters of a block; got {block!r}")
    if block < 1:
        raise CallError(f"block: at least 1 character; got {block}")
    return block
