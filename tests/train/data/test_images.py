"""Images that are arrays already, and what is asked for in any case."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.algebra.errors import CallError, KindError, MissingExtra
from regard.train.data import gallery
from regard.train.data.images import read_images

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (30, 8, 10), dtype=np.uint8)
Y = np.arange(30, dtype=np.uint8) % 3


def idx(array: Any) -> bytes:
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes([0, 0, 8, array.ndim]) + lengths + array.astype(np.uint8).tobytes()


def every(images: Any) -> Any:
    """All images, sorted by their bytes: which are held out does not matter."""
    pixels = torch.cat([images.training.pixels, images.held_out.pixels])
    return sorted(pixels.flatten(1).tolist())


# -- digits ----------------------------------------------------------------------------------------------------


def test_digits() -> None:
    images = read_images()
    assert (len(images.training), len(images.held_out), images.shape) == (1438, 359, (1, 8, 8))
    assert images.classes == tuple("0123456789")
    assert images.training.pixels.dtype == torch.uint8
    assert images.training.labels.dtype == torch.int64
    assert images.training.pixels.max() == 255
    assert images.patch == 2
    assert repr(images) == "Images('digits': 1438 and 359 held out, 10 classes, 1 × 8 × 8)"
    shares = torch.bincount(images.held_out.labels) / torch.bincount(images.training.labels)
    assert (shares - 0.25).abs().max() < 0.01


def test_another_seed_holds_out_others() -> None:
    assert not torch.equal(read_images(seed=1).held_out.pixels, read_images().held_out.pixels)
    assert torch.equal(read_images(seed=1).held_out.pixels, read_images(seed=1).held_out.pixels)
    assert every(read_images(seed=1)) == every(read_images())


def test_scikit_learn_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtra, match=r"this needs scikit-learn, .*regard\[train\]"):
        read_images()


# -- idx -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["train-{0}s-idx{1}-ubyte", "train-{0}s.idx{1}-ubyte", "emnist-a-train-{0}s-idx{1}-ubyte"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files(name: str, packed: bool, tmp_path: Path) -> None:
    for test in (name, name.replace("train", "t10k")):
        for what, array in (("image", X), ("label", Y)):
            path = tmp_path / test.format(what, array.ndim)
            path = path.with_name(f"{path.name}.gz") if packed else path
            path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    images = read_images(tmp_path)
    assert images.training.pixels[:, 0].tolist() == images.held_out.pixels[:, 0].tolist() == X.tolist()
    assert images.training.labels.tolist() == Y.tolist()
    assert images.classes == ("0", "1", "2")


def test_idx_files_to_learn_from_alone_are_divided(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(X))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(Y))
    images = read_images(tmp_path)
    assert (len(images.training), len(images.held_out)) == (24, 6)
    assert every(images) == sorted(X.reshape(30, -1).tolist())


IDX: dict[str, tuple[dict[str, bytes], type[Exception], str]] = {
    "no labels": ({"train-images-idx3-ubyte": idx(X)}, CallError, "got no train-labels in '.*'; add them"),
    "test alone": (
        {"t10k-images-idx3-ubyte": idx(X), "t10k-labels-idx1-ubyte": idx(Y)},
        CallError,
        "got no train-images in",
    ),
    "cut": (
        {"train-images-idx3-ubyte": idx(X)[:-7], "train-labels-idx1-ubyte": idx(Y)},
        KindError,
        "a whole idx file; got '.*', with 2409 bytes where its first bytes tell of 2416; copy it again",
    ),
    "short": (
        {"train-images-idx3-ubyte": idx(X)[:9], "train-labels-idx1-ubyte": idx(Y)},
        KindError,
        "an idx file of bytes with 3 axes; got '.*', which begins like none",
    ),
    "not packed": (
        {"train-images-idx3-ubyte.gz": idx(X), "train-labels-idx1-ubyte": idx(Y)},
        KindError,
        "a whole idx file; got '.*', which cannot be unpacked",
    ),
    "packed and cut": (
        {"train-images-idx3-ubyte.gz": gzip.compress(idx(X))[:99], "train-labels-idx1-ubyte": idx(Y)},
        KindError,
        "which cannot be unpacked",
    ),
    "fewer labels": (
        {"train-images-idx3-ubyte": idx(X), "train-labels-idx1-ubyte": idx(Y[1:])},
        CallError,
        "one label for each image; got 29 labels of 30 images",
    ),
    "two sets": (
        {"a-train-images-idx3-ubyte": b"", "b-train-images-idx3-ubyte": b""},
        CallError,
        "idx files of one data set; got a, b in '.*'; move them apart",
    ),
}


@pytest.mark.parametrize("name", IDX)
def test_idx_files_that_are_refused(name: str, tmp_path: Path) -> None:
    files, kind, text = IDX[name]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    with pytest.raises(kind, match=text):
        read_images(tmp_path)


# -- npz -------------------------------------------------------------------------------------------------------

COLOURS = RNG.integers(0, 256, (30, 8, 10, 3), dtype=np.uint8)
NPZ: dict[str, tuple[dict[str, Any], Any]] = {
    "grey": ({"images": X, "labels": Y}, X[:, None]),
    "one channel last": ({"x": X[..., None], "y": Y}, X[:, None]),
    "one channel first": ({"images": X[:, None], "labels": Y}, X[:, None]),
    "colours last": ({"images": COLOURS, "labels": Y[:, None]}, COLOURS.transpose(0, 3, 1, 2)),
    "colours first": ({"images": COLOURS.transpose(0, 3, 1, 2), "labels": Y}, COLOURS.transpose(0, 3, 1, 2)),
    "floats": ({"images": X / 255, "labels": Y}, X[:, None]),
    "alpha": ({"images": np.stack([X, X // 128 * 255], -1), "labels": Y}, np.where(X < 128, 255, X)[:, None]),
}


@pytest.mark.parametrize("name", NPZ)
def test_npz_files(name: str, tmp_path: Path) -> None:
    arrays, expected = NPZ[name]
    np.savez(tmp_path / "shapes.npz", **arrays)
    images = read_images(tmp_path / "shapes.npz")
    assert every(images) == sorted(expected.reshape(30, -1).tolist())
    assert images.shape == expected.shape[1:]
    assert (images.name, images.classes, len(images.held_out)) == ("shapes", ("0", "1", "2"), 6)


def test_npz_parts_and_names(tmp_path: Path) -> None:
    names = np.array(["10", "9", "cat"])[Y]
    np.savez_compressed(tmp_path / "d.npz", x_train=X, y_train=names, x_test=X[:7] ^ 1, y_test=names[:7])
    images = read_images(tmp_path / "d.npz")
    assert images.classes == ("9", "10", "cat")
    assert [images.classes[label] for label in images.training.labels.tolist()] == names.tolist()
    assert (len(images.held_out), images.notes) == (7, ())


def test_labels_of_any_numbers_count_from_0(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x_train=X, y_train=np.array([-3, 100, 7])[Y], x_test=X[:1], y_test=np.array([100]))
    images = read_images(tmp_path / "d.npz")
    assert images.classes == ("-3", "7", "100")
    assert images.held_out.labels.tolist() == [2]
    assert images.notes == (
        "no image held out of 2 classes: -3, 7",
        "1 held-out image equal to one that is learned from",
    )


NPZ_REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "other names": ({"a": X, "b": Y}, CallError, "an .npz with x_train and y_train .*; got a, b in"),
    "flat": (
        {"x": X.reshape(30, -1), "y": Y},
        CallError,
        r"\(count, height, width\) .*; got shape \(30, 80\) in .*resh",
    ),
    "five channels": ({"x": np.zeros((30, 8, 8, 5)), "y": Y}, CallError, r"got shape \(30, 8, 8, 5\)"),
    "empty": ({"x": X[:0], "y": Y[:0]}, CallError, r"got shape \(0, 8, 10\)"),
    "range": ({"x": X - 128.0, "y": Y}, CallError, "floats from 0 to 1 or to 255; got float64 in .*; scale them"),
    "one-hot": (
        {"x": X, "y": np.eye(3)[Y]},
        CallError,
        r"got float64 of shape \(30, 3\) in .*; pass labels.argmax\(1\)",
    ),
    "one class": ({"x": X, "y": Y * 0}, CallError, "images of at least two classes; got 0 in 'd'"),
    "every its own": ({"x": X, "y": np.arange(30)}, CallError, "at least 2 images of each class, .* got '0' with 1, "),
    "a pickle": (
        {"x": X, "y": np.array([None] * 30)},
        KindError,
        "got a pickle in .*, which is never loaded; save them",
    ),
}


@pytest.mark.parametrize("name", NPZ_REFUSED)
def test_npz_files_that_are_refused(name: str, tmp_path: Path) -> None:
    arrays, kind, text = NPZ_REFUSED[name]
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(kind, match=text):
        read_images(tmp_path / "d.npz")


def test_a_damaged_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    (tmp_path / "d.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:500])
    with pytest.raises(KindError, match=r"a whole \.npz file; got '.*', which cannot be read"):
        read_images(tmp_path / "d.npz")


# -- the door --------------------------------------------------------------------------------------------------


def test_arrays_are_resized_and_coloured() -> None:
    images = read_images(size=16, colour="colour")
    assert images.shape == (3, 16, 16)
    assert torch.equal(images.training.pixels[:, 0], images.training.pixels[:, 2])
    assert images.notes == ("1 797 images resized to 16 × 16, as asked; the images have 1 size",)


DOOR: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "number": (lambda _: read_images(3), KindError, "source: a folder, an .npz file, or None for digits; got int"),  # type: ignore[arg-type]
    "nowhere": (lambda p: read_images(p / "no"), CallError, "a folder or an .npz file; got '.*no', which is not there"),
    "zip": (lambda p: read_images(p / "a.zip"), KindError, "or an .npz file; got the file '.*zip'; unpack it first"),
    "colour": (lambda _: read_images(colour="sepia"), CallError, "one of 'keep', 'grey', 'colour'; got 'sepia'"),
    "size": (lambda _: read_images(size=0), CallError, r"size: one number of pixels, or \(height, width\), .*; got 0"),
    "three": (lambda _: read_images(size=(8, 8, 8)), CallError, r"got \(8, 8, 8\)"),  # type: ignore[arg-type]
    "prime": (
        lambda _: read_images(size=29),
        CallError,
        "16 to 64 square patches fill; got 29 × 29; the nearest is 28 × 28",
    ),
    "held_out": (lambda _: read_images(held_out=2), CallError, "held_out: a share between 0 and 1"),
}


@pytest.mark.parametrize("name", DOOR)
def test_what_is_refused_at_the_door(name: str, tmp_path: Path) -> None:
    call, kind, text = DOOR[name]
    (tmp_path / "a.zip").write_bytes(b"PK")
    with pytest.raises(kind, match=text):
        call(tmp_path)


def test_images_that_would_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "MEMORY", 10**5)
    with pytest.raises(
        CallError, match=r"size: images that take at most .*; got 1 797 images of 8 × 8, .*; pass a small"
    ):
        read_images()
