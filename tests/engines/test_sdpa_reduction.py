"""What reduces to PyTorch's own kernel, and that it then gives what `dense` gives, forward and backward."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from kernel_calls import DY, FORMULAS, K, Q, V, agrees, close, read, reduced
from regard import b, cosine, d, dot, h, i, j, sqdist, sqrt, table, zoo
from regard.engines import sdpa
from regard.example import example
from strategies import index_masks

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
    if reduced(attention).is_distance or (dtype != torch.float32 and not reduced(attention).is_plain):
        why = "‖k‖² − 2 q·k leaves too few digits" if reduced(attention).is_distance else "would be rounded to"
        with pytest.raises(rg.EngineError, match=why):
            attention(q, k, v, engine="sdpa", **narrow)
        return
    y = attention(q, k, v, engine="sdpa", **narrow)
    assert y.dtype == dtype
    assert (y.double() - exact).abs().max() <= 2 * allowed


# -- formulas ----------------------------------------------------------------------------------------------------

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
def test_gradients_are_those_of_dense(name: str) -> None:
    attention, tables = FORMULAS[name], read(FORMULAS[name])
    k, v = (x[:, ::2] for x in (K, V))
    held = reduced(attention).mask_tables  # no gradients for these
    given = {"q": Q, "k": k, "v": v, **{name: table for name, table in tables.items() if table.is_floating_point()}}
    leaves = {name: x.clone().requires_grad_() for name, x in given.items() if name not in held}
    attention(**given | tables | leaves, engine="sdpa").backward(DY)
    expected = attention.vjp(Q, k, v, DY, engine="dense", **tables)
    by_name = dict(zip("qkv", expected, strict=True)) | expected.tables
    for key, leaf in leaves.items():
        close(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad, by_name[key])  # a row's own term cancels


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
