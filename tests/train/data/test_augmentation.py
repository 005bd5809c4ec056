"""Augmentations: functions of what is drawn, each with its law; the identity where their size is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard.algebra.errors import CallError, KindError
from regard.train.data.augmentation import Augmentation, Flip, Noise, Rotate, Several, Shift, Zoom, usual_augmentation
from regard.train.data.draws import Draws
from regard.train.data.images import Images, Part, read_images

X = torch.rand(13, 3, 7, 11, generator=torch.Generator().manual_seed(0))
DRAWS = Draws(5, "augmentation", 17)
ALL: list[Augmentation] = [
    Shift(2), Shift(2, fill=0.5), Flip(), Rotate(20), Zoom(0.3), Noise(0.1), Several((Shift(1), Noise(0.1))),
]  # fmt: skip

every = pytest.mark.parametrize("change", ALL, ids=repr)


@every
def test_a_change_is_a_function_of_the_draws(change: Augmentation) -> None:
    before = X.clone()
    changed = change(X, DRAWS)
    assert torch.equal(X, before)
    assert torch.equal(changed, change(X, Draws(5, "augmentation", 17)))
    assert not torch.equal(changed, change(X, Draws(5, "augmentation", 18)))
    assert not torch.equal(changed, change(X, Draws(6, "augmentation", 17)))


@every
def test_shape_dtype_and_range_are_kept(change: Augmentation) -> None:
    changed = change(X, DRAWS)
    assert (changed.shape, changed.dtype) == (X.shape, X.dtype)
    assert changed.min() >= 0
    assert changed.max() <= 1
    assert changed.is_contiguous()


@every
def test_each_image_has_its_own_draw(change: Augmentation) -> None:
    alike = change(X[:1].expand(13, -1, -1, -1), DRAWS)
    assert len({tuple(image.flatten().tolist()) for image in alike}) > 1


@every
def test_images_do_not_mix(change: Augmentation) -> None:
    other = X.clone()
    other[3] = 0
    changed, others = change(X, DRAWS), change(other, DRAWS)
    assert torch.equal(changed[:3], others[:3])
    assert torch.equal(changed[4:], others[4:])


@pytest.mark.parametrize("change", [Shift(0), Rotate(0), Zoom(0), Noise(0), Several(())], ids=repr)
def test_a_change_by_nothing(change: Augmentation) -> None:
    torch.testing.assert_close(change(X, DRAWS), X, atol=1e-5, rtol=0)


@pytest.mark.parametrize("change", [Shift(2), Rotate(20), Zoom(0.3), Flip()], ids=repr)
def test_an_image_of_one_brightness_stays_so(change: Augmentation) -> None:
    flat = torch.full((5, 1, 7, 11), 0.25)
    torch.testing.assert_close(change(flat, DRAWS), flat)


@pytest.mark.parametrize("fill", [None, 0.5])
def test_a_shift_moves_by_what_is_drawn(fill: float | None) -> None:
    down, right = DRAWS.integers(-2, 2, 2, 13)
    assert set(down.tolist()) | set(right.tolist()) == {-2, -1, 0, 1, 2}
    shifted = Shift(2, fill)(X, DRAWS)
    for b in range(13):
        for y in range(7):
            for x in range(11):
                r, c = y - down[b], x - right[b]
                edge = X[b, :, min(max(r, 0), 6), min(max(c, 0), 10)]
                inside = 0 <= r < 7 and 0 <= c < 11
                assert torch.equal(shifted[b, :, y, x], edge if inside or fill is None else torch.full((3,), fill))


def test_a_flip_is_of_half_the_images() -> None:
    many = X[:1].expand(1009, -1, -1, -1)
    flipped = Flip()(many, DRAWS)
    is_flipped = (flipped == many.flip(-1)).flatten(1).all(1)
    assert ((flipped == many).flatten(1).all(1) | is_flipped).all()
    assert 430 < is_flipped.sum() < 580


class Fixed(Draws):
    """Every number the same."""

    def uniform(self, *shape: int) -> Any:
        return np.ones(shape)


def test_a_quarter_turn_is_exact() -> None:
    square = X[:, :, :, :7]
    turned = Rotate(90)(square, Fixed(0, ""))
    torch.testing.assert_close(turned, square.rot90(1, (2, 3)), atol=1e-5, rtol=0)


def test_a_rotation_knows_no_sides() -> None:
    """A point stays as far from the middle, also where an image is wider than high."""
    image = torch.zeros(1, 1, 21, 41)
    image[0, 0, 10, 29] = 1  # 9 to the right of the middle
    turned = Rotate(90)(image, Fixed(0, ""))[0, 0]
    assert divmod(int(turned.argmax()), 41) == (1, 20)  # 9 above it
    again = Rotate(90)(turned[None, None], Fixed(0, ""))[0, 0]
    assert divmod(int(again.argmax()), 41) == (10, 11)  # 9 to the left


def test_a_zoom_enlarges_around_the_middle() -> None:
    ramp = torch.linspace(0, 1, 41).expand(1, 1, 5, 41)
    zoomed = Zoom(0.25)(ramp, Fixed(0, ""))
    torch.testing.assert_close(zoomed[0, 0, 2], 0.5 + (ramp[0, 0, 2] - 0.5) / 1.25, atol=1e-5, rtol=0)


def test_noise_has_its_deviation() -> None:
    noisy = Noise(0.1)(torch.full((7, 1, 31, 29), 0.5), DRAWS)
    assert abs(float(noisy.std()) - 0.1) < 0.005
    assert abs(float(noisy.mean()) - 0.5) < 0.005


def test_several_have_draws_of_their_own() -> None:
    twice = Several((Shift(1), Shift(1)))
    assert twice(X, DRAWS).equal(Shift(1)(Shift(1)(X, DRAWS.apart(0)), DRAWS.apart(1)))
    assert twice == Several([Shift(1), Shift(1)])  # type: ignore[arg-type]


# -- the usual -------------------------------------------------------------------------------------------------


def images(pixels: Any) -> Images:
    part = Part(pixels, torch.zeros(len(pixels), dtype=torch.int64))
    return Images(part, part, ("a", "b"), "some")


def noise(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))


def test_the_usual_are_small_shifts() -> None:
    assert usual_augmentation(read_images()) == Several(
        (Rotate(15), Zoom(0.15), Noise(0.1))
    )  # a pixel of eight is much
    assert usual_augmentation(images(torch.zeros(3, 1, 16, 20, dtype=torch.uint8))) == Shift(1, fill=0.0)
    assert usual_augmentation(images(torch.zeros(3, 1, 28, 28, dtype=torch.uint8))) == Shift(2, fill=0.0)
    assert usual_augmentation(images(torch.full((3, 3, 32, 40), 255, dtype=torch.uint8))) == Shift(4, fill=1.0)
    assert usual_augmentation(images(noise(3, 3, 32, 32))) == Shift(4)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Shift(-1), CallError, "pixels: from 0 on; got -1"),
        (lambda: Shift(1.5), KindError, "pixels: an integer; got 1.5"),  # type: ignore[arg-type]
        (lambda: Shift(1, fill=255), CallError, "fill: from 0 to 1; got 255"),
        (lambda: Rotate(400), CallError, "degrees: from 0 to 180; got 400"),
        (lambda: Zoom(1), CallError, "share: from 0 to 0.9; got 1"),
        (lambda: Noise("much"), KindError, "std: a number; got 'much'"),  # type: ignore[arg-type]
        (lambda: Several((Shift(1), 3)), KindError, r"changes\[1\]: an augmentation, such as Shift\(1\); got 3"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_change(make: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()
