"""Where a page begins: kept with a lens, checked when it is read, told to the page, and true of the gallery."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard as rg
from looks import SmallLens
from regard.viewer.answering.answers import Answers
from regard.viewer.keeping.mapped import StoreError
from regard.viewer.looking import lens

GALLERY = Path(rg.__file__).parent / "viewer" / "gallery"
BEGIN = {"layer": 0, "head": 0, "query": 4, "key": 2}


def saved(path: Path, **changes: Any) -> Path:
    q = np.random.default_rng(0).normal(size=(5, 3))
    found = lens(q=q, k=q)
    rg.Lens(found.layers, found.axes, begin=BEGIN).save(path)
    about = json.loads((path / "lens.json").read_text(encoding="utf-8")) | changes
    (path / "lens.json").write_text(json.dumps(about), encoding="utf-8")
    return path


def test_it_comes_back(tmp_path: Path) -> None:
    assert rg.Lens.open(saved(tmp_path / "a.lens")).begin == BEGIN
    assert rg.Lens.open(saved(tmp_path / "b.lens", begin={})).begin == {}


def test_a_lens_that_was_written_without_has_none(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.lens")
    about = json.loads((path / "lens.json").read_text(encoding="utf-8"))
    del about["begin"]
    (path / "lens.json").write_text(json.dumps(about), encoding="utf-8")
    assert rg.Lens.open(path).begin == {}


@pytest.mark.parametrize(
    "begin",
    [[], {"layer": "3"}, {"head": -1}, {"query": True}, {"key": 2**30}, {"token": 1}],
)
def test_others_are_refused(begin: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="begin: "):
        rg.Lens.open(saved(tmp_path / "a.lens", begin=begin))


def test_the_page_is_told() -> None:
    assert Answers(SmallLens()).answer("about", {}).meta["begin"] == SmallLens.begin


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.lens")), ids=lambda path: path.stem)
def test_the_gallery_begins_where_its_notes_say(path: Path) -> None:
    shipped = rg.Lens.open(path)
    layer, head, query, key = (int(shipped.begin[name]) for name in ("layer", "head", "query", "key"))
    said = re.match(r"layer (\d+), head (\d+)", shipped.notes[0])
    assert said is None or (int(said[1]), int(said[2])) == (layer, head)
    row = shipped.weights(layer, head)[query]
    row[query] = 0
    assert key == row.argmax()
