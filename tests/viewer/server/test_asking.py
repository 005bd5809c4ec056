"""Questions through the wire: options as text, reasons as JSON, heavy ones beside light ones, and giving up."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from regard.viewer.answering.packet import unpacked
from regard.viewer.server.asking import is_heavy
from regard.viewer.server.refusals import Refusal
from regard.viewer.server.run import Served
from regard.viewer.server.shelf import Entry
from regard.viewer.server.workers import Workers
from regard.viewer.work import Stop, Stopped

from .conftest import PATIENCE, Client, Slow, lens_of, refused


def until(true: Any) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


# -- answers -----------------------------------------------------------------------------------------------------


def test_options_travel_as_text_without_the_token(client: Client) -> None:
    told = {"layer": "3", "rows": "2,7", "formula": "softmax(dot / sqrt(d), mask=j <= i)", "é": "ü"}
    meta = unpacked(client.get("/ask/given-1/any", params={**told, "token": client.token}).content).meta
    assert meta == {"name": "any", "options": told}


def test_an_option_stands_once(client: Client) -> None:
    assert refused(client.get("/ask/given-1/any?layer=1&layer=2"), 400).startswith("options: each once")


def test_a_wrong_option_is_told_in_words(client: Client) -> None:
    assert refused(client.get("/ask/given-1/wrong"), 400) == "layer: one of 2 layers, from 0; got '9'"


def test_a_failure_says_nothing_of_the_machine(client: Client) -> None:
    assert refused(client.get("/ask/given-1/fails"), 500) == "server: it failed to answer; its terminal says why"
    assert client.meta("/ask/given-1/any")["name"] == "any"


@pytest.mark.parametrize(("question", "smaller"), [("large", True), ("noise", False), ("any", False)])
def test_packed_where_it_pays(client: Client, question: str, smaller: bool) -> None:
    with client.stream("GET", f"/ask/given-1/{question}", headers={"Accept-Encoding": "gzip"}) as answer:
        sent = b"".join(answer.iter_raw())
    plain = client.get(f"/ask/given-1/{question}", headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in answer.headers) is smaller
    assert "content-encoding" not in plain.headers
    assert (gzip.decompress(sent) if smaller else sent) == plain.content


def test_one_connection_carries_many_questions(client: Client) -> None:
    for count in range(50):
        assert client.meta(f"/ask/given-1/any?n={count}")["options"] == {"n": str(count)}


# -- many at once ------------------------------------------------------------------------------------------------

HEAVY = "/ask/given-1/tile?level=5"


def test_light_questions_pass_heavy_ones(client: Client, answers: Slow) -> None:
    count = 12
    with ThreadPoolExecutor(2 * count) as pool:
        heavy = [pool.submit(client.get, HEAVY) for _ in range(count)]
        assert answers.begun.acquire(timeout=PATIENCE)
        light = [pool.submit(client.meta, f"/ask/given-1/any?n={n}") for n in range(count)]
        assert sorted(int(one.result(PATIENCE)["options"]["n"]) for one in light) == list(range(count))
        assert not any(one.done() for one in heavy)
        answers.go_on.set()
        assert all(one.result(PATIENCE).status_code == 200 for one in heavy)
    answers.go_on.clear()
    while answers.begun.acquire(blocking=False):
        pass


def test_a_client_that_goes_away_frees_its_worker(client: Client, served: Served, answers: Slow) -> None:
    heavy = served.site.asking.heavy
    for _ in range(heavy.threads + 3):  # more than there are threads: none may stay
        ask = f"GET {HEAVY} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Regard-Token: {client.token}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", client.port or 0), timeout=PATIENCE) as wire:
            wire.sendall(ask.encode())
            assert answers.begun.acquire(timeout=PATIENCE)
        assert answers.stopped.acquire(timeout=PATIENCE)
    until(lambda: not heavy.tasks)


def test_what_waits_is_never_begun_once_nobody_waits(client: Client, served: Served, answers: Slow) -> None:
    heavy = served.site.asking.heavy
    for _ in range(3 * heavy.threads):
        with pytest.raises(httpx.ReadTimeout):
            client.get(HEAVY, timeout=httpx.Timeout(PATIENCE, read=0.05))
    until(lambda: not heavy.tasks and not heavy._queue)


def test_only_so_many_may_wait(served: Served, client: Client, answers: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy = served.site.asking.heavy
    monkeypatch.setattr(heavy, "waiting", 2)
    with ThreadPoolExecutor(heavy.threads + 2) as pool:
        held = [pool.submit(client.get, HEAVY) for _ in range(heavy.threads + 2)]
        until(lambda: len(heavy.tasks) == heavy.threads + 2)
        one_more = client.get(HEAVY)
        assert refused(one_more, 503).startswith("work: no more than can wait")
        assert one_more.headers["retry-after"] == "1"
        assert client.meta("/ask/given-1/any")["name"] == "any"
        answers.go_on.set()
        assert [one.result(PATIENCE).status_code for one in held] == [200] * len(held)
    answers.go_on.clear()


def test_work_ends_when_its_time_is_over(client: Client, answers: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.viewer.server.asking.SECONDS", 0.05)
    assert refused(client.get(HEAVY), 503).startswith("work: within its time")


@pytest.mark.parametrize(("question", "options", "length", "heavy"), [
    ("tile", {"level": "2"}, 7, False), ("tile", {"level": "3"}, 7, True), ("tile", {}, 7, False),
    ("tile", {"level": "x"}, 7, True), ("measures", {}, 7, True), ("rollout", {}, 7, True), ("row", {}, 4099, False),
    ("pair", {}, 4099, False), ("thumbs", {}, 7, False), ("thumbs", {}, 4099, True), ("whatif", {}, 7, False),
    ("whatif", {}, 4099, True),
])  # fmt: skip
def test_what_is_heavy(question: str, options: dict[str, str], length: int, heavy: bool) -> None:
    entry = Entry("a", "a", "given", lambda: lens_of(queries=length))
    assert not entry.length
    assert entry.answers
    assert is_heavy(entry, question, options) is heavy


# -- workers -----------------------------------------------------------------------------------------------------


def test_workers_hand_back_errors_and_results() -> None:
    async def main() -> None:
        workers = Workers(2, 3)
        assert await asyncio.gather(*(workers.do(lambda n=n: n * n, Stop()) for n in range(5))) == [0, 1, 4, 9, 16]
        with pytest.raises(ZeroDivisionError):
            await workers.do(lambda: 1 // 0, Stop())
        with pytest.raises(Stopped):
            await workers.do(lambda: 1, Stop(0))
        assert not workers.tasks

    asyncio.run(main())


def test_workers_refuse_one_too_many_and_close() -> None:
    async def main() -> None:
        workers, gate = Workers(1, 1), threading.Event()
        waiting = [asyncio.ensure_future(workers.do(gate.wait, Stop())) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="no more than can wait"):
            await workers.do(gate.wait, Stop())
        workers.close()
        assert [type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == [Stopped] * 2
        gate.set()

    asyncio.run(main())


def test_what_waits_is_forgotten_at_once() -> None:
    async def main() -> None:
        workers, begun, gate = Workers(1, 5), threading.Event(), threading.Event()
        held, waits = (asyncio.ensure_future(workers.do(lambda: begun.set() or gate.wait(), Stop())) for _ in range(2))
        while not begun.is_set():  # the first is on the thread, and looks at no Stop
            await asyncio.sleep(0.005)
        waits.cancel()
        await asyncio.wait([waits])
        assert not workers._queue
        assert len(workers.tasks) == 1
        gate.set()
        assert await held

    asyncio.run(main())
