"""What goes into PyTorch's own kernel: positions, shapes and numbers of every kind, and no mask of N × n."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import regard as rg
from kernel_calls import (
    BATCH,
    DY,
    FORMULAS,
    GENERATOR,
    HEADS,
    KEYS,
    QUERIES,
    TABLES,
    WIDTH,
    K,
    Q,
    V,
    agrees,
    call_of,
    close,
    normal,
    read,
    reduced,
)  # fmt: skip
from regard import b, dot, h, i, j, sqdist, table, zoo
from regard.engines import sdpa
from regard.engines.sdpa.tensors import attn_mask

# -- positions, shapes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, 0, 2, 5, 11, 12, 40, -3])
def test_causal_from_anywhere(start: int | None) -> None:
    agrees(zoo.causal_dot(), start=start)
    agrees(zoo.causal_dot(), Q[:, :, :1], start=start)


def test_more_queries_than_keys() -> None:
    agrees(zoo.causal_dot(), K, Q, V[:, :, :QUERIES], start=0)
    agrees(zoo.alibi(), K, Q, V[:, :, :QUERIES], start=0)


def test_causal_is_one_flag_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def watched(*arrays: Any, **options: Any) -> Any:
        seen.append({"q": arrays[0].data_ptr(), **options})
        return kernel(*arrays, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    for start, q in ((0, Q), (2, Q), (None, Q[:, :, :1])):
        zoo.causal_dot()(q, K, V, start=start, engine="sdpa")
    assert [(options["is_causal"], options["attn_mask"] is None) for options in seen] == [
        (True, True),
        (False, False),
        (False, True),
    ]
    assert seen[0]["q"] == Q.data_ptr(), "plain queries go in as they came"


def test_two_and_three_axes() -> None:
    for name in ("window", "relative", "distance"):
        attention = FORMULAS[name]
        tables = {key: value[:1] if key == "relative" else value for key, value in read(attention).items()}
        agrees(attention, Q[0, 0], K[0, 0], V[0, 0], **tables)
        agrees(attention, Q[:, 0], K[:, 0], V[:, 0], **tables)


def test_five_axes_and_a_broadcast_batch() -> None:
    for name in ("padding", "window", "distance", "metrics", "given"):
        attention = FORMULAS[name]
        tables = {key: value[:1] if key == "lengths" else value for key, value in read(attention).items()}
        agrees(attention, Q[:, None], K[:1, None], V[None, :1], **tables | _lengths(attention))
        agrees(attention, Q[:1, None], K[:, None], V[:, None])
        q = Q[:1].clone().requires_grad_()
        attention(q, K, V, engine="sdpa", **read(attention)).backward(DY)
        assert q.grad.shape == q.shape


def _lengths(attention: rg.Attention) -> dict[str, Any]:
    return {"lengths": TABLES["lengths"]} if "lengths" in attention.ranks else {}


@pytest.mark.parametrize("shape", [(QUERIES, KEYS), (1, KEYS), (BATCH, 1, 1, KEYS), (HEADS, 1, KEYS), (QUERIES, 1)])
def test_given_masks_broadcast(shape: tuple[int, ...]) -> None:
    keep = torch.rand(shape, generator=GENERATOR) < 0.6
    agrees(FORMULAS["given"], keep=keep)
    call = call_of(FORMULAS["given"], keep=keep)
    assert attn_mask(call, reduced(call.formula)).numel() == keep.numel(), "PyTorch copies truths: only once each"


def test_pytorch_s_own_bias_goes_in_as_it_came() -> None:
    bias = normal(BATCH, 1, KEYS, KEYS)
    call = call_of(FORMULAS["matrix of all"])
    call.tables["bhij"] = bias.expand(BATCH, HEADS, KEYS, KEYS)
    mask = attn_mask(call, reduced(call.formula))
    assert mask.shape == (BATCH, 1, QUERIES, KEYS)
    assert mask.untyped_storage().data_ptr() == bias.untyped_storage().data_ptr()


# -- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["padding", "window", "relative", "band", "distance", "window of each batch"])
def test_no_mask_is_ever_a_matrix(name: str) -> None:
    size = 499
    q, k, v = (normal(BATCH, HEADS, size, WIDTH) for _ in range(3))
    tables = {"relative": normal(HEADS, 1000)} if name == "relative" else {}
    call = call_of(FORMULAS[name], q, k, v, **tables)
    mask = attn_mask(call, reduced(call.formula))
    assert mask.untyped_storage().nbytes() <= 8 * BATCH * HEADS * 2 * size
    assert not isinstance(mask, torch.Tensor) or mask.shape[3] == size


# -- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", [zoo.euclidean(), FORMULAS["metric distance"]], ids=repr)
def test_distances_far_from_the_origin(attention: rg.Attention) -> None:
    q, k, v = (normal(1, HEADS, 61, WIDTH) for _ in range(3))
    tables = {"P": TABLES["P"] @ TABLES["P"].mT} if "P" in attention.ranks else {}
    y = attention(q + 1e6, k + 1e6, v, engine="sdpa", **tables)
    assert (y - attention(q, k, v, engine="dense", **tables)).abs().max() < 1e-7


def test_distances_far_from_each_other() -> None:
    k = K.clone()
    k[:, :, 0] += 100
    agrees(rg.Attention(score=-sqdist / 2**20), Q, k, V)


def test_zero_vectors_have_cosine_zero() -> None:
    attention = FORMULAS["causal cosine"]
    gradients = []
    for engine in ("sdpa", "dense"):
        q, k = Q.clone(), K.clone()
        q[:, :, 3], k[:, :, 2] = 0, 0
        leaves = [x.requires_grad_() for x in (q, k)]
        attention(*leaves, V, engine=engine).sin().sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    for found, expected in zip(*gradients, strict=True):
        assert found.isfinite().all()
        close(found, expected)


def test_cosines_of_large_and_small_vectors() -> None:
    agrees(FORMULAS["causal cosine"], 1e200 * Q, 1e-200 * K)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [j < i - 4, j >= table("lengths")[b], rg.given("keep")], ids=repr)
def test_empty_rows_are_zero(mask: rg.Mask, dtype: torch.dtype) -> None:
    attention = rg.Attention(mask=mask)
    keep = torch.ones(QUERIES, KEYS, dtype=torch.bool)
    keep[2:5] = False
    leaves = [x.to(dtype, copy=True).requires_grad_() for x in (Q, K, V)]
    tables = read(attention) | ({"keep": keep} if "keep" in attention.ranks else {})
    y = attention(*leaves, engine="sdpa", start=0, **tables)
    weights = attention.weights(*[x.detach().float() for x in leaves[:2]], start=0, **tables)
    empty = weights.sum(-1) == 0
    assert empty.any()
    assert not empty.all()
    assert (y[empty] == 0).all()
    y.backward(DY.to(dtype))
    assert all(leaf.grad.isfinite().all() for leaf in leaves)
    assert (leaves[0].grad[empty] == 0).all()
    unread = weights.sum(-2) == 0
    assert (leaves[1].grad[unread] == 0).all()
    assert (leaves[2].grad[unread] == 0).all()


def test_a_bias_that_is_infinite_where_no_one_reads() -> None:
    agrees(rg.Attention(score=dot + rg.log(i - j + 1), mask=rg.causal))
    agrees(rg.Attention(score=dot + rg.log(i - j)))  # −inf and NaN alike


# -- tables ------------------------------------------------------------------------------------------------------


OUTSIDE = {
    "bias and mask": (rg.Attention(score=dot + table("short")[i - j], mask=i - j < 9), "from -10 to 8"),
    "row": (rg.Attention(score=dot + table("short")[i], mask=rg.causal), "from 7 to 12"),
    "slope": (rg.Attention(score=dot * table("short")[h + 4]), "from 7 to 9"),
    "metric": (rg.Attention(score=dot(table("P")[h + 1])), "from 6 to 6"),
    "matrix": (rg.Attention(score=dot + table("square")[i, j]), "from 12 to 12"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_reads_outside_a_table(name: str) -> None:
    attention, told = OUTSIDE[name]
    tables = {"short": normal(7), "square": normal(12, 13), "P": TABLES["P"]}
    tables = {key: tables[key] for key in attention.ranks}
    for engine in ("dense", "sdpa"):
        with pytest.raises(rg.TableError, match=f"got indices {told} for admitted pairs"):
            attention(Q, K, V, engine=engine, **tables)


def test_reads_outside_a_table_that_no_one_counts() -> None:
    agrees(rg.Attention(score=dot + table("short")[j], mask=~rg.everywhere), short=normal(7))
    agrees(rg.Attention(score=dot + table("short")[i - j], mask=rg.causal & (i - j < 7)), short=normal(7))


def test_a_mask_that_was_not_refused_still_has_its_gradient() -> None:
    """Who asks the engine itself gets what is right, whatever it holds."""
    attention, bias = FORMULAS["relative"], TABLES["relative"].clone().requires_grad_()
    y = sdpa.attend(call_of(attention, relative=bias)).y
    (found,) = torch.autograd.grad((DY * y).sum(), bias)
    close(found, attention.vjp(Q, K, V, DY, engine="dense", relative=bias.detach())["relative"])
    with pytest.raises(
        rg.EngineError, match=r"^start: one integer for a bias read as \[i, j\]; got one for each batch"
    ):
        sdpa.attend(call_of(FORMULAS["matrix"], start=torch.tensor([0, 2])))


def test_replaced_calls_still_run() -> None:
    call = call_of(zoo.causal_dot())
    close(sdpa.attend(replace(call, q=2 * call.q)).y, rg.Attention(mask=rg.causal)(2 * Q, K, V, engine="dense"))
