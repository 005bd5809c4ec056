"""The wall of heads: small maps with the colours of their weights, chosen, ranked and found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.viewer.weighing.measures import measures
from regard.viewer.work import Stop

PIXELS = """async ([layer, head]) => {
  const { colour } = await import('/page/colour.js');
  const ramp = colour.ramp('light');
  const at = new Map(Array.from({ length: 256 }, (_, step) => [ramp.slice(4 * step, 4 * step + 3).join(), step]));
  const canvas = document.querySelector(`.wall-cell[data-layer='${layer}'][data-head='${head}'] canvas`);
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const step = (_, pixel) => at.get(data.slice(4 * pixel, 4 * pixel + 3).join()) ?? -1;
  const steps = Array.from({ length: data.length / 4 }, step);
  return [canvas.height, canvas.width, steps];
}"""


@pytest.fixture(scope="module")
def measured(lenses: Any) -> Any:
    """The values of a measure by (layer, head)."""
    names, _ = measures(lenses["middle"], 0, 0, Stop())
    values = np.stack([measures(lenses["middle"], layer, 0, Stop())[1] for layer in range(3)])
    return {one["name"]: values[..., at] for at, one in enumerate(names)}


def test_small_maps_have_the_colours_of_their_weights_and_are_chosen(opened: Any, lenses: Any) -> None:
    tab = opened("sentence")
    tab.until("document.querySelectorAll('.wall-cell canvas.here').length === 72")
    for layer, head in ((0, 0), (4, 11), (5, 2)):
        rows, columns, steps = tab.page.evaluate(PIXELS, [layer, head])
        weights = lenses["sentence"].weights(layer, head)
        assert (rows, columns) == weights.shape
        np.testing.assert_allclose(np.reshape(steps, weights.shape), 255 * np.sqrt(weights), atol=1.6)
    tab.page.click(".wall-cell[data-layer='4'][data-head='11']")
    tab.linked(layer=4, head=11)
    tab.says("h1", "^Layer 4, head 11")
    assert tab.page.locator(".wall-cell[aria-current]").count() == 1
    tab.says(".measures-of h2", "Layer 4, head 11")
    tab.says(".pair h2", "layer 4, head 11")


def test_heads_are_ranked_by_a_measure(opened: Any, measured: Any, read: Any) -> None:
    tab = opened("middle", layer=1, head=2)
    for name in ("previous", "first", "broad"):
        ranked(tab, measured, read, name)


def ranked(tab: Any, measured: Any, read: Any, name: str) -> None:
    tab.page.wait_for_selector(f".measure[data-name={name}]")
    tab.page.select_option(".wall-order", name)
    tab.linked(sort=name)
    tab.until("document.querySelectorAll('.wall-ranked .wall-caption b:not(:empty)').length === 15")
    tab.settled()
    values = measured[name]
    order = np.argsort(-values.reshape(-1), kind="stable")
    told = tab.page.locator(".wall-ranked .wall-cell").evaluate_all(
        "all => all.map((one) => 5 * one.dataset.layer + +one.dataset.head)"
    )
    assert told == order.tolist()
    numbers = [read.number(text) for text in tab.page.locator(".wall-ranked b").all_text_contents()]
    np.testing.assert_allclose(numbers, values.reshape(-1)[order], atol=6e-4)
    own = tab.page.text_content(f".measure[data-name={name}] .num")
    assert read.number(str(own)) == pytest.approx(values[1, 2], abs=6e-4)
    tab.page.click(f".measure[data-name={name}]")
    tab.linked(sort=None)
    tab.until("document.querySelectorAll('.wall-rows .wall-cell').length === 15")


def test_heads_are_found_by_words(opened: Any, measured: Any) -> None:
    tab = opened("middle")
    kept = ".wall-cell:not(.unmatched)"
    bound = f"{np.median(measured['first']) + 1e-4:.4f}"
    above = int((measured["first"] > float(bound)).sum())
    assert 0 < above < 15
    for words, count in (
        ("2.4", 1),
        ("layer 1", 5),
        ("h3", 3),
        (f"first > {bound}", above),
        (f"first < {bound}", 15 - above),
        ("l1, h3", 1),
        ("layer.2", 5),
        ("zebra", 0),
        ("", 15),
    ):
        tab.page.fill(".wall-search", words)
        tab.until("([kept, count]) => document.querySelectorAll(kept).length === count", arg=[kept, count])
        tab.says(".wall-head .num", f"^{count} of 15$" if words else "^15$")
