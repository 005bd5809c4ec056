"""Ids as text, piece by piece, as soon as it is certain.

    text(t_1 … t_n) = decode(prompt, t_1 … t_n)  without  decode(prompt)

A token's text depends on what stands before it (a space between words, the rest of a character), so it is decoded in
a window: a few tokens whose text has been given, then those whose text has not. Bytes that are half a character
decode to �; they wait for the rest.
"""

from __future__ import annotations

from itertools import takewhile

from ...algebra.errors import CallError
from ...inputs.vocabularies import Vocabulary

HALF = "�"
BYTES = 4  # at most, in a character; so many tokens at most give one
CONTEXT = 4  # tokens that are kept to read the next ones by
LONG = 16  # tokens in a window, after which a shorter one is sought


class Reading:
    """The text of ids that come one by one, after a prompt."""

    def __init__(self, vocabulary: Vocabulary, prompt: list[int]) -> None:
        self.vocabulary = vocabulary
        self._ids, self._given = self._ending(prompt, self._decoded(prompt))
        is_half = self._given.endswith(HALF)
        self._read = 0 if is_half else len(self._ids)  # so many ids of the window have all their text given

    def push(self, number: int) -> str:
        """The text that is certain now that this id has come."""
        self._ids.append(number)
        text = self._continued()
        return self._give(text, len(text) - self._unsure(text))

    def rest(self) -> str:
        """What was held back, when nothing more comes."""
        text = self._continued()
        return self._give(text, len(text))

    # -- the window ------------------------------------------------------------------------------------------------

    def _continued(self) -> str:
        """The text of the window; where new bytes spoil a character that was given, it stays, and they stand alone."""
        text = self._decoded(self._ids)
        if text.startswith(self._given) or self._given.endswith(HALF):
            return text
        return self._given + self._decoded(self._ids[self._read :])

    def _unsure(self, text: str) -> int:
        """How many signs at the end may become others."""
        halves = len(text) - len(text.rstrip(HALF))
        return halves if len(self._ids) - self._read < BYTES else min(halves, BYTES - 1)

    def _give(self, text: str, certain: int) -> str:
        piece = text[_shared(self._given, text) : certain]
        if piece:
            self._given = text[:certain]
        if piece and certain == len(text):
            self._ids = self._ids[self._read :]
            self._given, self._read = self._decoded(self._ids), len(self._ids)
        elif len(self._ids) > LONG:
            self._shorten(text)
        return piece

    def _shorten(self, text: str) -> None:
        """A shorter window, if its text ends with all that is not yet given."""
        ids, waiting = self._ids[-CONTEXT:], text[len(self._given) :]
        ending = self._decoded(ids)
        if text.endswith(ending) and ending.endswith(waiting):
            self._ids, self._read, self._given = ids, 0, ending[: len(ending) - len(waiting)]

    def _ending(self, ids: list[int], text: str) -> tuple[list[int], str]:
        """The last few of the ids that begin with a whole character and give an end of the text; all, if none do."""
        for count in range(CONTEXT, LONG):
            ending = self._decoded(ids[-count:])
            if text.endswith(ending) and not ending.startswith(HALF):
                return ids[-count:], ending
        return list(ids), text

    def _decoded(self, ids: list[int]) -> str:
        if ids and max(ids) >= len(self.vocabulary):
            raise CallError(
                f"vocabulary: a token for each id of the model; got {max(ids)}, where it has {len(self.vocabulary)} "
                "tokens; pass the vocabulary that the model was trained with"
            )
        return self.vocabulary.decode(ids)


def _shared(one: str, other: str) -> int:
    """How many signs two texts begin with together."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
