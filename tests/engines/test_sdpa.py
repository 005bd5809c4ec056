"""PyTorch's own kernel: what reduces to it, that it then gives what `dense` gives, and why the rest is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard as rg
from regard import b, cosine, d, dot, h, i, j, n, sqdist, sqrt, table, zoo
from regard.engines import sdpa
from regard.engines.call import Call, prepare
from regard.engines.sdpa.tensors import attn_mask
from regard.example import example
from strategies import index_masks

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 6, 11, 13, 5
GENERATOR = torch.Generator().manual_seed(0)
DOUBLE = 1e-12


def normal(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64).to(dtype)


Q, K, V = normal(BATCH, HEADS, QUERIES, WIDTH), normal(BATCH, HEADS, KEYS, WIDTH), normal(BATCH, HEADS, KEYS, WIDTH)
DY = normal(BATCH, HEADS, QUERIES, WIDTH)
TABLES: dict[str, torch.Tensor] = {
    "M": normal(WIDTH, WIDTH), "P": normal(HEADS, WIDTH, WIDTH), "scale": normal(), "heads": normal(HEADS),
    "line": normal(29), "relative": normal(HEADS, 41), "rows": normal(BATCH, 29), "ids": torch.arange(29) % 5,
    "lengths": torch.tensor([7, 13]), "widths": torch.tensor([2, 5]), "keep": torch.rand(QUERIES, KEYS) < 0.7,
    "ij": normal(KEYS, KEYS), "hij": normal(HEADS, KEYS, KEYS), "bij": normal(BATCH, KEYS, KEYS),
    "bhij": normal(BATCH, HEADS, KEYS, KEYS),
}  # fmt: skip


def read(attention: rg.Attention) -> dict[str, Any]:
    return {name: TABLES[name] for name in attention.ranks if name in TABLES}


def call_of(attention: rg.Attention, q: Any = Q, k: Any = K, v: Any = V, start: Any = None, **tables: Any) -> Call:
    return prepare(attention, q, k, v, start=start, tables=read(attention) | tables)


def reduced(attention: rg.Attention) -> sdpa.Reduction:
    law = sdpa.reduction(attention)
    assert isinstance(law, sdpa.Reduction), law
    return law


def close(found: torch.Tensor, expected: torch.Tensor, accuracy: float = DOUBLE) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    largest = float(expected.detach().nan_to_num(0, 0, 0).abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=accuracy * (1 + largest), equal_nan=True)


def agrees(attention: rg.Attention, q: Any = Q, k: Any = K, v: Any = V, **options: Any) -> None:
    options = read(attention) | options
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # the N × n path is an error
        found = attention(q, k, v, engine="sdpa", **options)
    close(found, attention(q, k, v, engine="dense", **options))


# -- the zoo -----------------------------------------------------------------------------------------------------

KERNEL = "F.scaled_dot_product_attention"
SCALED = "scale=1 / sqrt(d)"
REDUCTIONS = {
    "scaled_dot": f"{KERNEL}(q, k, v, {SCALED})",
    "causal_dot": f"{KERNEL}(q, k, v, is_causal=True, {SCALED})",
    "unscaled_dot": f"{KERNEL}(q, k, v, scale=1)",
    "bilinear": f'{KERNEL}(q @ table("M"), k, v, scale=1)',
    "cosine_similarity": f'{KERNEL}(table("temperature") * unit(q), unit(k), v)',
    "euclidean": f"{KERNEL}(q - mean(k), k - mean(k), v, attn_mask=column view of (-1 / 2) * |k - mean(k)|², scale=1)",
    "mahalanobis": f'{KERNEL}((q - mean(k)) @ (table("P") + table("P").mT), k - mean(k), v, '
    'attn_mask=column view of (-1 / 2) * (k - mean(k)) @ table("P") @ (k - mean(k)), scale=1 / 2)',
    "alibi": f"{KERNEL}(q, k, v, attn_mask=offset view of -2 ** (-8 * (h + 1) / H) * (i - j), "
    f"−inf where not j <= i, {SCALED})",
    "relative_bias": f'{KERNEL}(q, k, v, attn_mask=offset view of table("bias")[h, maximum(-511, '
    f"minimum(511, i - j)) + 511], {SCALED})",
    "t5_bias": f'{KERNEL}(q, k, v, attn_mask=offset view of table("bias")[h, where(abs(i - j) <= 7, abs(i - j), '
    "minimum(15, floor(8 * log(maximum(1, abs(i - j)) / 8) / log(16) + 0.0001) + 8)) + where(i < j, 16, 0)], scale=1)",
    "sliding_window": f"{KERNEL}(q, k, v, attn_mask=offset view of 0, −inf where not (j <= i) & (i - j <= 1023), "
    f"{SCALED})",
}
every_reduced = pytest.mark.parametrize("name", REDUCTIONS)


def test_what_of_the_zoo_reduces() -> None:
    found = {name: sdpa.reduction(entry.formula) for name, entry in zoo.ENTRIES.items()}
    assert {name: str(law) for name, law in found.items() if isinstance(law, sdpa.Reduction)} == REDUCTIONS


def zoo_call(name: str, size: int = 37, width: int = 7) -> tuple[rg.Attention, list[torch.Tensor], dict[str, Any]]:
    attention = zoo.sliding_window(5) if name == "sliding_window" else zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=3, n=size, width=width)
    tables = {key: torch.as_tensor(value) for key, value in call.tables.items()}
    return attention, [torch.as_tensor(x) for x in (call.q, call.k, call.v)], tables


@every_reduced
def test_the_zoo_agrees(name: str) -> None:
    attention, arrays, tables = zoo_call(name)
    agrees(attention, *arrays, **tables)
    agrees(attention, arrays[0][:, :, 30:], *arrays[1:], **tables)
    agrees(attention, arrays[0][:, :, :5], *arrays[1:], start=torch.tensor([0, 3]), **tables)


@every_reduced
def test_the_zoo_has_the_right_gradients(name: str) -> None:
    attention, arrays, tables = zoo_call(name)
    held = reduced(attention).mask_tables
    learned = {name: table for name, table in tables.items() if table.is_floating_point() and name not in held}
    gradients = []
    for engine in ("sdpa", "dense"):
        leaves = [x.clone().requires_grad_(name not in held) for name, x in zip("qkv", arrays, strict=True)]
        leaves += [table.clone().requires_grad_() for table in learned.values()]
        y = attention(*leaves[:3], engine=engine, **tables | dict(zip(learned, leaves[3:], strict=True)))
        gradients.append(torch.autograd.grad(y.sin().sum(), [leaf for leaf in leaves if leaf.requires_grad]))
    for found, expected in zip(*gradients, strict=True):
        close(found, expected)


@every_reduced
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_accuracy_of_the_zoo(name: str, dtype: torch.dtype) -> None:
    """At most twice the error of float32 arithmetic with weights rounded to the dtype, or refused."""
    attention, arrays, tables = zoo_call(name, 211, 17)
    q, k, v = (x.to(dtype) for x in arrays)
    narrow = {key: x.to(dtype) if x.is_floating_point() else x for key, x in tables.items()}
    wide = {key: x.double() if x.is_floating_point() else x for key, x in narrow.items()}
    exact = attention(q.double(), k.double(), v.double(), **wide)
    single = {key: x.float() if x.is_floating_point() else x for key, x in narrow.items()}
    weights = attention.weights(q.float(), k.float(), engine="dense", **single).to(dtype).float()
    allowed = ((weights @ v.float()).to(dtype).double() - exact).abs().max()
    if dtype != torch.float32 and not reduced(attention).is_plain:
        with pytest.raises(rg.EngineError, match=f"would be rounded to {str(dtype)[6:]} before the sum"):
            attention(q, k, v, engine="sdpa", **narrow)
        return
    y = attention(q, k, v, engine="sdpa", **narrow)
    assert y.dtype == dtype
    factor = 5 if reduced(attention).is_distance else 2  # written out, a distance is what larger numbers leave
    assert (y.double() - exact).abs().max() <= factor * allowed


# -- formulas ----------------------------------------------------------------------------------------------------

FORMULAS = {
    "padding": rg.Attention(mask=rg.padding("lengths")),
    "window": rg.Attention(mask=rg.window(3)),
    "window of each batch": rg.Attention(mask=(j <= i) & (i - j < table("widths")[b])),
    "band": rg.Attention(score=dot + (i - j) / 7, mask=abs(i - j) <= 4),
    "causal cosine": rg.Attention(score=3 * cosine, mask=rg.causal),
    "relative": rg.Attention(score=dot / sqrt(d) + table("relative")[h, i - j + 20], mask=rg.causal),
    "column bias": rg.Attention(score=dot + table("line")[j] * (h + 1), mask=j > 2),
    "row bias": rg.Attention(score=dot + table("rows")[b, i] - table("heads")[h], mask=rg.causal),
    "row and offset": rg.Attention(score=dot - (i - j) / 5 + table("line")[i]),
    "product with a row": rg.Attention(score=dot + (h + 1) * (table("line")[i] + table("line")[j])),
    "slope of a table": rg.Attention(score=dot * table("scale"), mask=rg.causal),
    "slope of a head": rg.Attention(score=dot * table("heads")[h] + j),
    "slope of a row": rg.Attention(score=cosine * table("rows")[b, i] + (i - j)),
    "slope of cos": rg.Attention(score=dot * rg.cos(n)),
    "falling": rg.Attention(score=-dot / n),
    "metric": rg.Attention(score=dot(table("M")) / 3),
    "metrics": rg.Attention(score=dot(table("P")[h]), mask=rg.causal),
    "heads that read": rg.Attention(mask=h < 4),
    "distance": rg.Attention(score=-sqdist / (2 * d)),
    "distance by head": rg.Attention(score=-sqdist * (h + 1) / 9 + table("line")[j] + i, mask=rg.padding("lengths")),
    "metric distance": rg.Attention(score=-sqdist(table("P")[h]) / 5),
    "matrix": rg.Attention(score=dot + table("ij")[i, j]),
    "matrix of heads": rg.Attention(score=dot + table("hij")[h, i, j] + i),
    "matrix of batches": rg.Attention(score=dot + table("bij")[b, i, j]),
    "matrix of all": rg.Attention(score=dot + table("bhij")[b, h, i, j]),
    "given": rg.Attention(mask=rg.given("keep")),
}
every_formula = pytest.mark.parametrize("name", FORMULAS)


@every_formula
def test_formulas_agree(name: str) -> None:
    agrees(FORMULAS[name])
    agrees(FORMULAS[name], start=1)


@every_formula
def test_formulas_agree_for_grouped_heads(name: str) -> None:
    agrees(FORMULAS[name], Q, K[:, ::3], V[:, ::3])


@every_formula
def test_formulas_agree_in_any_layout(name: str) -> None:
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (Q, K, V)]
    agrees(FORMULAS[name], *turned)
    agrees(FORMULAS[name], *(x.mT.contiguous().mT for x in (Q, K, V)))
    wide = torch.cat([Q, Q], -1)[..., ::2]
    agrees(FORMULAS[name], wide, K, V)


@pytest.mark.parametrize("name", [name for name in FORMULAS if not name.startswith("matrix")])
def test_each_batch_may_start_elsewhere(name: str) -> None:
    agrees(FORMULAS[name], start=torch.tensor([2, 0]))


@every_formula
def test_vjp_is_that_of_dense(name: str) -> None:
    attention = FORMULAS[name]
    k, v = (x[:, ::2] for x in (K, V))
    steps = sdpa.attend(call_of(attention, Q, k, v))
    inside = [key for key in reduced(attention).mask_tables if key == "k" or TABLES[key].is_floating_point()]
    if inside:
        with pytest.raises(rg.EngineError, match=r"vjp: PyTorch's kernel gives no gradient for .* in attn_mask; take"):
            sdpa.vjp(steps, DY)
        return
    found, expected = sdpa.vjp(steps, DY), attention.vjp(Q, k, v, DY, engine="dense", **read(attention))
    by_name = dict(zip("qkv", expected, strict=True)) | expected.tables
    assert set(found) == set(by_name)
    for key, gradient in found.items():
        close(gradient, by_name[key])


def test_gradients_of_a_distance_reach_the_queries() -> None:
    attention = FORMULAS["distance by head"]
    found, expected = Q.clone().requires_grad_(), Q.clone().requires_grad_()
    for q, engine in ((found, "sdpa"), (expected, "dense")):
        attention(q, K, V, engine=engine, **read(attention)).sin().sum().backward()
    close(found.grad, expected.grad)


def test_a_difference_of_positions_stays_whole() -> None:
    """i − j is exact where −j beside a large row term is not."""
    assert reduced(rg.Attention(score=dot + i - j)).form == sdpa.Form.OFFSET
    assert reduced(rg.Attention(score=dot + i - 2 * j)).form == sdpa.Form.COLUMN


TERMS = [
    i, j, i - j, h * j, (i - j) * (h + 1), i * j, b * (i - j), table("line")[j], table("line")[i], table("rows")[b, j],
    table("relative")[h, i - j + 20], table("ij")[i, j], rg.where(i < j, table("line")[j - i + 1], h),
]  # fmt: skip
SLOPES = [1, -0.5, 1 / sqrt(d), h + 1, table("scale"), table("heads")[h], table("line")[i], table("line")[j]]
PAIRS = [dot, cosine, -sqdist / 3, dot(table("M")), -sqdist(table("P")[h]) / 7]


@settings(max_examples=150)
@given(
    st.sampled_from(PAIRS),
    st.sampled_from(SLOPES),
    st.lists(st.sampled_from(TERMS), max_size=2),
    st.none() | index_masks(),
)
def test_what_reduces_agrees_and_the_rest_is_refused(pair: Any, slope: Any, terms: list[Any], mask: Any) -> None:
    attention = rg.Attention(score=slope * pair + sum(terms), mask=None if mask is None else mask.value)
    law = sdpa.reduction(attention)
    if isinstance(law, str):
        with pytest.raises(rg.EngineError, match=re.escape(f"engine: sdpa cannot run this call: {law}")):
            attention(Q, K, V, engine="sdpa", **read(attention))
        return
    close(
        attention(Q, K, V, engine="sdpa", **read(attention)),
        attention(Q, K, V, engine="dense", **read(attention)),
        1e-9,  # scores of 100 and more grow the rounding of either side
    )


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
        if name != "distance":
            assert sdpa.vjp(sdpa.attend(call_of(attention, Q[:1], K, V)), DY)["q"].shape == Q[:1].shape


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
    q, k, v = (normal(1, HEADS, 61, WIDTH, dtype=torch.float32) for _ in range(3))
    positive = TABLES["P"] @ TABLES["P"].mT
    tables = {"P": positive.float()} if "P" in attention.ranks else {}
    near = attention(q.double(), k.double(), v.double(), **{name: x.double() for name, x in tables.items()})
    exact = attention((q + 100).double(), (k + 100).double(), v.double(), **{x: t.double() for x, t in tables.items()})
    assert (exact - near).abs().max() < 1e-2, "distances do not see the origin, but for q + 100 in float32"
    y = attention(q + 100, k + 100, v, engine="sdpa", **tables)
    assert (y.double() - exact).abs().max() < 1e-5


def test_distances_that_would_lose_their_digits() -> None:
    q, k, v = (x.float() for x in (Q, K, V))
    k[:, :, 0] += 100
    told = r"keys whose norms make scores of 4\.\d+e\+04 lose the digits of sqdist"
    with pytest.raises(rg.EngineError, match=told):
        rg.Attention(score=-sqdist)(q, k, v, engine="sdpa")
    agrees(rg.Attention(score=-sqdist / 2**20), q.double(), k.double(), v.double())
    assert sdpa.refusal(call_of(rg.Attention(score=-sqdist / 2**20), q, k, v)) is None


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


# -- refusals ----------------------------------------------------------------------------------------------------


def refused(attention: rg.Attention, *arrays: Any, **options: Any) -> str:
    """The reason why this call is refused, which the public error must carry."""
    arrays = arrays or (Q, K, V)
    call = call_of(attention, *arrays, **options)
    reason = sdpa.refusal(call)
    assert reason is not None
    options = read(attention) | options
    with pytest.raises(rg.EngineError, match=re.escape(f"engine: sdpa cannot run this call: {reason}")):
        attention(*arrays, engine="sdpa", **options)
    return reason


IRREDUCIBLE = {
    zoo.sigmoid(): "its kernel is softmax; the weight is each(sigmoid(s))",
    zoo.softmax_plus_one(): "its kernel is softmax; the weight is share(exp(s), sink=1)",
    zoo.soft_cap(): "the score is not slope · pair + bias with one pair of q and k",
    rg.Attention(score=dot + cosine): "the score is not slope · pair + bias with one pair of q and k",
    rg.Attention(score=i - j): "the score is not slope · pair + bias with one pair of q and k",
    rg.Attention(score=dot * j): "the slope j varies with j",
    rg.Attention(score=dot * (i - j)): "the slope i - j varies with j",
    rg.Attention(score=sqdist * i): "the slope i varies with i",
    rg.Attention(score=dot + table("line")[j], mask=rg.causal): (
        "bias and mask vary with j and with i - j: together N × n numbers"
    ),
    rg.Attention(score=-sqdist, mask=rg.causal): "bias and mask vary with j and with i - j: together N × n numbers",
    rg.Attention(score=dot + table("ij")[i, j], mask=rg.causal): (
        "bias and mask vary with i - j and with i and j: together N × n numbers"
    ),
    rg.Attention(score=dot + i * j): "the bias i * j is no vector over j or over i - j",
    rg.Attention(mask=rg.causal & rg.padding("lengths")): (
        'the mask (j <= i) & (j < table("lengths")[b]) is no vector over j or over i - j'
    ),
    rg.Attention(mask=i > 3): "the mask i >= 4 is no vector over j or over i - j",
    rg.Attention(mask=rg.causal & rg.given("keep")): (
        'the mask (j <= i) & given("keep") is no vector over j or over i - j'
    ),
    rg.Attention(mask=dot > 0): "the mask dot > 0 depends on q and k",
}


@pytest.mark.parametrize("attention", IRREDUCIBLE, ids=repr)
def test_formulas_that_do_not_reduce(attention: rg.Attention) -> None:
    assert sdpa.reduction(attention) == IRREDUCIBLE[attention]
    assert refused(attention) == IRREDUCIBLE[attention]


def test_other_libraries_are_refused() -> None:
    arrays = [x.numpy() for x in (Q, K, V)]
    assert refused(zoo.scaled_dot(), *arrays) == "it runs on PyTorch, not on numpy"
    assert refused(zoo.sigmoid(), *[x.tolist() for x in arrays]) == "it runs on PyTorch, not on numpy"


def test_no_values() -> None:
    call = prepare(rg.Attention(mask=rg.causal), Q, K, start=None, tables={})
    assert sdpa.refusal(call) == "there are no values, and PyTorch's kernel returns y alone"
    assert sdpa.refusal_by_value(call) is None


def test_widths_must_agree() -> None:
    reason = "values of width 3 beside keys of width 5 take PyTorch's N × n path"
    assert refused(zoo.scaled_dot(), Q, K, V[..., :3]) == reason


def test_dropout_is_refused() -> None:
    call = call_of(zoo.scaled_dot())
    object.__setattr__(call, "dropout", object())
    assert sdpa.refusal(call) == "PyTorch's kernel would drop other weights"


@pytest.mark.parametrize("arrays", [(Q[:0], K[:0], V[:0]), (Q[:, :, :0], K, V), (Q, K[:, :, :0], V[:, :, :0])])
def test_empty_axes_are_refused(arrays: tuple[Any, ...]) -> None:
    assert refused(zoo.scaled_dot(), *arrays) == "there is nothing to attend to"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_no_second_rounding(dtype: str) -> None:
    arrays = [x.to(getattr(torch, dtype)) for x in (Q, K, V)]
    before = f"would be rounded to {dtype} before the sum"
    assert refused(FORMULAS["slope of a head"], *arrays) == f'table("heads")[h] q {before}'
    assert refused(FORMULAS["metric"], *arrays) == f'dot(table("M")) {before}'
    assert refused(FORMULAS["causal cosine"], *arrays) == f"cosine {before}"
    assert refused(FORMULAS["distance"], *arrays) == f"sqdist {before}"


def test_gradients_of_what_stands_in_the_mask_are_refused() -> None:
    learned = {"relative": TABLES["relative"].clone().requires_grad_()}
    reason = "PyTorch's kernel gives no gradient for {} in attn_mask"
    assert refused(FORMULAS["relative"], **learned) == reason.format("relative")
    k = K.clone().requires_grad_()
    assert refused(FORMULAS["distance"], Q, k, V) == reason.format("k")
    metrics = {"P": TABLES["P"].clone().requires_grad_()}
    assert refused(FORMULAS["metric distance"], Q, k, V, **metrics) == reason.format("P and k")
    with torch.no_grad():
        agrees(FORMULAS["relative"], **learned)
        agrees(FORMULAS["distance"], Q, k, V)
    agrees(FORMULAS["row bias"], rows=TABLES["rows"].clone().requires_grad_())  # it cancels


def test_matrices_start_together() -> None:
    starts = torch.tensor([0, 2])
    assert refused(FORMULAS["matrix"], start=starts) == "each batch starts elsewhere in the bias"


def test_pytorch_is_asked() -> None:
    assert sdpa.refusal(call_of(zoo.scaled_dot())) is None
    with sdpa_kernel(SDPBackend.MATH):
        assert refused(zoo.scaled_dot()) == "PyTorch would take its N × n path"


def test_a_pytorch_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "_fused_sdp_choice")
    assert sdpa.refusal(call_of(zoo.alibi())) is None


def test_other_devices_take_fewer_masks() -> None:
    def reason(attention: rg.Attention, start: Any = None) -> str | None:
        meta = [x.to("meta", torch.float32) for x in (Q, K, V)]
        tables = {name: x.to("meta") for name, x in read(attention).items()}
        return sdpa.refusal(prepare(attention, *meta, start=start, tables=tables))

    written = "PyTorch may write attn_mask out as N × n numbers on meta"
    assert reason(FORMULAS["window"]) == reason(FORMULAS["padding"]) == reason(zoo.causal_dot()) == written
    assert reason(FORMULAS["falling"]) == "PyTorch's kernels on meta need a scale above 0"


def test_vmap_is_refused() -> None:
    with pytest.raises(rg.EngineError, match="vmap hides an axis from PyTorch's kernel"):
        torch.vmap(lambda q, k, v: rg.Attention()(q, k, v, engine="sdpa"))(Q, K, V)


def test_a_nan_stays_where_it_is_read() -> None:
    k, v = K.clone(), V.clone()
    k[:, :, 9], v[:, :, 9] = torch.nan, torch.inf
    spread = "hold NaN or ∞, which PyTorch's kernel would spread to rows that do not read it"
    assert refused(zoo.causal_dot(), Q, k, v) == f"k and v {spread}"
    assert refused(FORMULAS["padding"], Q, K, v) == f"v {spread}"
    assert refused(FORMULAS["distance"], Q, k, V) == "k hold NaN or ∞, which PyTorch's kernel would spread to every row"
    for part in (sdpa.refusal_by_shape, sdpa.refusal_by_value):
        assert part(call_of(zoo.causal_dot())) is None
    assert sdpa.refusal_by_shape(call_of(zoo.causal_dot(), Q, k, v)) is None
    assert rg.Attention()(Q, k, v, engine="sdpa").isnan().all(), "every row reads every key"


def test_sums_that_overflow_are_no_nan() -> None:
    half = [torch.full_like(x, 3e4, dtype=torch.float16) for x in (Q, K, V)]
    assert not sum(x.sum() for x in half).isfinite()
    assert sdpa.refusal(call_of(zoo.causal_dot(), *half)) is None


# -- steps, tables, plan -----------------------------------------------------------------------------------------


STEPS = {"score": "scores", "mask": "mask", "weights": "weights", "log_total": "totals"}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_not_returned(name: str) -> None:
    steps = sdpa.attend(call_of(zoo.causal_dot()))
    told = f'{STEPS[name]}: PyTorch\'s kernel returns y alone; got engine="sdpa"; take engine="dense"'
    with pytest.raises(rg.EngineError, match=f"^{re.escape(told)}$"):
        getattr(steps, name)


def test_scores_are_not_returned() -> None:
    with pytest.raises(rg.EngineError, match=r"^scores: PyTorch's kernel returns y alone"):
        sdpa.scores(call_of(zoo.causal_dot()))
    for ask in (rg.Attention().weights, rg.Attention().scores):
        with pytest.raises(rg.EngineError, match="engine: sdpa cannot run this call"):
            ask(Q, K, engine="sdpa")
    for ask in (
        lambda: rg.Attention()(Q, K, V, totals=True, engine="sdpa"),
        lambda: rg.Attention().trace(Q, K, V, engine="sdpa"),
    ):
        with pytest.raises(rg.EngineError, match="engine: sdpa cannot run this call"):
            ask()


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


def test_every_call_has_a_cost() -> None:
    for entry in zoo.ENTRIES.values():
        call = example(entry.formula, n=37)
        for convert in (lambda x: x, torch.as_tensor):
            arrays = [convert(x) for x in (call.q, call.k, call.v)]
            plan = entry.formula.plan(*arrays, **{name: convert(x) for name, x in call.tables.items()})
            option = next(option for option in plan.options if option.engine == "sdpa")
            assert option.operations > 0
    small, large = (_bytes(normal(1, 1, n, 5)) for n in (101, 202))
    assert large < 3 * small, "memory grows with N, not with N²"


def _bytes(x: torch.Tensor) -> int:
    return next(option.bytes for option in zoo.alibi().plan(x, x, x).options if option.engine == "sdpa")


def test_a_mask_that_was_not_refused_still_has_its_gradient() -> None:
    """A plan that was made without gradients may be taken again with them: right before small."""
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
