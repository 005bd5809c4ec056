"""A server on a lens of two layers, whose answers do as a test says, and a client that may ask it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import numpy as np
import pytest

from regard.algebra.errors import CallError
from regard.attention import Attention
from regard.viewer.answering.packet import Packet, unpacked
from regard.viewer.lenses import Lens
from regard.viewer.models.live import Live
from regard.viewer.record import Axis, Captured
from regard.viewer.server import shelf
from regard.viewer.server.run import Served, serve
from regard.viewer.work import Stop

PATIENCE = 60  # seconds that an answer may take on a machine that has other work


def lens_of(title: str = "a lens", queries: int = 7) -> Lens:
    drawn = np.random.default_rng(0)
    q, k, v = (drawn.normal(size=(1, 3, queries, 5)).astype(np.float32) for _ in range(3))
    axis = Axis("tokens", tuple(f" t{place}" for place in range(queries)))
    layers = [Captured(f"layer {n}", Attention(), q, k, v, query="tokens", key="tokens") for n in range(2)]
    return Lens(layers, [{"tokens": axis}], title=title, model="nothing")


class Slow:
    """Stands for `Answers`: some questions end only when they are told to, or asked to stop."""

    def __init__(self, lens: Any) -> None:
        self.lens = lens
        self.begun, self.stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.go_on = threading.Event()

    def answer(self, name: str, options: Mapping[str, Any], stop: Stop) -> Packet:
        if name == "tile":
            return self._slow(stop)
        if name == "fails":
            raise RuntimeError("a secret of the machine: /home/somebody")
        if name == "wrong":
            raise CallError("layer: one of 2 layers, from 0; got '9'")
        if name == "large":
            return Packet({}, (np.zeros((64, 64), np.float32),))
        if name == "noise":
            return Packet({}, (np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8),))
        return Packet({"name": name, "options": dict(options)})

    def _slow(self, stop: Stop) -> Packet:
        self.begun.release()
        while not self.go_on.wait(0.005):
            if stop.is_set:
                self.stopped.release()
                stop.check()
        return Packet({"name": "tile"})


class Client(httpx.Client):
    """Asks with the token, and reads what comes back."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.token = parse_qs(parts.query)["token"][0]
        self.port = parts.port
        super().__init__(base_url=f"http://{parts.netloc}", headers={"X-Regard-Token": self.token}, timeout=PATIENCE)

    def meta(self, address: str) -> Any:
        answer = self.get(address)
        assert answer.status_code == 200, answer.text
        return unpacked(answer.content).meta


def refused(answer: httpx.Response, status: int) -> str:
    """The reason of a refusal, which names nothing of the machine."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/json"
    reason = answer.json()["error"]
    assert list(answer.json()) == ["error"]
    assert "Traceback" not in reason
    assert "/home" not in reason
    assert ".py" not in reason
    return str(reason)


def look_at_text(text: str, say: Any) -> Lens:
    if len(text) > 20:
        raise CallError("text: from 1 to 20 tokens; got more; look at a part of it")
    say("running")
    return lens_of(text)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shelf, "Answers", Slow)
        yield from running()


def running() -> Iterator[Served]:
    live = Live("a model", look_at_text, lambda content, say: lens_of(f"{len(content)} bytes"), 20)
    with serve([lens_of()], live, browser=False, background=True, say=lambda text: None) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as asking:
        yield asking


@pytest.fixture
def answers(served: Served) -> Any:
    """Who answers for the lens."""
    return served.site.shelf["given-1"].answers
