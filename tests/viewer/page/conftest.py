"""One Chromium and one server for each file of tests: the server has the file's own LENSES."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from regard.viewer.server.run import serve
from resting import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("a browser: install chromium, or put google-chrome on the PATH")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with serve(request.module.LENSES, browser=False, background=True, say=lambda _: None) as served:
        yield served.url
