"""Folders of images: what is read, what is passed over, what is counted, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from regard.algebra.errors import CallError, MissingExtra
from regard.train.data.images import read_images

SIDE = 8


def image(value: Any, mode: str = "L", size: tuple[int, int] = (SIDE, SIDE)) -> Image.Image:
    return Image.new(mode, size, value)


def save(folder: Path, **images: Any) -> Path:
    """An image for each name, or bytes; __ in a name stands for a folder, a last _ for the dot."""
    for name, content in images.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content.save(path)
    return folder


def classes(folder: Path, count: int = 5, names: tuple[str, ...] = ("cat", "dog"), shade: int = 0) -> Path:
    """Folders with as many grey images each, all of them different."""
    for label, name in enumerate(names):
        for number in range(count):
            save(folder / name, **{f"{number}_png": image(shade + label * count + number)})
    return folder


def values(part: Any) -> list[int]:
    """The first pixel of each image."""
    return [int(pixels.flatten()[0]) for pixels in part.pixels]


# -- layouts ---------------------------------------------------------------------------------------------------


def test_class_folders_are_divided(tmp_path: Path) -> None:
    found = read_images(classes(tmp_path / "pets"), held_out=0.4, seed=3)
    assert found.classes == ("cat", "dog")
    assert (found.name, found.notes, found.shape) == ("pets", (), (1, SIDE, SIDE))
    assert sorted(values(found.training) + values(found.held_out)) == list(range(10))
    assert found.held_out.labels.tolist() == [0, 0, 1, 1]
    for part in (found.training, found.held_out):
        assert [value // 5 for value in values(part)] == part.labels.tolist()
    again = read_images(tmp_path / "pets", held_out=0.4, seed=3)
    assert values(again.held_out) == values(found.held_out)


@pytest.mark.parametrize("held", ["test", "val", "Validation"])
def test_parts_are_kept_as_they_are(tmp_path: Path, held: str) -> None:
    classes(tmp_path / "train", 3)
    classes(tmp_path / held, 2, shade=100)
    found = read_images(tmp_path)
    assert values(found.training) == [0, 1, 2, 3, 4, 5]
    assert values(found.held_out) == [100, 101, 102, 103]
    assert found.held_out.labels.tolist() == [0, 0, 1, 1]


def test_a_training_part_alone_is_divided(tmp_path: Path) -> None:
    found = read_images(classes(tmp_path / "train").parent)
    assert (len(found.training), len(found.held_out)) == (8, 2)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    assert read_images(classes(tmp_path, names=("bus", "train"))).classes == ("bus", "train")


def test_numbers_are_in_their_order_and_folders_inside_are_read(tmp_path: Path) -> None:
    classes(tmp_path, 2, names=("10", "9", "1"))
    save(tmp_path, **{"9__deep__er__x_png": image(99)})
    found = read_images(tmp_path)
    assert found.classes == ("1", "9", "10")
    assert 99 in values(found.training) + values(found.held_out)


def test_what_systems_leave_behind_is_passed_over(tmp_path: Path) -> None:
    classes(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "__MACOSX").mkdir()
    for name in (".DS_Store", "Thumbs.db", ".ipynb_checkpoints/0.png"):
        (tmp_path / "cat" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "cat" / name).write_bytes(b"?")
    found = read_images(tmp_path)
    assert (found.classes, found.notes) == (("cat", "dog"), ())
    assert len(found.training) + len(found.held_out) == 10


# -- files -----------------------------------------------------------------------------------------------------


def cut(path: Path) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (50, 50), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return path.read_bytes()[:1200]


def test_what_is_no_image_is_counted_and_named(tmp_path: Path) -> None:
    classes(tmp_path, 9)
    damaged = cut(tmp_path / "cat" / "0cut.png")
    save(tmp_path, readme_txt=b"cats and dogs", dog__notes_txt=b"good dogs", dog__empty_png=b"", cat__0cut_png=damaged)
    (tmp_path / "dog" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    found = read_images(tmp_path)
    assert found.notes == (
        "1 file skipped, outside the folders of the classes: readme.txt",
        "2 files skipped, no image that Pillow knows: dog/empty.png, dog/notes.txt",
        "1 file skipped, not there: a link that leads nowhere: dog/gone.png",
        "1 file skipped, damaged: cat/0cut.png",
    )
    for part in (found.training, found.held_out):
        assert [value // 9 for value in values(part)] == part.labels.tolist()
    assert len(found.training) + len(found.held_out) == 18
    assert found.shape == (1, SIDE, SIDE)


def test_mostly_other_files_are_refused(tmp_path: Path) -> None:
    classes(tmp_path / "x", 2)
    for number in range(5):
        (tmp_path / "x" / "cat" / f"{number}.txt").write_text("a cat")
    with pytest.raises(CallError, match=r"at least half of the files of use; got 'x', where 5 of 9 are not \(5 files"):
        read_images(tmp_path / "x")


MODES: dict[str, tuple[Image.Image, list[int]]] = {
    "grey": (image(77), [77]),
    "grey and alpha": (image((77, 0), "LA"), [255]),
    "one bit": (image(1, "1"), [255]),
    "16 bits": (Image.fromarray(np.full((SIDE, SIDE), 257 * 77, np.uint16)), [77]),
    "colour": (image((10, 20, 30), "RGB"), [10, 20, 30]),
    "colour and alpha": (image((10, 20, 30, 255), "RGBA"), [10, 20, 30]),
    "transparent": (image((10, 20, 30, 0), "RGBA"), [255, 255, 255]),
    "palette": (image((10, 20, 30), "RGB").convert("P", palette=Image.Palette.ADAPTIVE), [10, 20, 30]),
}


@pytest.mark.parametrize("name", MODES)
def test_modes(name: str, tmp_path: Path) -> None:
    drawn, expected = MODES[name]
    save(tmp_path, a__1_png=drawn, a__2_png=drawn, b__3_png=drawn, b__4_png=drawn)
    found = read_images(tmp_path)
    assert found.shape == (len(expected), SIDE, SIDE)
    assert (found.training.pixels == np.array(expected)[:, None, None]).all()


def test_images_are_turned_upright(tmp_path: Path) -> None:
    lying = Image.fromarray(np.arange(16 * 8, dtype=np.uint8).reshape(8, 16))
    turn = Image.Exif()
    turn[0x0112] = 6  # to be turned by 90 degrees
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        lying.save(tmp_path / name, exif=turn)
    found = read_images(tmp_path)
    assert found.shape == (1, 16, 8)
    assert not any("resized" in note for note in found.notes)
    assert found.training.pixels[0, 0].tolist() == np.rot90(np.asarray(lying), -1).tolist()


# -- one shape for all -----------------------------------------------------------------------------------------


def test_other_sizes_become_the_most_common(tmp_path: Path) -> None:
    classes(tmp_path)
    save(tmp_path, cat__x_png=image(200, size=(12, 16)), dog__y_png=image(201, size=(16, 12)))
    found = read_images(tmp_path)
    assert found.shape == (1, SIDE, SIDE)
    assert found.notes == ("2 images resized to 8 × 8, the most common size; the images have 3 sizes",)
    assert {200, 201} <= set(values(found.training) + values(found.held_out))


def test_a_size_that_was_asked_for(tmp_path: Path) -> None:
    found = read_images(classes(tmp_path), size=(16, 12))
    assert found.shape == (1, 16, 12)
    assert found.notes == ("10 images resized to 16 × 12, as asked; the images have 1 size",)


@pytest.mark.parametrize(("size", "near"), [((29, 31), (30, 30)), ((640, 480), (168, 224))])
def test_sizes_that_patches_do_not_fill_or_that_are_large(
    size: tuple[int, int], near: tuple[int, int], tmp_path: Path
) -> None:
    save(tmp_path, **{f"{name}__{n}_png": image(7, size=size) for name in "ab" for n in range(2)})
    found = read_images(tmp_path)
    assert found.shape == (1, *near)
    told = rf"4 images resized to {near[0]} × {near[1]}, near the most common, {size[1]} × {size[0]}"
    assert found.notes[0].startswith(told)
    assert near[0] % found.patch == near[1] % found.patch == 0


def test_grey_and_colour_together_are_colour(tmp_path: Path) -> None:
    classes(tmp_path)
    save(tmp_path, cat__x_png=image((255, 0, 0), "RGB"))
    assert read_images(tmp_path).notes == ("10 images in grey and 1 image in colour: all as colour",)
    assert read_images(tmp_path).shape[0] == 3
    grey = read_images(tmp_path, colour="grey")
    assert (grey.shape[0], grey.notes) == (1, ())
    assert 76 in values(grey.training) + values(grey.held_out)  # 0.299 · 255: as bright as it looks
    assert read_images(classes(tmp_path / "grey"), colour="colour").shape[0] == 3


def test_equal_images_on_both_sides_are_told(tmp_path: Path) -> None:
    save(tmp_path, **{f"{name}__{n}_png": image(7) for name in "ab" for n in range(5)})
    assert read_images(tmp_path).notes == ("2 held-out images equal to one that is learned from",)


def test_progress_is_told(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    read_images(classes(tmp_path, 60), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(100, 240), (200, 240), (240, 240)]


# -- refusals --------------------------------------------------------------------------------------------------


def one_class(folder: Path) -> None:
    classes(folder, names=("cat",))


def loose(folder: Path) -> None:
    save(folder, a_png=image(1), b_png=image(2))


def single(folder: Path) -> None:
    classes(folder)
    save(folder, bird__1_png=image(9))


def nested(folder: Path) -> None:
    classes(folder / "inner")


def idx_inside(folder: Path) -> None:
    save(folder, MNIST__raw__x=b"")
    (folder / "MNIST" / "raw" / "train-images-idx3-ubyte").write_bytes(b"")


def unknown_class(folder: Path) -> None:
    classes(folder / "train")
    classes(folder / "test", names=("cat", "fox"))


def empty_test(folder: Path) -> None:
    classes(folder / "train")
    (folder / "test" / "cat").mkdir(parents=True)


LAYOUT = (
    r"source: a folder of images for each class, such as x/cat/1\.png and x/dog/2\.png, or x/train and x/test of such"
)
REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing": (lambda folder: folder, rf"{LAYOUT}; got nothing in '.*x'$"),
    "loose images": (loose, rf"{LAYOUT}; got 2 files and no folders in '.*x'$"),
    "one class": (one_class, rf"{LAYOUT}; got one class only, 'cat' in '.*x'$"),
    "nested": (nested, rf"{LAYOUT}; got one class only, 'inner' in '.*x'; did you mean '.*inner'\?"),
    "idx inside": (idx_inside, r"one class only, 'MNIST' in '.*x'; did you mean '.*raw'\?"),
    "one image": (
        single,
        r"at least 2 images of each class, one to learn .*; got 'bird' with 1 in 'x'; add images, or",
    ),
    "empty classes": (
        lambda folder: [(folder / name).mkdir() for name in "ab"],
        r"at least 2 images of each class, .*; got 'a' with 0, 'b' with 0 in 'x'",
    ),
    "unknown class": (unknown_class, r"the classes of 'test' among those to learn, cat, dog; got fox in '.*test'; add"),
    "empty test": (empty_test, r"source: images to hold out; got none in the test part of 'x'; add some, or remove it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_folders_that_are_refused(name: str, tmp_path: Path) -> None:
    make, text = REFUSED[name]
    (tmp_path / "x").mkdir()
    make(tmp_path / "x")
    with pytest.raises(CallError, match=text):
        read_images(tmp_path / "x")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"this needs pillow, .*regard\[train\]"):
        read_images(tmp_path)
