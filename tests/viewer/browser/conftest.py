"""The lens in a real browser: one Chromium, a fresh page for each test, and lenses whose numbers are known.

What goes wrong in a page fails its test: errors, error lines of the console, violations of the policy.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest

import regard as rg
from regard.viewer.entering.pictures import lens_of_patches
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured, Missing
from resting import PATIENCE, WATCHED, settled, until

HERE = Path(__file__).parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WATCHES = """
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error(`policy: ${violatedDirective} ${blockedURI}`));
window.__drawn = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (this.canvas.className.includes('map-canvas')) window.__drawn.push([text, x, y]);
  return write.call(this, text, x, y);
};
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser, or what drives it, every test here says what to install."""
    reason = None if CHROMIUM else "a browser: install chromium, or put google-chrome on the PATH"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        reason = "playwright drives the browser: pip install playwright"
    if reason:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


# -- lenses ----------------------------------------------------------------------------------------------------------

SENTENCE = "[CLS] the animal didn ' t cross the street because it was too tired . [SEP]".split()
HOSTILE = (
    "<script>window.hit=1</script>", " </script><img src=x onerror=window.hit=1>", " \"'`&amp;", "\n", "", " 🦔",
    " שלום", " ]]>", " \u202eevil", " {{x}}", "\t", " ok",
)  # fmt: skip


def lens_of(
    labels: tuple[str, ...], layers: int, heads: int, width: int, seed: int, *, formula: rg.Attention | None = None,
    special: tuple[int, ...] = (), batches: int = 1, keys: tuple[str, ...] | None = None, **more: Any,
) -> Lens:  # fmt: skip
    """Random vectors under a formula; keys along an axis of their own where their labels are given."""
    rng = np.random.default_rng(seed)
    count = len(labels) if keys is None else len(keys)
    axes = {"text": Axis("text", labels, frozenset(special))}
    if keys is not None:
        axes["other"] = Axis("other", keys)
    calls = []
    for layer in range(layers):
        q, k, v = (
            (1.7 * rng.standard_normal((batches, heads, places, width))).astype(np.float32)
            for places in (len(labels), count, count)
        )
        side = "text" if keys is None else "other"
        calls.append(Captured(f"layer.{layer}", formula or rg.Attention(), q, k, v, query="text", key=side))
    return Lens(calls, [axes] * batches, **more)


def places(count: int, letter: str = "w") -> tuple[str, ...]:
    return tuple(f" {letter}{place}" for place in range(count))


def picture() -> Any:
    """Colours that change over an image of 5 × 7 patches."""
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (5, 7, 3)).repeat(8, axis=0).repeat(8, axis=1)
    return np.clip(coarse + rng.integers(-20, 20, coarse.shape), 0, 255).astype(np.uint8)


def long_lens() -> Lens:
    rng = np.random.default_rng(6)
    q, k = ((1.3 * rng.standard_normal((20_011, 16))).astype(np.float16) for _ in range(2))
    return rg.lens(q=q, k=k, tokens=list(places(20_011)), attention=rg.Attention(mask=rg.causal), title="long")


class Lenses:
    """What the server shows, in this order."""

    def __init__(self) -> None:
        text = tuple(f" {word}" if word.isalpha() and place > 1 else word for place, word in enumerate(SENTENCE))
        missing = [Missing("<i>pool</i>", HOSTILE[0])]
        self.all = {
            "sentence": lens_of(text, 6, 12, 32, 1, special=(0, len(text) - 1), title="A sentence", model="by hand"),
            "middle": lens_of(places(53), 3, 5, 7, 2, formula=rg.Attention(mask=rg.causal), title="middle"),
            "image": lens_of_patches(picture(), 8, title="picture"),
            "hostile": lens_of(HOSTILE, 2, 3, 7, 3, title="<b>title</b> \"'&", batches=2, missing=missing),
            "cross": lens_of(places(11), 2, 3, 7, 4, keys=places(17, "k"), title="cross"),
        }

    @cached_property
    def long(self) -> Lens:
        return long_lens()

    def __getitem__(self, name: str) -> Lens:
        return self.long if name == "long" else self.all[name]

    def names(self) -> list[str]:
        return [*self.all, "long"]


@pytest.fixture(scope="session")
def lenses() -> Lenses:
    return Lenses()


@pytest.fixture(scope="session")
def address(lenses: Lenses) -> Iterator[str]:
    from regard.viewer.server import asking, serve

    given = [lenses[name] for name in lenses.names()]
    with pytest.MonkeyPatch.context() as patched, serve(given, browser=False, background=True, say=str) as served:
        patched.setattr(asking, "SECONDS", PATIENCE)  # a long map takes seconds, and minutes on a busy machine
        yield served.url


# -- the browser -----------------------------------------------------------------------------------------------------


class Chromium:
    """One browser for the tests that follow each other here."""

    def __init__(self) -> None:
        self.driver: Any = None
        self.browser: Any = None

    def started(self) -> Any:
        if self.browser is None:
            from playwright.sync_api import sync_playwright

            self.driver = sync_playwright().start()
            self.browser = self.driver.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE
            )
        return self.browser

    def stop(self) -> None:
        if self.driver is not None:
            self.browser.close()
            self.driver.stop()
        self.driver = self.browser = None


CHROME = Chromium()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Playwright lets no second one start in a thread: tests elsewhere that drive a browser find none running."""
    if nextitem is None or HERE not in nextitem.path.parents:
        CHROME.stop()


class Tab:
    """A page of the browser, and what is asked of it over and over."""

    def __init__(self, context: Any, address: str, lenses: Lenses) -> None:
        self.context, self.address, self.lenses = context, address, lenses
        self.wrong: list[str] = []
        self.allowed = "$^"  # what may be said all the same
        self.page = self.watched(context.new_page())

    def watched(self, page: Any) -> Any:
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        return page

    def open(self, lens: str, wait: str = ".pair-weight b", **state: Any) -> Tab:
        """Shows a lens in a state, and waits until all that it asks for is there; not where `wait` is empty."""
        self.page.goto(self.url(lens, **state))
        if wait:
            self.page.wait_for_selector(wait)
            self.settled()
        return self

    def settled(self) -> None:
        """Waits until the page has nothing more to ask for, to wait for or to draw."""
        settled(self.page)

    def url(self, lens: str, **state: Any) -> str:
        number = self.lenses.names().index(lens) + 1
        return f"{self.address}#{urlencode({'lens': f'given-{number}', **state})}"

    def link(self, name: str) -> str | None:
        found = parse_qs(self.page.evaluate("location.hash.slice(1)"), keep_blank_values=True)
        return found[name][0] if name in found else None

    def until(self, truth: str, arg: Any = None) -> None:
        """Waits until a script says yes; asked from outside, where the page's policy lets nothing evaluate texts."""
        until(self.page, lambda: self.page.evaluate(truth, arg), lambda: f"{truth} with {arg}")

    def waits(self, true: Callable[[], Any]) -> None:
        """Waits until something is true here, of what the browser has told."""
        until(self.page, true, lambda: "what the browser tells")

    def linked(self, **state: Any) -> None:
        """Waits until the address says so."""
        wanted = {name: None if value is None else str(value) for name, value in state.items()}
        self.until(
            "wanted => { const said = new URLSearchParams(location.hash.slice(1));"
            "return Object.entries(wanted).every(([name, value]) => said.get(name) === value); }",
            arg=wanted,
        )

    def frames(self, count: int = 2) -> None:
        self.page.evaluate(
            "async (count) => { while (count--) await new Promise((done) => requestAnimationFrame(done)); }", count
        )

    def says(self, selector: str, pattern: str) -> re.Match[str]:
        """Waits until an element's text is as it should be."""
        self.until(
            "([selector, pattern]) => new RegExp(pattern).test(document.querySelector(selector)?.textContent ?? '')",
            arg=[selector, pattern],
        )
        found = re.search(pattern, self.page.text_content(selector) or "")
        assert found
        return found

    def at(self, selector: str, x: float, y: float) -> tuple[float, float]:
        """A place of an element, given as shares of it."""
        box = self.page.wait_for_selector(selector).bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def text(self, selector: str) -> str:
        return str(self.page.text_content(selector))


Opening = Callable[..., Tab]


@pytest.fixture
def opened(address: str, lenses: Lenses) -> Iterator[Opening]:
    """opened(lens, **state): a fresh page on a lens; given=… are options of its context."""
    tabs: list[Tab] = []

    def tab(lens: str | None = None, given: dict[str, Any] | None = None, **state: Any) -> Tab:
        options = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce", **(given or {})}
        context = CHROME.started().new_context(**options)
        context.add_init_script(WATCHED)
        context.add_init_script(WATCHES)
        tabs.append(Tab(context, address, lenses))
        return tabs[-1] if lens is None else tabs[-1].open(lens, **state)

    yield tab
    for one in tabs:
        one.context.close()
    assert [said for one in tabs for said in one.wrong if not re.search(one.allowed, said)] == []


# -- numbers as they are shown ---------------------------------------------------------------------------------------

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def number(text: str) -> float:
    """What a number on the page says: −1.2·10⁻³, .042, <.001."""
    front, _, power = text.strip().replace("−", "-").replace("\u202f", "").removeprefix("<").partition("·10")
    return float(front) * 10.0 ** int(power.translate(RAISED) or 0)


def as_shown(value: float, digits: int = 4) -> Any:
    """A number of so many digits that says this value."""
    exact = float(value)
    step = 10.0 ** (math.floor(math.log10(abs(exact) or 1)) + 1 - digits)
    return pytest.approx(exact, abs=0.51 * step, rel=3e-6)


@pytest.fixture(scope="session")
def read() -> Any:
    """How numbers are read from the page."""
    return SimpleNamespace(number=number, as_shown=as_shown)
