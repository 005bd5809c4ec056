"""Attention as a layer: its equation written out with matrices is the oracle, for values and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from layers import BATCH, CLOSE, DIM, EXACT, FORMULAS, HEADS, POSITIONS, ROWS, TABLES, WIDTH, loud, normal, unequal
from regard import Attention, causal, dot, exp, given, h, i, n, padding, share, sqdist, table
from regard.algebra.errors import CallError, KindError, TableError
from regard.inputs.positions import ALiBi, Learned, Position, Relative, Rotary
from regard.nn import Cache, CrossAttention, Rows, SelfAttention

KEYS, MEMORY = 7, 5
COUNTS = [7, 4, 1]
X, READ = normal(BATCH, ROWS, DIM), normal(BATCH, KEYS, MEMORY, seed=1)
PLAIN = {
    "plain": Attention(),
    "everywhere": Attention(-sqdist / 2),
    "over i": Attention(weight=share(exp, over=i)),
    "bilinear": Attention(dot(table("bent")[h])),
}
BENT = {"bent": nn.Parameter(torch.zeros(HEADS, WIDTH, WIDTH))}
EVERY = FORMULAS | PLAIN
every_formula = pytest.mark.parametrize("name", EVERY)
grouped = pytest.mark.parametrize("kv_heads", [None, 3, 1])


def tables_for(name: str) -> Any:
    return {"bilinear": BENT}.get(name) or TABLES.get(name)


def layer_of(name: str, kv_heads: int | None = 3, position: str = "none", **options: Any) -> SelfAttention:
    options = {"width": WIDTH, "tables": tables_for(name), **options}
    return loud(SelfAttention(DIM, HEADS, kv_heads, EVERY[name], POSITIONS[position], **options))


def written_out(
    layer: Any, attention: Attention, x: Tensor, read: Tensor, position: Position, admitted: Tensor
) -> Tensor:
    """W_o [attention(W_q x, W_k y, W_v y)] by matrices of one head after the other."""
    tables = {**position.tables(), **dict(layer.tables.named_parameters()), "admitted": admitted}
    mask = given("admitted") if attention.mask is None else attention.mask & given("admitted")
    formula = Attention(position.score(attention.score), attention.weight, mask)

    def split(linear: nn.Linear, rows: Tensor) -> Tensor:
        mapped = rows @ linear.weight.T + (0 if linear.bias is None else linear.bias)
        return torch.stack(mapped.split(layer.width, dim=-1), dim=1)

    q, k, v = position.turn(split(layer.query, x)), position.turn(split(layer.key, read)), split(layer.value, read)
    y = formula(q, k, v, start=0, engine="dense", **tables)
    joined = torch.cat(list(y.unbind(1)), dim=-1)
    return joined @ layer.out.weight.T + (0 if layer.out.bias is None else layer.out.bias)


def with_tables(layer: SelfAttention, position: Position) -> Position:
    """The position with the parameters of the layer, made by its own constructor."""
    match position:
        case Learned():
            return Learned(layer.placement.tables["position"])
        case Relative():
            return Relative(layer.placement.tables["relative"], position.bins)
    return position


def gradients(y: Tensor, layer: nn.Module, *inputs: Tensor) -> list[Tensor]:
    wanted = [*inputs, *layer.parameters()]
    return list(torch.autograd.grad((y * normal(*y.shape, seed=9)).sum(), wanted))


def assert_same(found: Tensor, expected: Tensor, layer: nn.Module, *inputs: Tensor) -> None:
    torch.testing.assert_close(found, expected, **CLOSE)
    for own, plain in zip(gradients(found, layer, *inputs), gradients(expected, layer, *inputs), strict=True):
        torch.testing.assert_close(own, plain, **CLOSE)


# -- the equation ------------------------------------------------------------------------------------------------


@every_formula
@grouped
def test_self_attention_is_its_equation(name: str, kv_heads: int | None) -> None:
    layer, x = layer_of(name, kv_heads), X.clone().requires_grad_()
    expected = written_out(layer, EVERY[name], x, x, POSITIONS["none"], torch.ones(ROWS, ROWS, dtype=torch.bool))
    assert_same(layer(x), expected, layer, x)


@pytest.mark.parametrize("position", ["rotary", "learned", "sinusoidal", "alibi", "offsets", "buckets", "dynamic"])
@pytest.mark.parametrize("name", ["plain", "window", "bias"])
def test_positions_enter_where_they_belong(name: str, position: str) -> None:
    layer, x = layer_of(name, position=position), X.clone().requires_grad_()
    where = with_tables(layer, POSITIONS[position])
    placed = where.add(x)
    every = torch.ones(ROWS, ROWS, dtype=torch.bool)
    assert_same(layer(x), written_out(layer, EVERY[name], placed, placed, where, every), layer, x)


@pytest.mark.parametrize("name", PLAIN)
@grouped
def test_cross_attention_is_its_equation(name: str, kv_heads: int | None) -> None:
    options = {"width": WIDTH, "memory": MEMORY, "tables": tables_for(name)}
    layer = loud(CrossAttention(DIM, HEADS, kv_heads, PLAIN[name], **options))
    x, read = X.clone().requires_grad_(), READ.clone().requires_grad_()
    pairs = normal(BATCH, HEADS, ROWS, KEYS) > 0
    inside = torch.arange(KEYS) < torch.tensor(COUNTS)[:, None, None, None]
    every = torch.ones(ROWS, KEYS, dtype=torch.bool)
    for told, admitted in (
        ({}, every),
        ({"lengths": COUNTS}, inside & every),
        ({"mask": pairs}, pairs),
        ({"mask": pairs[0, 0]}, pairs[0, 0]),
        ({"mask": pairs, "lengths": COUNTS}, pairs & inside),
    ):
        expected = written_out(layer, PLAIN[name], x, read, POSITIONS["none"], admitted)
        assert_same(layer(x, read, **told), expected, layer, x, read)


def test_heads_side_by_side_fill_the_width() -> None:
    assert SelfAttention(12, 3).width == 4
    assert SelfAttention(12, 3, width=5).query.out_features == 15
    assert SelfAttention(12, 6, 2).key.out_features == 4


def test_without_bias() -> None:
    layer = layer_of("plain", bias=False)
    assert not [name for name, _ in layer.named_parameters() if "bias" in name]
    every = torch.ones(ROWS, ROWS, dtype=torch.bool)
    torch.testing.assert_close(layer(X), written_out(layer, EVERY["plain"], X, X, POSITIONS["none"], every), **CLOSE)


# -- masks of the caller -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in EVERY if name != "over i"])  # there filling asks, and takes shares
def test_filling_is_read_by_none_whatever_it_holds(name: str) -> None:
    layer, counts = layer_of(name), [11, 5, 1]
    alone = [layer(X[text : text + 1, :count])[0] for text, count in enumerate(counts)]
    large = 100.0 if "sqdist" in repr(EVERY[name]) else 1e100  # distances are taken from the mean of all keys
    for filling in (0.0, large, float("inf"), float("nan")):
        y = layer(unequal(X, counts, filling), lengths=counts)
        for text, count in enumerate(counts):
            torch.testing.assert_close(y[text, :count], alone[text], **CLOSE)


@every_formula
def test_masks_of_pairs_join_that_of_the_formula(name: str) -> None:
    layer, pairs = layer_of(name), normal(BATCH, HEADS, ROWS, ROWS) > 0
    for mask in (pairs[0, 0], pairs[:, :1], pairs[:1], pairs, pairs[:, :, :1], pairs[:, :, :, :1]):
        expected = written_out(layer, EVERY[name], X, X, POSITIONS["none"], mask)
        torch.testing.assert_close(layer(X, mask=mask), expected, **CLOSE)


def test_a_row_that_may_read_nothing_is_the_bias_of_the_last_map() -> None:
    layer = layer_of("plain")
    y = layer(X, lengths=[11, 0, 3])
    torch.testing.assert_close(y[1], layer.out.bias.expand(ROWS, DIM), **CLOSE)


@pytest.mark.parametrize("shape", [(0, ROWS), (BATCH, 0), (0, 0)])
def test_no_texts_and_no_rows(shape: tuple[int, int]) -> None:
    layer = layer_of("softmax", position="rotary")
    assert layer(normal(*shape, DIM)).shape == (*shape, DIM)
    assert layer(normal(*shape, DIM), lengths=torch.zeros(shape[0], dtype=torch.int64)).shape == (*shape, DIM)


def test_strides_do_not_matter() -> None:
    layer = layer_of("softmax", position="sum")
    strided = X.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous()
    torch.testing.assert_close(layer(strided), layer(X), **CLOSE)
    torch.testing.assert_close(layer(X[:1].expand(BATCH, -1, -1)), layer(X[:1].repeat(BATCH, 1, 1)), **CLOSE)


# -- tables ------------------------------------------------------------------------------------------------------


def test_tables_are_learned_or_stay_or_are_arguments() -> None:
    bias = normal(HEADS, 2 * ROWS)
    learned, fixed, asked = (
        layer_of("bias", tables=tables) for tables in ({"bias": nn.Parameter(bias)}, {"bias": bias}, None)
    )
    assert "tables.bias" in dict(learned.named_parameters())
    assert "tables.bias" in dict(fixed.named_buffers())
    fixed.load_state_dict(learned.state_dict())
    asked.load_state_dict({name: value for name, value in learned.state_dict().items() if "tables" not in name})
    torch.testing.assert_close(fixed(X), learned(X), **CLOSE)
    torch.testing.assert_close(asked(X, bias=learned.tables.bias), learned(X), **CLOSE)
    torch.testing.assert_close(fixed(X, bias=0 * bias), asked(X, bias=0 * bias), **CLOSE)


def test_a_table_is_the_layers_own() -> None:
    bias = nn.Parameter(normal(HEADS, 2 * ROWS))
    one, other = layer_of("bias", tables={"bias": bias}), layer_of("bias", tables={"bias": bias})
    assert one.tables.bias is not other.tables.bias


# -- dropout -----------------------------------------------------------------------------------------------------


def test_dropout_in_training_alone() -> None:
    layer, without = layer_of("softmax", dropout=0.4), layer_of("softmax")
    torch.testing.assert_close(layer(X), without(X), **EXACT)
    layer.train()
    torch.manual_seed(0)
    first, second = layer(X), layer(X)
    torch.manual_seed(0)
    torch.testing.assert_close(layer(X), first, **EXACT)
    assert not torch.allclose(first, second)
    mean = torch.stack([layer(X) for _ in range(400)]).mean(0)
    assert (mean - without(X)).abs().mean() < 0.1 * (first - without(X)).abs().mean()


# -- refusals ----------------------------------------------------------------------------------------------------

MADE_WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: SelfAttention(13, 6), CallError, "heads: divides dim, 13; got 6; take 1, or say the width of a head: "),
    (lambda: SelfAttention(12, 5), CallError, "heads: divides dim, 12; got 5; take 4,"),
    (lambda: SelfAttention(12, 6, 4), CallError, "kv_heads: divides the 6 heads, so that each is read by as many; "),
    (lambda: SelfAttention(12, 6, 12), CallError, "kv_heads: divides the 6 heads"),
    (lambda: SelfAttention(-12, 6), CallError, "dim: an integer of at least 1; got -12"),
    (lambda: SelfAttention(12, 0), CallError, "heads: an integer of at least 1; got 0"),
    (lambda: SelfAttention(12, 6, 0), CallError, "kv_heads: an integer of at least 1; got 0"),
    (lambda: SelfAttention(12, 6, width=-1), CallError, "width: an integer of at least 1; got -1"),
    (lambda: SelfAttention(12.0, 6), KindError, "dim: an integer; got 12.0"),
    (lambda: SelfAttention(12, True), KindError, "heads: an integer; got True"),
    (lambda: SelfAttention(12, 6, dropout=1.0), CallError, "dropout: a share from 0 to below 1; got 1.0"),
    (lambda: SelfAttention(12, 6, dropout=float("nan")), CallError, "dropout: a share from 0 to below 1; got nan"),
    (lambda: SelfAttention(12, 6, attention="causal"), KindError, r"attention: an Attention, as in .*; got 'causal'"),
    (lambda: CrossAttention(12, 6, attention=causal), KindError, r"attention: an Attention, as in .*; got j <= i"),
    (lambda: SelfAttention(12, 6, position="rotary"), KindError, r"position: a value such as Rotary.*; got 'rotary'"),
    (lambda: SelfAttention(12, 6, position=ALiBi(4)), CallError, "position: made for the layer's 6 heads; got ALiBi"),
]


@pytest.mark.parametrize(("make", "error", "text"), MADE_WRONG, ids=[text[:32] for _, _, text in MADE_WRONG])
def test_layers_that_cannot_be_made(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_rows_that_do_not_fit() -> None:
    layer, cross = layer_of("softmax"), loud(CrossAttention(DIM, HEADS, width=WIDTH, memory=MEMORY))
    with pytest.raises(CallError, match=r"x: \(batch, rows, 13\); got shape \(3, 11, 12\)$"):
        layer(X[..., :12])
    with pytest.raises(CallError, match=r"got shape \(11, 13\); add the axis of the batch: x\[None\]"):
        layer(X[0])
    with pytest.raises(KindError, match=r"x: a tensor, \(batch, rows, 13\); got list"):
        layer(X.tolist())
    with pytest.raises(CallError, match=r"memory: \(batch, rows, 5\); got shape \(3, 11, 13\)"):
        cross(X, X)
    with pytest.raises(
        CallError, match=r"memory: one for each of the 3 texts of x, or one for all; got shape \(2, 7, 5\)"
    ):
        cross(X, READ[:2])
    with pytest.raises(CallError, match=r"position: for rows of width 6, in heads of 3; got Rotary: .* pairs; got 3"):
        SelfAttention(6, 2, position=Rotary())


def test_tables_that_no_one_reads_and_tables_that_are_missing() -> None:
    layer, cross = layer_of("bias", tables=None), loud(CrossAttention(DIM, HEADS, width=WIDTH))
    with pytest.raises(CallError, match="slope: no formula here reads such a table; got one; leave it out"):
        layer(X, slope=X, bias=X)
    with pytest.raises(CallError, match="bias: no formula here reads such a table"):
        cross(X, X, bias=X)
    with pytest.raises(TableError, match="the formula reads bias; got none"):
        layer(X)


@pytest.mark.parametrize(
    ("attention", "why"),
    [
        (Attention(), "a row may read what comes after it, and would change when that comes; join j <= i to its mask"),
        (Attention(mask=padding("count")), "a row may read what comes after it"),
        (Attention(dot - n, mask=causal), "it reads n, which grows with every step; write i [+] 1 where the keys up"),
        (Attention(weight=share(exp, sink=n), mask=causal), "it reads n"),
        (Attention(weight=share(exp, over=i), mask=causal), "a row may read what comes after it"),
    ],
    ids=repr,
)
def test_formulas_whose_keys_cannot_be_kept(attention: Attention, why: str) -> None:
    layer = SelfAttention(12, 3, attention=attention)
    with torch.no_grad(), pytest.raises(CallError, match=rf"cache: keys and values of .* cannot be kept: {why}"):
        layer(torch.zeros(2, 5, 12), cache=Cache())


def test_filling_takes_no_share_where_rows_share() -> None:
    layer = loud(SelfAttention(DIM, HEADS, attention=PLAIN["over i"], width=WIDTH))
    x, counts = normal(BATCH, ROWS, DIM), [11, 4, 7]
    together = layer(unequal(x, counts, 100.0), lengths=counts)
    for text, count in enumerate(counts):
        torch.testing.assert_close(together[text, :count], layer(x[text : text + 1, :count])[0], **CLOSE)


def test_what_rows_hold_is_not_said_twice() -> None:
    layer = SelfAttention(DIM, HEADS, width=WIDTH)
    x = torch.zeros(1, ROWS, DIM)
    with pytest.raises(CallError, match="rows: hold lengths, mask, cache and tables already; got more of them"):
        layer(x, Rows(), lengths=[3])


@pytest.mark.parametrize("name", ["lengths", "mask", "cache"])
def test_tables_with_the_name_of_an_argument(name: str) -> None:
    formula = Attention(dot + table(name)[h])
    with pytest.raises(CallError, match=f"attention: its table {name} has the name of an argument; got it; choose"):
        SelfAttention(DIM, HEADS, attention=formula, width=WIDTH)
    layer = SelfAttention(DIM, HEADS, attention=formula, width=WIDTH, tables={name: torch.zeros(HEADS)})
    assert layer(torch.zeros(1, ROWS, DIM)).shape == (1, ROWS, DIM), "the layer's own is no argument"


def test_tables_with_the_name_of_a_part_of_a_module() -> None:
    with pytest.raises(CallError, match="tables: a name that modules of PyTorch leave free; got 'train'; choose"):
        SelfAttention(
            DIM, HEADS, attention=Attention(dot + table("train")[h]), tables={"train": torch.zeros(HEADS)}, width=WIDTH
        )
