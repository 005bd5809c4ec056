"""The course of two tiny chapters, served behind its guard, with progress of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

pytest.importorskip("marimo", reason='pip install "regard[learn]"')

from regard.course.progress import Progress
from regard.course.serving.site import CourseSite
from regard.viewer.server.run import Served, serve_site
from small_course import Small, small_course

PATIENCE = 60  # seconds


class Course:
    """A server, what it keeps, and how it is asked."""

    def __init__(self, served: Served, path: Path, chapters: tuple[Small, ...]) -> None:
        self.url, self.path, self.chapters = served.url, path, chapters
        parts = urlsplit(served.url)
        self.port, self.token = parts.port or 0, parse_qs(parts.query)["token"][0]
        self.base = f"http://{parts.netloc}"

    def progress(self) -> Progress:
        return Progress.read(self.path)

    def client(self, **headers: str) -> httpx.Client:
        """One without the token, unless it is among the headers."""
        return httpx.Client(base_url=self.base, headers=headers, timeout=PATIENCE)

    def known(self) -> httpx.Client:
        return self.client(**{"X-Regard-Token": self.token})


@pytest.fixture(scope="package")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    folder = tmp_path_factory.mktemp("served")
    chapters, path = small_course(folder), folder / "kept" / "course.json"
    with serve_site(
        lambda door: CourseSite(chapters, door, lambda: Progress.read(path)),
        name="the course", sockets=True, browser=False, background=True, say=str,
    ) as served:  # fmt: skip
        yield Course(served, path, chapters)
