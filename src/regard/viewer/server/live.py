"""A live model that looks at what it is given, one thing after another."""

from __future__ import annotations

from typing import Any

from ..models.live import Live
from ..work import Stop
from .refusals import Refusal
from .workers import Workers

SECONDS = 600.0  # that a look may take
WAITING = 4  # looks that may wait for the one that is taken


class Looker:
    """Takes texts and images to the model; what it does at the moment is in `told`."""

    def __init__(self, live: Live | None) -> None:
        self.live, self.doing = live or Live(), ""
        self.workers = Workers(1, WAITING, "look")

    async def look(self, given: str | bytes) -> Any:
        """The lens of a text, or of the bytes of an image."""
        kind = "text" if isinstance(given, str) else "image"
        reader: Any = self.live.text if isinstance(given, str) else self.live.image
        if reader is None:
            raise Refusal(400, f"{kind}: what the live model reads; got {kind}, which it does not; {self.live.how}")
        stop = Stop(SECONDS)

        def tell(words: str) -> None:
            stop.check()
            self.doing = words

        def work() -> Any:
            try:
                return reader(given, tell)
            finally:
                self.doing = ""

        return await self.workers.do(work, stop)

    def told(self) -> dict[str, Any]:
        """What it reads, how long a text may be, what it does, and how many wait."""
        live = self.live
        return {
            "model": live.words, "text": live.text is not None, "image": live.image is not None,
            "tokens": live.tokens, "how": live.how, "doing": self.doing, "waiting": len(self.workers.tasks),
        }  # fmt: skip

    def close(self) -> None:
        """Give up what is looked at."""
        self.workers.close()
