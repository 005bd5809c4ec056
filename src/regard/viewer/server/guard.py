"""Who may ask, and how much: what every request passes before anything reads it.

host      one of ours, with the port: a name that was pointed at this machine afterwards is none of them
origin    where a browser tells it, this server: no other page asks or embeds
token     what the terminal printed, in the address, in a header, or in the cookie that the page was given
method    GET, HEAD, POST;  address: at most 16 kB;  body: of POST alone, at most as long as its kind may be
socket    none, unless the site has some: then from its own page alone, and with the token
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import Refusal

METHODS = ("GET", "HEAD", "POST")
ADDRESS = 16 * 1024  # bytes: a formula of 2 000 signs, three bytes each, and room
TEXT, IMAGE = 64 * 1024, 16 * 1024 * 1024  # bytes of a body
HEADER = "x-regard-token"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Door:
    """Where the server stands, and what opens it.

    hosts: the names that lead here, without a port; everywhere: whether any address of the machine does
    """

    hosts: tuple[str, ...]
    port: int
    token: str
    everywhere: bool = False

    @property
    def cookie(self) -> str:
        """Its name; cookies know no ports, so that two servers need two names."""
        return f"regard-{self.port}"

    def leads_here(self, host: str) -> bool:
        """Whether a Host header is ours, port included; an address in digits cannot be pointed elsewhere by anyone."""
        name, port = _split(host)
        if port != self.port:
            return False
        return name.lower() in self.hosts or (self.everywhere and _is_address(name))

    def opened_by(self, given: Iterable[str]) -> bool:
        """Whether the token is among what was given, in a time that tells nothing about it."""
        wanted = self.token.encode()
        return any(secrets.compare_digest(one.encode("utf-8", "replace"), wanted) for one in given)


@dataclass(frozen=True)
class Rules:
    """What differs between sites.

    policy: what its pages may load;  text: bytes that a body may have, unless it is an image
    free:   how the addresses begin that need no token;  sockets: whether it talks over websockets
    """

    policy: str = POLICY
    text: int = TEXT
    free: tuple[str, ...] = ("/page/",)
    sockets: bool = False

    def limit(self, headers: Headers) -> int:
        """How long a body of its kind may be."""
        return IMAGE if kind_of_body(headers) == "image" else self.text


class Guard:
    """Lets a request through to the app, or refuses it; either way the answer carries the headers of a careful one."""

    def __init__(self, app: ASGIApp, door: Door, rules: Rules = Rules()) -> None:  # noqa: B008 - a value
        self.app, self.door, self.rules = app, door, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] == "websocket":
            return await self._socket(scope, receive, send)
        if scope["type"] != "http":
            return None
        answer = _Answer(send, self.rules.policy)
        try:
            self.check(scope)
            await self.app(scope, _counted(receive, self.rules.limit(Headers(scope=scope))), answer)
        except Refusal as refusal:
            if answer.begun:
                raise
            await refusal.response()(scope, receive, answer)

    def check(self, scope: Scope) -> None:
        """Refuse what is not from us, too much, or without the token."""
        headers = Headers(scope=scope)
        _check_size(scope, headers, self.rules)
        self._check_source(scope, headers)
        if not scope["path"].startswith(self.rules.free):
            self._check_token(scope, headers)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A websocket of our own page; others are answered 403, without a word about why."""
        try:
            self.check_socket(scope)
        except Refusal:
            await receive()  # what opens it
            return await send({"type": "websocket.close", "code": 1008})
        return await self.app(scope, receive, send)

    def check_socket(self, scope: Scope) -> None:
        """Refuse a websocket where there are none, from another page, or without the token."""
        headers = Headers(scope=scope)
        if not self.rules.sockets:
            raise Refusal(403, "websocket: none; got one")
        _check_address(scope)
        self._check_source(scope, headers)
        if "origin" not in headers:  # a browser always tells it here
            raise Refusal(403, "origin: this server's own page; got none")
        self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        if not self.door.opened_by(_tokens(scope, headers, self.door)):
            raise Refusal(
                403, "token: the one that the terminal printed; got none, or another; open the URL it printed"
            )

    def _check_source(self, scope: Scope, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.leads_here(hosts[0]):
            port = self.door.port
            raise Refusal(421, f"host: this server, with the port {port}; got another; forward {port} to {port}")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            raise Refusal(403, "origin: this server's own page; got another")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not _is_link(scope, headers):
            raise Refusal(403, "sec-fetch-site: this server's own page; got another")


def host_names(host: str) -> tuple[str, ...]:
    """The names under which a server is found that is bound to a host."""
    local = ("127.0.0.1", "localhost")
    if host in local:
        return local
    return (host.lower(), *local, "[::1]") if host in ("0.0.0.0", "::") else (_bracketed(host.lower()),)  # noqa: S104


# -- what a request brings -------------------------------------------------------------------------------------


def _check_address(scope: Scope) -> None:
    if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > ADDRESS:
        raise Refusal(414, f"address: at most {ADDRESS:,} bytes; got more")


def _check_size(scope: Scope, headers: Headers, rules: Rules) -> None:
    if scope["method"] not in METHODS:
        allowed = ", ".join(METHODS)
        raise Refusal(405, f"method: {allowed}; got another", {"Allow": allowed})
    _check_address(scope)
    length, limit = headers.get("content-length", "0"), rules.limit(headers) if scope["method"] == "POST" else 0
    if not length.isascii() or not length.isdigit() or len(length) > 12 or int(length) > limit:
        raise Refusal(413, f"body: at most {limit:,} bytes; got more")
    if scope["method"] != "POST" and "transfer-encoding" in headers:
        raise Refusal(413, "body: none; got one")


def kind_of_body(headers: Headers) -> str:
    """ "text" for JSON, "image" for the bytes of one; a form or plain text, which any page could send, is neither."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return "text"
    return "image" if kind.startswith("image/") or kind == "application/octet-stream" else ""


def _tokens(scope: Scope, headers: Headers, door: Door) -> list[str]:
    query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=None)
    cookies = [cookie_parser(one).get(door.cookie, "") for one in headers.getlist("cookie")]
    return [*headers.getlist(HEADER), *query.get("token", []), *cookies]


def _is_link(scope: Scope, headers: Headers) -> bool:
    """Whether a person follows a link to the page: what is shown then is ours, in a window of its own."""
    shown = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return shown and scope["method"] == "GET" and scope["path"] == "/"


def _split(host: str) -> tuple[str, int | None]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host, 80
    return name, int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _counted(receive: Receive, limit: int) -> Receive:
    """The same messages, until a body is longer than it said or may be."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise Refusal(413, f"body: at most {limit:,} bytes; got more")
        return message

    return counted


class _Answer:
    """Sends on, with our headers; data is kept nowhere unless the app says otherwise."""

    def __init__(self, send: Send, policy: str) -> None:
        self.send, self.policy, self.begun = send, policy, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            headers.update({**HEADERS, "Content-Security-Policy": self.policy})
            headers.setdefault("Cache-Control", "no-store")
        await self.send(message)
