"""A server on this machine: bound, opened in the browser, ended with Ctrl-C.

    serve([lens])                          until Ctrl-C
    with serve([lens], background=True) as served: served.url      in a notebook, or a test
    serve_site(site_of, name="the course")  another site than that of lenses, which is told where its door is

The server runs on a thread with a loop of its own, so that it also starts where a loop runs already.
"""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Protocol, Self

import uvicorn
from starlette.types import ASGIApp

from ...algebra.errors import CallError
from ..models.live import Live
from .app import Site
from .guard import TEXT, Door, host_names
from .live import Looker
from .shelf import Entry, Shelf

LOCAL = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - to be warned of
IN_TERMINAL = ("www-browser", "links", "elinks", "lynx", "w3m")
LOG = logging.getLogger("uvicorn.error")
CLIENTS = 512  # connections at once
RISK = (
    "warning: --host {host} lets other machines reach this server, and nothing is encrypted: whoever reads the token "
    "on the way sees what you look at, and can have this machine compute; without --host only this machine reaches it"
)


class Servable(Protocol):
    """What can be served: an app behind its guard, and a way to give up its work."""

    def app(self) -> ASGIApp: ...

    def close(self) -> None: ...


class Served:
    """A server that runs: `url` opens it, `stop()` ends it."""

    def __init__(self, site: Any, sock: socket.socket, url: str, sockets: bool = False) -> None:
        self.site, self.url = site, url
        self._server = _Server(site, uvicorn.Config(
            site.app(), loop="asyncio", http="h11", ws="auto" if sockets else "none", ws_max_size=TEXT, lifespan="off",
            log_config=None, log_level="error", access_log=False, server_header=False, date_header=False,
            proxy_headers=False, limit_concurrency=CLIENTS, timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=64 * 1024,
        ))  # fmt: skip
        self._ended = threading.Event()  # a thread cannot be waited for any more once Ctrl-C has interrupted its join
        self._thread = threading.Thread(target=self._run, args=(sock,), name="regard server", daemon=True)

    def _run(self, sock: socket.socket) -> None:
        try:
            self._server.run([sock])
        finally:
            self._ended.set()

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        while not self._server.started and not self._ended.wait(0.01):
            pass
        return self

    def wait(self) -> None:
        """Until Ctrl-C, or until something asks the process to end."""
        with suppress(KeyboardInterrupt), _ended_alike():
            while not self._ended.wait(0.5):
                pass
        self.stop()

    def stop(self) -> None:
        """End it; work that is under way is given up."""
        self._server.should_exit = True
        with suppress(KeyboardInterrupt):  # a second Ctrl-C: threads are daemons, and end with the process
            self._ended.wait(2.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Served({self.url!r}{', ended' if self._ended.is_set() else ''})"


class _Server(uvicorn.Server):
    """Answers those who wait before it closes their connections."""

    def __init__(self, site: Servable, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.site = site

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            LOG.disabled = False

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.site.close()
        LOG.disabled = True  # a client that never ends its request is cut off, without a traceback
        await super().shutdown(sockets)


def serve(
    lenses: Iterable[Any] = (),
    live: Live | None = None,
    *,
    shipped: Iterable[Entry] = (),
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    token: str | None = None,
    background: bool = False,
    say: Callable[[str], object] | None = None,
) -> Served:
    """Serve lenses until Ctrl-C; with `background` at once go on, with a server that `stop()` ends.

    live:    a model that looks at new texts and images;  shipped: the gallery
    host:    where it is bound: this machine alone, unless another is named;  port: a free one, unless named
    browser: whether to open the page;  token: what opens it, drawn at random unless given
    say:     what prints the address
    """
    return serve_site(
        lambda door: Site(Shelf(lenses, shipped), Looker(live), door),
        host=host, port=port, browser=browser, token=token, background=background, say=say,
    )  # fmt: skip


def serve_site(
    site_of: Callable[[Door], Servable],
    *,
    name: str = "the lens",
    path: str = "/",
    sockets: bool = False,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    token: str | None = None,
    background: bool = False,
    say: Callable[[str], object] | None = None,
) -> Served:
    """Serve what site_of makes of a door, as `serve` does with lenses.

    name: what it is called where its address is told;  path: what is opened first;  sockets: whether it has websockets
    """
    tell = say or _printed
    if host not in LOCAL:
        tell(RISK.format(host=host))
    sock = _bound(host, port)
    door = Door(host_names(host), sock.getsockname()[1], token or secrets.token_urlsafe(24), host in EVERYWHERE)
    served = Served(site_of(door), sock, _url(host, door, path), sockets).start()
    tell(f"{name} is at {served.url}")
    if browser:
        _open(served.url)
    if not background:
        tell("Ctrl-C ends it")
        served.wait()
    return served


# -- inside ----------------------------------------------------------------------------------------------------


def _bound(host: str, port: int | None) -> socket.socket:
    if port is not None and not 0 < port < 65536:
        raise CallError(f"port: from 1 to 65535; got {port}; leave it out for a free one")
    sock = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
        if sys.platform != "win32":  # there it would let another process in
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as error:
        if sock is not None:
            sock.close()
        rule = f"host and port: an address of this machine, and a port that is free; got {host}:{port or 'any'}"
        raise CallError(f"{rule}, {error.strerror}; leave --port out for a free one") from None
    return sock


def _url(host: str, door: Door, path: str) -> str:
    name = "127.0.0.1" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{door.port}{path}?token={door.token}"


def _open(url: str) -> None:
    """In the browser, where there is one with a window."""

    def go() -> None:
        with suppress(webbrowser.Error, OSError):
            browser = webbrowser.get()
            if not _is_in_terminal(browser):
                browser.open(url)

    threading.Thread(target=go, name="regard browser", daemon=True).start()


def _is_in_terminal(browser: webbrowser.BaseBrowser) -> bool:
    """Whether a browser would take over the terminal."""
    return PurePath(str(getattr(browser, "name", ""))).name in IN_TERMINAL


class _ended_alike:  # noqa: N801 - reads as what it does
    """While it lasts, SIGTERM ends a wait as Ctrl-C does; where signals can be listened to."""

    def __enter__(self) -> None:
        self.before: Any = None
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGTERM, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGTERM, self.before)


def _printed(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
