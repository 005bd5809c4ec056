"""The page: every file of it in memory, packed once, so that no name from a client ever meets the file system."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.datastructures import Headers
from starlette.responses import Response

from ..joined import order
from .refusals import Refusal

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True)
class File:
    """What is served under one name."""

    content: bytes
    packed: bytes
    kind: str
    tag: str

    @classmethod
    def of(cls, content: bytes, kind: str) -> File:
        """Packed, and with a tag that changes with the content."""
        packed = gzip.compress(content, 9, mtime=0)
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, packed if len(packed) < len(content) else content, kind, tag)

    def response(self, headers: Headers) -> Response:
        """As the client can read it; nothing but the tag where it has it already."""
        told = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if self.tag in (tag.strip() for tag in headers.get("if-none-match", "").split(",")):
            return Response(status_code=304, headers=told)
        if takes_gzip(headers) and self.packed is not self.content:
            return Response(self.packed, media_type=self.kind, headers={**told, "Content-Encoding": "gzip"})
        return Response(self.content, media_type=self.kind, headers=told)


def takes_gzip(headers: Headers) -> bool:
    """Whether a client says that it reads gzip."""
    for one in headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = one.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class Files:
    """The files of the page by name."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self.by_name = {
            one.name: File.of(_ahead(one.read_bytes()), KINDS[suffix])
            for one in (folder or files("regard.viewer") / "page").iterdir()
            if (suffix := _suffix(one.name)) in KINDS and one.is_file()
        }

    def __getitem__(self, name: str) -> File:
        if name not in self.by_name:
            raise Refusal(404, "page: one of its files; got a name that is none")
        return self.by_name[name]


def _ahead(content: bytes) -> bytes:
    """The page with a word on every module it will need, so that a browser asks for all of them at once."""
    links = "".join(f'<link rel="modulepreload" href="page/{name}.js" />' for name in order("main"))
    return (
        content.replace(b"</head>", f"{links}</head>".encode()) if content.startswith(b"<!doctype html>") else content
    )


def _suffix(name: str) -> str:
    return "." + name.rpartition(".")[2]
