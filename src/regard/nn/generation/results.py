"""A text that a model has written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reason = Literal["end", "stop", "length"]

SHOWN = 60  # characters of a text in its repr


@dataclass(frozen=True, repr=False)
class Generation:
    """What a model wrote after a prompt. `str` gives the text; without a vocabulary, the ids.

    prompt:            the ids it began with
    ids:               the ids that were drawn, all of them: also the end token, and those of the stop text
    text:              what they say, up to the stop text or the end token; None without a vocabulary
    reason:            "end": an end token was drawn;  "stop": a stop text came;  "length": no more were asked for
    stopped_by:        the end token as it was passed, or the stop text; None by length
    log_probabilities: log P of each id as the model held it, before temperature, top-k and top-p
    """

    prompt: list[int]
    ids: list[int]
    text: str | None
    reason: Reason
    stopped_by: str | int | None
    log_probabilities: list[float]

    def __str__(self) -> str:
        return str(self.ids) if self.text is None else self.text

    def __repr__(self) -> str:
        shown = str(self.ids) if self.text is None else repr(self.text)
        cut = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
        by = "" if self.stopped_by is None else f" by {self.stopped_by!r}"
        return f"Generation({cut}, {len(self.ids)} ids after {len(self.prompt)}, {self.reason}{by})"
