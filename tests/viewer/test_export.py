"""A lens as one HTML file holds the answers that its page asks for, and nothing that could run."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard as rg
from regard.viewer import export
from regard.viewer.answering.answers import Answers
from regard.viewer.answering.packet import packed, unpacked

RNG = np.random.default_rng(0)
Q, K, V = RNG.standard_normal((3, 1, 3, 7, 5)).astype(np.float32)
WORDS = ["The", " cat", " sat", " </script>", " <b>on</b>", " the", " mat"]


@pytest.fixture(scope="module")
def lens() -> rg.Lens:
    return rg.lens(q=Q, k=K, v=V, tokens=WORDS, title="</title> & so on")


def held(text: str) -> tuple[dict[str, Any], bytes]:
    """What a file holds: its index, and its answers."""
    given = json.loads(re.findall(r'<script type="application/json" class="regard-answers">(.*?)</script>', text)[0])
    return given, gzip.decompress(base64.b64decode(given["packed"]))


def test_answers_are_those_of_the_lens(lens: rg.Lens) -> None:
    given, content = held(export.html_text(lens, head=2))
    answers = Answers(lens)
    for name, options in export.asked(lens, 0, 2, 0):
        place = given["index"].get(export.key(name, options))
        if place is None:
            assert name in ("image", "rollout")
        else:
            assert content[place[0] : sum(place)] == packed(answers.answer(name, options))
    matrix = unpacked(content[(at := given["index"]["matrix?batch=0&layer=0"])[0] : sum(at)]).arrays[0]
    np.testing.assert_allclose(matrix[2], lens.weights(0, head=2), atol=1e-3)
    assert sum(name.startswith("pair?") for name in given["index"]) == 49


def test_labels_and_titles_stay_text(lens: rg.Lens) -> None:
    text = export.html_text(lens)
    assert "<title>&lt;/title&gt; &amp; so on · regard</title>" in text
    assert text.count("</script>") == 2
    assert "<b>on</b>" not in text


def test_what_is_embedded_cannot_end_its_script() -> None:
    assert json.loads(export._inside_script(json.dumps("</script>"))) == "</script>"
    assert "<" not in export._inside_script(json.dumps("</script>"))


def test_it_asks_for_nothing_outside(lens: rg.Lens) -> None:
    text = export.html_text(lens)
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", text.split("<script")[0])
    assert not re.search(r'^import |from "\./', text, re.MULTILINE)


def test_a_long_input_keeps_a_coarse_map() -> None:
    long = rg.lens(
        q=RNG.standard_normal((1500, 3)).astype(np.float32), k=RNG.standard_normal((1400, 3)).astype(np.float32)
    )
    given, content = held(export.html_text(long))
    levels = [int(level) for key in given["index"] for level in re.findall(r"tile\?.*level=(\d+)", key)]
    assert sorted(set(levels)) == [1, 2, 3]  # 9, 4 and 1 tiles; level 0 would have 36
    assert len(levels) <= export.TILES
    assert len(content) <= export.BYTES


def test_a_file_is_written(lens: rg.Lens, tmp_path: Path) -> None:
    assert lens.html(tmp_path / "cat.html").stat().st_size > 100_000
    with pytest.raises(rg.CallError, match=r"path: a file that ends in .html; got .*cat.txt"):
        lens.html(tmp_path / "cat.txt")
    with pytest.raises(rg.CallError, match="layer: one of 1 layers, from 0; got 5"):
        lens.html(tmp_path / "cat.html", layer=5)
