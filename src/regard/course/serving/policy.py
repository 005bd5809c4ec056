"""What a page of marimo may load: its own parts, and nothing from outside.

script   its files, and inline: its settings stand in the page; no eval, no blob, no worker
style    its files, and inline: its components and ours set styles
connect  this server, by HTTP and by websocket;  img, font, media: its files, and those within the page
"""

from __future__ import annotations

from ...viewer.server.guard import Door, Rules

TEXT = 1024 * 1024  # bytes that a page may send at once: what stands in an editor, what a widget tells


def chapter_rules(door: Door) -> Rules:
    """The rules of a chapter; sockets are allowed by name, since 'self' did not always hold for them."""
    sockets = " ".join(f"ws://{host}:{door.port}" for host in door.hosts)
    policy = (
        "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; "
        f"connect-src 'self' {sockets} data: blob:; manifest-src 'self'; "
        "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    )
    return Rules(policy=policy, text=TEXT, free=(), sockets=True)
