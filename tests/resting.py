"""When a page of the lens is at rest: what it asked for has come, its pauses are over, its frames are drawn.

    page.add_init_script(WATCHED)      before the page is opened
    settled(page)                      waits for rest

Playwright's own "networkidle" comes once in the life of a page, and knows nothing of what is asked later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

PATIENCE = 300.0  # seconds that a state may take on a machine that has other work; it comes within some milliseconds

WATCHED = """(() => {
  const under = new Set(), timers = new Map(), frames = new Map();
  const [later, frame] = [setTimeout.bind(window), requestAnimationFrame.bind(window)];
  const [never, noFrame] = [clearTimeout.bind(window), cancelAnimationFrame.bind(window)];
  const begun = (name) => { const one = { name }; under.add(one); return one; };
  const during = (name, promise) => {
    const one = begun(name), end = () => under.delete(one);
    promise.then(end, end);
    return promise;
  };
  const watch = (owner, name) => {
    const own = owner[name];
    owner[name] = function (...given) { return during(`${name} ${given[0]}`, own.apply(this, given)); };
  };
  for (const name of ["fetch", "createImageBitmap"]) watch(window, name);
  for (const name of ["arrayBuffer", "blob", "json", "text"]) watch(Response.prototype, name);
  watch(HTMLImageElement.prototype, "decode");
  const counted = (kept, start, name) => (act, ...given) => {
    const one = begun(name);
    const number = start((...told) => { under.delete(one); kept.delete(number); act(...told); }, ...given);
    kept.set(number, one);
    return number;
  };
  const uncounted = (kept, end) => (number) => { under.delete(kept.get(number)); kept.delete(number); end(number); };
  const soon = counted(timers, later, "a pause");
  window.setTimeout = (act, after = 0, ...given) => (after < 5000 ? soon : later)(act, after, ...given);
  window.requestAnimationFrame = counted(frames, frame, "a frame");
  window.clearTimeout = uncounted(timers, never);
  window.cancelAnimationFrame = uncounted(frames, noFrame);
  window.__during = during;
  window.__under = () => [...under].map(({ name }) => name);
  window.__rests = async () => {
    if (under.size) return false;
    for (let count = 0; count < 2; count += 1) await new Promise((done) => frame(() => later(done)));
    return !under.size; // what is seen, and how large it is, is told after a frame
  };
})();"""


def until(page: Any, true: Callable[[], Any], about: Callable[[], Any]) -> None:
    """Waits until something is true; what the browser says meanwhile is heard."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            pytest.fail(f"waited in vain for {about()}")
        page.wait_for_timeout(10)


def settled(page: Any) -> None:
    """Waits until the page rests."""
    until(page, lambda: page.evaluate("__rests()"), lambda: page.evaluate("__under()"))
