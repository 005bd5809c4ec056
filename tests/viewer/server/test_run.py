"""A server starts on a port of its own, ends when it is told to, and says where it is."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from regard.algebra.errors import CallError
from regard.viewer.server import run
from regard.viewer.server.run import serve

from .conftest import PATIENCE, Client, lens_of

CHILD = """
import sys, time
sys.path.insert(0, {here!r})
from regard.viewer.server import shelf
from regard.viewer.server.run import serve
from conftest_of_server import Slow, lens_of
shelf.Answers = Slow
serve([lens_of()], browser=False)
print("ended")
"""


def asked_the_browser() -> None:
    """Waits for the thread that opens the page."""
    for thread in threading.enumerate():
        if thread.name == "regard browser":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def quietly(**told: Any) -> Any:
    return serve([lens_of()], browser=False, background=True, **{"say": lambda text: None, **told})


def test_two_servers_have_two_ports_and_two_tokens() -> None:
    with quietly() as one, quietly() as other, Client(one.url) as first, Client(other.url) as second:
        assert first.port != second.port
        assert first.token != second.token
        assert len(first.token) >= 32
        assert first.get("/lenses").status_code == second.get("/lenses").status_code == 200
        assert second.get("/lenses", headers={"X-Regard-Token": first.token}).status_code == 403


def test_it_listens_on_this_machine_alone() -> None:
    with quietly() as served:
        port = Client(served.url).port or 0
        listening = Path("/proc/net/tcp")
        if listening.exists():
            places = [line.split()[1] for line in listening.read_text().splitlines()[1:] if line.split()[3] == "0A"]
            assert [place for place in places if place.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_it_ends_at_once_and_frees_its_port() -> None:
    served = quietly()
    port = Client(served.url).port or 0
    assert "127.0.0.1" in repr(served)
    served.stop()
    assert repr(served).endswith("ended)")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/")
    with quietly(port=port) as again:
        assert Client(again.url).port == port


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CallError, match=rf"a port that is free; got 127\.0\.0\.1:{port}, .*in use; leave --port"):
            quietly(port=port)


@pytest.mark.parametrize("port", [0, -1, 65536, 10**9])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(CallError, match="port: from 1 to 65535"):
        quietly(port=port)


def test_a_host_that_is_none() -> None:
    with pytest.raises(CallError, match="host and port: an address of this machine"):
        quietly(host="no.such.host.invalid")


def test_other_hosts_are_warned_of() -> None:
    said: list[str] = []
    with quietly(host="0.0.0.0", say=said.append):
        assert said[0].startswith("warning: --host 0.0.0.0 lets other machines reach this server")
        assert said[1].startswith("the lens is at http://127.0.0.1:")


def test_this_machine_is_not_warned_of() -> None:
    said: list[str] = []
    with quietly(say=said.append) as served:
        assert said == [f"the lens is at {served.url}"]


def test_the_browser_is_opened_unless_it_lives_in_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    class Window(webbrowser.GenericBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            opened.append(url)
            return True

    for name in ("/usr/bin/w3m", "firefox"):
        monkeypatch.setattr(webbrowser, "get", lambda name=name: Window(name))
        with serve([lens_of()], background=True, say=lambda text: None) as served:
            asked_the_browser()
    assert opened == [served.url]


def test_no_browser_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    run._open("http://127.0.0.1:1/")
    asked_the_browser()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_with_open_requests(tmp_path: Path, ending: signal.Signals) -> None:
    here = Path(__file__).with_name("conftest.py")
    (tmp_path / "conftest_of_server.py").write_text(here.read_text(encoding="utf-8"), encoding="utf-8")
    code = CHILD.format(here=str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    url = child.stdout.readline().split()[-1]
    client = Client(url)
    open_ones = ExitStack()
    open_ones.enter_context(client)
    heads = f"Host: 127.0.0.1:{client.port}\r\nX-Regard-Token: {client.token}\r\n"
    asked = [
        f"GET /ask/given-1/tile?level=9 HTTP/1.1\r\n{heads}\r\n",  # being answered
        f"POST /look HTTP/1.1\r\n{heads}Content-Type: image/png\r\nContent-Length: 99\r\n\r\nhalf of it",
        "GET /lens",  # not even a request yet
    ]
    wires = [open_ones.enter_context(socket.create_connection(("127.0.0.1", client.port or 0))) for _ in asked]
    for wire, request in zip(wires, asked, strict=True):
        wire.sendall(request.encode())
    assert client.get("/lenses").status_code == 200
    child.send_signal(ending)
    out, err = child.communicate(timeout=30)  # the first request would take a minute, the others never end
    assert (child.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "ended"
    with open_ones:
        assert wires[0].recv(65536).startswith(b"HTTP/1.1 503 ")  # told, and not cut off
