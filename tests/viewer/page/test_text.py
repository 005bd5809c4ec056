"""The page in a real browser: the wall, the text, one weight, links and keys, against the numbers of the lens."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from regard.attention import Attention
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured, Missing
from resting import PATIENCE, WATCHED, settled

SHORT, MIDDLE, LONG, LAYERS, HEADS, WIDTH = 13, 53, 4507, 3, 5, 7
RNG = np.random.default_rng(23)
HOSTILE = ("<script>window.hit=1</script>", " <img src=x onerror=window.hit=1>", " &amp;", "\n", " \"'`", " ]]>", " ok")


def lens_of(labels: tuple[str, ...], layers: int = LAYERS, heads: int = HEADS, batches: int = 1, **more: Any) -> Lens:
    def drawn() -> Any:
        return (1.6 * RNG.normal(size=(batches, heads, len(labels), WIDTH))).astype(np.float32)

    calls = [Captured(f"layer.{n}", Attention(), drawn(), drawn(), drawn(), query="t", key="t") for n in range(layers)]
    return Lens(calls, [{"t": Axis("t", labels)}] * batches, **more)


def words(count: int) -> tuple[str, ...]:
    return tuple(f" w{place}" for place in range(count))


LENSES = [
    lens_of(words(MIDDLE), title="middle"), lens_of(words(SHORT), title="short"),
    lens_of(HOSTILE, title="<b>title</b>", batches=2, missing=[Missing("<i>pool</i>", HOSTILE[0])]),
    lens_of(words(LONG), 1, 1, title="long"),
]  # fmt: skip
FIRST, SECOND, EVIL, LAST = range(4)


class Opened:
    """A page on one of the lenses; what goes wrong in it fails the test."""

    def __init__(
        self, browser: Any, address: str, lens: int, state: str = "", size: tuple[int, int] = (1440, 900)
    ) -> None:
        self.wrong: list[str] = []
        self.page = browser.new_page(viewport={"width": 1440, "height": 900})
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.add_init_script(WATCHED)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.goto(f"{address}#lens=given-{lens + 1}&{state}")
        self.page.wait_for_selector(".running .token")
        settled(self.page)

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, kind: Any, *_: object) -> None:
        self.page.close()
        if kind is None:
            assert self.wrong == []


DEPTH = """() => [...document.querySelectorAll('.running .token')].map((token) => {
  const [r, g, b] = (token.style.backgroundColor.match(/\\d+/g) ?? [255, 255, 255]).map(Number);
  return 0.3 * r + 0.59 * g + 0.11 * b; })"""


def link(page: Any) -> dict[str, str]:
    return dict(pair.split("=") for pair in page.url.split("#")[1].split("&"))


def weights(lens: int, layer: int, head: int) -> Any:
    return LENSES[lens].weights(layer, head)


# -- pointing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lens", [FIRST, SECOND])
def test_pointing_paints_the_row_deeper_where_it_reads_more(browser: Any, address: str, lens: int) -> None:
    with Opened(browser, address, lens, "layer=2&head=3&query=0&key=1") as page:
        page.wait_for_selector(".running .token[style*=background]")
        settled(page)
        for token in (7, 4):
            page.hover(f".running .token[data-at='{token}']")
            page.wait_for_selector(f".running .token.is-pointed[data-at='{token}']")
            depth = np.array(page.evaluate(DEPTH))
            row = weights(lens, 2, 3)[token]
            seen = np.argsort(-row)[:4]
            assert np.argsort(depth, kind="stable")[0] == seen[0]
            assert np.all(np.diff(depth[seen]) >= 0)


@pytest.mark.parametrize(("over", "joined"), [("mean", np.mean), ("max", np.max)])
def test_the_numbers_are_those_of_all_heads(browser: Any, address: str, over: str, joined: Any) -> None:
    with Opened(browser, address, FIRST, f"layer=1&head=2&query=9&key=1&over={over}") as page:
        page.wait_for_selector(".readings.reads .reading >> nth=0")
        page.wait_for_function("() => document.querySelector('.readings.reads .num').textContent !== ''")
        row = joined(LENSES[FIRST].weights(1)[:, 9], axis=0)
        column = joined(LENSES[FIRST].weights(1)[:, :, 9], axis=0)
        for kind, line in (("reads", row), ("read", column)):
            found = [float("0" + text) for text in page.locator(f".readings.{kind} .num:first-child").all_inner_texts()]
            np.testing.assert_allclose(found, np.sort(line)[::-1][: len(found)], atol=1.1e-3)


def test_one_weight_is_explained_and_its_sources_are_marked(browser: Any, address: str) -> None:
    with Opened(browser, address, FIRST, "layer=1&head=2&query=9&key=20") as page:
        page.wait_for_selector(".rung[data-name=weight]")
        assert float(page.inner_text(".pair-weight b")) == pytest.approx(weights(FIRST, 1, 2)[9, 20], rel=1e-3)
        settled(page)
        page.hover(".rung[data-name=weight]")
        page.wait_for_selector(".rung.source")
        assert {one.get_attribute("data-name") for one in page.query_selector_all(".source")} >= {"ψ", "Z"}
        assert page.locator(".pair-formula math").count() == 1


def test_each_item_of_a_batch_has_weights_of_its_own(browser: Any, address: str) -> None:
    with Opened(browser, address, EVIL, "query=5&key=6") as page:
        for batch in (0, 1):
            page.select_option("[aria-label='Batch item']", str(batch))
            page.click(".running .token[data-at='6']")
            most = LENSES[EVIL].weights(0, 0, batch)[6].max()
            page.wait_for_function(
                "(most) => Math.abs(document.querySelector('.pair-weight b')?.textContent - most) < 1e-3",
                arg=float(most),
            )


# -- heads ---------------------------------------------------------------------------------------------------------


def test_heads_are_ranked_by_what_they_do_and_found_by_words(browser: Any, address: str) -> None:
    with Opened(browser, address, FIRST) as page:
        page.wait_for_function("() => document.querySelectorAll('.wall-cell canvas.here').length === 15")
        page.click(".measure[data-name=previous]")
        page.wait_for_selector(".by-rank .wall-ranked .wall-cell b:not(:empty)")
        settled(page)
        shown = [float("0" + text) for text in page.locator(".wall-ranked .wall-caption b").all_inner_texts()]
        of = [np.diagonal(LENSES[FIRST].weights(layer), -1, 1, 2).mean(1) for layer in range(LAYERS)]
        np.testing.assert_allclose(shown, np.sort(np.concatenate(of))[::-1], atol=1.1e-3)
        page.keyboard.press("/")
        page.keyboard.type("2.4")
        page.wait_for_function("() => document.querySelectorAll('.wall-cell:not(.unmatched)').length === 1")


# -- links and keys ------------------------------------------------------------------------------------------------


def test_links_hold_the_state_and_history_moves_through_it(browser: Any, address: str) -> None:
    with Opened(browser, address, FIRST, "layer=1&head=2&query=9&key=20") as page:
        page.click(".running .token[data-at='5']")
        page.wait_for_function("() => /query=5&key=/.test(location.hash)")
        assert int(link(page)["key"]) == int(np.argmax(weights(FIRST, 1, 2)[5]))
        page.click(".wall-cell[data-layer='2'][data-head='4']")
        page.wait_for_function("() => location.hash.includes('head=4')")
        page.go_back()
        page.wait_for_function("() => location.hash.includes('head=2')")
        page.wait_for_selector(".wall-cell[data-layer='1'][data-head='2'][aria-current]")
        page.go_back()
        page.wait_for_selector(".running .token.is-query[data-at='9']")
        assert "token" not in page.url.split("#")[0]
        page.select_option("select.title", label="short")
        page.wait_for_selector(".threads")
        page.go_back()
        page.wait_for_selector(".readings")


def test_keys_move_the_token_the_key_the_head_and_the_layer(browser: Any, address: str) -> None:
    with Opened(browser, address, FIRST, "layer=1&head=2&query=9&key=20") as page:
        page.wait_for_selector(".running .token.is-query")
        for key, name, value in (
            ("ArrowRight", "query", "10"), ("Shift+ArrowLeft", "key", "19"), ("]", "head", "3"), ("}", "layer", "2"),
            ("x", "over", "max"), ("l", "scale", "log"), ("m", "view", "map"), ("t", "view", "text"),
        ):  # fmt: skip
            page.keyboard.press(key)
            page.wait_for_function(f"() => location.hash.includes('{name}={value}')")
        page.keyboard.press("?")
        page.wait_for_selector("dialog.help[open]")


# -- what may come -------------------------------------------------------------------------------------------------


def test_labels_are_text_whatever_they_say(browser: Any, address: str) -> None:
    with Opened(browser, address, EVIL) as page:
        page.wait_for_selector(".pair-words")
        page.click(".missing summary")
        assert page.inner_text(".running .token[data-at='0']") == HOSTILE[0]
        page.select_option("[aria-label='Batch item']", "1")
        page.wait_for_function("() => location.hash.includes('batch=1')")
        assert page.evaluate("[window.hit, document.querySelectorAll('.regard :is(script, img[src=x])').length]") == [
            None,
            0,
        ]


def test_of_a_long_text_only_what_is_in_sight_is_there(browser: Any, address: str) -> None:
    with Opened(browser, address, LAST) as page:
        page.wait_for_selector(".readings.reads .reading .token:not(:empty)")
        assert page.locator(".running .token").count() < LONG / 2
        page.locator(".paragraph").last.scroll_into_view_if_needed()
        page.wait_for_selector(f".running .token[data-at='{LONG - 1}']")
        page.wait_for_selector(".running .token[data-at='0']", state="detached")
        assert page.locator(".running .token").count() < LONG / 2


def test_nothing_is_wider_than_the_page(browser: Any, address: str) -> None:
    with Opened(browser, address, FIRST) as page:
        page.wait_for_selector(".pair-words")
        for width in (1440, 1024, 700, 360):
            page.set_viewport_size({"width": width, "height": 760})
            settled(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_scale_is_even_and_print_on_it_readable(browser: Any, address: str) -> None:
    with Opened(browser, address, SECOND) as page:
        found = page.evaluate(SCALES)
        for sign, (ramp, inks) in zip((-1, 1), found, strict=True):
            colours = np.array(ramp).reshape(256, 4)[:, :3] / 255
            light = lightness(colours)
            assert np.all(sign * np.diff(light) > 0)
            assert np.abs(np.diff(light[::16]) - np.diff(light[::16]).mean()).max() < 0.006
            print_ = np.array([[int(part, 16) for part in re.findall("..", ink[1:])] for ink in inks]) / 255
            dark, bright = np.sort([luminance(colours), luminance(print_)], axis=0)
            assert ((bright + 0.05) / (dark + 0.05)).min() > 4.5


def test_two_of_them_stand_in_one_document(browser: Any, address: str) -> None:
    with Opened(browser, address, FIRST) as page:
        page.evaluate(TWICE)
        page.wait_for_function("() => document.querySelectorAll('.two .running .token.is-query').length === 2")
        page.evaluate("() => document.querySelector('.two').scrollIntoView()")
        settled(page)  # nothing moves away from under the pointer any more
        page.hover(".two .regard:nth-child(2) .running .token[data-at='3']")
        page.wait_for_selector(".two .regard:nth-child(2) .token.is-pointed[data-at='3']")
        assert page.locator(".two .regard:nth-child(1) .running .token.is-pointed[data-at='3']").count() == 0
        assert page.evaluate("() => document.querySelector('.two .regard').scrollWidth") <= 700


SCALES = """() => import('/page/colour.js').then(({ colour }) => ['light', 'dark'].map((theme) =>
  [[...colour.ramp(theme)], Array.from({ length: 256 }, (_, at) => colour.ink(theme, at / 255))]))"""
TWICE = """async () => {
  const { mount } = await import('/page/app.js');
  const { httpSource } = await import('/page/source.js');
  const two = document.body.appendChild(Object.assign(document.createElement('div'), { className: 'two' }));
  two.style.width = '700px';
  for (const _ of [1, 2]) {
    const one = two.appendChild(document.createElement('div'));
    mount(one, httpSource('given-2'), { state: { query: 1, key: 2 } });
  }
}"""


def linear(colours: Any) -> Any:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def luminance(colours: Any) -> Any:
    return linear(colours) @ [0.2126, 0.7152, 0.0722]


def lightness(colours: Any) -> Any:
    to_lms = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
    return np.cbrt(linear(colours) @ to_lms.T) @ [0.2105, 0.7936, -0.0041]
