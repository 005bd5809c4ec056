"""The drop-in for torch.nn.MultiheadAttention: PyTorch's module is the oracle, then plain mathematics for formulas."""

from __future__ import annotations

import copy
import io
import math
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard import Attention, H, causal, d, dot, each, h, i, j, log, n, relu, s, share, sigmoid, sqrt, table, window
from regard.algebra.errors import CallError, FormulaError, KindError, TableError
from regard.nn.multihead import MultiheadAttention

B, HEADS, L, S, D = 3, 2, 5, 7, 11
E = HEADS * D
CLOSE = {"rtol": 1e-10, "atol": 1e-12}  # float64 keeps 16 digits, and sums of some hundred terms lose three
SINGLE = {"rtol": 1e-4, "atol": 1e-5}  # float32 keeps 7


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Products this small take longer to share than to do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def truths(*shape: int, seed: int = 0) -> Tensor:
    """True where a pair is not admitted; every row keeps its first key."""
    mask = normal(*shape, seed=seed) > 0
    mask[..., 0] = False
    return mask


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """To add to the score; −∞ at some places."""
    return normal(*shape, seed=seed + 1).masked_fill(truths(*shape, seed=seed), -torch.inf)


def pair(attention: Attention | None = None, **options: Any) -> tuple[nn.MultiheadAttention, MultiheadAttention]:
    """PyTorch's module and ours, with the same parameters, none of which is zero."""
    options = {"embed_dim": E, "num_heads": HEADS, "dtype": torch.float64} | options
    theirs = nn.MultiheadAttention(**options)
    ours = MultiheadAttention(**options, **({} if attention is None else {"attention": attention}))
    for seed, parameter in enumerate(theirs.parameters()):
        nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(seed))
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def quiet(module: Any, *arguments: Any, **options: Any) -> Any:
    """PyTorch's module, which warns where one mask is of truths and the other of numbers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Support for mismatched|The PyTorch API of nested tensors")
        return module(*arguments, **options)


# -- parameters --------------------------------------------------------------------------------------------------

BUILDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without bias": {"bias": False},
    "other widths": {"kdim": 13, "vdim": 17},
    "one other width": {"vdim": 17},
    "learned key": {"add_bias_kv": True},
    "zero key": {"add_zero_attn": True},
    "both keys": {"add_bias_kv": True, "add_zero_attn": True, "kdim": 13, "vdim": 17, "bias": False},
}
every_build = pytest.mark.parametrize("build", BUILDS)
FORMULAS = [Attention(), Attention(weight=sigmoid)]


@every_build
@pytest.mark.parametrize("attention", FORMULAS, ids=repr)
def test_the_same_seed_gives_the_same_parameters(build: str, attention: Attention) -> None:
    torch.manual_seed(5)
    theirs = nn.MultiheadAttention(E, HEADS, **BUILDS[build])
    torch.manual_seed(5)
    ours = MultiheadAttention(E, HEADS, **BUILDS[build], attention=attention)
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours.get_parameter(name), parameter, rtol=0, atol=0)
    torch.manual_seed(5)
    theirs._reset_parameters()
    torch.manual_seed(5)
    ours._reset_parameters()  # once more, for those who call it
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=0, atol=0)


@every_build
@pytest.mark.parametrize("attention", FORMULAS, ids=repr)
def test_state_dicts_go_both_ways(build: str, attention: Attention) -> None:
    theirs, ours = pair(attention, **BUILDS[build])
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(1)
    assert theirs.load_state_dict(ours.state_dict(), strict=True) == ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(dict(theirs.named_parameters()), dict(ours.named_parameters()), rtol=0, atol=0)


def test_it_is_one_of_pytorchs_and_shows_its_formula() -> None:
    module = MultiheadAttention(E, HEADS, attention=Attention(mask=causal))
    assert isinstance(module, nn.MultiheadAttention)
    assert module.extra_repr() == "embed_dim=22, num_heads=2, attention=softmax(dot / sqrt(d), mask=j <= i)"


# -- results -----------------------------------------------------------------------------------------------------

MASKS: dict[str, dict[str, str]] = {
    "none": {},
    "pairs": {"attn_mask": "truths"},
    "pairs of each head": {"attn_mask": "truths of heads"},
    "numbers": {"attn_mask": "numbers"},
    "numbers of each head": {"attn_mask": "numbers of heads"},
    "keys": {"key_padding_mask": "truths"},
    "numbers of keys": {"key_padding_mask": "numbers"},
    "both": {"attn_mask": "truths", "key_padding_mask": "truths"},
    "both of each head": {"attn_mask": "truths of heads", "key_padding_mask": "truths"},
    "both in numbers": {"attn_mask": "numbers of heads", "key_padding_mask": "numbers"},
    "numbers and keys": {"attn_mask": "numbers", "key_padding_mask": "truths"},
    "pairs and numbers of keys": {"attn_mask": "truths of heads", "key_padding_mask": "numbers"},
    "hint": {"attn_mask": "causal", "is_causal": "yes"},
    "hint and numbers": {"attn_mask": "causal numbers", "is_causal": "yes"},
    "hint and keys": {"attn_mask": "causal", "key_padding_mask": "truths", "is_causal": "yes"},
}
INPUTS: dict[str, dict[str, Any]] = {"self": {}, "keys are values": {}, **BUILDS}  # what stands in for key and value
LAYOUTS = {"batch first": True, "positions first": False, "one sequence": False}


def masks_of(kind: str, batch: int | None, queries: int, keys: int) -> dict[str, Any]:
    """The masks of a call; batch is None for one sequence."""
    after = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    of_heads = ((batch or 1) * HEADS, queries, keys)
    made = {
        "truths": lambda: truths(queries, keys),
        "truths of heads": lambda: truths(*of_heads),
        "numbers": lambda: numbers(queries, keys),
        "numbers of heads": lambda: numbers(*of_heads),
        "causal": lambda: after,
        "causal numbers": lambda: torch.zeros(queries, keys, dtype=torch.float64).masked_fill(after, -torch.inf),
    }
    asked = MASKS[kind]
    found: dict[str, Any] = {"attn_mask": made[asked["attn_mask"]]()} if "attn_mask" in asked else {}
    if "key_padding_mask" in asked:
        shape = (keys,) if batch is None else (batch, keys)
        found["key_padding_mask"] = (truths if asked["key_padding_mask"] == "truths" else numbers)(*shape, seed=7)
    return found | ({"is_causal": True} if "is_causal" in asked else {})


def arrays_of(inputs: str, layout: str) -> tuple[Tensor, Tensor, Tensor]:
    def sequence(length: int, width: int, seed: int) -> Tensor:
        x = normal(B, length, width, seed=seed)
        return {"batch first": x, "positions first": x.transpose(0, 1).contiguous(), "one sequence": x[0]}[layout]

    query = sequence(L, E, 1)
    if inputs == "self":
        return query, query, query
    key = sequence(S, INPUTS[inputs].get("kdim", E), 2)
    return query, key, key if inputs == "keys are values" else sequence(S, INPUTS[inputs].get("vdim", E), 3)


def outcome(module: nn.Module, arrays: tuple[Tensor, ...], options: dict[str, Any]) -> dict[str, Tensor | None]:
    """Output, weights, and the gradients of everything."""
    leaves = {id(x): x.clone().requires_grad_() for x in arrays}  # one tensor stays one
    options = {
        name: value.clone().requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value
        for name, value in options.items()
    }
    module.zero_grad()
    out, weights = quiet(module, *(leaves[id(x)] for x in arrays), **options)
    loss = (out * normal(*out.shape, seed=9)).sum()
    if weights is not None:
        loss = loss + (weights * normal(*weights.shape, seed=10)).sum()
    loss.backward()
    grown = {f"gradient of {name}": parameter.grad for name, parameter in module.named_parameters()}
    grown |= {f"gradient of input {place}": leaf.grad for place, leaf in enumerate(leaves.values())}
    grown |= {f"gradient of {name}": value.grad for name, value in options.items() if isinstance(value, Tensor)}
    return {"out": out, "weights": weights} | grown


def assert_same(ours: dict[str, Tensor | None], theirs: dict[str, Tensor | None]) -> None:
    assert {k for k, x in ours.items() if x is None} == {k for k, x in theirs.items() if x is None}
    for name, found in ours.items():
        if found is not None:
            torch.testing.assert_close(found, theirs[name], **CLOSE, msg=lambda text, name=name: f"{name}: {text}")


NEEDS: list[dict[str, Any]] = [{"need_weights": False}, {}, {"average_attn_weights": False}]
TURNS = [  # each mask meets all inputs, and all layouts with all needs
    pytest.param([*LAYOUTS][(a + m) % 3], inputs, masks, NEEDS[(a // 3 + m) % 3], id=f"{inputs}-{masks}")
    for a, inputs in enumerate(INPUTS)
    for m, masks in enumerate(MASKS)
]


@pytest.mark.parametrize(("layout", "inputs", "masks", "needs"), TURNS)
def test_outputs_weights_and_gradients_are_pytorchs(layout: str, inputs: str, masks: str, needs: Any) -> None:
    theirs, ours = pair(batch_first=LAYOUTS[layout], **INPUTS[inputs])
    arrays = arrays_of(inputs, layout)
    keys = arrays[1].shape[0 if layout != "batch first" else 1]
    options = masks_of(masks, None if layout == "one sequence" else B, L, keys) | needs
    with sdpa_kernel(SDPBackend.MATH):  # PyTorch's flash kernel has no gradient for a mask of its own
        expected = outcome(theirs, arrays, options)
    assert_same(outcome(ours, arrays, options), expected)


@pytest.mark.parametrize("place", range(len(MASKS)), ids=[*MASKS])
def test_the_fast_path_gives_the_same(place: int) -> None:
    theirs, ours = (module.eval() for module in pair(batch_first=True))
    x, _, _ = arrays_of("self", "batch first")
    options = masks_of([*MASKS][place], B, L, L)
    for needs in (NEEDS[0], NEEDS[1 + place % 2]):
        with torch.no_grad():
            expected, found = quiet(theirs, x, x, x, **options, **needs), ours(x, x, x, **options, **needs)
        torch.testing.assert_close(found, expected, **CLOSE)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_mask_gives_what_pytorch_gives(data: st.DataObject) -> None:
    """Masks without a thought for rows that they leave empty: 0 where PyTorch has NaN, and the same elsewhere."""
    batch, heads = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2, 4]))
    queries, keys = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    theirs, ours = (x.eval() for x in pair(num_heads=heads, embed_dim=4, batch_first=True))
    query, key = normal(batch, queries, 4, seed=1), normal(batch, keys, 4, seed=2)
    options: dict[str, Any] = {"need_weights": data.draw(st.booleans()), "average_attn_weights": False}
    for name, shapes in (
        ("attn_mask", [(queries, keys), (batch * heads, queries, keys)]),
        ("key_padding_mask", [(batch, keys)]),
    ):
        kind, shape = data.draw(st.sampled_from(["none", "truths", "numbers"])), data.draw(st.sampled_from(shapes))
        if kind != "none":
            seed, share_of = data.draw(st.integers(0, 99)), data.draw(st.sampled_from([0.1, 0.5, 0.9]))
            mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < share_of
            options[name] = mask if kind == "truths" else normal(*shape, seed=seed).masked_fill(mask, -torch.inf)
    with torch.set_grad_enabled(data.draw(st.booleans())):
        expected, expected_weights = quiet(theirs, query, key, key, **options)
        found, weights = ours(query, key, key, **options)
    _, reference = quiet(theirs, query, key, key, **(options | {"need_weights": True}))
    empty = reference.isnan().any(-1)  # (batch, heads, queries)
    if weights is not None:
        torch.testing.assert_close(weights, reference.masked_fill(empty[..., None], 0.0), **CLOSE)
        torch.testing.assert_close(weights[~empty], expected_weights[~empty], **CLOSE)
    rows = ~expected.isnan().any(-1)
    torch.testing.assert_close(found[rows], expected[rows], **CLOSE)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["truths", "numbers"])
@pytest.mark.parametrize("attention", FORMULAS, ids=repr)
def test_a_row_without_a_key_is_zero_and_so_are_its_gradients(
    attention: Attention, kind: str, need_weights: bool
) -> None:
    _, ours = pair(attention, batch_first=True)
    mask = truths(L, S)
    mask[2] = True
    given_mask = mask if kind == "truths" else torch.zeros(L, S, dtype=torch.float64).masked_fill(mask, -torch.inf)
    query, key = normal(B, L, E).requires_grad_(), normal(B, S, E, seed=1)
    out, weights = ours(query, key, key, attn_mask=given_mask, need_weights=need_weights)
    torch.testing.assert_close(out[:, 2], ours.out_proj.bias.expand(B, E), **CLOSE)
    assert weights is None or not weights[:, 2].any()
    out.sum().backward()
    assert query.grad is not None
    assert not query.grad[:, 2].any()
    assert torch.isfinite(query.grad).all()


def test_a_batch_of_nothing_and_no_keys_at_all() -> None:
    _, ours = pair(batch_first=True)
    assert ours(normal(0, L, E), normal(0, S, E), normal(0, S, E))[0].shape == (0, L, E)
    out, weights = ours(normal(B, L, E), normal(B, 0, E), normal(B, 0, E))
    torch.testing.assert_close(out, ours.out_proj.bias.expand(B, L, E), **CLOSE)
    assert weights.shape == (B, L, 0)


# -- dropout -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
def test_dropout_is_drawn_once_for_weights_and_output(average: bool) -> None:
    _, ours = pair(dropout=0.4, batch_first=True)
    x, value = normal(B, L, E), normal(B, L, E, seed=1)
    torch.manual_seed(3)
    out, weights = ours(x, x, value, average_attn_weights=average)
    torch.manual_seed(3)
    alone, _ = ours(x, x, value, need_weights=False)
    torch.testing.assert_close(alone, out, **CLOSE)
    if not average:
        W, bias = ours.in_proj_weight[2 * E :], ours.in_proj_bias[2 * E :]
        v = (value @ W.T + bias).unflatten(-1, (HEADS, D)).transpose(1, 2)
        torch.testing.assert_close(ours.out_proj((weights @ v).transpose(1, 2).flatten(-2)), out, **CLOSE)


def test_dropout_takes_its_share_in_training_alone() -> None:
    theirs, ours = pair(dropout=0.4, batch_first=True)
    x = normal(7, 53, E)
    expected = theirs.eval()(x, x, x, average_attn_weights=False)[1]
    weights = ours.train()(x, x, x, average_attn_weights=False)[1]
    kept = weights != 0
    torch.testing.assert_close(weights[kept], expected[kept] / 0.6, **CLOSE)
    deviation = (0.4 * 0.6 / kept.numel()) ** 0.5
    assert abs(kept.double().mean() - 0.6) < 5 * deviation
    torch.testing.assert_close(ours.eval()(x, x, x, average_attn_weights=False)[1], expected, **CLOSE)


# -- formulas ----------------------------------------------------------------------------------------------------

QUERY, KEY = torch.arange(L)[:, None], torch.arange(S)[None, :]
HEAD = torch.arange(HEADS, dtype=torch.float64)[:, None, None]


def softmax_of(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1).nan_to_num(0.0)


def sigmoid_of(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.sigmoid(scores - math.log(S)) * mask


def alibi_of(scores: Tensor, mask: Tensor) -> Tensor:
    return softmax_of(scores - 2.0 ** (-8 * (HEAD + 1) / HEADS) * (QUERY - KEY), mask & (KEY <= QUERY))


def window_of(scores: Tensor, mask: Tensor) -> Tensor:
    return softmax_of(scores, mask & (KEY <= QUERY) & (QUERY - KEY < 3))


def quadratic_of(scores: Tensor, mask: Tensor) -> Tensor:
    psi = (1 + scores**2).masked_fill(~mask, 0.0)  # (−∞)² is no weight
    total = psi.sum(-1, keepdim=True)
    return torch.where(total > 0, psi / total, 0.0)


def linear_of(scores: Tensor, mask: Tensor) -> Tensor:
    return (scores * 0.1).masked_fill(~mask, 0.0)


OTHERS = {  # with q·k / √d, what numbers a mask adds, and the mask, in plain mathematics
    "sigmoid": (Attention(dot / sqrt(d) - log(n), sigmoid), sigmoid_of),
    "window": (Attention(mask=window(3)), window_of),
    "alibi": (Attention(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=causal), alibi_of),
    "quadratic": (Attention(weight=share(1 + s**2)), quadratic_of),
    "linear": (Attention(weight=each(s * 0.1)), linear_of),
}


def in_plain_mathematics(
    module: MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, masks: Any, rule: Any
) -> Any:
    """(batch, positions, width) → out and weights of each head, by whole matrices."""
    W, c = module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3)
    q, k, v = (
        (x @ w.T + bias).unflatten(-1, (HEADS, D)).transpose(1, 2)
        for x, w, bias in zip((query, key, value), W, c, strict=True)
    )
    scores, admitted = q @ k.mT / D**0.5, torch.ones(B, HEADS, L, S, dtype=torch.bool)
    for mask in masks:
        if mask.dtype == torch.bool:
            admitted = admitted & ~mask
        else:
            admitted, scores = admitted & (mask > -torch.inf), scores + mask.masked_fill(mask == -torch.inf, 0.0)
    weights = rule(scores, admitted)
    return module.out_proj((weights @ v).transpose(1, 2).flatten(-2)), weights


@pytest.mark.parametrize(
    "masks", ["none", "pairs", "numbers of each head", "both", "both in numbers", "pairs and numbers of keys", "hint"]
)
@pytest.mark.parametrize("formula", OTHERS)
def test_formulas_are_what_they_say(formula: str, masks: str) -> None:
    attention, rule = OTHERS[formula]
    _, ours = pair(attention, batch_first=True)
    query, key, value = normal(B, L, E, seed=1), normal(B, S, E, seed=2), normal(B, S, E, seed=3)
    options = masks_of(masks, B, L, S)
    laid = []
    if "attn_mask" in options:
        laid.append(
            options["attn_mask"].reshape(-1, HEADS, L, S) if options["attn_mask"].ndim == 3 else options["attn_mask"]
        )
    if "key_padding_mask" in options:
        laid.append(options["key_padding_mask"][:, None, None, :])
    expected, expected_weights = in_plain_mathematics(ours, query, key, value, laid, rule)
    out, weights = ours(query, key, value, **options, average_attn_weights=False)
    torch.testing.assert_close((out, weights), (expected, expected_weights), **CLOSE)
    alone, none = ours(query, key, value, **options, need_weights=False)
    assert none is None
    torch.testing.assert_close(alone, expected, **CLOSE)
    grads = [torch.autograd.grad((y * normal(B, L, E, seed=8)).sum(), ours.parameters()) for y in (alone, expected)]
    torch.testing.assert_close(*grads, **CLOSE)


def test_tables_of_the_formula_are_arguments_by_name_and_learn() -> None:
    attention = Attention(dot / sqrt(d) + table("bias")[h, i - j + S])
    _, ours = pair(attention, batch_first=True)
    theirs, _ = pair(batch_first=True)
    x, bias = normal(B, S, E), normal(HEADS, 2 * S, seed=1).requires_grad_()
    places = torch.arange(S)[:, None] - torch.arange(S) + S
    expected = theirs(x, x, x, attn_mask=bias[:, places].repeat(B, 1, 1), need_weights=False)[0]
    found = ours(x, x, x, need_weights=False, bias=bias)[0]
    torch.testing.assert_close(found, expected, **CLOSE)
    torch.testing.assert_close(ours(x, x, x, bias=bias)[0], expected, **CLOSE)
    grads = [torch.autograd.grad(y.square().sum(), bias)[0] for y in (found, expected)]
    torch.testing.assert_close(*grads, **CLOSE)
    with pytest.raises(TableError, match=r"the formula reads bias; got none; pass bias="):
        ours(x, x, x)


def test_queries_start_where_they_are_said_to() -> None:
    _, ours = pair(Attention(mask=causal), batch_first=True)
    x = normal(B, S, E)
    whole = ours(x, x, x)[0]
    torch.testing.assert_close(ours(x[:, 3:5], x, x, start=3)[0], whole[:, 3:5], **CLOSE)
    torch.testing.assert_close(ours(x[:, :5], x, x)[0], whole[:, :5], **CLOSE)  # 0 unless said otherwise


def test_appended_keys_stand_after_the_last_and_the_formula_says_who_reads_them() -> None:
    options = {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True}
    x, hidden = normal(B, S, E), torch.ones(S, S, dtype=torch.bool)
    _, behind = pair(Attention(mask=causal), **options)
    assert not behind(x, x, x)[1][..., S:].any()
    _, beside = pair(Attention(mask=causal | (j >= n - 2)), **options)
    assert (beside(x, x, x)[1][..., S:] > 0).all()
    assert (beside(x, x, x, attn_mask=hidden)[1][..., S:] > 0).all()  # what masks say is of the caller's keys
    _, counting = pair(Attention(dot / sqrt(d) - log(n), sigmoid), **options)
    _, plain = pair(Attention(dot / sqrt(d) - log(n + 2), sigmoid), batch_first=True)
    plain.load_state_dict(counting.state_dict(), strict=False)
    torch.testing.assert_close(counting(x, x, x)[1][..., :S], plain(x, x, x)[1], **CLOSE)


def test_another_formula_takes_the_place() -> None:
    _, ours = pair(batch_first=True)
    _, capped = pair(OTHERS["sigmoid"][0], batch_first=True)
    x = normal(B, L, E)
    ours.attention = capped.attention
    torch.testing.assert_close(ours(x, x, x), capped(x, x, x), rtol=0, atol=0)
    assert not ours._qkv_same_embed_dim
    ours.attention = Attention()
    assert ours._qkv_same_embed_dim


# -- in PyTorch's own layers -------------------------------------------------------------------------------------


def layer_with(attention: Attention | None, **options: Any) -> nn.TransformerEncoderLayer:
    """An encoder layer with our module in it, or PyTorch's for None; the parameters are the same."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, HEADS, 31, 0.0, batch_first=True, dtype=torch.float64)
    if attention is not None:
        ours = MultiheadAttention(E, HEADS, batch_first=True, dtype=torch.float64, attention=attention, **options)
        ours.load_state_dict(layer.self_attn.state_dict(), strict=not options)
        layer.self_attn = ours
    return layer


LAYER_MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "pairs": {"src_mask": truths(L, L)},
    "keys": {"src_key_padding_mask": truths(B, L)},
    "both": {"src_mask": truths(L, L), "src_key_padding_mask": truths(B, L)},
    "numbers": {"src_mask": numbers(L, L)},
    "hint": {"src_mask": torch.ones(L, L, dtype=torch.bool).triu(1), "is_causal": True},
}


@pytest.mark.parametrize("masks", LAYER_MASKS)
@pytest.mark.parametrize("training", [False, True])
def test_an_encoder_layer_gives_the_same_with_it(training: bool, masks: str) -> None:
    theirs, ours = (layer.train(training) for layer in (layer_with(None), layer_with(Attention())))
    x = normal(B, L, E)
    with torch.set_grad_enabled(training):
        found, expected = (layer(x, **LAYER_MASKS[masks]) for layer in (ours, theirs))
    torch.testing.assert_close(found, expected, **CLOSE, equal_nan=True)  # at inference PyTorch's layer adds no numbers


@pytest.mark.parametrize("masks", ["none", "both"])
@pytest.mark.parametrize("formula", OTHERS)
def test_no_layer_passes_another_formula_by(formula: str, masks: str) -> None:
    layer = layer_with(OTHERS[formula][0])
    x = normal(B, L, E)
    expected = layer.train()(x, **LAYER_MASKS[masks])
    with torch.no_grad():
        found = layer.eval()(x, **LAYER_MASKS[masks])
        plain = layer_with(None).eval()(x, **LAYER_MASKS[masks])
    torch.testing.assert_close(found, expected, **CLOSE)
    assert not torch.allclose(found, plain, **SINGLE)


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_no_layer_passes_appended_keys_by(option: str) -> None:
    layer = layer_with(Attention(), **{option: True})
    x = normal(B, L, E)
    expected = layer.train()(x)
    with torch.no_grad():
        torch.testing.assert_close(layer.eval()(x), expected, **CLOSE)


def lengths_mask(*lengths: int) -> Tensor:
    return torch.arange(L) >= torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("formula", [None, "sigmoid", "window"])
@pytest.mark.parametrize("after", [False, True], ids=["in the layer", "into the encoder"])
def test_an_encoder_with_padding_reads_as_in_training(formula: str | None, after: bool) -> None:
    """At inference the encoder turns a padded batch into a nested tensor, before or behind our back."""
    attention = Attention() if formula is None else OTHERS[formula][0]
    if after:
        encoder = quiet(nn.TransformerEncoder, layer_with(None), 2)
        for layer in encoder.layers:
            layer.self_attn = layer_with(attention).self_attn
    else:
        encoder = nn.TransformerEncoder(layer_with(attention), 2, enable_nested_tensor=formula is None)
    x, padded = normal(B, L, E), lengths_mask(5, 2, 3)
    expected = encoder.train()(x, src_key_padding_mask=padded)
    with torch.no_grad():
        found = quiet(encoder.eval(), x, src_key_padding_mask=padded)
    torch.testing.assert_close(found[~padded], expected[~padded], **CLOSE)


def test_a_decoder_layer_gives_the_same_with_it() -> None:
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(E, HEADS, 31, 0.0, batch_first=True, dtype=torch.float64)
    ours = copy.deepcopy(theirs)
    for name in ("self_attn", "multihead_attn"):
        made = MultiheadAttention(E, HEADS, batch_first=True, dtype=torch.float64)
        made.load_state_dict(getattr(theirs, name).state_dict())
        setattr(ours, name, made)
    mask = torch.ones(L, L, dtype=torch.bool).triu(1)
    options = {"tgt_mask": mask, "tgt_is_causal": True, "memory_key_padding_mask": truths(B, S)}
    x, memory = normal(B, L, E), normal(B, S, E, seed=1)
    torch.testing.assert_close(ours(x, memory, **options), theirs(x, memory, **options), **CLOSE)


# -- nested tensors ----------------------------------------------------------------------------------------------


def nested(*lengths: int, width: int = E, seed: int = 0, **options: Any) -> Tensor:
    rows = [normal(length, width, seed=seed + place) for place, length in enumerate(lengths)]
    return quiet(torch.nested.nested_tensor, rows, **options)


@pytest.mark.parametrize("needs", [{"need_weights": False}, {}, {"average_attn_weights": False}], ids=str)
def test_nested_tensors_give_what_pytorchs_fast_path_gives(needs: dict[str, Any]) -> None:
    theirs, ours = (module.eval() for module in pair(batch_first=True))
    x = nested(3, 5, 2)
    with torch.no_grad():
        (expected, expected_weights), (found, weights) = theirs(x, x, x, **needs), ours(x, x, x, **needs)
    assert found.is_nested
    for row, expected_row in zip(found.unbind(), expected.unbind(), strict=True):
        torch.testing.assert_close(row, expected_row, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.parametrize("formula", OTHERS)
def test_nested_tensors_read_each_sequence_by_itself(formula: str, layout: torch.layout) -> None:
    if formula == "sigmoid":
        formula, attention = "sigmoid without n", Attention(weight=sigmoid)  # n counts the padding too
    else:
        attention = OTHERS[formula][0]
    _, ours = pair(attention, batch_first=True, vdim=17)
    query = nested(3, 5, 2, layout=layout).detach().requires_grad_()
    key = nested(4, 7, 3, seed=5, layout=layout)
    value = nested(4, 7, 3, width=17, seed=8, layout=layout)
    found, _ = ours(query, key, value)
    assert found.layout == layout
    for row, *three in zip(found.unbind(), query.unbind(), key.unbind(), value.unbind(), strict=True):
        torch.testing.assert_close(row, ours(*three)[0], **CLOSE)
    sum(row.sum() for row in found.unbind()).backward()
    assert query.grad is not None


# -- what else is done to modules --------------------------------------------------------------------------------


def test_autocast_gives_the_dtypes_and_about_the_numbers_of_pytorch() -> None:
    theirs, ours = pair(batch_first=True, dtype=torch.float32, add_bias_kv=True)
    x, exact = normal(B, L, E, dtype=torch.float32), {}
    exact["out"], exact["weights"] = theirs(x, x, x)
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = theirs(x, x, x), ours(x, x, x)
        alone = ours(x, x, x, need_weights=False)[0]
    for value, (name, right), bound in zip(found, exact.items(), expected, strict=True):
        assert value.dtype == bound.dtype, name
        assert (value - right).abs().max() <= 2 * (bound - right).abs().max()
    assert alone.dtype == expected[0].dtype
    assert (alone - exact["out"]).abs().max() <= 2 * (expected[0] - exact["out"]).abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_narrow_dtypes_are_as_exact_as_pytorch(dtype: torch.dtype) -> None:
    (exact, _), (theirs, ours) = pair(batch_first=True), pair(batch_first=True, dtype=dtype)
    exact.load_state_dict(theirs.state_dict())
    x = normal(B, L, E, dtype=dtype)
    for found, expected, right in zip(ours(x, x, x), theirs(x, x, x), exact(*[x.double()] * 3), strict=True):
        assert found.dtype == dtype
        assert (found - right).abs().max() <= 2 * (expected - right).abs().max()


def test_functional_call_copies_and_pickles() -> None:
    _, ours = pair(OTHERS["window"][0], batch_first=True)
    x = normal(B, L, E)
    expected = ours(x, x, x)
    torch.testing.assert_close(copy.deepcopy(ours)(x, x, x), expected, rtol=0, atol=0)
    torch.testing.assert_close(pickle.loads(pickle.dumps(ours))(x, x, x), expected, rtol=0, atol=0)
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    blank = MultiheadAttention(E, HEADS, batch_first=True, dtype=torch.float64, attention=ours.attention)
    state = torch.load(file, weights_only=True)
    found = torch.func.functional_call(blank, state, (x, x, x))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


AFTER = torch.ones(L, L, dtype=torch.bool).triu(1)
COMPILED = {
    "weights": (Attention(), {"attn_mask": truths(L, L)}),
    "numbers": (OTHERS["quadratic"][0], {"attn_mask": numbers(L, L), "need_weights": False}),
    "hint": (Attention(), {"attn_mask": AFTER, "is_causal": True, "need_weights": False}),
}


@pytest.mark.parametrize("case", COMPILED)
def test_it_compiles_into_one_graph(case: str) -> None:
    attention, options = COMPILED[case]
    _, ours = pair(attention, batch_first=True)
    x = normal(B, L, E)
    torch._dynamo.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    found, expected = compiled(x, x, x, **options), ours(x, x, x, **options)
    torch.testing.assert_close(found, expected, **CLOSE)
    grads = [torch.autograd.grad(y[0].square().sum(), ours.parameters()) for y in (found, expected)]
    torch.testing.assert_close(*grads, **CLOSE)


def test_no_matrix_of_weights_is_held_unless_needed() -> None:
    """1 × 2 heads × 2¹² × 2¹² floats would be 128 MiB: what the largest tensor of the call holds tells."""
    ours = MultiheadAttention(8, 2, batch_first=True)
    x, largest = torch.zeros(1, 4096, 8), 0
    mask = torch.zeros(1, 4096, dtype=torch.bool)

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal largest
            made = func(*args, **(kwargs or {}))
            for out in made if isinstance(made, tuple | list) else [made]:
                if isinstance(out, Tensor):
                    largest = max(largest, out.untyped_storage().nbytes())
            return made

    with Watch():
        ours(x, x, x, key_padding_mask=mask, need_weights=False)[0].sum().backward()
    assert largest < 2**24


# -- bad input ---------------------------------------------------------------------------------------------------


def refused(kind: type[Exception], text: str) -> Any:
    return pytest.raises(kind, match=f"^{re.escape(text)}$")


def test_a_module_that_cannot_be_built_says_why() -> None:
    with refused(CallError, "num_heads: divides embed_dim, 22; got 5; pass 2, or embed_dim=25"):
        MultiheadAttention(22, 5)
    with refused(CallError, "num_heads: divides embed_dim, 3; got 5; pass 3, or embed_dim=5"):
        MultiheadAttention(3, 5)
    with refused(CallError, "embed_dim: at least 1; got 0"):
        MultiheadAttention(0, 1)
    with refused(CallError, "num_heads: at least 1; got -2"):
        MultiheadAttention(4, -2)
    with refused(KindError, "attention: an Attention, as in Attention(mask=causal); got 'sigmoid'"):
        MultiheadAttention(4, 2, attention="sigmoid")  # type: ignore[arg-type]
    text = (
        "attention: its tables are arguments of forward by name, where attn_mask means something else; got "
        'softmax(dot + table("attn_mask")[i, j]); choose another name, as in table("attn_mask_table")'
    )
    with refused(FormulaError, text):
        MultiheadAttention(4, 2, attention=Attention(dot + table("attn_mask")[i, j]))


def call(**options: Any) -> Any:
    module = MultiheadAttention(E, HEADS, batch_first=True, kdim=options.pop("kdim", None), dtype=torch.float64)
    query = options.pop("query", normal(B, L, E))
    return module(query, options.pop("key", normal(B, S, E)), options.pop("value", normal(B, S, E)), **options)


PAIRS = "attn_mask: (queries, keys) (5, 7), or (batch · heads, queries, keys) (6, 5, 7); got shape "


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((B, HEADS, L, S), "(3, 2, 5, 7); join batch and heads with mask.expand(batch, heads, -1, -1).flatten(0, 1)"),
        ((B, L, S), "(3, 5, 7); repeat it for each head with mask.repeat_interleave(2, 0)"),
        ((B, S), "(3, 7); what says which keys are padding goes in as key_padding_mask"),
        ((S, L), "(7, 5); transpose its last two axes"),
        ((S,), "(7,); make one row for each query and one column for each key"),
        ((L, L), "(5, 5); make one row for each query and one column for each key"),
    ],
)
def test_a_mask_of_pairs_that_does_not_fit(shape: tuple[int, ...], told: str) -> None:
    for mask in (truths(*shape), numbers(*shape)):
        with refused(CallError, PAIRS + told):
            call(attn_mask=mask)


def test_a_mask_of_keys_that_does_not_fit() -> None:
    text = "key_padding_mask: (batch, keys) (3, 7); got shape "
    with refused(CallError, f"{text}(7, 3); transpose it"):
        call(key_padding_mask=truths(S, B))
    with refused(CallError, f"{text}(5, 7); what says it of pairs goes in as attn_mask"):
        call(key_padding_mask=truths(L, S))
    one = {"query": normal(L, E), "key": normal(S, E), "value": normal(S, E)}
    with refused(
        CallError,
        "key_padding_mask: (keys) for queries without a batch, (7,); got shape (1, 7); "
        "what says it of pairs goes in as attn_mask",
    ):
        call(**one, key_padding_mask=truths(1, S))


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_a_mask_of_integers(name: str) -> None:
    shape = (L, S) if name == "attn_mask" else (B, S)
    text = (
        f"{name}: truths, True where a pair is not admitted, or real numbers to add to the score; "
        "got dtype torch.int64; convert it, for example with .bool()"
    )
    with refused(KindError, text):
        call(**{name: truths(*shape).long()})


def test_a_hint_without_the_mask() -> None:
    text = (
        "is_causal: a hint that attn_mask is the causal mask, so that goes with it; got attn_mask=None; "
        "pass the mask too, or write Attention(mask=causal)"
    )
    with refused(CallError, text):
        call(is_causal=True)


def test_arrays_that_do_not_fit() -> None:
    axes = "axes: query, key and value have three axes, or two for one sequence; got "
    with refused(CallError, f"{axes}query (5, 22), key (3, 7, 22), value (3, 7, 22)"):
        call(query=normal(L, E))
    with refused(CallError, f"{axes}query (1, 3, 5, 22), key (3, 7, 22), value (3, 7, 22)"):
        call(query=normal(1, B, L, E))
    width = "its last axis has the width 22, embed_dim of this module; got shape (3, 5, 13); build the module with"
    with refused(CallError, f"query: {width} embed_dim=13"):
        call(query=normal(B, L, 13))
    with refused(
        CallError,
        "key: its last axis has the width 13, kdim of this module; got shape (3, 7, 22); build the module with kdim=22",
    ):
        call(kdim=13)
    shapes = "shapes: one value for each key, and one batch for all, as (batch, positions, width); got "
    with refused(CallError, f"{shapes}query (3, 5, 22), key (3, 7, 22), value (3, 5, 22); batch_first is True"):
        call(value=normal(B, L, E))
    with refused(CallError, f"{shapes}query (2, 5, 22), key (3, 7, 22), value (3, 7, 22); batch_first is True"):
        call(query=normal(2, L, E))


def test_nested_tensors_that_do_not_fit() -> None:
    x = nested(3, 5, 2)
    with refused(KindError, "nested: query, key and value all are, or none; got key, value as plain; convert it"):
        call(query=x)
    text = (
        "nested: a nested tensor carries its own lengths and goes without a mask; got one; "
        "write it in the formula, as in Attention(mask=causal), or pad with to_padded_tensor"
    )
    for options in ({"attn_mask": truths(5, 5)}, {"key_padding_mask": truths(B, 5)}, {"is_causal": True}):
        with refused(CallError, text):
            call(query=x, key=x, value=x, **options)
    lengths = "sequences of queries, keys of the lengths [3, 5, 2] and values of"
    with refused(CallError, f"nested: one value for each key, and one batch for all; got 3 {lengths} [3, 4, 2]"):
        call(query=x, key=x, value=nested(3, 4, 2))
    with refused(CallError, f"nested: one value for each key, and one batch for all; got 2 {lengths} [3, 5, 2]"):
        call(query=nested(3, 5), key=x, value=x)
    first = MultiheadAttention(E, HEADS, dtype=torch.float64)
    with refused(CallError, "batch_first: True for nested tensors, whose first axis is the batch; got False"):
        first(x, x, x)


def test_a_weight_that_is_not_softmax_knows_a_mask_from_a_score() -> None:
    """relu(−∞) = 0 hides what (−∞)² would show: numbers of −∞ admit no pair, whatever ψ."""
    for psi in (relu(s), 1 + s**2):
        _, ours = pair(Attention(weight=share(psi)), batch_first=True)
        x, mask = normal(B, L, E), truths(L, L)
        in_numbers = torch.zeros(L, L, dtype=torch.float64).masked_fill(mask, -torch.inf)
        torch.testing.assert_close(ours(x, x, x, attn_mask=in_numbers), ours(x, x, x, attn_mask=mask), **CLOSE)
