"""Pointing at a token paints its row in the same frame; a chosen pair is explained to the digits shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

DEPTHS = """async () => {
  const { colour } = await import('/page/colour.js');
  const table = Array.from({ length: 256 }, (_, at) => colour.css('light', at / 255).replaceAll(' ', ', '));
  window.__depths = () => [...document.querySelectorAll('.running .token')].map((token) => ({
    behind: token.style.backgroundColor ? table.indexOf(token.style.backgroundColor) : 0,
    under: parseInt(token.style.getPropertyValue('--under') || '0'),
  }));
  window.__frames = [];
  document.addEventListener('pointermove', (event) => {
    const at = event.target.closest?.('.running [data-at]')?.dataset.at;
    const keep = () => window.__frames.push({ at: Number(at), depths: window.__depths() });
    if (at !== undefined) requestAnimationFrame(keep);
  });
}"""


def depths(found: list[dict[str, int]], side: str) -> Any:
    return np.array([token[side] for token in found])


def painted(weights: Any) -> Any:
    """Where on the scale of 256 steps these weights stand; the faintest are left out."""
    part = np.sqrt(weights)
    return np.where(part > 0.012, 255 * part, 0)


@pytest.mark.parametrize("lens", ["sentence", "middle"])
def test_a_row_is_painted_in_the_frame_of_the_pointer(opened: Any, lenses: Any, lens: str) -> None:
    tab = opened(lens, layer=2, head=3, query=1, key=0)
    tab.page.wait_for_selector(".running .token[style*=background]")
    tab.page.evaluate(DEPTHS)
    chosen = tab.page.evaluate("__depths()")
    weights = lenses[lens].weights(2, 3)
    np.testing.assert_allclose(depths(chosen, "behind"), painted(weights[1]), atol=1.2)
    for at in (7, 12, 4):
        tab.page.hover(f".running .token[data-at='{at}']")
        tab.until("at => __frames.some((one) => one.at === at)", arg=at)
        first = tab.page.evaluate("at => __frames.find((one) => one.at === at).depths", at)
        np.testing.assert_allclose(depths(first, "behind"), painted(weights[at]), atol=1.2)
        assert np.all(np.diff(depths(first, "behind")[np.argsort(-weights[at], kind="stable")]) <= 0)
        lines = np.sqrt(weights[:, at])
        np.testing.assert_allclose(depths(first, "under"), np.where(lines > 0.1, 100 * lines, 0), atol=0.7)
    tab.page.mouse.move(720, 5)
    tab.settled()
    assert tab.page.evaluate("__depths()") == chosen


@pytest.mark.parametrize(("key", "joined"), [("a", np.mean), ("x", np.max)])
def test_all_heads_are_painted_together(opened: Any, lenses: Any, key: str, joined: Any) -> None:
    tab = opened("middle", layer=1, head=4, query=9, key=3)
    tab.page.wait_for_selector(".running .token[style*=background]")
    tab.page.evaluate(DEPTHS)
    tab.page.keyboard.press(key)
    tab.linked(over={"a": "mean", "x": "max"}[key])
    tab.page.hover(".running .token[data-at='31']")
    tab.settled()
    row = joined(lenses["middle"].weights(1)[:, 31], axis=0)
    np.testing.assert_allclose(depths(tab.page.evaluate("__depths()"), "behind"), painted(row), atol=1.2)


def test_keys_of_another_text_are_painted_alone(opened: Any, lenses: Any) -> None:
    tab = opened("cross", layer=1, head=2, query=4, key=8)
    tab.page.wait_for_selector(".running .token[style*=background]")
    tab.page.evaluate(DEPTHS)
    tab.page.hover(".running .token[data-at='6'] >> nth=0")
    tab.settled()
    found, weights = tab.page.evaluate("__depths()"), lenses["cross"].weights(1, 2)
    np.testing.assert_allclose(depths(found, "behind"), [*[0] * 11, *painted(weights[6])], atol=1.2)
    tab.page.hover(".running .token[data-at='6'] >> nth=1")
    tab.settled()
    lines = np.sqrt(weights[:, 6])
    found = tab.page.evaluate("__depths()")
    np.testing.assert_allclose(depths(found, "under")[:11], np.where(lines > 0.1, 100 * lines, 0), atol=0.7)
    assert not depths(found, "behind").any()


def rungs(tab: Any, read: Any) -> dict[str, float]:
    names = tab.page.locator(".rung").evaluate_all("all => all.map((one) => one.dataset.name)")
    values = tab.page.locator(".rung output").all_text_contents()
    return {name: read.number(text) for name, text in zip(names, values, strict=True) if text not in "✓✕–"}


def test_a_clicked_pair_is_explained_to_the_digits_shown(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("sentence", layer=3, head=7)
    tab.page.click(".running .token[data-at='5']")
    tab.linked(query=5, key=int(np.argmax(lenses["sentence"].weights(3, 7)[5])))
    tab.page.click(".running .token[data-at='11']", modifiers=["Shift"])
    tab.linked(query=5, key=11)
    call = lenses["sentence"].layers[3]
    q, k, v = (array[0, 7].astype(np.float64) for array in (call.q, call.k, call.v))
    scores = q[5] @ k.T / np.sqrt(32)
    total = np.exp(scores).sum()
    weights = np.exp(scores) / total
    tab.says(".pair-words", "t reads was")
    tab.settled()
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(weights[11])
    wanted = {
        "q·k": q[5] @ k[11], "score": scores[11], "ψ": np.exp(scores[11]), "Z": total, "log Z": np.log(total),
        "weight": weights[11],
    }  # fmt: skip
    found = rungs(tab, read)
    assert {name: found[name] for name in wanted} == {name: read.as_shown(value) for name, value in wanted.items()}
    rank = int((weights > weights[11]).sum()) + 1
    assert tab.text(".pair-weight .faint").startswith(f"{rank}")
    added, y = weights[11] * v[11], weights @ v
    shown = [read.number(text) for text in tab.page.locator(".pair-adds dd").all_text_contents()]
    norms = [np.linalg.norm(x) for x in (v[11], added, y)]
    for one, value in zip(shown, (norms[0], norms[1] / norms[2], added @ y / norms[1] / norms[2]), strict=True):
        assert one == read.as_shown(value, 3)
    tab.page.hover(".vector[data-name=products] svg", position={"x": 1, "y": 5})
    dimension = read.number(tab.says(".vector-line", r"dimension 0: .* adds (\S+)$")[1])
    assert dimension == read.as_shown(q[5, 0] * k[11, 0], 3)


def test_a_forbidden_pair_says_so(opened: Any, read: Any) -> None:
    tab = opened("middle", layer=0, head=1, query=4, key=9)
    assert read.number(tab.text(".pair-weight b")) == 0
    assert tab.text(".pair-weight .faint") == "forbidden by the mask"
    tab.says(".rung[data-name=weight] .rung-says", "mask forbids")


def test_numbers_mark_what_they_come_from(opened: Any) -> None:
    tab = opened("sentence", layer=0, head=0, query=3, key=4)
    tab.page.hover(".rung[data-name='q·k']")
    tab.page.wait_for_selector(".vector.source")
    marked = tab.page.locator(".source").evaluate_all("all => all.map((one) => one.dataset.name)")
    assert sorted(marked) == ["k", "products", "q"]
    tab.page.hover(".pair-weight b")
    tab.page.wait_for_selector(".rung.source")
    marked = tab.page.locator(".source").evaluate_all("all => all.map((one) => one.dataset.name)")
    assert set(marked) >= {"ψ", "Z"}


def test_threads_and_layers_tell_the_weights(opened: Any, lenses: Any, read: Any) -> None:
    weights = lenses["sentence"].weights(4, 2)
    query = int(((weights > 0.006) & (weights < 0.04)).sum(1).argmax())
    tab = opened("sentence", layer=4, head=2, query=query, key=3)
    tab.page.wait_for_selector(".threads-key .num:not(:empty)")
    row = weights[query]
    shown = tab.page.locator(".threads-key .num").all_text_contents()
    assert [text != "" for text in shown] == [bool(weight >= 0.005) for weight in row]
    for text, weight in zip(shown, row, strict=True):
        assert text == "" or read.number(text) == pytest.approx(weight, abs=6e-4)
    tab.until("[...document.querySelectorAll('.layer-row .layer-top')].every((one) => one.textContent)")
    strips = [read.number(text) for text in tab.page.locator(".layer-row .num:not(.faint)").all_text_contents()]
    means = [lenses["sentence"].weights(layer)[:, query].mean(0).max() for layer in range(6)]
    np.testing.assert_allclose(strips, means, atol=6e-4)
    tab.page.click(".layer-row >> nth=1")
    tab.linked(layer=1)
