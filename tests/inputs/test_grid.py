"""The grid: image to vectors and back bit for bit, and one number per patch painted where the patch is."""

from __future__ import annotations

import pickle
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.inputs.grid import Grid

RNG = np.random.default_rng(0)
KINDS: dict[str, Any] = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
DTYPES = "uint8 uint16 int32 int64 bool float16 float32 float64 complex64".split()
LAYOUTS = ["hw", "hwc", "chw"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


@st.composite
def grids(draw: Any, rests: tuple[str, ...] = ("pad", "crop")) -> Grid:
    """Grids of images and patches of any size; a patch that is larger than the image is padded."""
    side, few = st.integers(1, 13), st.integers(1, 5)
    layout, rest = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(rests))
    height, width, h, w = draw(side), draw(side), draw(side), draw(side)
    size = (h, w) if rest == "pad" else (min(h, height), min(w, width))
    return Grid(size, height, width, 1 if layout == "hw" else draw(few), layout, rest)


def numbered(grid: Grid, *batch: int) -> Any:
    """An image in which no two numbers are equal."""
    axes = {"h": grid.height, "w": grid.width, "c": grid.channels}
    shape = (*batch, *(axes[axis] for axis in grid.layout))
    return np.arange(np.prod(shape)).reshape(shape)


def channels_last(grid: Grid, image: Any) -> Any:
    return {"hw": lambda x: x[..., None], "hwc": lambda x: x, "chw": lambda x: np.moveaxis(x, -3, -1)}[grid.layout](
        image
    )


def kept(grid: Grid, image: Any) -> Any:
    """The part of the image that patches hold, in its layout."""
    height, width = grid.rows * grid.size[0], grid.columns * grid.size[1]
    return image[..., :height, :width, :] if grid.layout == "hwc" else image[..., :height, :width]


# -- image and vectors -----------------------------------------------------------------------------------------------


@given(grids())
def test_each_number_goes_where_the_formula_says(grid: Grid) -> None:
    image = numbered(grid)
    vectors, pixels, (h, w) = grid.vectors(image), channels_last(grid, image), grid.size
    assert vectors.shape == grid.shape == (grid.rows * grid.columns, h * w * grid.channels)
    for r, c, y, x, z in np.ndindex(grid.rows, grid.columns, h, w, grid.channels):
        expected = pixels[min(r * h + y, grid.height - 1), min(c * w + x, grid.width - 1), z]
        assert vectors[r * grid.columns + c, (y * w + x) * grid.channels + z] == expected


@given(grids(), st.lists(st.integers(0, 3), max_size=2))
def test_image_undoes_vectors_and_a_batch_is_each_image_by_itself(grid: Grid, batch: list[int]) -> None:
    image = numbered(grid, *batch)
    vectors = grid.vectors(image)
    assert vectors.shape == (*batch, *grid.shape)
    np.testing.assert_array_equal(grid.image(vectors), kept(grid, image))
    for place in np.ndindex(*batch):
        np.testing.assert_array_equal(vectors[place], grid.vectors(image[place]))


@given(grids())
def test_vectors_undo_image_where_nothing_is_left_over(grid: Grid) -> None:
    h, w = grid.size
    whole = Grid(grid.size, grid.rows * h, grid.columns * w, grid.channels, grid.layout, "refuse")
    vectors = np.arange(np.prod(whole.shape)).reshape(whole.shape)
    np.testing.assert_array_equal(whole.vectors(whole.image(vectors)), vectors)


@every_kind
@every_layout
@pytest.mark.parametrize("dtype", DTYPES)
def test_bit_for_bit_in_every_library_and_dtype(kind: str, layout: str, dtype: str) -> None:
    grid = Grid((5, 3), 17, 13, 1 if layout == "hw" else 7, layout)
    shape = numbered(grid, 2).shape
    bits = RNG.integers(0, 2, shape) if dtype == "bool" else RNG.integers(0, 256, (*shape, np.dtype(dtype).itemsize))
    raw = bits.astype(bool) if dtype == "bool" else bits.astype(np.uint8).view(dtype)[..., 0]  # with NaN of every kind
    image = KINDS[kind](raw)
    vectors = grid.vectors(image)
    back = grid.image(vectors)
    assert vectors.shape == (2, *grid.shape) == (2, 20, 15 * grid.channels)
    assert type(back) is type(vectors) is type(image)
    assert back.dtype == vectors.dtype == image.dtype
    assert np.ascontiguousarray(back).tobytes() == np.ascontiguousarray(image).tobytes()
    assert np.ascontiguousarray(vectors).tobytes() == grid.vectors(raw).tobytes()


@pytest.mark.parametrize("dtype", [">u2", ">f4", ">i8"])
def test_byte_order_is_kept(dtype: str) -> None:
    image = np.arange(17 * 13, dtype=dtype).reshape(17, 13)
    back = (grid := Grid((5, 3), 17, 13, 1, "hw")).image(grid.vectors(image))
    assert back.dtype.str == dtype
    assert back.tobytes() == image.tobytes()


def test_bfloat16_and_devices_are_kept() -> None:
    grid = Grid((5, 3), 17, 13)
    image = torch.randn(2, 17, 13, 3, dtype=torch.bfloat16)
    assert torch.equal(grid.image(grid.vectors(image)), image)
    weights = torch.rand(2, 20)
    vectors, painted = grid.vectors(image), grid.paint(weights)
    with torch.device("meta"):  # where new tensors go is not where the image lies
        assert torch.equal(grid.vectors(image), vectors)
        assert torch.equal(grid.paint(weights), painted)


def test_the_numbers_of_the_paper() -> None:
    assert Grid((16, 16), 224, 224).shape == (196, 768)
    assert Grid((14, 14), 224, 224).shape == (256, 588)


def test_a_convolution_whose_stride_is_its_kernel_is_a_product() -> None:
    grid = Grid((5, 3), 15, 12, 7, "chw")
    image, kernel = (torch.randint(-9, 9, shape).double() for shape in ((2, 7, 15, 12), (11, 7, 5, 3)))
    product = grid.vectors(image) @ kernel.permute(2, 3, 1, 0).reshape(-1, 11)
    expected = torch.nn.functional.conv2d(image, kernel, stride=(5, 3)).flatten(2).mT
    assert torch.equal(product, expected)


# -- gradients -------------------------------------------------------------------------------------------------------


def test_an_edge_that_is_repeated_collects_its_gradients() -> None:
    grid = Grid((5, 3), 17, 13, 1, "hw")
    image = torch.zeros(17, 13, requires_grad=True)
    grid.vectors(image).sum().backward()
    times = np.outer([1] * 16 + [4], [1] * 12 + [3])
    np.testing.assert_array_equal(image.grad, times)


def test_gradients_are_those_of_torch_and_of_jax() -> None:
    grid, start, along = (
        Grid((5, 3), 17, 13, 7, "chw"),
        RNG.standard_normal((2, 7, 17, 13)),
        RNG.standard_normal((2, 20, 105)),
    )
    leaves = [torch.tensor(start, requires_grad=True) for _ in range(2)]
    padded = torch.nn.functional.pad(leaves[0], (0, 2, 0, 3), mode="replicate")
    whole = Grid((5, 3), 20, 15, 7, "chw", "refuse")
    for leaf, vectors in zip(leaves, (whole.vectors(padded), grid.vectors(leaves[1])), strict=True):
        vectors.backward(torch.tensor(along))
        assert leaf.grad is not None
    torch.testing.assert_close(leaves[1].grad, leaves[0].grad, rtol=1e-14, atol=1e-14)
    slope = jax.grad(lambda x: (grid.vectors(x) * along).sum())(jnp.asarray(start))
    np.testing.assert_allclose(slope, leaves[0].grad, rtol=1e-14, atol=1e-14)


def test_the_way_back_and_the_paint_are_differentiable() -> None:
    grid = Grid((5, 3), 17, 13, 7, "chw")
    vectors, weights = torch.zeros(20, 105, requires_grad=True), torch.zeros(21, requires_grad=True)
    grid.image(vectors).sum().backward()
    inside = grid.vectors(np.ones((7, 17, 13))).copy()
    for index in range(20):
        _, _, height, width = grid.box(index)
        mask = np.zeros((5, 3, 7))
        mask[:height, :width] = 1
        inside[index] = mask.reshape(-1)
    np.testing.assert_array_equal(vectors.grad, inside)  # what was padded is read by no one
    grid.paint(weights, skip=1).sum().backward()
    areas = [height * width for _, _, height, width in map(grid.box, range(20))]
    np.testing.assert_array_equal(weights.grad, [0, *areas])


def test_it_compiles_and_maps() -> None:
    grid, images = Grid((5, 3), 17, 13), RNG.standard_normal((2, 17, 13, 3))
    expected = grid.vectors(images)
    np.testing.assert_array_equal(jax.jit(grid.vectors)(jnp.asarray(images)), expected)
    np.testing.assert_array_equal(jax.vmap(grid.vectors)(jnp.asarray(images)), expected)
    np.testing.assert_array_equal(torch.vmap(grid.vectors)(torch.tensor(images)), expected)
    np.testing.assert_array_equal(torch.vmap(grid.image)(torch.tensor(expected)), images)


# -- places ----------------------------------------------------------------------------------------------------------


@given(grids())
def test_place_index_box_and_pixel_agree(grid: Grid) -> None:
    found = np.full((grid.height, grid.width), -1)
    for index in range(len(grid)):
        row, column = grid.place(index)
        assert 0 <= row < grid.rows
        assert 0 <= column < grid.columns
        assert grid.index(row, column) == index
        top, left, height, width = grid.box(index)
        assert height > 0 < width
        assert (top, left) == (row * grid.size[0], column * grid.size[1])
        assert (found[top : top + height, left : left + width] == -1).all()
        found[top : top + height, left : left + width] = index
    for y, x in np.ndindex(grid.height, grid.width):
        if found[y, x] == -1:
            assert grid.rest == "crop"
            with pytest.raises(CallError, match="which rest='crop' dropped"):
                grid.at(y, x)
        else:
            assert grid.at(y, x) == found[y, x]


@given(grids())
def test_what_is_painted_is_the_box(grid: Grid) -> None:
    maps = grid.paint(np.eye(len(grid)))
    assert maps.shape == (len(grid), grid.height, grid.width)
    for index in range(len(grid)):
        top, left, height, width = grid.box(index)
        expected = np.zeros((grid.height, grid.width))
        expected[top : top + height, left : left + width] = 1
        np.testing.assert_array_equal(maps[index], expected)


@every_kind
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("rest", ["pad", "crop"])
def test_paint_is_numpys_repeat(kind: str, dtype: str, rest: str) -> None:
    grid = Grid((5, 3), 17, 13, rest=rest)
    given = (RNG.random((2, 7, len(grid))) * 2).astype(dtype)
    found = grid.paint(KINDS[kind](given))
    numbers = np.pad(given.reshape(2, 7, grid.rows, grid.columns), ((0, 0), (0, 0), (0, 1), (0, 1)))
    expected = numbers.repeat(5, -2).repeat(3, -1)[..., :17, :13]
    assert type(found) is type(KINDS[kind](given))
    assert found.dtype == KINDS[kind](given).dtype
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_nan_stays_in_its_patch_and_what_was_dropped_is_zero() -> None:
    painted = Grid((2, 2), 3, 5, rest="crop").paint([np.nan, np.inf])
    expected = [[np.nan, np.nan, np.inf, np.inf, 0]] * 2 + [[0] * 5]
    np.testing.assert_array_equal(painted, expected)


@every_kind
def test_a_class_token_is_left_out_if_one_says_so(kind: str) -> None:
    grid, weights = Grid((5, 3), 17, 13), RNG.random((2, 21))
    np.testing.assert_array_equal(grid.paint(KINDS[kind](weights), skip=1), grid.paint(weights[:, 1:]))
    with pytest.raises(
        CallError, match=re.escape("(…, 20) on this grid; got (2, 21); pass skip=1 if 1 stand in front")
    ):
        grid.paint(KINDS[kind](weights))


# -- a value ---------------------------------------------------------------------------------------------------------


def test_a_grid_is_a_value() -> None:
    grid = Grid((16, 16), 224, 224)
    same = Grid([np.int64(16), 16], np.int32(224), 224, np.uint8(3))  # type: ignore[arg-type]
    assert grid == same == pickle.loads(pickle.dumps(grid)) == eval(repr(grid))
    assert hash(grid) == hash(same)
    assert Grid(16, 224, 224) == grid  # type: ignore[arg-type]
    assert {type(part) for part in (*same.size, same.height, same.width, same.channels)} == {int}
    assert len({grid, same, Grid((16, 8), 224, 224), Grid((16, 16), 224, 224, rest="crop")}) == 3
    with pytest.raises(AttributeError):
        grid.height = 3  # type: ignore[misc]


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: Grid((16, 16), 12, 20, rest="crop"), CallError,
     "size: at most the image's 12 × 20; got 16 × 16; pass rest='pad'"),
    (lambda: Grid((5, 7), 12, 20, rest="refuse"), CallError,
     "size: patches that fill the image's 12 × 20; got 5 × 7; pass rest='pad' or rest='crop'"),
    (lambda: Grid((6, 7), 12, 20, rest="refuse"), CallError, "got 6 × 7"),
    (lambda: Grid((5, 5), 12, 20, rest="refuse"), CallError, "got 5 × 5"),
    (lambda: Grid((5, 7), 12, 20, rest="drop"), CallError, "rest: one of 'pad', 'crop', 'refuse'; got 'drop'"),
    (lambda: Grid((5, 7), 12, 20, rest=None), CallError, "rest: one of 'pad', 'crop', 'refuse'; got None"),
    (lambda: Grid((5, 7), 12, 20, layout="whc"), CallError, "layout: one of 'hw', 'hwc', 'chw'; got 'whc'"),
    (lambda: Grid((5, 7), 12, 20, layout="hw"), CallError,
     "channels: 1 in the layout 'hw'; got 3; pass layout='hwc' or 'chw'"),
    (lambda: Grid((0, 7), 12, 20), CallError, "size: 1 or more; got 0"),
    (lambda: Grid((5, -7), 12, 20), CallError, "size: 1 or more; got -7"),
    (lambda: Grid((5, 7, 3), 12, 20), CallError, "size: one whole number, or a height and a width; got (5, 7, 3)"),
    (lambda: Grid((), 12, 20), CallError, "size: one whole number, or a height and a width; got ()"),
    (lambda: Grid((5, 7.0), 12, 20), KindError, "size: a whole number; got 7.0; pass an int"),
    (lambda: Grid((5, True), 12, 20), KindError, "size: a whole number; got True; pass an int"),
    (lambda: Grid("16", 12, 20), KindError, "size: a whole number; got '16'; pass an int"),
    (lambda: Grid(None, 12, 20), KindError, "size: a whole number; got None; pass an int"),
    (lambda: Grid((5, 7), 0, 20), CallError, "height: 1 or more; got 0"),
    (lambda: Grid((5, 7), 12, 20.0), KindError, "width: a whole number; got 20.0"),
    (lambda: Grid((5, 7), 12, 20, 0), CallError, "channels: 1 or more; got 0"),
    (lambda: Grid((5, 7), 12, 20).place(9), CallError, "index: from 0 to 8; got 9"),
    (lambda: Grid((5, 7), 12, 20).place(-1), CallError, "index: 0 or more; got -1"),
    (lambda: Grid((5, 7), 12, 20).box(9), CallError, "index: from 0 to 8; got 9"),
    (lambda: Grid((5, 7), 12, 20).box(1.0), KindError, "index: a whole number; got 1.0"),
    (lambda: Grid((5, 7), 12, 20).index(3, 0), CallError, "row: from 0 to 2; got 3"),
    (lambda: Grid((5, 7), 12, 20).index(0, 3), CallError, "column: from 0 to 2; got 3"),
    (lambda: Grid((5, 7), 12, 20).at(12, 0), CallError, "y: from 0 to 11; got 12"),
    (lambda: Grid((5, 7), 12, 20).at(0, 20), CallError, "x: from 0 to 19; got 20"),
    (lambda: Grid((5, 7), 12, 20, rest="crop").at(11, 0), CallError,
     "y, x: a pixel that a patch holds; got 11, 0, which rest='crop' dropped; use rest='pad'"),
    (lambda: Grid((5, 7), 12, 20).vectors(np.zeros((20, 12, 3))), CallError,
     "image: of shape (…, 12, 20, 3) on this grid; got (20, 12, 3); resize it"),
    (lambda: Grid((5, 7), 12, 20).vectors(np.zeros(5)), CallError,
     "image: of shape (…, 12, 20, 3) on this grid; got (5,)"),
    (lambda: Grid((5, 7), 12, 20).vectors("cat.png"), KindError,
     "image: an array or nested lists of numbers; got str"),
    (lambda: Grid((5, 7), 12, 20).image(np.zeros((2, 10, 105))), CallError,
     ("vectors: of shape (…, 9, 105) on this grid; got (2, 10, 105); take vectors[..., 1:, :] if 1 stand in "
     "front of them")),
    (lambda: Grid((5, 7), 12, 20).image(np.zeros((9, 100))), CallError,
     "vectors: of shape (…, 9, 105) on this grid; got (9, 100); pass one per patch"),
    (lambda: Grid((5, 7), 12, 20).image(np.zeros(105)), CallError, "got (105,); pass one per patch"),
    (lambda: Grid((5, 7), 12, 20).paint(np.zeros((2, 11)), skip=1), CallError,
     "weights: of shape (…, 10) on this grid; got (2, 11); pass skip=2 if 2 stand in front"),
    (lambda: Grid((5, 7), 12, 20).paint(np.zeros(9), skip=1), CallError, "got (9,); pass skip=0"),
    (lambda: Grid((5, 7), 12, 20).paint(np.zeros(8)), CallError, "got (8,); pass one number per patch"),
    (lambda: Grid((5, 7), 12, 20).paint(np.zeros(())), CallError, "got (); pass one number per patch"),
    (lambda: Grid((5, 7), 12, 20).paint(np.zeros(9), skip=-1), CallError, "skip: 0 or more; got -1"),
    (lambda: Grid((5, 7), 12, 20).paint(np.zeros(9), skip=True), KindError, "skip: a whole number; got True"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()
