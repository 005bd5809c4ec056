"""A text that is being written: it takes ids until it is complete."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch

from ...inputs.vocabularies import Vocabulary
from .results import Generation, Reason
from .stopping import Watch
from .texts import Reading


@dataclass(frozen=True)
class Ending:
    """When a text is complete: after so many ids, at an end token, at a stop text."""

    new: int
    stops: tuple[str, ...] = ()
    ends: Mapping[int, str | int] = field(default_factory=dict)  # each end token, and how it was passed


class Draft:
    """One text, from its prompt to its end."""

    def __init__(
        self, prompt: list[int], ending: Ending, vocabulary: Vocabulary | None, luck: torch.Generator | None
    ) -> None:
        self.prompt, self.ending, self.luck = prompt, ending, luck
        self.ids: list[int] = []
        self.log_probabilities: list[float] = []
        self.pieces: list[str] = []
        self.reason: Reason | None = None
        self.stopped_by: str | int | None = None
        self._reading = None if vocabulary is None else Reading(vocabulary, prompt)
        self._watch = Watch(ending.stops)

    @property
    def most(self) -> int:
        """How many ids there may be in the end."""
        return len(self.ids) if self.reason is not None else self.ending.new

    def point(self) -> float:
        """The u of the next draw."""
        return float(torch.rand((), generator=self.luck, dtype=torch.float64))

    def take(self, number: int, log_probability: float) -> str:
        """Go on with this id; the text that has become certain."""
        self.ids.append(number)
        self.log_probabilities.append(log_probability)
        piece = self._told(number)
        self.pieces.append(piece)
        return piece

    def result(self) -> Generation:
        """The text, once it is complete."""
        assert self.reason is not None
        text = None if self._reading is None else "".join(self.pieces)
        return Generation(self.prompt, self.ids, text, self.reason, self.stopped_by, self.log_probabilities)

    def _told(self, number: int) -> str:
        if number in self.ending.ends:
            return self._rest("end", self.ending.ends[number])
        piece = self._watched("" if self._reading is None else self._reading.push(number))
        if self.reason is None and len(self.ids) == self.ending.new:
            piece += self._rest("length", None)
        return piece

    def _watched(self, piece: str) -> str:
        text = self._watch.push(piece)
        if self._watch.found is not None:
            self.reason, self.stopped_by = "stop", self._watch.found
        return text

    def _rest(self, reason: Reason, by: str | int | None) -> str:
        """What was held back, which may hold a stop text; then the text is complete."""
        held = self._watched("" if self._reading is None else self._reading.rest())
        if self.reason is None:
            self.reason, self.stopped_by = reason, by
            held += self._watch.rest()
        return held


def drafts(
    prompts: list[list[int]], ending: Ending, vocabulary: Vocabulary | None, seed: int | None
) -> Iterator[Draft]:
    """A draft for each prompt, with luck of its own.

    It is made from the seed, the prompt, and how often that prompt has come before: whatever else is in the batch,
    a prompt has the same luck, and a prompt that comes twice is written twice.
    """
    seen: Counter[tuple[int, ...]] = Counter()
    for prompt in prompts:
        key = tuple(prompt)
        yield Draft(prompt, ending, vocabulary, None if seed is None else _luck(seed, prompt, seen[key]))
        seen[key] += 1


def _luck(seed: int, prompt: list[int], times: int) -> torch.Generator:
    digest = hashlib.sha256(repr((seed, times, prompt)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
