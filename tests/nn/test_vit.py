"""A vision transformer: patches in reading order, a token or the mean, and images of the right size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from layers import CLOSE, DIM, EXACT, HEADS, WIDTH, loud, normal
from regard import Attention, causal
from regard.algebra.errors import CallError, KindError
from regard.inputs.positions import ALiBi, Learned
from regard.nn import ViT

CLASSES, CHANNELS, IMAGE, PATCH = 5, 2, (6, 10), (3, 2)
IMAGES = normal(3, CHANNELS, *IMAGE)
pools = pytest.mark.parametrize("pool", ["class", "mean"])


def model_of(pool: str = "class", **options: Any) -> ViT:
    options = {"channels": CHANNELS, "pool": pool, "width": WIDTH, **options}
    return loud(ViT(IMAGE, PATCH, CLASSES, DIM, 2, HEADS, **options))


def cut_out(images: Tensor) -> Tensor:
    """Patches from left to right, then down; each as rows of pixels, each pixel with its channels."""
    (height, width), pieces = PATCH, []
    for top in range(0, IMAGE[0], height):
        for left in range(0, IMAGE[1], width):
            piece = images[:, :, top : top + height, left : left + width]
            pieces.append(piece.permute(0, 2, 3, 1).flatten(1))
    return torch.stack(pieces, dim=1)


@pools
def test_the_model_is_its_equation(pool: str) -> None:
    model = model_of(pool)
    x = cut_out(IMAGES) @ model.embedding.weight.T + model.embedding.bias
    if pool == "class":
        assert isinstance(model.token, nn.Parameter)
        x = torch.cat([model.token.expand(3, 1, DIM), x], dim=1)
    x = x + model.encoder.placement.tables["position"]
    for block in model.encoder.blocks:
        x = block(x)
    x = model.encoder.norm(x)
    torch.testing.assert_close(model.rows(IMAGES), x, **CLOSE)
    pooled = x[:, 0] if pool == "class" else x.mean(1)
    torch.testing.assert_close(model(IMAGES), pooled @ model.head.weight.T + model.head.bias, **CLOSE)


@pools
def test_a_position_for_each_row(pool: str) -> None:
    rows = 2 * 5 + (pool == "class")
    assert model_of(pool).encoder.longest == rows == model_of(pool).rows(IMAGES).shape[1]


@pools
def test_without_a_position_patches_are_a_set(pool: str) -> None:
    model = model_of(pool, position=Learned(np.zeros((11 - (pool == "mean"), DIM))))
    nn.init.zeros_(model.encoder.placement.tables["position"])
    torch.testing.assert_close(model(IMAGES.roll((3, 4), (2, 3))), model(IMAGES), **CLOSE)
    assert not torch.allclose(model(IMAGES.roll(1, 2)), model(IMAGES))


def test_other_formulas_and_positions() -> None:
    model = model_of("mean", attention=Attention(mask=causal), position=ALiBi())
    changed = IMAGES.clone()
    changed[:, :, 3:, 8:] += 1
    torch.testing.assert_close(model.rows(changed)[:, :-1], model.rows(IMAGES)[:, :-1], **CLOSE)
    assert not list(model.encoder.placement.parameters())


def test_one_number_for_both_sides() -> None:
    model = ViT(8, 2, CLASSES, 12, 1, 3, channels=1)
    assert (model.image, model.patch) == ((8, 8), (2, 2))
    assert model(torch.zeros(0, 1, 8, 8)).shape == (0, CLASSES)


def test_one_graph_under_torch_compile() -> None:
    model = model_of()
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(IMAGES), model(IMAGES), **CLOSE)


def test_every_parameter_has_a_gradient() -> None:
    model = model_of()
    model(IMAGES).square().sum().backward()
    assert not [name for name, value in model.named_parameters() if value.grad is None or not value.grad.any()]
    torch.testing.assert_close(ViT(**model_of().made_of).token.detach(), torch.zeros(DIM), **EXACT)


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: ViT((6, 10), (3, 4), 5, 12, 1, 3), CallError, "patch: divides the image, 6 × 10; got 3 × 4"),
    (lambda: ViT(6, 3, 5, 12, 1, 3, pool="max"), CallError, "pool: one of class, mean; got 'max'"),
    (lambda: ViT(6, 3, 0, 12, 1, 3), CallError, "classes: an integer of at least 1; got 0"),
    (lambda: ViT(6, 3, 5, 12, 1, 3, channels=-1), CallError, "channels: an integer of at least 1; got -1"),
    (lambda: ViT(6.5, 3, 5, 12, 1, 3), KindError, "size: a whole number; got 6.5"),
    (lambda: model_of()(IMAGES[0]), CallError, r"images: \(batch, 2, 6, 10\); got shape \(2, 6, 10\)"),
    (lambda: model_of()(IMAGES[:, :1]), CallError, r"images: \(batch, 2, 6, 10\); got shape \(3, 1, 6, 10\)"),
    (lambda: model_of()(IMAGES.mT), CallError, r"images: \(batch, 2, 6, 10\); got shape \(3, 2, 10, 6\)"),
    (lambda: model_of()(IMAGES.permute(0, 2, 3, 1)), CallError, r"got shape \(3, 6, 10, 2\)"),
]


@pytest.mark.parametrize(("run", "error", "text"), WRONG, ids=[text[:40] for _, _, text in WRONG])
def test_refusals(run: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run()


def test_positions_are_drawn_from_the_random_state() -> None:
    def table(seed: int) -> Any:
        torch.manual_seed(seed)
        return ViT(8, 4, 3, 12, 1, 3).encoder.placement.tables["position"]

    assert torch.equal(table(1), table(1))
    assert not torch.equal(table(1), table(2))


def test_bytes_are_no_images_yet() -> None:
    with pytest.raises(KindError, match=r"images: real floating numbers; got dtype torch.uint8; images / 255 makes"):
        ViT(8, 4, 3, 12, 1, 3, kv_heads=1)(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))
