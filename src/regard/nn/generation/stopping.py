"""Text up to the first stop text.

A text stops where the first of the stop texts is complete, read character by character, and is cut where that one
begins; of two that end together, the longer. How the text came in pieces makes no difference. An end that may still
become a stop text is held back.
"""

from __future__ import annotations


class Watch:
    """Lets text through up to the first stop text."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.stops = stops
        self.found: str | None = None
        self._held = ""

    def push(self, piece: str) -> str:
        """What is certain now that this piece has come."""
        text = self._held + piece
        ends = [(place + len(stop), place, stop) for stop in self.stops if (place := text.find(stop)) >= 0]
        if ends:
            _, place, self.found = min(ends)
            self._held = ""
            return text[:place]
        certain = len(text) - self._begun(text)
        self._held = text[certain:]
        return text[:certain]

    def rest(self) -> str:
        """What was held back, when nothing more comes."""
        held, self._held = self._held, ""
        return held

    def _begun(self, text: str) -> int:
        """The length of the longest end of the text with which a stop text begins."""
        most = min(len(text), max(map(len, self.stops), default=1) - 1)
        lengths = range(most, 0, -1)
        return next((n for n in lengths if any(stop.startswith(text[-n:]) for stop in self.stops)), 0)
