"""Images of every kind as patches, and back: arrays, lists, Pillow images, files and batches; and the class token."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from regard.algebra.errors import CallError, KindError
from regard.inputs.grid import Grid
from regard.inputs.images import Patches, class_token, patches, pixels, unit

RNG = np.random.default_rng(0)
KINDS: dict[str, Any] = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
SHAPES = {  # of different primes
    "hw": (17, 13), "hwc": (17, 13, 3), "chw": (3, 17, 13), "bhw": (5, 17, 13), "bhwc": (5, 17, 13, 3),
    "bchw": (5, 3, 17, 13), "bbhwc": (5, 7, 17, 13, 3), "bbchw": (5, 7, 3, 17, 13),
}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS)


def bytes_of(shape: tuple[int, ...]) -> Any:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


# -- cut and put together --------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("layout", SHAPES)
def test_every_layout_comes_back(kind: str, layout: str) -> None:
    image = KINDS[kind](bytes_of(SHAPES[layout]))
    cut = patches(image, (5, 3), layout=layout)
    assert cut.grid == Grid((5, 3), 17, 13, 3 if "c" in layout else 1, layout.lstrip("b"), "pad")
    assert cut.shape == cut.vectors.shape == (*image.shape[: layout.count("b")], 20, 45 if "c" in layout else 15)
    assert len(cut) == 20
    back = cut.image()
    assert type(back) is type(image)
    assert back.dtype == image.dtype
    np.testing.assert_array_equal(back, image)
    if layout != "bhw":  # which cannot be told from the channels of one image
        np.testing.assert_array_equal(patches(image, (5, 3)).vectors, cut.vectors)


@given(st.data())
def test_any_image_comes_back(data: Any) -> None:
    layout = data.draw(st.sampled_from(["hw", "hwc", "chw", "bhw", "bhwc", "bchw", "bbchw"]))
    shape = data.draw(st.tuples(*[st.integers(1, 9)] * len(layout)))
    size = data.draw(st.integers(1, 11) | st.tuples(st.integers(1, 11), st.integers(1, 11)))
    image = bytes_of(shape)
    cut = patches(image, size, layout=layout)
    np.testing.assert_array_equal(cut.image(), image)
    last = np.moveaxis(image, layout.index("c"), -1) if "c" in layout else image[..., None]
    other = patches(last, size, layout="b" * layout.count("b") + "hwc")
    np.testing.assert_array_equal(cut.vectors, other.vectors)


def test_the_numbers_of_the_paper() -> None:
    assert patches(np.zeros((224, 224, 3)), 16).shape == (196, 768)


@pytest.mark.parametrize("size", [16, (14, 16), (31, 1), (1, 37)])
def test_a_patch_larger_than_the_image_is_padded(size: Any) -> None:
    image = bytes_of((13, 11, 3))
    cut = patches(image, size)
    h, w = cut.grid.size
    whole = np.pad(image, ((0, -13 % h), (0, -11 % w), (0, 0)), mode="edge")
    np.testing.assert_array_equal(cut.vectors, patches(whole, size, rest="refuse").vectors)
    np.testing.assert_array_equal(cut.image(), image)


def test_what_is_cropped_is_dropped() -> None:
    image = bytes_of((17, 13, 3))
    cut = patches(image, (5, 3), rest="crop")
    assert (cut.grid.rows, cut.grid.columns) == (3, 4)
    np.testing.assert_array_equal(cut.image(), image[:15, :12])
    np.testing.assert_array_equal(cut.vectors, patches(image[:15, :12], (5, 3), rest="refuse").vectors)
    painted = cut.paint(np.ones(12))
    assert painted.shape == (17, 13)
    assert painted[:15, :12].all()
    assert painted.sum() == 15 * 12


def test_gradients_flow_to_the_image_and_edges_count_several_times() -> None:
    image = torch.zeros(2, 3, 4, 5, requires_grad=True)
    patches(image, 3, layout="bchw").vectors.sum().backward()
    np.testing.assert_array_equal(image.grad, np.broadcast_to(np.outer([1, 1, 1, 3], [1, 1, 1, 1, 2]), (2, 3, 4, 5)))


def test_patches_work_inside_of_jit() -> None:
    image = RNG.random((17, 13, 3))
    total = jax.jit(lambda x: patches(x, 5).paint(patches(x, 5).vectors.sum(-1)))(jnp.asarray(image))
    cut = patches(image, 5)
    np.testing.assert_allclose(total, cut.paint(cut.vectors.sum(-1)), rtol=1e-13)


# -- what comes out --------------------------------------------------------------------------------------------------


@every_kind
def test_numpy_reads_patches_as_vectors(kind: str) -> None:
    cut = patches(KINDS[kind](bytes_of((17, 13))), 5)
    assert np.asarray(cut).dtype == np.uint8
    np.testing.assert_array_equal(np.asarray(cut), cut.vectors)
    assert np.asarray(cut, dtype="float32").dtype == np.float32
    np.testing.assert_array_equal(np.matmul(cut, np.eye(25)), cut.vectors)
    assert np.shares_memory(np.asarray(cut), np.asarray(cut.vectors))
    assert not np.shares_memory(np.array(cut, copy=True), np.asarray(cut.vectors))


def test_numpy_reads_what_is_part_of_a_graph() -> None:
    cut = patches(torch.ones(17, 13, requires_grad=True), 5)
    assert np.asarray(cut).shape == (12, 25)


def test_patches_print_travel_and_do_not_change() -> None:
    cut = patches(bytes_of((2, 17, 13, 3)), 5)
    assert repr(cut) == f"Patches(uint8 of shape (2, 12, 75), {cut.grid!r})"
    again = pickle.loads(pickle.dumps(cut))
    assert again.grid == cut.grid
    np.testing.assert_array_equal(again.image(), cut.image())
    assert isinstance(hash(cut), int)
    assert cut == cut  # by what it is: NumPy would compare its numbers one by one
    assert cut != again
    with pytest.raises(AttributeError):
        cut.grid = None  # type: ignore[misc, assignment]


def test_attention_is_painted_back() -> None:
    """The weights of one patch over all, with a class token in front, on the image."""
    cut = patches(RNG.random((17, 13, 3)), 5)
    x = class_token(cut.vectors)
    scores = x @ x.T / np.sqrt(75)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    painted = cut.paint(weights, skip=1)
    assert painted.shape == (13, 17, 13)
    for i, (y, x) in ((0, (3, 7)), (5, (16, 12)), (12, (10, 0))):
        assert painted[i, y, x] == weights[i, 1 + cut.grid.at(y, x)]
    y = cut.grid.image((weights @ class_token(cut.vectors))[1:])
    assert y.shape == (17, 13, 3)


# -- what goes in ----------------------------------------------------------------------------------------------------


def test_nested_lists_are_numpys() -> None:
    cut = patches([[0, 1, 2], [3, 4, 5]], (1, 2))
    np.testing.assert_array_equal(cut.vectors, [[0, 1], [2, 2], [3, 4], [5, 5]])
    assert cut.vectors.dtype == np.float64
    assert patches([[[0, 1, 2]] * 7] * 5, 5).grid.layout == "hwc"


@pytest.mark.parametrize("mode", ["L", "RGB", "1", "I", "F"])
def test_images_of_pillow_and_files_are_batches_too(tmp_path: Path, mode: str) -> None:
    images = [Image.fromarray(bytes_of((17, 13, 3))).convert(mode) for _ in range(5)]
    paths = [tmp_path / f"{place}.tiff" for place in range(5)]
    for path, image in zip(paths, images, strict=True):
        image.save(path)
    layout = "hwc" if mode == "RGB" else "hw"
    expected = np.stack([patches(image, 5).vectors for image in images])
    mixed: list[Any] = [images[0], str(paths[1]), *paths[2:]]
    for batch in (images, tuple(images), paths, mixed):
        cut = patches(batch, 5)
        assert cut.grid == patches(images[0], 5).grid
        assert cut.grid.layout == layout
        np.testing.assert_array_equal(cut.vectors, expected)
        np.testing.assert_array_equal(cut.image(), pixels(images))
    assert patches(images, 5, layout=f"b{layout}").shape == expected.shape
    assert patches([images, images], 5).shape == (2, *expected.shape)


def test_the_mode_tells_the_layout_where_lengths_would_not() -> None:
    for width, height in ((4, 3), (13, 3), (4, 17), (1, 1)):
        image = Image.fromarray(bytes_of((height, width, 3)))
        cut = patches(image, 2)
        assert (cut.grid.height, cut.grid.width, cut.grid.channels, cut.grid.layout) == (height, width, 3, "hwc")
        np.testing.assert_array_equal(cut.image(), np.asarray(image))


@every_kind
def test_a_list_of_arrays_is_stacked(kind: str) -> None:
    images = bytes_of((5, 17, 13, 3))
    cut = patches([KINDS[kind](image) for image in images], 5)
    assert type(cut.vectors) is type(KINDS[kind](images))
    np.testing.assert_array_equal(cut.vectors, patches(images, 5).vectors)


def test_no_images_at_all_are_a_batch() -> None:
    cut = patches(np.zeros((0, 17, 13, 3)), 5)
    assert cut.shape == (0, 12, 75)
    assert cut.image().shape == (0, 17, 13, 3)
    assert cut.paint(np.zeros((0, 12))).shape == (0, 17, 13)


RGB, GREY = Image.new("RGB", (13, 17)), Image.new("L", (13, 17))
ZEROS = np.zeros
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: patches(ZEROS((12, 20, 3)), 16, rest="crop"), CallError,
     "size: at most the image's 12 × 20; got 16 × 16; pass rest='pad' or a smaller size"),
    (lambda: patches(ZEROS((12, 20, 3)), 5, rest="refuse"), CallError,
     "size: patches that fill the image's 12 × 20; got 5 × 5"),
    (lambda: patches(ZEROS((12, 20, 3)), 5, rest="mirror"), CallError,
     "rest: one of 'pad', 'crop', 'refuse'; got 'mirror'"),
    (lambda: patches(ZEROS((12, 20, 3)), 0), CallError, "size: 1 or more; got 0"),
    (lambda: patches(ZEROS((12, 20, 3)), -3), CallError, "size: 1 or more; got -3"),
    (lambda: patches(ZEROS((12, 20, 3)), True), KindError, "size: a whole number; got True"),
    (lambda: patches(ZEROS((12, 20, 3)), 2.0), KindError, "size: a whole number; got 2.0"),
    (lambda: patches(ZEROS((12, 20, 3)), (2, 3, 4)), CallError,
     "size: one whole number, or a height and a width; got (2, 3, 4)"),
    (lambda: patches(ZEROS((3, 17, 4)), 5), CallError,
     "got shape (3, 17, 4), where both are; pass layout='hwc', 'chw' or 'bhw'"),
    (lambda: patches(ZEROS((5, 17, 13)), 5), CallError,
     ("layout: told where either the last axis or the third to last is 1 to 4 long; got shape (5, 17, 13), "
     "where neither is; pass layout='hwc', 'chw' or 'bhw'")),
    (lambda: patches(ZEROS((5, 7, 17, 13)), 5), CallError, "where neither is; pass layout='bhwc', 'bchw' or 'bbhw'"),
    (lambda: patches(ZEROS((5, 3, 17, 3)), 5), CallError, "where both are; pass layout='bhwc', 'bchw' or 'bbhw'"),
    (lambda: patches(ZEROS(5), 5), CallError, "image: at least the two axes height and width; got shape (5,)"),
    (lambda: patches(ZEROS(()), 5), CallError, "image: at least the two axes height and width; got shape ()"),
    (lambda: patches([], 5), CallError, "image: at least the two axes height and width; got shape (0,)"),
    (lambda: patches(ZEROS((5, 17, 13)), 5, layout="bwh"), CallError,
     ("layout: 'hw', 'hwc' or 'chw', with a 'b' in front for each axis of a batch; got 'bwh'; name every axis "
     "of the image")),
    (lambda: patches(ZEROS((5, 17, 13)), 5, layout=3), CallError, "got 3; name every axis"),
    (lambda: patches(ZEROS((5, 17, 13)), 5, layout=""), CallError, "got ''; name every axis"),
    (lambda: patches(ZEROS((5, 3, 17, 13)), 5, layout="chw"), CallError,
     "layout: 'chw' names 3 axes; got an image of shape (5, 3, 17, 13); pass 'bchw'"),
    (lambda: patches(ZEROS((3, 17, 13)), 5, layout="bchw"), CallError,
     "layout: 'bchw' names 4 axes; got an image of shape (3, 17, 13); pass 'chw'"),
    (lambda: patches(ZEROS((17, 13)), 5, layout="chw"), CallError,
     "layout: 'chw' names 3 axes; got an image of shape (17, 13); pass a layout of the axes that it has"),
    (lambda: patches(RGB, 5, layout="chw"), CallError,
     "layout: 'hwc', as the image's mode says; got 'chw'; leave it out"),
    (lambda: patches([GREY], 5, layout="hw"), CallError,
     "layout: 'bhw', as the image's mode says; got 'hw'; leave it out"),
    (lambda: patches(ZEROS((0, 13, 3)), 5, layout="hwc"), CallError,
     "image: at least one pixel and one channel; got shape (0, 13, 3)"),
    (lambda: patches(ZEROS((17, 13, 0)), 5, layout="hwc"), CallError,
     "image: at least one pixel and one channel; got shape (17, 13, 0)"),
    (lambda: patches(7, 5), KindError,
     "image: an array, nested lists, a Pillow image, a path, or a list of such; got int"),
    (lambda: patches(None, 5), KindError, "a path, or a list of such; got NoneType"),
    (lambda: patches([RGB, 7], 5), KindError, "a path, or a list of such; got int"),
    (lambda: patches([[1, 2], [3]], 5), KindError,
     "image: nested lists of numbers, all rows of one length; got [[1, 2], [3]]"),
    (lambda: patches(ZEROS((5, 5), object), 5), KindError, "image: numbers or truths; got an array of object"),
    (lambda: patches(np.full((5, 5), "a"), 5), KindError, "image: numbers or truths; got an array of <U1"),
    (lambda: patches([RGB, GREY], 5), CallError,
     ("image: a batch has one size, dtype and number of channels; got numpy uint8 of shape (17, 13, 3) and "
     "numpy uint8 of shape (17, 13); resize or convert them, or cut each by itself")),
    (lambda: patches([GREY, GREY.convert("F")], 5), CallError,
     "got numpy uint8 of shape (17, 13) and numpy float32 of shape (17, 13)"),
    (lambda: patches([RGB, RGB.resize((17, 13))], 5), CallError,
     "got numpy uint8 of shape (17, 13, 3) and numpy uint8 of shape (13, 17, 3)"),
    (lambda: pixels(RGB, background=256), CallError,
     "background: a grey from 0, black, to 255, white, or None to keep alpha; got 256"),
    (lambda: pixels(RGB, background=-1), CallError, "background: 0 or more; got -1"),
    (lambda: pixels(RGB, background="white"), KindError, "background: a whole number; got 'white'"),
    (lambda: unit(ZEROS((5, 5), "int32")), CallError,
     ("image: floats, truths, or integers without sign, whose range is known; got int32; divide it by its "
     "largest value")),
    (lambda: unit(ZEROS((5, 5), "complex64")), CallError, "got complex64"),
    (lambda: class_token(ZEROS(5)), CallError, "x: vectors (…, N, D); got shape (5,); pass x[None] for one vector"),
    (lambda: class_token(ZEROS((5, 3)), ZEROS(5)), CallError,
     ("token: of x's library, dtype and width, numpy float64 of shape (3,); got numpy float64 of shape (5,); "
     "cast or reshape it")),
    (lambda: class_token(ZEROS((5, 3)), ZEROS((1, 3))), CallError, "got numpy float64 of shape (1, 3)"),
    (lambda: class_token(ZEROS((5, 3)), ZEROS(3, "float32")), CallError, "got numpy float32 of shape (3,)"),
    (lambda: class_token(torch.zeros(5, 3), ZEROS(3)), CallError,
     "torch torch.float32 of shape (3,); got numpy float64 of shape (3,)"),
    (lambda: class_token("x"), KindError, "x: an array or nested lists of numbers; got str"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


# -- from 0 to 1 -----------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_unit_is_the_nearest_number(kind: str, dtype: str) -> None:
    most = np.iinfo(dtype).max
    values = np.arange(most + 1, dtype=dtype).reshape(1, -1)
    found = unit(KINDS[kind](values))
    assert type(found) is type(KINDS[kind](values))
    expected = (values.astype(np.float64) / most).astype(np.float32)
    np.testing.assert_array_max_ulp(np.asarray(found), expected, maxulp=int(kind == "jax"))  # it multiplies by 1 / most
    assert found[0, 0] == 0
    assert found[0, -1] == 1


@every_kind
def test_unit_of_truths_and_floats(kind: str) -> None:
    truths = unit(KINDS[kind](np.array([[True, False]])))
    np.testing.assert_array_equal(np.asarray(truths), np.array([[1, 0]], np.float32))
    assert np.asarray(truths).dtype == np.float32
    for dtype in ("float16", "float32", "float64"):
        floats = KINDS[kind](np.array([[-3, 0.5, 200]], dtype))
        assert unit(floats) is floats
    wide = unit(KINDS[kind](np.array([[0, 2**32 - 1]], np.uint32)))
    np.testing.assert_array_equal(np.asarray(wide), [[0, 1]])


def test_unit_reads_whatever_pixels_reads() -> None:
    np.testing.assert_array_equal(
        unit(Image.new("RGB", (13, 17), (0, 51, 255))), np.full((17, 13, 3), [0, 0.2, 1], "f4")
    )
    np.testing.assert_array_equal(unit([Image.new("1", (13, 17), 1)]), np.ones((1, 17, 13)))
    assert unit(np.zeros((5, 5), ">u2")).dtype == np.float32


# -- the class token -------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("batch", [(), (2,), (2, 7)])
def test_the_token_stands_first(kind: str, batch: tuple[int, ...]) -> None:
    convert = KINDS[kind]
    x, token = RNG.random((*batch, 5, 3)), RNG.random(3)
    found, zero = class_token(convert(x), convert(token)), class_token(convert(x))
    assert found.shape == zero.shape == (*batch, 6, 3)
    assert type(found) is type(zero) is type(convert(x))
    for array, first in ((found, token), (zero, np.zeros(3))):
        np.testing.assert_array_equal(array[..., 1:, :], x)
        np.testing.assert_array_equal(array[..., 0, :], np.broadcast_to(first, (*batch, 3)))


@every_kind
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_the_token_keeps_the_dtype(kind: str, dtype: str) -> None:
    x = KINDS[kind](np.ones((5, 3), dtype))
    assert class_token(x).dtype == class_token(x, x[0]).dtype == x.dtype


def test_the_token_learns() -> None:
    x, token = torch.ones(2, 7, 5, 3, requires_grad=True), torch.zeros(3, requires_grad=True)
    along = torch.randn(2, 7, 6, 3)
    class_token(x, token).backward(along)
    assert torch.equal(x.grad, along[..., 1:, :])
    torch.testing.assert_close(token.grad, along[..., 0, :].sum((0, 1)))
    assert class_token(torch.empty(5, 3, device="meta")).device.type == "meta"


def test_patches_by_hand() -> None:
    grid = Grid((5, 5), 17, 13)
    cut = Patches(np.zeros((12, 75)), grid)
    assert cut.image().shape == (17, 13, 3)
