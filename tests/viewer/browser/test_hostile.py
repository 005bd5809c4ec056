"""Labels, titles and names are text, whatever they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

UNHARMED = "window.hit === undefined && !document.querySelector('.regard :is(script, img, iframe, i)')"
SEEN = {
    0: "<script>window.hit=1</script>",
    1: "</script><img src=x onerror=window.hit=1>",
    2: "\"'`&amp;",
    3: "⏎",
    5: "🦔",
    6: "שלום",
    7: "]]>",
    9: "{{x}}",
    10: "⇥",
    11: "ok",
}


def test_labels_are_text_everywhere(opened: Any, lenses: Any) -> None:
    tab = opened("hostile", layer=1, head=1)
    labels = lenses["hostile"].axes[0]["text"].labels
    for place, text in SEEN.items():
        assert tab.text(f".running .token[data-at='{place}']") == text
        assert tab.text(f".threads-query [data-at='{place}'] .token") == text
    assert tab.text(".running .token[data-at='4']") == "␣"
    assert tab.page.locator(".running .token").count() == len(labels)
    for place in (0, 1, 4, 8):
        tab.page.click(f".threads-query [data-at='{place}'] .token")
        tab.linked(query=place)
    tab.page.click(".missing summary")
    assert tab.text(".missing code") == "<i>pool</i>"
    assert "<script>" in tab.text(".missing li")
    assert tab.text("select.title option:checked") == lenses["hostile"].title
    tab.page.fill(".wall-search", "<img src=x onerror=window.hit=1>")
    tab.says(".wall-head .num", "^0 of 6$")
    tab.page.click(".tab[data-view=map]")
    tab.page.mouse.move(*tab.at(".map-canvas", 0.5, 0.5))
    tab.says(".view-map .map-told", "→")
    assert tab.page.evaluate(UNHARMED)


def test_drawings_hold_them_as_text(opened: Any, tmp_path: Path) -> None:
    for view in ("text", "map"):
        tab = opened("hostile", view=view, query=2, key=3)
        tab.settled()
        tab.page.click(".export summary")
        with tab.page.expect_download() as download:
            tab.page.click(".export-list >> text=SVG")
        assert download.value.suggested_filename == f"b-title-b-layer-0-head-0-{view}.svg"
        download.value.save_as(tmp_path / "it.svg")
        drawing = ET.parse(tmp_path / "it.svg").getroot()
        texts = " ".join(one.text or "" for one in drawing.iter() if one.tag.endswith("}text"))
        assert "<script>" in texts
        assert {one.tag.rpartition("}")[2] for one in drawing.iter()} <= {
            "svg",
            "rect",
            "text",
            "g",
            "path",
            "image",
            "line",
        }
        assert not [name for one in drawing.iter() for name in one.attrib if name.startswith("on")]
