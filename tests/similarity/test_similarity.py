"""`regard similarity`: the numbers are those of plain NumPy, and the picture shows every step."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pytest
from PIL import Image
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_sample_image
from typer.testing import CliRunner

from regard import cli
from regard.algebra.errors import CallError
from regard.similarity import picture
from regard.similarity.chain import Chain

HEIGHT, WIDTH = 37, 53
IMAGE = np.random.default_rng(0).random((HEIGHT, WIDTH, 3))


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain.of(IMAGE, 7, query=23, count=5, width=11, seed=3)


def plain_patches(image: Any, size: int) -> Any:
    """Every patch by a loop, the last row and column repeated."""
    rows, columns = -(-image.shape[0] // size), -(-image.shape[1] // size)
    padded = np.pad(image, ((0, rows * size - image.shape[0]), (0, columns * size - image.shape[1]), (0, 0)), "edge")
    starts = [(row * size, column * size) for row in range(rows) for column in range(columns)]
    return np.array([padded[top : top + size, left : left + size].ravel() for top, left in starts])


# -- numbers ---------------------------------------------------------------------------------------------------


def test_patches_are_those_of_a_loop(chain: Chain) -> None:
    np.testing.assert_array_equal(chain.vectors, plain_patches(IMAGE, 7))
    assert (chain.grid.rows, chain.grid.columns) == (6, 8)


def test_neighbours_are_those_of_numpy(chain: Chain) -> None:
    x = plain_patches(IMAGE, 7)
    difference, query = x - x[23], x[23]
    sigma = ledoit_wolf(x)[0]
    expected = {
        "Euclidean": np.sqrt((difference**2).sum(axis=1)),
        "cosine": x @ query / np.linalg.norm(x, axis=1) / np.linalg.norm(query),
        "Mahalanobis": np.sqrt(np.einsum("nd,de,ne->n", difference, np.linalg.inv(sigma), difference)),
    }
    for name, values in expected.items():
        found = chain.neighbours[name]
        np.testing.assert_allclose(found.values, values, rtol=1e-9, atol=1e-9)
        order = np.argsort(-values if name == "cosine" else values)
        assert found.nearest == tuple(order[order != 23][:5])
        assert 23 not in found.nearest


def test_clouds_are_centred_and_the_second_is_white(chain: Chain) -> None:
    np.testing.assert_allclose(chain.coordinates.var(axis=0, ddof=1), chain.axes.values[:2], rtol=1e-9)
    full = Chain.of(IMAGE, (5, 1), query=0)  # many patches of 15 numbers: hardly any shrinkage
    np.testing.assert_allclose(np.cov(full.whitened.T), np.eye(2), atol=0.25)
    assert not np.allclose(np.cov(full.coordinates.T), np.eye(2), atol=0.25)
    assert 0 < full.shrinkage < 1  # also where the covariance has full rank
    for along, white in zip(full.coordinates.T, full.whitened.T, strict=True):  # the same axes
        np.testing.assert_allclose(np.abs(np.corrcoef(along, white)[0, 1]), 1, atol=1e-9)


def test_attention_is_a_row_of_softmax(chain: Chain) -> None:
    x = plain_patches(IMAGE, 7)
    x = (x - x.mean(axis=0)) / x.std()
    Wq, Wk = np.random.default_rng(3).standard_normal((2, x.shape[1], 11)) / np.sqrt(x.shape[1])
    scores = (x[23] @ Wq) @ (x @ Wk).T / np.sqrt(11)
    np.testing.assert_allclose(chain.weights, np.exp(scores) / np.exp(scores).sum(), rtol=1e-9)


def test_without_a_query_the_patch_of_most_contrast_asks() -> None:
    image = np.full((16, 24), 0.5)
    image[:, :8] += np.linspace(0, 0.1, 8)
    image[8:, 16::2] = 1.0
    image[:8, 16:] = 0.95  # brighter, and even
    assert Chain.of(image, 8).query == 5


@pytest.mark.parametrize(
    ("image", "size", "text"),
    [
        (IMAGE, 37, "size: at least three patches in the image; got 2; pass a smaller size"),
        (np.ones((9, 9)), 3, "image: more than one colour; got the same everywhere"),
    ],
)
def test_an_image_without_a_cloud_is_refused(image: Any, size: int, text: str) -> None:
    with pytest.raises(CallError, match=text):
        Chain.of(image, size)


# -- the picture -----------------------------------------------------------------------------------------------


def drawn(chain: Chain) -> matplotlib.figure.Figure:
    figure = matplotlib.figure.Figure(figsize=(16, 8))
    picture._draw(figure, chain, "random")
    return figure


def test_every_step_has_its_panel(chain: Chain) -> None:
    texts = [text.get_text() for axis in drawn(chain).axes for text in axis.texts]
    for words in ("The query patch", "Euclidean distance", "Cosine", "Mahalanobis distance", "Axes of the patches",
                  "The cloud, along its first two axes", "The same, whitened", "Attention, untrained"):  # fmt: skip
        assert words in texts


def test_maps_hold_the_numbers(chain: Chain) -> None:
    painted = [image.get_array() for axis in drawn(chain).axes for image in axis.images]
    for values in [*(found.values for found in chain.neighbours.values()), chain.weights]:
        wanted = chain.grid.paint(values)
        assert any(found.shape == wanted.shape and np.allclose(found, wanted) for found in painted)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_it_is_written_in_the_format_of_its_name(chain: Chain, tmp_path: Path, ending: str) -> None:
    path = picture.save(chain, tmp_path / f"out.{ending}", dpi=40)
    if ending == "png":
        with Image.open(path) as written:
            shades = np.asarray(written.convert("L"), dtype=float)
        assert shades.std() > 20  # more than white
    elif ending == "svg":
        assert ET.fromstring(path.read_text(encoding="utf-8")).tag.endswith("svg")
    else:
        assert path.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("size", [1, (1, 4), 13])
@pytest.mark.parametrize("shape", [(11, 40), (40, 11), (12, 12, 3)])
def test_any_image_can_be_drawn(tmp_path: Path, shape: tuple[int, ...], size: Any) -> None:
    image = np.random.default_rng(1).random(shape)
    if size == 13 and image.shape[0] == 12:
        size = 5
    assert picture.save(Chain.of(image, size), tmp_path / "any.png", dpi=30).stat().st_size > 1000


# -- the command -----------------------------------------------------------------------------------------------


def command(*arguments: object) -> Any:
    return CliRunner().invoke(cli.app, ["similarity", *map(str, arguments)])


def test_the_command_draws_a_photograph_by_itself(tmp_path: Path) -> None:
    done = command("--out", tmp_path / "out.png", "--patch", "12")
    assert done.exit_code == 0, done.output
    assert "Nearest to the patch in row" in done.output
    with Image.open(tmp_path / "out.png") as written:
        assert written.size[0] == 2400


def test_the_command_finds_what_the_chain_finds(tmp_path: Path) -> None:
    file = tmp_path / "china.png"
    Image.fromarray(load_sample_image("china.jpg")).save(file)
    done = command(file, "--at", "150,80", "--patch", "8,12", "--out", tmp_path / "out.png")
    expected = Chain.of(load_sample_image("china.jpg"), (8, 12), query=(150 // 8) * 54 + 80 // 12)
    row, column = expected.grid.place(expected.neighbours["Euclidean"].nearest[0])
    assert f"{row}, {column}: " in done.output


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "LA", "I;16", "CMYK", "F"])
def test_the_command_reads_every_mode(tmp_path: Path, mode: str) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    if mode == "I;16":
        image = Image.fromarray(noise[..., 0].astype(np.uint16) * 257)
    elif mode == "F":
        image = Image.fromarray(noise[..., 0].astype(np.float32) / 255)
    else:
        image = image.convert(mode)
    image.save(file := tmp_path / "noise.tiff")
    done = command(file, "--patch", "4", "--out", tmp_path / "out.png")
    assert done.exit_code == 0, (mode, done.exception)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere.png"], "there is no file 'nowhere.png'"),
        (["--patch", "0"], "size: 1 or more; got 0"),
        (["--patch", "a"], "--patch: whole numbers, as in 16 or 16,8; got 'a'"),
        (["--patch", "1,2,3"], "size: one whole number, or a height and a width"),
        (["--patch", "900"], "size: at least three patches in the image; got 1"),
        (["--patch", "40"], "size: patches of at most 4096 numbers, whose axes are computed; got 4800"),
        (["--at", "5"], "--at: a pixel as two numbers, down and to the right; got 1"),
        (["--at", "427,0"], "y: from 0 to 426; got 427"),
        (["--out", "picture.xyz"], "out: a name that ends in .png, .svg, .pdf"),
        (["--out", "nowhere/picture.png"], "out: in a folder that exists; got 'nowhere"),
    ],
)
def test_a_wrong_argument_ends_in_a_sentence(arguments: list[str], text: str) -> None:
    done = command(*arguments)
    assert isinstance(done.exception, CallError | cli.RegardError)
    assert text in str(done.exception)
