"""Hostile requests and websockets: none gets to a kernel without our host, our page and the token."""

from __future__ import annotations

import base64
import os
import socket
from typing import Any

import pytest

from regard.course.serving.policy import TEXT, chapter_rules
from regard.viewer.server.guard import Door, Guard, host_names

from .conftest import PATIENCE, Course

CHAPTER = ["/1/", "/1", "/1/api/status", "/1/assets/index.js", "/2/", "/1/@file/1-x.js", "/1/ws?session_id=s_abcdef"]


def opened(course: Course, path: str = "/1/ws?session_id=s_abcdef", **told: str | None) -> int:
    """The status of an opening of a websocket; headers that are None are left out."""
    usual: dict[str, str | None] = {
        "Host": f"127.0.0.1:{course.port}", "Origin": course.base, "Cookie": f"regard-{course.port}={course.token}",
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }  # fmt: skip
    heads = {**usual, **{name.replace("_", "-"): value for name, value in told.items()}}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in heads.items() if value is not None)]
    with socket.create_connection(("127.0.0.1", course.port), timeout=PATIENCE) as wire:
        wire.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        said = wire.recv(4096)
    return int(said.split()[1]) if said else 0


def test_our_own_page_opens_a_socket(course: Course) -> None:
    assert opened(course) == 101


@pytest.mark.parametrize("origin", [
    None, "null", "", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://127.0.0.1:{port}0",
    "http://localhost:{port}", "http://127.0.0.1:{port}/", "ws://127.0.0.1:{port}", "http://127.0.0.1:{port}.evil.example",
])  # fmt: skip
def test_a_socket_of_another_page_is_refused(course: Course, origin: str | None) -> None:
    assert opened(course, Origin=origin and origin.format(port=course.port)) == 403


@pytest.mark.parametrize("host", ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.1:{port}", "0.0.0.0:{port}"])
def test_a_socket_to_another_host_is_refused(course: Course, host: str) -> None:
    told = host.format(port=course.port)
    assert opened(course, Host=told, Origin=f"http://{told}") == 403


@pytest.mark.parametrize("cookie", [None, "", "regard-{port}=", "regard-{port}=x", "regard-1={token}", "token={token}"])
def test_a_socket_without_the_token_is_refused(course: Course, cookie: str | None) -> None:
    assert opened(course, Cookie=cookie and cookie.format(port=course.port, token=course.token)) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "else"])
def test_a_socket_of_another_site_is_refused(course: Course, site: str) -> None:
    assert opened(course, Sec_Fetch_Site=site) == 403


@pytest.mark.parametrize("path", ["/", "/ws", "/page/course.css", "/99/ws", "/lenses"])
def test_there_are_sockets_in_chapters_alone(course: Course, path: str) -> None:
    assert opened(course, path) == 403


def test_the_terminal_of_marimo_is_closed(course: Course) -> None:
    assert opened(course, "/1/terminal/ws") in (101, 403)
    with course.known() as client:
        assert client.post("/1/api/kernel/save", json={}).status_code in (401, 403)
        assert client.post("/1/api/files/list_files", json={"path": "/"}).status_code in (401, 403)
        assert client.post("/1/api/kernel/run", json={"cellIds": ["a"], "codes": ["1"]}).status_code in (401, 403)


@pytest.mark.parametrize("path", CHAPTER)
@pytest.mark.parametrize("token", [None, "x"])
def test_a_chapter_needs_the_token(course: Course, path: str, token: str | None) -> None:
    with course.client() as client:
        answer = client.get(path, headers={} if token is None else {"X-Regard-Token": token})
        assert answer.status_code == 403
        assert answer.json()["error"].startswith("token: the one that the terminal printed")
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", CHAPTER)
def test_a_chapter_needs_our_host_and_our_page(course: Course, path: str) -> None:
    with course.known() as client:
        assert client.get(path, headers={"Host": f"evil.example:{course.port}"}).status_code == 421
        assert client.get(path, headers={"Origin": "http://evil.example"}).status_code == 403
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert client.get(path, headers=link).status_code == 403


def test_answers_of_marimo_let_no_other_origin_read_them(course: Course) -> None:
    with course.known() as client:
        answer = client.get("/1/", headers={"Origin": course.base})
        assert answer.status_code == 200
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-frame-options"] == "DENY"


def test_the_policy_of_a_chapter_names_no_other_place(course: Course) -> None:
    with course.known() as client:
        policy = client.get("/1/").headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "*" not in policy
        assert "http:" not in policy
        assert f"ws://127.0.0.1:{course.port}" in policy
        assert "unsafe-inline" not in client.get("/").headers["content-security-policy"]


def test_bodies_and_methods_are_bounded(course: Course) -> None:
    with course.known() as client:
        long = client.post("/1/api/kernel/set_ui_element_value", content=b"x" * (TEXT + 1))
        assert long.status_code == 413
        assert client.put("/1/").status_code == 405
        assert client.request("OPTIONS", "/1/").status_code == 405
        assert client.get("/1/?" + "x" * 20_000).status_code == 414


def test_a_lens_takes_no_sockets() -> None:
    door, sent = Door(host_names("127.0.0.1"), 8017, "t"), []

    async def never(*_given: Any) -> None:
        raise AssertionError("the app was reached")

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    heads = [(b"host", b"127.0.0.1:8017"), (b"origin", b"http://127.0.0.1:8017"), (b"x-regard-token", b"t")]
    scope = {"type": "websocket", "path": "/1/ws", "query_string": b"", "headers": heads}
    _finished(Guard(never, door)(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
    with pytest.raises(AssertionError, match="the app was reached"):
        _finished(Guard(never, door, chapter_rules(door))(scope, receive, send))


def _finished(work: Any) -> None:
    """Runs what never waits."""
    with pytest.raises(StopIteration):
        work.send(None)
