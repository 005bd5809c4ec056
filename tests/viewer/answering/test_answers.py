"""Every question is answered from the whole matrices' numbers, or refused in words."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import regard as rg
from looks import FORMULAS, SmallLens, captured, close, weights
from regard.algebra.errors import RegardError
from regard.viewer.answering import overview
from regard.viewer.answering.answers import QUESTIONS, Answers
from regard.viewer.answering.cache import EACH, Cache
from regard.viewer.answering.packet import Packet, packed, unpacked
from regard.viewer.record import Axis
from regard.viewer.work import Stop, Stopped

LENS = SmallLens()


@pytest.fixture
def answers() -> Answers:
    return Answers(SmallLens())


def ask(answers: Answers, name: str, **options: Any) -> Packet:
    """As a page gets it."""
    return unpacked(packed(answers.answer(name, options)))


def whole(layer: int, batch: int, formula: rg.Attention | None = None) -> Any:
    return np.stack([weights(LENS.layers[layer], batch, head, formula) for head in range(4)])


# -- what there is -------------------------------------------------------------------------------------------------


def test_about_says_what_the_page_needs(answers: Answers) -> None:
    said = ask(answers, "about").meta
    assert (said["title"], said["model"], said["notes"]) == ("small", "by hand", ["a note"])
    assert said["missing"] == [{"name": "layer 7", "why": "it said nothing"}]
    assert (said["batches"], said["image"], said["tile"]) == (2, True, 256)
    assert said["layers"][2] == {
        "name": "layer", "heads": [0, 1, 2, 3], "keyHeads": 2, "queries": 23, "keys": 31, "width": 7,
        "formula": FORMULAS["over queries"].text, "query": "query", "key": "key", "dtype": "float32",
        "hasValues": True, "shared": "rows",
    }  # fmt: skip
    assert said["axes"][1]["query"]["special"] == [0]
    assert said["axes"][0]["key"] == {
        "length": 31, "labels": [f"k{place}" for place in range(31)], "special": [], "grid": [1, 31]
    }  # fmt: skip
    for formula in {layer["formula"] for layer in said["layers"]}:
        assert said["mathml"][formula].startswith("<math")
        made = {mistake["name"]: rg.parse(mistake["formula"]) for mistake in said["mistakes"][formula]}
        assert "softmax over heads" in made


def test_about_is_small_for_long_texts() -> None:
    lens = SmallLens()
    lens.axes = ({"query": Axis("query", (" word",) * 100_000), "key": lens.axes[0]["key"]},)
    answers = Answers(lens)
    said = ask(answers, "about")
    assert len(packed(said)) < 100_000
    assert said.meta["axes"][0]["query"] == {"length": 100_000, "labels": None, "special": None, "grid": None}
    many = {str(name): Axis(str(name), ("a",) * 4096) for name in range(9)}
    lens.axes = (many,)
    assert sum(axis["labels"] is not None for axis in overview.about(lens)["axes"][0].values()) == 4


def test_labels_come_in_parts(answers: Answers) -> None:
    found = ask(answers, "labels", axis="query", **{"from": "0", "to": "3"}).meta
    assert found == {"labels": [" t0", " t1", " t2"], "special": [0], "from": 0}
    for wrong in ({"from": 3, "to": 3}, {"from": 4, "to": 3}, {"to": 24}, {"to": 0}):
        with pytest.raises(RegardError, match="to: "):
            ask(answers, "labels", axis="query", **wrong)
    with pytest.raises(RegardError, match="axis: one of query, key; got 'x'"):
        ask(answers, "labels", axis="x", to=1)


def test_the_image_is_sent_as_it_is(answers: Answers) -> None:
    found = ask(answers, "image")
    assert found.meta["type"] == "image/png"
    assert found.arrays[0].tobytes() == LENS.image
    answers.lens.image = None
    with pytest.raises(RegardError, match="image: a lens on an image"):
        ask(answers, "image")


# -- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 1])
def test_rows_and_columns_of_every_layer(answers: Answers, batch: int) -> None:
    rows, columns = ask(answers, "row", batch=batch, query="5"), ask(answers, "column", batch=batch, key=7)
    assert rows.meta["layers"] == columns.meta["layers"] == [0, 1, 2]
    for layer in range(3):
        np.testing.assert_allclose(rows.arrays[layer], whole(layer, batch)[:, 5], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(columns.arrays[layer], whole(layer, batch)[:, :, 7], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["over heads", "over the batch", "sigmoid"])
def test_rows_and_columns_whatever_shares(name: str) -> None:
    lens = SmallLens()
    lens.layers = (captured(FORMULAS[name], 23, 31),)
    answers = Answers(lens)
    expected = np.stack([weights(lens.layers[0], 1, head) for head in range(4)])
    np.testing.assert_allclose(ask(answers, "row", batch=1, query=5).arrays[0], expected[:, 5], 1e-5, 1e-6)
    np.testing.assert_allclose(ask(answers, "column", batch=1, key=5).arrays[0], expected[:, :, 5], 1e-5, 1e-6)


def test_only_layers_that_have_the_place(answers: Answers) -> None:
    assert ask(answers, "column", key=29).meta["layers"] == [2]
    assert ask(answers, "row", query=3, layers="2,0").meta["layers"] == [2, 0]
    with pytest.raises(RegardError, match="query: one of 23 places"):
        ask(answers, "row", query=23)
    with pytest.raises(RegardError, match="layers: one of 3 layers, from 0; got 3"):
        ask(answers, "row", query=2, layers=[0, 3])


def test_whole_matrices(answers: Answers) -> None:
    close(ask(answers, "matrix", layer=1, batch=1).arrays[0], whole(1, 1))
    close(ask(answers, "matrix", layer="2", head="3").arrays[0], whole(2, 0)[3:])
    tried = rg.parse("softmax(-sqdist, mask=j <= i)")
    close(
        ask(answers, "matrix", layer=0, head=1, formula="softmax(-sqdist, mask=i >= j)").arrays[0],
        whole(0, 0, tried)[1:2],
    )


def test_matrices_that_are_large_are_refused() -> None:
    lens = SmallLens(600, 601)
    with pytest.raises(RegardError, match="matrix: at most 1048576 weights at once; got 1442400; ask for tiles"):
        ask(Answers(lens), "matrix", layer=2)
    assert ask(Answers(lens), "matrix", layer=0, head=0).arrays[0].shape == (1, 600, 600)


def test_tiles_and_cells(answers: Answers) -> None:
    found = ask(answers, "tile", layer=1, head=2, batch=1, level=0, row=0, column=0)
    assert found.meta == {"known": 1.0, "exact": True}
    close(found.arrays[0], whole(1, 1)[2:3])
    cells = ask(answers, "cells", layer=2, head=3, rows="3,8", columns=[30, 31])
    np.testing.assert_allclose(cells.arrays[0], whole(2, 0)[3, 3:8, 30:31], rtol=1e-5)
    with pytest.raises(RegardError, match="rows: one of 23 queries"):
        ask(answers, "cells", layer=2, head=3, rows="3,24", columns="0,1")
    with pytest.raises(RegardError, match="columns: one of 31 keys"):
        ask(answers, "cells", layer=2, head=3, rows="0,1", columns="30,32")
    with pytest.raises(RegardError, match="cells: at most 4096 at once; got 4097"):
        ask(Answers(SmallLens(17, 241)), "cells", layer=2, head=0, rows="0,17", columns="0,241")


def test_thumbs_are_kept(answers: Answers) -> None:
    first = answers.answer("thumbs", {"layer": 0, "side": 8})
    assert first.arrays[0].shape == (4, 8, 8)
    assert answers.answer("thumbs", {"layer": "0", "side": "8"}) is first


# -- what others compute -------------------------------------------------------------------------------------------


def test_the_rest_is_asked_of_its_modules(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(module: str, name: str, gives: Any) -> None:
        made: Any = ModuleType(module)
        setattr(made, name, lambda lens, *asked, **more: gives(*asked, **more))
        monkeypatch.setitem(sys.modules, f"regard.viewer.weighing.{module}", made)

    stand_in("pair", "explain", lambda *asked, formula=None: {"asked": asked, "formula": repr(formula)})
    stand_in("whatif", "what_if", lambda *asked: {"asked": [*asked[:4], asked[5]]})
    stand_in("measures", "measures", lambda *asked: ([{"name": "local"}], np.ones((4, 1))))
    stand_in("rollout", "rollout", lambda *asked: np.asarray(asked[3:4]))
    found = ask(answers, "pair", layer=2, head=1, query=3, key=30, batch=1, formula="softmax(dot)")
    assert found.meta == {"asked": [2, 1, 1, 3, 30], "formula": "softmax(dot)"}
    assert ask(answers, "whatif", layer=2, head=1, formula="x").meta == {"asked": [2, 1, 0, "x", None]}
    assert ask(answers, "whatif", layer=2, head=1, changes="{}").meta == {"asked": [2, 1, 0, None, "{}"]}
    assert ask(answers, "measures", layer=2).arrays[0].shape == (4, 1)
    assert ask(answers, "rollout", residual="0.25").arrays[0] == [0.25]
    with pytest.raises(RegardError, match="key: one of 31 keys"):
        ask(answers, "pair", layer=2, head=1, query=3, key=31)


# -- hostile questions ---------------------------------------------------------------------------------------------

WRONG = [
    ("nothing", {}, "question: one of about, "),
    ("__class__", {}, "question: one of"),
    ("about", {"x": 1}, "option: this question takes none; got 'x'"),
    ("tile", {"layer": 0, "head": 0, "level": 0, "row": 0}, "column: this question needs it"),
    ("thumbs", {"layer": -1}, "layer: an integer from 0"),
    ("thumbs", {"layer": 3}, "layer: one of 3 layers, from 0; got 3"),
    ("thumbs", {"layer": "1e3"}, "layer: an integer"),
    ("thumbs", {"layer": "٣"}, "layer: an integer"),
    ("thumbs", {"layer": True}, "layer: an integer"),
    ("thumbs", {"layer": 1.0}, "layer: an integer"),
    ("thumbs", {"layer": "9" * 5000}, "layer: an integer"),
    ("thumbs", {"layer": 0, "side": 65}, "side: an integer from 1 to 64; got 65"),
    ("thumbs", {"layer": 0, "batch": 2}, "batch: one of 2 batch items"),
    ("matrix", {"layer": 0, "head": 4}, "head: one of 4 heads"),
    ("row", {"query": [1]}, "query: an integer"),
    ("row", {"query": 0, "layers": {"a": 1}}, "layers: 1 to 4096 integers"),
    ("row", {"query": 0, "layers": "0," * 100_000}, "layers: 1 to 4096 integers"),
    ("cells", {"layer": 0, "head": 0, "rows": "5,3", "columns": "0,1"}, "rows: first and last"),
    ("cells", {"layer": 0, "head": 0, "rows": "1,2,3", "columns": "0,1"}, "rows: 1 to 2 integers"),
    ("matrix", {"layer": 0, "formula": "x" * 2001}, "formula: a text of 1 to 2000 characters"),
    ("matrix", {"layer": 0, "formula": "dot"}, "formula: a whole attention"),
    ("matrix", {"layer": 0, "formula": "__import__('os')"}, "."),
    ("matrix", {"layer": 0, "formula": "softmax(" + "(" * 900 + "dot" + ")" * 900 + ")"}, "."),
    (
        "matrix",
        {"layer": 0, "formula": 'softmax(table("secret")[i])'},
        'formula: tables that the layer has; got table\\("secret"\\)',
    ),
    ("matrix", {"layer": 0, "formula": 'softmax(table("near")[i, j])'}, "near"),
    ("rollout", {"how": "median"}, "how: one of mean, max; got 'median'"),
    ("rollout", {"residual": "nan"}, "residual: a number from 0 to 1"),
    ("rollout", {"residual": None, "query": "1;2"}, "query: an integer"),
    ("rollout", {"residual": [0.5]}, "residual: a number"),
    ("labels", {"axis": "../../etc/passwd", "to": 1}, "axis: one of"),
]


@pytest.mark.parametrize(("name", "options", "told"), WRONG, ids=range(len(WRONG)))
def test_wrong_questions_are_refused_in_words(answers: Answers, name: str, options: Any, told: str) -> None:
    with pytest.raises(RegardError, match=told) as caught:
        answers.answer(name, options)
    assert len(str(caught.value)) < 1000


def test_every_question_can_be_stopped() -> None:
    stop, answers = Stop(), Answers(SmallLens(600, 601))
    stop.set()
    for name, options in (
        ("thumbs", {"layer": 0}), ("row", {"query": 0}), ("column", {"key": 0}), ("matrix", {"layer": 0, "head": 0}),
        ("tile", {"layer": 0, "head": 0, "level": 1, "row": 0, "column": 0}),
    ):  # fmt: skip
        with pytest.raises(Stopped):
            answers.answer(name, options, stop)
    assert set(QUESTIONS) == set(
        "about labels image thumbs row column matrix tile cells pair whatif measures rollout".split()
    )


def test_many_may_ask_at_once(answers: Answers) -> None:
    asked = [
        ("tile", {"layer": place % 3, "head": place % 4, "level": 0, "row": 0, "column": 0}) for place in range(48)
    ]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda question: answers.answer(*question), asked))
    for place, packet in enumerate(found):
        close(packet.arrays[0], whole(place % 3, 0)[place % 4][None])


def test_a_cache_forgets_what_was_asked_for_least_lately() -> None:
    cache: Cache[Packet] = Cache(3 * EACH + 300)
    for name in "abcab":
        cache.get(name, lambda: Packet({}, (np.zeros(100, np.uint8),)))
    cache.get("d", lambda: Packet({}, (np.zeros(100, np.uint8),)))
    made: list[str] = []
    for name in "abdc":
        cache.get(name, lambda name=name: made.append(name) or Packet())  # type: ignore[misc, func-returns-value]
    assert made == ["c"]
    cache.get("large", lambda: Packet({}, (np.zeros(10**6, np.uint8),)))
    assert len(cache) == 1
    assert cache.nbytes == 10**6 + EACH
