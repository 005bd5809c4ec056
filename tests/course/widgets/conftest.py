"""One of each widget, on numbers that are known, and a browser to move them in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import regard as rg
from resting import PATIENCE

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WORDS = "the cat sat on mats".split()


def made(kind: str, words: list[str] = WORDS) -> Any:
    """A widget of a kind: five words, vectors of primes' widths."""
    from regard.course.widgets import Ellipse, Matrix, Mistakes, Plane, Rows

    rng = np.random.default_rng(7)
    causal = rg.Attention(mask=rg.causal)
    if kind == "plane":
        return Plane(1.5 * rng.standard_normal((5, 2)), labels=words)
    if kind == "rows":
        return Rows(*rng.standard_normal((2, 5, 3)), rng.standard_normal((5, 2)), words, causal, row=3)
    if kind == "matrix":
        return Matrix(words, {"one": tuple(rng.standard_normal((2, 5, 7))), "own": np.eye(5)}, causal, query=2)
    if kind == "ellipse":
        return Ellipse(rng.standard_normal((11, 2)) @ [[2.0, 0.7], [0.0, 0.4]])
    return Mistakes(causal, *rng.standard_normal((2, 2, 5, 3)), words)


KINDS = "plane rows matrix ellipse mistakes".split()


@pytest.fixture(params=KINDS)
def widget(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("a browser: install chromium, or put google-chrome on the PATH")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        yield browser
        browser.close()
