"""A chapter in a real browser, through the guard: a slider moves, Python answers, nothing leaves the machine."""

from __future__ import annotations

import shutil
from typing import Any
from urllib.parse import urlsplit

import pytest

from resting import until

from .conftest import PATIENCE, Course

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="a browser: install chromium, or google-chrome")
PROBE = "policy: script-src eval"  # one of marimo's packages asks whether it may, and does without
WATCHES = """addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error(`policy: ${violatedDirective} ${blockedURI}`));"""


@pytest.fixture(scope="module")
def chromium() -> Any:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright drives the browser: pip install playwright"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        yield browser
        browser.close()


def test_a_reader_moves_a_slider(chromium: Any, course: Course) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    context.add_init_script(WATCHES)
    page, asked, wrong = context.new_page(), list[str](), list[str]()
    page.set_default_timeout(1000 * PATIENCE)
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda opened: asked.append(opened.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)

    page.goto(course.url)
    page.click("text=The <first> & all >> nth=-1")
    page.wait_for_selector("#twice")
    assert page.text_content("#twice") == "6"
    assert "live words" in page.text_content("#App")
    page.locator("[role=slider]").press("ArrowRight")
    until(page, lambda: page.text_content("#twice") == "8", lambda: "twice 4")
    assert "dark" in page.get_attribute("body", "class")

    page.click("nav.course-bar >> text=2 →")
    page.wait_for_selector("text=the end, a < b")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("nav.course-bar >> text=Contents")
    page.wait_for_selector(".go-on >> text=The <second> & all")
    assert page.evaluate("'serviceWorker' in navigator") is True  # taken away in chapters alone
    context.close()

    places = {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))}
    assert places == {f"127.0.0.1:{course.port}"}
    assert any(url.startswith("ws:") for url in asked)
    assert [said for said in wrong if PROBE not in said and "'eval'" not in said and "unsafe-eval" not in said] == []
