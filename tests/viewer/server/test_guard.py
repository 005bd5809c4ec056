"""Hostile requests: from elsewhere, without the token, too long, out of place. All are refused in a sentence."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import httpx
import pytest

from regard.viewer.server.guard import ADDRESS, IMAGE, TEXT, Door, host_names

from .conftest import PATIENCE, Client, refused

PATHS = [
    "/",
    "/lenses",
    "/ask/given-1/about",
    "/export/given-1.html",
    "/ask/page/about",
    "/pages/page/",
    "/favicon.ico",
]


def raw(port: int, request: bytes) -> bytes:
    """What a server says to bytes that no client would send."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as wire, suppress(OSError):
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        while more := wire.recv(65536):
            said += more
    return said


# -- host --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}",
    "127.0.0.1:{port}.", "[::1]:{port}", "0.0.0.0:{port}", "127.1:{port}", "2130706433:{port}",
    "127.0.0.1:{port}@evil.example", "", "127.0.0.1:0{port}0", "127.0.0.1:-{port}", "127.0.0.1:{port}\u00b2",
    "user@127.0.0.1:{port}",
])  # fmt: skip
@pytest.mark.parametrize("path", ["/lenses", "/page/source.js"])
def test_another_host_is_refused(client: Client, host: str, path: str) -> None:
    told = host.format(port=client.port).encode("utf-8")
    answer = client.get(path, headers=[(b"Host", told)])  # type: ignore[list-item]
    assert answer.status_code in (400, 421)
    if answer.status_code == 421:
        assert refused(answer, 421).endswith(f"forward {client.port} to {client.port}")


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "LocalHost:{port}"])
def test_our_hosts_are_let_in(client: Client, host: str) -> None:
    assert client.get("/lenses", headers={"Host": host.format(port=client.port)}).status_code == 200


def test_two_hosts_are_refused(client: Client) -> None:
    ours = f"Host: 127.0.0.1:{client.port}\r\n".encode()
    said = raw(client.port or 0, b"GET /lenses HTTP/1.1\r\n" + ours + b"Host: evil.example\r\n\r\n")
    assert said.split()[1] in (b"400", b"421")


def test_no_host_is_refused(client: Client) -> None:
    assert raw(client.port or 0, b"GET /lenses HTTP/1.0\r\n\r\n").split()[1] in (b"400", b"421")


def test_everywhere_takes_addresses_and_no_names() -> None:
    door = Door(host_names("0.0.0.0"), 8017, "t", everywhere=True)
    assert all(map(door.leads_here, ["192.168.3.5:8017", "localhost:8017", "[fe80::1]:8017", "127.0.0.1:8017"]))
    assert not any(
        map(door.leads_here, ["evil.example:8017", "192.168.3.5:8018", "192.168.3.5", "1.evil.example:8017"])
    )


def test_a_named_host_is_the_only_one() -> None:
    door = Door(host_names("192.168.3.5"), 80, "t")
    assert door.leads_here("192.168.3.5")
    assert door.leads_here("192.168.3.5:80")
    assert not door.leads_here("192.168.3.7")
    assert not door.leads_here("localhost")


# -- token -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "", "x", "{token}x", "é", "\x00", "null"])
def test_without_the_token_nothing_is_answered(client: Client, path: str, token: str | None) -> None:
    given = token and token.format(token=client.token)
    plain = httpx.Client(base_url=client.base_url)
    with plain:
        reason = refused(plain.get(path, params=None if given is None else {"token": given}), 403)
        assert reason.startswith("token: the one that the terminal printed")
        if given and given.isascii() and given.isprintable():
            refused(plain.get(path, headers={"X-Regard-Token": given}), 403)
            refused(plain.get(path, headers={"Cookie": f"regard-{client.port}={given}"}), 403)


def test_post_needs_the_token(client: Client) -> None:
    with httpx.Client(base_url=client.base_url) as plain:
        refused(plain.post("/look", json={"text": "a"}), 403)
        assert len(client.get("/lenses").json()["lenses"]) == 1


def test_the_page_gives_a_cookie_that_opens_the_rest(client: Client) -> None:
    with httpx.Client(base_url=client.base_url) as plain:
        refused(plain.get("/lenses"), 403)
        first = plain.get("/", params={"token": client.token})
        told = first.headers["set-cookie"].lower()
        assert told.startswith(f"regard-{client.port}=")
        assert all(word in told for word in ("httponly", "samesite=strict", "path=/"))
        assert plain.get("/lenses").status_code == 200


def test_the_files_of_the_page_need_no_token(client: Client) -> None:
    with httpx.Client(base_url=client.base_url) as plain:
        assert plain.get("/page/source.js").status_code == 200


# -- other pages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [
    "http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://127.0.0.1:{port}0",
    "http://localhost:{port}", "http://127.0.0.1:{port}/", "HTTP://127.0.0.1:{port}", "",
])  # fmt: skip
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    told = {"Origin": origin.format(port=client.port)}
    assert refused(client.get("/lenses", headers=told), 403).startswith("origin")
    refused(client.post("/look", json={"text": "a"}, headers=told), 403)


def test_our_origin_is_let_in(client: Client) -> None:
    told = {"Origin": f"http://127.0.0.1:{client.port}", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/lenses", headers=told).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "else"])
def test_another_site_may_only_link_to_the_page(client: Client, site: str) -> None:
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    refused(client.get("/lenses", headers=link), 403)
    refused(client.get("/", headers={**link, "Sec-Fetch-Dest": "iframe"}), 403)
    refused(client.get("/", headers={"Sec-Fetch-Site": site}), 403)
    refused(client.get("/page/source.js", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}), 403)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_what_a_form_can_send_is_refused(client: Client, kind: str) -> None:
    refused(client.post("/look", content=b'{"text": "a"}', headers={"Content-Type": kind}), 415)


# -- methods and sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
@pytest.mark.parametrize("path", ["/lenses", "/page/source.js"])
def test_other_methods_are_refused(client: Client, method: str, path: str) -> None:
    said = raw(client.port or 0, (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Regard-Token: {client.token}\r\n"
        "Connection: close\r\n\r\n").encode())  # fmt: skip
    assert said.split()[1] in (b"400", b"405")
    assert b"access-control" not in said.lower()


def test_each_address_has_its_methods(client: Client) -> None:
    refused(client.get("/look"), 405)
    refused(client.post("/lenses", json={}), 405)
    assert client.head("/lenses").status_code == 200


def test_a_long_address_is_refused(client: Client) -> None:
    refused(client.get("/ask/given-1/about?formula=" + "x" * ADDRESS), 414)
    said = raw(client.port or 0, b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert said.split()[1:2] in ([b"400"], [])


@pytest.mark.parametrize(("kind", "limit"), [("application/json", TEXT), ("image/png", IMAGE)])
def test_a_long_body_is_refused_by_what_it_says(client: Client, kind: str, limit: int) -> None:
    said = raw(client.port or 0, (
        f"POST /look HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Regard-Token: {client.token}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {limit + 1}\r\n\r\nx").encode())  # fmt: skip
    assert said.startswith(b"HTTP/1.1 413 ")
    assert said.endswith(f'{{"error":"body: at most {limit:,} bytes; got more"}}'.encode())


def test_a_body_that_says_nonsense_of_its_length(client: Client) -> None:
    for length in ("-1", "1e3", "9" * 40, "0x10", "1, 2", "\u0663"):
        said = raw(client.port or 0, (
            f"POST /look HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Regard-Token: {client.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\nx").encode())  # fmt: skip
        assert said.split()[1] in (b"400", b"413"), length


def test_a_long_body_in_pieces_is_cut_off(client: Client) -> None:
    sent = 0

    def pieces() -> Any:
        nonlocal sent
        for _ in range(2000):
            sent += 65536
            yield b"x" * 65536

    with suppress(httpx.TransportError):  # the server may close while the client still writes
        refused(client.post("/look", content=pieces(), headers={"Content-Type": "application/json"}), 413)
    assert sent < 100 * TEXT
    assert client.get("/lenses").status_code == 200


def test_get_takes_no_body(client: Client) -> None:
    refused(client.request("GET", "/lenses", content=b"x"), 413)
    refused(client.request("GET", "/lenses", content=iter([b"x"])), 413)


def test_headers_cannot_be_injected(client: Client) -> None:
    answer = client.get("/ask/given-1/x%0d%0aSet-Cookie:%20a=b?y=%0d%0aX-Evil:%201")
    assert "set-cookie" not in answer.headers
    assert "x-evil" not in answer.headers
    assert client.get("/export/%0d%0aX-Evil:1.html").headers.get("x-evil") is None


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 99, b"A" * 200_000]
)
def test_what_is_no_request_leaves_the_server_standing(client: Client, junk: bytes) -> None:
    raw(client.port or 0, junk)
    assert client.get("/lenses").status_code == 200


# -- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "../command.py", "..%2fcommand.py", "%2e%2e/command.py", "%2e%2e%2fcommand.py", "..%5ccommand.py",
    "....//command.py", "%252e%252e%252fcommand.py", "/etc/passwd", "%2fetc%2fpasswd", "..%c0%af..%c0%afetc/passwd",
    "source.js%00.html", "source.js/", "./source.js", "file:///etc/passwd", "C:%5cWindows", "SOURCE.JS",
    "source.js%2f..%2fsource.js", "", ".", "..", "%ff%fe", "\u2025/command.py",
])  # fmt: skip
def test_no_name_leads_to_another_file(client: Client, name: str) -> None:
    said = raw(client.port or 0, (
        f"GET /page/{name} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Regard-Token: {client.token}\r\n"
        "Connection: close\r\n\r\n").encode())  # fmt: skip
    assert said.split()[1] in (b"404", b"400")
    assert b"root:" not in said
    assert b"def " not in said


@pytest.mark.parametrize("name", ["../given-1", "..%2f..%2fetc", "%2e%2e", "given-1%00", "given-1/..", "~", "given-2"])
@pytest.mark.parametrize("address", ["/ask/{}/about", "/export/{}.html"])
def test_lenses_have_names_and_no_paths(client: Client, name: str, address: str) -> None:
    refused(client.get(address.format(name)), 404)


# -- headers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PATHS, "/page/source.js", "/page/none", "/ask/given-1/fails", "/ask/given-1/wrong"])
@pytest.mark.parametrize("authorised", [True, False])
def test_every_answer_is_careful(client: Client, path: str, authorised: bool) -> None:
    with httpx.Client(base_url=client.base_url) as plain:
        headers = (client if authorised else plain).get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-cache" if path == "/page/source.js" else "no-store")
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers
