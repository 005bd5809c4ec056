"""A lens on the disk: the same numbers come back, nothing is lost, and nothing that was changed is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from regard import causal, dot, each, given, s, share, sqrt, table
from regard.algebra.errors import RegardError
from regard.viewer.arrays import numpy_of
from regard.viewer.keeping import store
from regard.viewer.keeping.mapped import StoreError
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured, Missing

B, H, G, N, M, D, E = 2, 6, 3, 5, 7, 11, 13
DTYPES = ["float16", "float32", "float64", "bfloat16"]


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def layer(
    name: str = "layer.0", formula: Any = None, dtype: str = "float32", make: Any = torch, **tables: Any
) -> Captured:
    q, k, v = (draw(B, *shape, seed=sum(shape)) for shape in ((H, N, D), (G, M, D), (G, M, E)))
    arrays = [torch.as_tensor(x).to(getattr(torch, dtype)) for x in (q, k, v)]
    if make is np:
        arrays, tables = [numpy_of(x) for x in arrays], {name: np.asarray(x) for name, x in tables.items()}
    formula = rg.Attention() if formula is None else formula
    return Captured(name, formula, *arrays, tables=tables, start=2, query="read", key="said")


def lens_of(*layers: Captured) -> Lens:
    axes = [{"read": Axis("read", tuple(f"r{place}" for place in range(N))), "said": _said(item)} for item in range(B)]
    image = b"\x89PNG\r\n\x1a\n-"
    return Lens(
        layers, axes, title="Title ⟂", model="m", image=image, missing=[Missing("x", "y")], notes=["one", "two"]
    )


def _said(item: int) -> Axis:
    return Axis("said", (*(f" wörd{item}{place}" for place in range(M - 1)), "[SEP]"), frozenset({M - 1}), (2, 3))


def bits(array: Any) -> Any:
    """An array as bytes, so that NaN and −0 count."""
    if isinstance(array, torch.Tensor):
        return array.contiguous().view(torch.uint8).numpy().tobytes()
    return np.ascontiguousarray(array).tobytes()


CASES: dict[str, Any] = {
    "plain": lambda: layer(),
    "causal": lambda: layer(formula=rg.Attention(mask=causal)),
    "mask": lambda: layer(formula=rg.Attention(mask=given("m")), m=torch.as_tensor(draw(B, 1, N, M) < 1)),
    "bias": lambda: layer(
        formula=rg.Attention(dot / sqrt(rg.d) + table("bias")[rg.h, rg.i - rg.j + M]),
        bias=torch.as_tensor(draw(H, 3 * M)),
    ),
    "sink": lambda: layer(
        formula=rg.Attention(weight=share(rg.exp(s), sink=rg.exp(table("sink")[rg.h]))), sink=torch.as_tensor(draw(H))
    ),
    "over queries": lambda: layer(formula=rg.Attention(weight=share(rg.exp(s), over=rg.i))),
    "over heads": lambda: layer(formula=rg.Attention(weight=share(rg.exp(s), over=rg.h))),
    "shared by none": lambda: layer(formula=rg.Attention(weight=each(rg.sigmoid))),
    "no values": lambda: Captured(**{**vars_of(layer()), "v": None}),
    "some heads": lambda: Captured(**{**vars_of(layer()), "heads": (1, 2, 3, 5, 8, 13)}),
    "starts": lambda: Captured(**{**vars_of(layer(formula=rg.Attention(mask=causal))), "start": torch.tensor([1, 2])}),
}


def vars_of(captured: Captured) -> dict[str, Any]:
    names = ("name", "formula", "q", "k", "v", "tables", "start", "query", "key", "heads")
    return {name: getattr(captured, name) for name in names}


# -- what comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["a.lens", "a.lens.zip"])
@pytest.mark.parametrize("case", CASES)
def test_what_was_saved_is_what_is_opened(case: str, ending: str, tmp_path: Path) -> None:
    captured = CASES[case]()
    kept = lens_of(captured)
    opened = Lens.open(kept.save(tmp_path / ending))
    found = opened[0]
    for name in ("title", "model", "image", "missing", "notes", "axes"):
        assert getattr(opened, name) == getattr(kept, name), name
    for name in ("name", "formula", "query", "key", "heads"):
        assert getattr(found, name) == getattr(captured, name), name
    assert {name: bits(x) for name, x in found.tables.items()} == {name: bits(x) for name, x in captured.tables.items()}
    assert [None if x is None else bits(x) for x in (found.q, found.k, found.v)] == [
        None if x is None else bits(x) for x in (captured.q, captured.k, captured.v)
    ]
    for item in range(B):
        np.testing.assert_allclose(opened.weights(0, batch=item), kept.weights(0, batch=item), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [np, torch], ids=["numpy", "torch"])
def test_every_dtype_comes_back_bit_for_bit(dtype: str, make: Any, tmp_path: Path) -> None:
    captured = layer(dtype=dtype, make=make)
    found = Lens.open(lens_of(captured).save(tmp_path / "a.lens"))
    assert str(found[0].q.dtype) == dtype
    assert bits(found[0].q) == bits(captured.q)
    assert found.weights(0).dtype == (np.float64 if dtype == "float64" else np.float32)


@pytest.mark.parametrize("ending", ["a.lens", "a.lens.zip"])
def test_weights_of_numpy_are_equal_to_the_last_bit(ending: str, tmp_path: Path) -> None:
    kept = lens_of(layer(make=np), layer("layer.1", rg.Attention(mask=causal), make=np))
    opened = Lens.open(kept.save(tmp_path / ending))
    for place in range(2):
        np.testing.assert_array_equal(opened.weights(place, batch=1), kept.weights(place, batch=1))
        part = {"rows": [4, 1], "columns": slice(2, 5)}
        np.testing.assert_array_equal(opened.weights(place, 4, 1, **part), kept.weights(place, 4, 1, **part))


def test_totals_are_found_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = lens_of(layer())
    opened = Lens.open(kept.save(tmp_path / "a.lens"))
    monkeypatch.setattr("regard.viewer.weighing.totals.Head._keep", lambda *_: pytest.fail("a total was found again"))
    np.testing.assert_array_equal(opened.totals(0, batch=1), kept.totals(0, batch=1))
    assert opened.totals(0, batch=1).shape == (H, N)


def test_arrays_stay_on_the_disk(tmp_path: Path) -> None:
    opened = Lens.open(lens_of(layer()).save(tmp_path / "a.lens"))
    base = opened[0].q
    while not isinstance(base, np.memmap):
        base = base.base
    assert not opened[0].q.flags.writeable


def test_no_torch_is_needed_to_open(tmp_path: Path) -> None:
    path = lens_of(layer(dtype="bfloat16"), layer("b", dtype="float16")).save(tmp_path / "a.lens")
    program = (
        "import builtins; real = builtins.__import__\n"
        "def guarded(name, *rest):\n"
        "    assert name.partition('.')[0] not in {'torch', 'transformers', 'safetensors', 'PIL', 'jax'}, name\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = guarded\n"
        f"import regard.viewer; lens = regard.viewer.Lens.open({str(path)!r})\n"
        "print(lens.weights(0, 3).shape, lens.weights(1).sum(-1).round(5).min(), repr(lens)[:11])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == [f"({N},", f"{M})", "1.0", "Lens:", "Title"], done.stderr


# -- layers one after another ------------------------------------------------------------------------------------------


def test_a_streamed_folder_is_a_lens(tmp_path: Path) -> None:
    folder = store.begin(tmp_path / "deep" / "a.lens")
    layers = [layer(f"layer.{place}") for place in range(3)]
    mapped = [store.write_layer(folder, place, one) for place, one in enumerate(layers)]
    assert all(
        isinstance(one.q, np.ndarray) and bits(one.q) == bits(two.q) for one, two in zip(mapped, layers, strict=True)
    )
    with pytest.raises(StoreError, match=r"lens\.json"):
        Lens.open(folder)
    made = lens_of(*mapped)
    store.write_about(folder, made)
    np.testing.assert_array_equal(Lens.open(folder).weights(2), made.weights(2))
    store.begin(folder)
    assert not any(folder.iterdir())


# -- what stood there --------------------------------------------------------------------------------------------------


def test_a_lens_is_written_over_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.lens"
    lens_of(layer(), layer("b")).save(path)
    lens_of(layer()).save(path)
    assert len(Lens.open(path)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["a.lens"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    (tmp_path / "file.zip").write_text("years")
    for other in (tmp_path / "mine", tmp_path / "file.zip", tmp_path / "mine" / "thesis.tex"):
        with pytest.raises(StoreError, match="which holds something else"):
            lens_of(layer()).save(other)
    with pytest.raises(StoreError, match="which holds something else"):
        store.begin(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years"


def test_a_save_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.lens"
    lens_of(layer()).save(path)
    monkeypatch.setattr(store, "write_about", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        lens_of(layer("b")).save(path)
    assert Lens.open(path)[0].name == "layer.0"
    assert [one.name for one in tmp_path.iterdir()] == ["a.lens"]


def test_a_rename_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rename = lens_of(layer()).save(tmp_path / "a.lens"), Path.rename

    def refused(self: Path, target: Path) -> Path:
        if self.name.endswith(".tmp"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(OSError, match="no"):
        lens_of(layer("b")).save(path)
    assert Lens.open(path)[0].name == "layer.0"
    assert [one.name for one in tmp_path.iterdir()] == ["a.lens"]


def test_an_opened_lens_is_saved_where_it_lies(tmp_path: Path) -> None:
    path = lens_of(layer()).save(tmp_path / "a.lens")
    opened = Lens.open(path)
    before = opened.weights(0)
    opened.save(path)
    np.testing.assert_array_equal(opened.weights(0), before)
    np.testing.assert_array_equal(Lens.open(path).weights(0), before)


# -- what was changed --------------------------------------------------------------------------------------------------


def changed(tmp_path: Path, change: Any) -> Path:
    path = lens_of(layer()).save(tmp_path / "a.lens")
    about = json.loads((path / "lens.json").read_text())
    change(about)
    (path / "lens.json").write_text(json.dumps(about))
    return path


def at(*keys: Any, to: Any) -> Any:
    def change(about: Any) -> None:
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (at("format", to="zip"), "of the format 'regard lens'; got 'zip'"),
        (at("version", to=2), "version 1; got 2; read it with"),
        (at("version", to=True), "version 1"),
        (at("title", to=3), "title: a text"),
        (at("title", to="x" * 30_000), "title: a text of at most"),
        (at("notes", to="x"), "notes: a list"),
        (at("missing", to=[3]), "missing: a JSON object"),
        (at("layers", to={}), "layers: a list"),
        (at("layers", to=[]), "at least one captured call"),
        (at("layers", 0, to=3), "layers: a JSON object"),
        (at("layers", 0, "formula", to="__import__('os').system('true')"), "formula|import|name"),
        (at("layers", 0, "formula", to="dot"), "formula: an Attention"),
        (at("layers", 0, "formula", to="Attention(score=" + "(" * 5000 + "dot" + ")" * 5000 + ")"), "formula|\\(\\("),
        (at("layers", 0, "formula", to='Attention(mask=given("m"))'), "arrays that fit the formula"),
        (at("layers", 0, "start", to="first"), "start: a list"),
        (at("layers", 0, "start", to=[1, 2, 3]), "arrays that fit the formula"),
        (at("layers", 0, "heads", to=[1]), "heads: a number for each of 6"),
        (at("layers", 0, "query", to="../../etc"), "no axis"),
        (at("layers", 0, "key", to="read"), "places for layer.0; got 5"),
        (at("axes", to=[]), "axes: for each of 2 batch items"),
        (at("axes", 0, "said", "labels", to=["a"]), "special: places|places for"),
        (at("axes", 0, "said", "labels", 0, to=3), "labels: texts"),
        (at("axes", 0, "said", "special", to=[99]), "special: places from 0 to 6"),
        (at("axes", 0, "said", "special", to=[True]), "special: places"),
        (at("axes", 0, "said", "grid", to=[5, 5]), "grid: rows and columns of 6 patches"),
        (at("axes", 0, "said", "grid", to=[-2, -3]), "grid: rows and columns of 6 patches"),
        (at("axes", 0, "said", "grid", to="2x3"), "grid: rows and columns"),
        (at("axes", 0, to={f"a{place}": {} for place in range(99)}), "axes: at most 64"),
    ],
)
def test_json_that_was_changed_is_refused(change: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=words):
        Lens.open(changed(tmp_path, change))


def test_signs_that_steer_a_terminal_do_not_reach_it(tmp_path: Path) -> None:
    path = changed(tmp_path, at("title", to="fine\x1b[31m\x07\u009b2J\nnext"))
    assert Lens.open(path).title == "fine[31m2J\nnext"


@pytest.mark.parametrize("name", ["lens.json", "0000.safetensors", "0000.totals.safetensors"])
@pytest.mark.parametrize("kept", [0, 5, 100])
def test_files_that_were_cut_off_are_refused(name: str, kept: int, tmp_path: Path) -> None:
    path = lens_of(layer()).save(tmp_path / "a.lens")
    (path / name).write_bytes((path / name).read_bytes()[:kept])
    with pytest.raises(StoreError):
        Lens.open(path)


def test_other_arrays_are_refused(tmp_path: Path) -> None:
    path = lens_of(layer()).save(tmp_path / "a.lens")
    for arrays in (
        {"q": draw(2, 3)},
        {"q": draw(2, 3), "k": draw(2, 3)},
        {"q": draw(1, 1, 2, 3), "k": draw(1, 1, 2, 4)},
    ):
        with (path / "0000.safetensors").open("wb") as file:
            store.mapped.write(file, arrays)
        with pytest.raises(StoreError):
            Lens.open(path)
    with (path / "0000.totals.safetensors").open("wb") as file:
        store.mapped.write(file, {"totals": draw(1, 1, 1)})
    store.write_layer(path, 0, layer())
    with pytest.raises(StoreError, match="totals of shape"):
        Lens.open(path)


def test_what_is_no_lens_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "lens.json")
    for name, words in (
        ("nothing", "does not exist"),
        ("file", "a folder that a lens saved"),
        ("folder", r"lens\.json"),
    ):
        with pytest.raises(StoreError, match=words):
            Lens.open(tmp_path / name)


def test_a_zip_is_read_where_it_lies_or_refused(tmp_path: Path) -> None:
    path = lens_of(layer()).save(tmp_path / "a.lens.zip")
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    small = tmp_path / "small.zip"
    with zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    with pytest.raises(StoreError, match="uncompressed"):
        Lens.open(small)
    with zipfile.ZipFile(small, "w") as archive:
        archive.writestr("../../evil", b"x")
    with pytest.raises(StoreError, match=r"lens\.json"):
        Lens.open(small)
    assert {one.name for one in tmp_path.iterdir()} == {"a.lens.zip", "small.zip"}
