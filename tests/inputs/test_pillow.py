"""Pillow images of every mode, and files that are whole, turned, animated, broken or missing."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from PIL import Image

from regard.algebra.errors import CallError, MissingExtra
from regard.inputs.images import patches, pixels, unit
from regard.inputs.pillow import picture

RNG = np.random.default_rng(0)
WIDTH, HEIGHT = 13, 17


def noise(*channels: int, dtype: str = "uint8") -> Any:
    kind = np.dtype(dtype)
    raw = RNG.integers(0, 256, (HEIGHT, WIDTH, *channels, kind.itemsize), dtype=np.uint8)
    return raw.view(kind)[..., 0]


def laid_over(colours: Any, alpha: Any, grey: int = 255) -> Any:
    """By Pillow, which composes the same way."""
    top = Image.fromarray(np.dstack([colours, alpha])).convert("RGBA")
    whole = Image.alpha_composite(Image.new("RGBA", top.size, (grey,) * 3), top).convert("RGB")
    return np.asarray(whole if colours.ndim == 3 else whole.convert("L"))


PALETTE = RNG.integers(0, 256, (256, 3), dtype=np.uint8)
ALPHAS = RNG.integers(0, 256, 256, dtype=np.uint8)
GREY, COLOURS, ALPHA, FOUR = noise(), noise(3), noise(), noise(4)
BITS, SHORT, INTEGERS, FLOATS = (
    GREY > 127,
    noise(dtype="<u2"),
    noise(dtype="<i4"),
    RNG.random((HEIGHT, WIDTH), "float32"),
)


def of(mode: str, data: Any) -> Any:
    return Image.frombytes(mode, (WIDTH, HEIGHT), np.ascontiguousarray(data).tobytes())


def with_palette(mode: str, colours: Any, data: Any = GREY) -> Any:
    image = of(mode, data)
    image.putpalette(colours.tobytes(), {3: "RGB", 4: "RGBA"}[colours.shape[1]])
    return image


def with_transparent(image: Any, value: Any) -> Any:
    image.info["transparency"] = value
    return image


# what the image is, what is read, and what is read with alpha where that is something else
CASES: dict[str, tuple[Any, Any, Any]] = {
    "1": (Image.fromarray(BITS), BITS, None),
    "L": (of("L", GREY), GREY, None),
    "I;16": (of("I;16", SHORT), SHORT, None),
    "I;16L": (of("I;16L", SHORT), SHORT, None),
    "I;16B": (of("I;16B", SHORT.astype(">u2")), SHORT, None),
    "I;16N": (of("I;16N", SHORT.astype("=u2")), SHORT, None),
    "I": (Image.fromarray(INTEGERS), INTEGERS, None),
    "F": (Image.fromarray(FLOATS), FLOATS, None),
    "RGB": (of("RGB", COLOURS), COLOURS, None),
    "RGBX": (of("RGBX", np.dstack([COLOURS, ALPHA])), COLOURS, None),
    "CMYK": (of("CMYK", FOUR), np.asarray(of("CMYK", FOUR).convert("RGB")), None),
    "YCbCr": (of("YCbCr", COLOURS), np.asarray(of("YCbCr", COLOURS).convert("RGB")), None),
    "HSV": (of("HSV", COLOURS), np.asarray(of("HSV", COLOURS).convert("RGB")), None),
    "LAB": (of("LAB", COLOURS), np.asarray(of("LAB", COLOURS).convert("RGB")), None),
    "P": (with_palette("P", PALETTE), PALETTE[GREY], None),
    "LA": (of("LA", np.dstack([GREY, ALPHA])), laid_over(GREY, ALPHA), np.dstack([GREY, ALPHA])),
    "RGBA": (of("RGBA", np.dstack([COLOURS, ALPHA])), laid_over(COLOURS, ALPHA), np.dstack([COLOURS, ALPHA])),
}
HALF = np.where(BITS, 255, 0).astype(np.uint8)
TRANSPARENT = {
    "La": (of("LA", np.dstack([GREY, HALF])).convert("La"), GREY, HALF),
    "RGBa": (of("RGBA", np.dstack([COLOURS, HALF])).convert("RGBa"), COLOURS, HALF),
    "PA": (with_palette("PA", PALETTE, np.dstack([GREY, ALPHA])), PALETTE[GREY], ALPHA),
    "P with an alpha for each colour": (
        with_transparent(with_palette("P", PALETTE), ALPHAS.tobytes()), PALETTE[GREY], ALPHAS[GREY]),
    "P with one transparent colour": (
        with_transparent(with_palette("P", PALETTE), 7), PALETTE[GREY % 11], np.where(GREY % 11 == 7, 0, 255)),
    "P with a palette of four": (
        with_palette("P", np.column_stack([PALETTE, ALPHAS])), PALETTE[GREY], ALPHAS[GREY]),
    "L with a transparent grey": (with_transparent(of("L", GREY % 11), 7), GREY % 11, np.where(GREY % 11 == 7, 0, 255)),
    "1 with a transparent value": (with_transparent(Image.fromarray(BITS), 255), HALF, 255 - HALF),
    "RGB with a transparent colour": (
        with_transparent(of("RGB", COLOURS % 2), (0, 1, 0)), COLOURS % 2,
        np.where((COLOURS % 2 == (0, 1, 0)).all(-1), 0, 255)),
}  # fmt: skip
TRANSPARENT["P with one transparent colour"][0].putdata((GREY % 11).flatten().tolist())


# -- modes -----------------------------------------------------------------------------------------------------------


def test_every_mode_of_pillow_is_here() -> None:
    assert {name.split()[0] for name in (*CASES, *TRANSPARENT)} >= set(Image.MODES)


@pytest.mark.parametrize("name", CASES)
def test_what_each_mode_is_read_as(name: str) -> None:
    image, expected, with_alpha = CASES[name]
    assert image.mode == name
    for background, array in ((255, expected), (None, expected if with_alpha is None else with_alpha)):
        found = pixels(image, background=background)
        assert found.dtype == array.dtype
        assert found.dtype.isnative
        assert found.flags.writeable
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("name", TRANSPARENT)
@pytest.mark.parametrize("background", [255, 0, 100, None])
def test_what_can_be_seen_through_lies_on_the_background(name: str, background: int | None) -> None:
    image, colours, alpha = TRANSPARENT[name]
    before = image.tobytes(), dict(image.info), image.mode
    found = pixels(image, background=background)
    assert (image.tobytes(), dict(image.info), image.mode) == before
    assert found.dtype == np.uint8
    if background is not None:
        np.testing.assert_array_equal(found, laid_over(colours, alpha.astype(np.uint8), background))
        return
    visible = alpha > 0  # colours that are multiplied by 0 are lost
    np.testing.assert_array_equal(found[..., -1], alpha)
    np.testing.assert_array_equal(np.squeeze(found[..., :-1])[visible], colours[visible])


def test_alpha_is_rounded_as_the_formula_says() -> None:
    colours, alpha = np.mgrid[:256, :256]
    image = Image.fromarray(np.dstack([colours, alpha]).astype(np.uint8))
    for grey in (0, 1, 128, 254, 255):
        exact = (alpha * colours + (255 - alpha) * grey) / 255
        np.testing.assert_array_equal(pixels(image, background=grey), np.rint(exact))


@pytest.mark.parametrize("mode", ["RGB", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "P", "RGBA", "RGBa"])
@pytest.mark.parametrize("colour", [(180, 90, 70), (90, 120, 160), (10, 20, 30)])
def test_a_colour_is_itself_in_every_mode(mode: str, colour: tuple[int, int, int]) -> None:
    image = Image.new("RGB", (WIDTH, HEIGHT), colour)
    found = pixels(image.quantize() if mode == "P" else image.convert(mode)).astype(int)
    assert found.shape == (HEIGHT, WIDTH, 3)
    assert np.abs(found - colour).max() <= 6  # a hue of 8 bits is as coarse: 6 of its sectors share 256 steps


def test_numbers_of_16_bits_survive_a_file(tmp_path: Path) -> None:
    for suffix in ("png", "tiff"):
        Image.fromarray(SHORT).save(tmp_path / f"short.{suffix}")
        found = pixels(tmp_path / f"short.{suffix}")
        np.testing.assert_array_equal(found, SHORT)
        np.testing.assert_array_equal(unit(tmp_path / f"short.{suffix}"), SHORT.astype("float32") / 65535)


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
def test_exif_says_how_the_image_stands(tmp_path: Path, orientation: int, suffix: str) -> None:
    """Orientation: where the first row and the first column of the file belong."""
    stands = {
        1: COLOURS, 2: COLOURS[:, ::-1], 3: COLOURS[::-1, ::-1], 4: COLOURS[::-1],
        5: COLOURS.swapaxes(0, 1), 6: COLOURS[::-1].swapaxes(0, 1),
        7: COLOURS[::-1, ::-1].swapaxes(0, 1), 8: COLOURS[:, ::-1].swapaxes(0, 1),
    }  # fmt: skip
    exif, path = Image.Exif(), tmp_path / f"turned.{suffix}"
    exif[0x0112] = orientation
    Image.fromarray(COLOURS).save(path, exif=exif, **({"lossless": True} if suffix == "webp" else {}))
    np.testing.assert_array_equal(pixels(path), stands[orientation])
    np.testing.assert_array_equal(pixels(str(path)), stands[orientation])
    with Image.open(path) as image:
        np.testing.assert_array_equal(pixels(image), stands[orientation])
    np.testing.assert_array_equal(patches(path, (5, 3)).image(), stands[orientation])


def test_of_an_animation_the_first_frame_is_read_or_the_one_it_stands_at(tmp_path: Path) -> None:
    frames = [Image.fromarray(frame) for frame in (GREY, ALPHA)]
    frames[0].save(tmp_path / "two.gif", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "two.tiff", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(pixels(tmp_path / "two.tiff"), GREY)
    np.testing.assert_array_equal(pixels(tmp_path / "two.gif")[..., 0], GREY)
    with Image.open(tmp_path / "two.tiff") as image:
        image.seek(1)
        np.testing.assert_array_equal(pixels(image), ALPHA)


def saved(suffix: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(COLOURS).save(file, suffix)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:.*(EXIF|Truncated):UserWarning")  # Pillow also warns
@pytest.mark.parametrize("suffix", ["png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm"])
def test_a_file_that_breaks_off_is_an_error_or_whole(tmp_path: Path, suffix: str) -> None:
    data, path = saved(suffix), tmp_path / f"broken.{suffix}"
    refused = []
    for length in range(0, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:length])
        try:
            assert pixels(path).shape == (HEIGHT, WIDTH, 3)
        except CallError as error:
            refused.append(str(error))
    told = re.compile(rf"image: '.*broken\.{suffix}' cannot be read: .*; pass an image that Pillow can open", re.DOTALL)
    assert len(refused) > 30
    assert all(map(told.fullmatch, refused))


def test_an_open_image_that_breaks_off_is_an_error_too() -> None:
    with (
        Image.open(io.BytesIO(saved("png")[:300])) as image,
        pytest.raises(CallError, match="image: the Pillow image cannot be"),
    ):
        pixels(image)


def test_what_is_no_image_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("no image", encoding="utf-8")
    Image.fromarray(COLOURS).save("cat.png")
    missing = f"image: there is no file 'dog.png'; check the path, from {str(tmp_path)!r}"
    for call in (
        lambda: pixels("dog.png"),
        lambda: patches(Path("dog.png"), 16),
        lambda: pixels(["cat.png", "dog.png"]),
    ):
        with pytest.raises(CallError, match=re.escape(missing)):
            call()
    with pytest.raises(CallError, match=r"image: 'text\.txt' cannot be read: cannot identify image file"):
        pixels("text.txt")
    with pytest.raises(CallError, match=r"cannot be read: .*Is a directory"):
        pixels(tmp_path)
    with pytest.raises(CallError, match="File name too long"):
        pixels("x" * 5000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(CallError, match=r"image: 'cat\.png' cannot be read: Image size \(221 pixels\) exceeds limit"):
        pixels("cat.png")


def test_an_image_without_pixels_is_refused() -> None:
    with pytest.raises(CallError, match=re.escape("image: at least one pixel and one channel; got shape (5, 0)")):
        patches(Image.new("L", (0, 5)), 16)


def test_a_closed_image_is_refused() -> None:
    image = Image.open(io.BytesIO(saved("png")))
    image.close()
    with pytest.raises(CallError, match="image: the Pillow image cannot be read: Operation on closed image"):
        pixels(image)


def test_pillow_is_asked_for_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    text = re.escape('this needs pillow, which is not installed: pip install "regard[inputs]"')
    for call in (lambda: pixels("cat.png"), lambda: picture(GREY)):
        with pytest.raises(MissingExtra, match=text):
            call()


def test_arrays_need_no_pillow() -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "import numpy as np; from regard.inputs.images import patches\n"
        "assert patches(np.zeros((32, 32, 3)), 16).shape == (4, 768)\n"
        "assert not {'torch', 'PIL.Image'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# -- and back --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1", "L", "I;16", "I", "F", "RGB", "LA", "RGBA"])
@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, jnp.asarray])
def test_picture_undoes_pixels(name: str, convert: Any) -> None:
    image = CASES[name][0]
    array = patches(
        convert(pixels(image, background=None)), (5, 3), layout="hw" if len(image.getbands()) == 1 else "hwc"
    ).image()
    found = picture(array)
    assert found.mode == name
    assert found.tobytes() == image.tobytes()


def test_one_channel_needs_no_axis() -> None:
    assert picture(GREY[..., None]).tobytes() == picture(GREY).tobytes()
    assert picture(torch.tensor(FLOATS, requires_grad=True)).mode == "F"


@pytest.mark.parametrize("shape", [(3,), (3, 5, 0), (3, 5, 5), (2, 3, 5, 3), (3, 5, "float64"), (3, 5, 3, "float32")])
def test_what_is_no_picture_is_refused(shape: Any) -> None:
    array = np.zeros(shape[:-1], shape[-1]) if isinstance(shape[-1], str) else np.zeros(shape, "uint8")
    with pytest.raises(
        CallError, match=re.escape(f"got {array.dtype} of shape {array.shape}; cast it, move channels last")
    ):
        picture(array)
