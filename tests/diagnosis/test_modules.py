"""Modules in the styles that people write: made from their constructors, read by name, written, and asked."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regard.algebra.errors import CallError, KindError
from regard.diagnosis.modules import Projections, construct, facts, prepared, projections, set_aside

BATCH, LENGTH = 2, 5
RNG = np.random.default_rng(0)

# -- what all of them compute --------------------------------------------------------------------------------------


def attend(q: Any, k: Any, v: Any, heads: int, key_heads: int | None = None, causal: bool = False) -> Any:
    """Heads side by side in, heads side by side out."""
    q, k, v = (
        x.unflatten(-1, (n, -1)).transpose(1, 2) for x, n in zip((q, k, v), _counts(heads, key_heads), strict=True)
    )
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True).transpose(1, 2).flatten(2)


def _counts(heads: int, key_heads: int | None) -> tuple[int, int, int]:
    return heads, key_heads or heads, key_heads or heads


def reference(x: Any, m: dict[str, Any], heads: int, key_heads: int, causal: bool) -> Any:
    """softmax(q·k / √d) v in NumPy, float64, from matrices (in, out)."""
    q, k, v = (x @ m[f"w{part}"] + m.get(f"b{part}", 0) for part in "qkv")
    q, k, v = (
        np.moveaxis(y.reshape(*y.shape[:2], n, -1), 2, 1)
        for y, n in zip((q, k, v), _counts(heads, key_heads), strict=True)
    )
    k, v = (np.repeat(y, heads // key_heads, axis=1) for y in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    hidden = np.triu(np.ones(scores.shape[-2:], bool), 1) if causal else False
    scores = np.exp(np.where(hidden, -np.inf, scores))
    y = np.moveaxis(scores / scores.sum(-1, keepdims=True) @ v, 1, 2).reshape(*x.shape[:2], -1)
    return y @ m["wo"] + m.get("bo", 0) if "wo" in m else y


# -- styles: separate matrices ----------------------------------------------------------------------------------


class Annotated(nn.Module):
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.h = h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = (layer(x) for layer, x in zip(self.linears, (query, key, value), strict=False))
        return self.linears[-1](self.dropout(attend(q, k, v, self.h)))


class Separate(nn.Module):
    """The same with names of many kinds."""

    names = ("q_proj", "k_proj", "v_proj", "out_proj")

    def __init__(self, embed_dim, num_heads=8, bias=True):
        super().__init__()
        self.num_heads = num_heads
        for name in self.names:
            setattr(self, name, nn.Linear(embed_dim, embed_dim, bias=bias))

    def forward(self, hidden_states, attention_mask=None):
        q, k, v, out = (getattr(self, name) for name in self.names)
        return out(attend(q(hidden_states), k(hidden_states), v(hidden_states), self.num_heads))


NAMES = (
    "q_proj k_proj v_proj out_proj; W_q W_k W_v W_o; Wq Wk Wv Wo; WQ WK WV WO; query key value proj; "
    "queries keys values fc_out; to_q to_k to_v to_out; "
    "q_linear k_linear v_linear out; wq wk wv wo; W_query W_key W_value W_out; q k v o; w_qs w_ks w_vs fc; "
    "toqueries tokeys tovalues unifyheads; q_lin k_lin v_lin out_lin; linear_q linear_k linear_v linear_out; "
    "query_layer key_layer value_layer dense; queryProj keyProj valueProj outProj; fc_q fc_k fc_v final_linear; "
    "query key value c_proj; proj_q proj_k proj_v projection"
).split("; ")


def separate(names: str) -> type[nn.Module]:
    return type("Separate", (Separate,), {"names": tuple(names.split())})


class Lazy(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout, bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.LazyLinear(num_hiddens, bias=bias) for _ in range(4))

    def forward(self, queries, keys, values, valid_lens=None):
        return self.W_o(attend(self.W_q(queries), self.W_k(keys), self.W_v(values), self.num_heads))


class Prepare(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.linear = nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.linear(x)


class Nested(nn.Module):
    def __init__(self, heads, d_model):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (Prepare(d_model) for _ in range(3))
        self.output = nn.Sequential(nn.Linear(d_model, d_model), nn.Dropout(0.1))

    def forward(self, *, query, key, value):
        return self.output(attend(self.query(query), self.key(key), self.value(value), self.heads))


class Grouped(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_heads, self.n_kv_heads = args.n_heads, getattr(args, "n_kv_heads", None) or args.n_heads
        self.wq = nn.Linear(args.dim, args.n_heads * args.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, self.n_kv_heads * args.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, self.n_kv_heads * args.head_dim, bias=False)
        self.wo = nn.Linear(args.n_heads * args.head_dim, args.dim, bias=False)
        self.cache_k = self.cache_v = torch.zeros(2, 64, self.n_kv_heads, args.head_dim)

    def forward(self, x, start_pos=0, freqs_cis=None, mask=None):
        return self.wo(attend(self.wq(x), self.wk(x), self.wv(x), self.n_heads, self.n_kv_heads))

    def reset_cache(self):
        self.cache_k.zero_()


# -- styles: bare parameters, and modules of other kinds ---------------------------------------------------------


class Bare(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.randn(d_in, d_out)) for _ in range(3))

    def forward(self, x):
        return attend(x @ self.W_query, x @ self.W_key, x @ self.W_value, 1)


class Transposed(nn.Module):
    """(out, in), square, with biases of their own; nothing but trying tells which axis is which."""

    def __init__(self, d_model):
        super().__init__()
        for part in "qkvo":
            setattr(self, f"W_{part}", nn.Parameter(torch.randn(d_model, d_model)))
            setattr(self, f"b_{part}", nn.Parameter(torch.randn(d_model)))

    def forward(self, x):
        q, k, v = (x @ getattr(self, f"W_{part}").T + getattr(self, f"b_{part}") for part in "qkv")
        return attend(q, k, v, 1) @ self.W_o.T + self.b_o


class PerHead(nn.Module):
    """A matrix for each head, in one parameter."""

    axes = "hid", "hdo"

    def __init__(self, n_heads, d_model, d_head):
        super().__init__()
        sizes = {"h": n_heads, "i": d_model, "o": d_model, "d": d_head}
        for part in "QKVO":
            shape = [sizes[axis] for axis in self.axes[part == "O"]]
            setattr(self, f"W_{part}", nn.Parameter(torch.randn(*shape)))
        self.b_Q = nn.Parameter(torch.randn(n_heads, d_head))

    def forward(self, x):
        inside, outside = self.axes
        q, k, v = (torch.einsum(f"bni,{inside}->bnhd", x, getattr(self, f"W_{part}")) for part in "QKV")
        y = attend((q + self.b_Q).flatten(2), k.flatten(2), v.flatten(2), q.shape[2]).unflatten(-1, q.shape[2:])
        return torch.einsum(f"bnhd,{outside}->bno", y, self.W_O)


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(nx, nf)), nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        return x @ self.weight + self.bias


class Einsum(nn.Module):
    """A Linear of one's own, (out, in)."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class OwnLinear(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.output_proj = (Einsum(d_model) for _ in range(4))

    def forward(self, x):
        return self.output_proj(attend(self.q_proj(x), self.k_proj(x), self.v_proj(x), self.num_heads))


class Convolutions(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.query_conv, self.key_conv, self.value_conv = (nn.Conv1d(in_channels, in_channels, 1) for _ in range(3))

    def forward(self, x):
        return attend(*(c(x.mT).mT for c in (self.query_conv, self.key_conv, self.value_conv)), 1)


# -- styles: several matrices in one ---------------------------------------------------------------------------


class Gpt(nn.Module):
    linear: Callable[..., nn.Module] = staticmethod(lambda width, out: nn.Linear(width, out))

    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = self.linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = self.linear(config.n_embd, config.n_embd)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.n_head, self.flash = config.n_head, getattr(config, "flash_kernel", "none")
        ones = torch.ones(config.block_size, config.block_size)
        self.register_buffer("bias", torch.tril(ones).view(1, 1, config.block_size, config.block_size))

    def forward(self, x, layer_past=None, use_cache=False):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        return self.c_proj(attend(q, k, v, self.n_head, causal=True))


class GptConv1D(Gpt):
    linear = staticmethod(lambda width, out: Conv1D(out, width))


class Fused(nn.Module):
    """Any order of the columns: "(3 h d)" of vision, "(h 3 d)" of lectures, "(d 3 h)"."""

    axes, order = "phd", "qkv"

    def __init__(self, dim, heads=8, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=True)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x):
        shape = [{"p": 3, "h": self.heads, "d": -1}[axis] for axis in self.axes]
        whole = self.to_qkv(self.norm(x)).unflatten(-1, shape)
        parts = torch.einsum(f"bn{self.axes}->pbnhd", whole).flatten(3)
        return self.to_out(attend(*(parts[self.order.index(part)] for part in "qkv"), self.heads))


def fused(axes: str, order: str = "qkv") -> type[nn.Module]:
    return type("Fused", (Fused,), {"axes": axes, "order": order})


class KeysValues(nn.Module):
    def __init__(self, query_dim, context_dim, heads=8, dim_head=64):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(query_dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(context_dim, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, query_dim)

    def forward(self, x, context=None):
        return self.to_out(attend(self.to_q(x), *self.to_kv(x).chunk(2, dim=-1), self.heads))


class GroupedFused(nn.Module):
    """(H + 2 K) D columns: queries of all heads, then keys and values of fewer."""

    def __init__(self, hidden_size, num_heads, num_kv_heads, head_dim):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.qkv_proj = nn.Linear(hidden_size, (num_heads + 2 * num_kv_heads) * head_dim)
        self.o_proj = nn.Linear(num_heads * head_dim, hidden_size)

    def forward(self, x):
        counts = (self.num_heads, self.num_kv_heads, self.num_kv_heads)
        parts = self.qkv_proj(x).split([count * self.head_dim for count in counts], dim=-1)
        return self.o_proj(attend(*parts, self.num_heads, self.num_kv_heads))


class GroupedTogether(GroupedFused):
    """The same columns, group by group: its queries, its keys, its values."""

    def forward(self, x):
        each = self.num_heads // self.num_kv_heads
        parts = self.qkv_proj(x).unflatten(-1, (self.num_kv_heads, each + 2, -1)).split([each, 1, 1], dim=-2)
        return self.o_proj(attend(*(part.flatten(2) for part in parts), self.num_heads, self.num_kv_heads))


class Torchs(nn.Module):
    kdim: int | None = None

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, 0.1, batch_first=True, kdim=self.kdim)

    def forward(self, x):
        context = x if self.kdim is None else torch.cat([x, x], dim=-1)[..., : self.kdim]
        return self.mha(x, context, x, need_weights=False)[0]


# -- styles: lists of heads --------------------------------------------------------------------------------------

n_embd, block_size, dropout_share = 24, 16, 0.2


class Head(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout_share)

    def forward(self, x):
        return attend(self.query(x), self.key(x), self.value(x), 1, causal=True)


class Heads(nn.Module):
    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = nn.ModuleList([Head(head_size) for _ in range(num_heads)])
        self.proj = nn.Linear(head_size * num_heads, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class Unregistered(nn.Module):
    """A list that PyTorch does not know of, and no projection afterwards."""

    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = [Head(head_size) for _ in range(num_heads)]

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


class SharedByHeads(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads = heads
        small = embed_size // heads
        self.values, self.keys, self.queries = (nn.Linear(small, small) for _ in range(3))
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask=None):
        cut = (x.unflatten(-1, (self.heads, -1)) for x in (query, keys, values))
        q, k, v = (layer(x).flatten(2) for layer, x in zip((self.queries, self.keys, self.values), cut, strict=True))
        return self.fc_out(attend(q, k, v, self.heads))


class Nameless(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.alpha, self.beta_, self.zeta, self.omega = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        return self.omega(attend(self.alpha(x), self.beta_(x), self.zeta(x), self.n_heads))


@dataclass
class Style:
    """A class, what its best fitting reading is called, and what is known of it."""

    make: Any
    layout: str = "heads side by side"
    heads: int | None = 4
    causal: bool = False


STYLES = {
    "annotated": Style(Annotated),
    **{names: Style(separate(names)) for names in NAMES},
    "lazy": Style(Lazy),
    "nested": Style(Nested),
    "grouped": Style(Grouped),
    "bare": Style(Bare, heads=None),
    "transposed": Style(Transposed, heads=None),
    **{f"{i} {o}": Style(type("PerHead", (PerHead,), {"axes": (i, o)})) for i, o in [("hid", "hdo"), ("ihd", "ohd")]},
    "own linear": Style(OwnLinear),
    "convolutions": Style(Convolutions, heads=None),
    "gpt": Style(Gpt, "q | k | v", causal=True),
    "gpt conv1d": Style(GptConv1D, "q | k | v", causal=True),
    "vision": Style(fused("phd"), "q | k | v"),
    "vision, keys first": Style(fused("phd", "kqv"), "k | q | v"),
    "lectures": Style(fused("hpd"), "heads of q | k | v"),
    "lectures, values first": Style(fused("hpd", "vqk"), "heads of v | q | k"),
    "width first": Style(fused("dph"), "(d 3 h)"),
    "parts last": Style(fused("hdp"), "(h d 3)"),
    "width before heads": Style(fused("pdh"), "(3 d h)"),
    "keys and values": Style(KeysValues, "k | v"),
    "grouped, fused": Style(GroupedFused, "q | k | v"),
    "grouped, together": Style(GroupedTogether, "groups of q | k | v"),
    "torch": Style(Torchs, "q | k | v"),
    "torch, another kdim": Style(type("Torchs", (Torchs,), {"kdim": 29})),
    "head": Style(Head, heads=None, causal=True),
    "heads": Style(Heads, causal=True),
    "unregistered": Style(Unregistered, causal=True),
    "shared by heads": Style(SharedByHeads, "one matrix for all heads"),
    "nameless": Style(Nameless),
}
every_style = pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)


def made(style: Style) -> nn.Module:
    torch.manual_seed(0)
    module = prepared(construct(style.make))
    set_aside(module)
    return module


def drawn(read: Projections) -> dict[str, Any]:
    return {role: RNG.standard_normal(place.sizes).astype(np.float32) / 3 for role, place in read.places}


def asked(module: nn.Module, x: Any) -> Any:
    given = {one.name: torch.tensor(x) for one in facts(module).arguments if one.role in {"x", "q", "k", "v"}}
    with torch.no_grad():
        return module(**given).numpy()


def error(module: nn.Module, read: Projections, style: Style) -> float:
    """How far the module, with matrices written as `read` says, is from the reference; inf where shapes do not fit."""
    matrices = drawn(read)
    read.write(module, matrices)
    x = RNG.standard_normal((BATCH, LENGTH, read.model_width)).astype(np.float32)
    try:
        y = asked(module, x)
    except RuntimeError:
        return np.inf
    whole = {role: matrix.astype(np.float64) for role, matrix in read.effective(matrices).items()}
    if style.make is STYLES["torch, another kdim"].make:
        whole["wk"] = whole["wk"][: x.shape[-1]] + np.pad(whole["wk"][x.shape[-1] :], ((0, 19), (0, 0)))
    expected = reference(x, whole, read.heads or 1, read.key_heads or 1, style.causal)
    return np.abs(y - expected).max() if y.shape == expected.shape else np.inf


# -- laws --------------------------------------------------------------------------------------------------------


@every_style
def test_written_is_read_back(style: Style) -> None:
    module = made(style)
    for read in projections(module):
        matrices = drawn(read)
        read.write(module, matrices)
        again = read.read(module)
        assert again.keys() == matrices.keys()
        for role, matrix in matrices.items():
            np.testing.assert_array_equal(again[role], matrix)


@every_style
def test_module_computes_what_was_written(style: Style) -> None:
    """The first reading under which the module is the reference is the right one."""
    module = made(style)
    right = [read for read in projections(module) if error(module, read, style) < 2e-4]  # float32 against float64
    assert [read.layout for read in right[:1]] == [style.layout]
    assert right[0].heads == style.heads


@every_style
def test_readings_are_plain_values(style: Style) -> None:
    reads = projections(made(style))
    assert pickle.loads(pickle.dumps(reads)) == reads
    assert len(set(reads)) == len(reads)
    assert all(read.guessed is (style.make is Nameless) for read in reads)


def test_write_says_what_does_not_fit() -> None:
    module = made(STYLES["head"])
    read = projections(module)[0]
    with pytest.raises(CallError, match="matrices: this module has wq, wk, wv; got wo; leave it out"):
        read.write(module, {"wo": np.zeros((6, 24))})
    with pytest.raises(CallError, match=r"matrices: wq is 24 × 6 here, \(in, out\); got 6 × 24"):
        read.write(module, {"wq": np.zeros((6, 24))})


def test_no_graph_sees_what_is_written() -> None:
    module = made(STYLES["gpt"])
    read = projections(module)[0]
    read.write(module, drawn(read))
    assert all(one.requires_grad and one.is_leaf and one.grad is None for one in module.parameters())


# -- which parameters --------------------------------------------------------------------------------------------


def test_widths_and_names() -> None:
    read = projections(made(STYLES["keys and values"]))[0]
    assert (read.model_width, read.width, read.key_width, read.value_width, read.out_width) == (24, 24, 24, 24, 24)
    assert read.biases == {"bo"}
    assert read.names == {
        "wq": "to_q.weight",
        "wk": "to_kv.weight",
        "wv": "to_kv.weight",
        "wo": "to_out.weight",
        "bo": "to_out.bias",
    }
    packed = projections(made(STYLES["torch, another kdim"]))[0]
    assert packed.biases == {"bq", "bk", "bv", "bo"}
    heads = projections(made(STYLES["heads"]))[0]
    assert heads.names["wk"] == "heads.0.key.weight … heads.3.key.weight"
    grouped = projections(made(STYLES["grouped"]))[0]
    assert (grouped.width, grouped.key_width, grouped.heads, grouped.key_heads) == (24, 12, 4, 2)


def test_parameters_without_a_part_in_it() -> None:
    module = made(STYLES[NAMES[0]])
    module.gate = nn.Linear(24, 24)
    module.mlp = nn.Sequential(nn.Linear(24, 96), nn.Linear(96, 24))
    read = projections(module)[0]
    assert set(read.others) == {f"{path}.{leaf}" for path in ("gate", "mlp.0", "mlp.1") for leaf in ("weight", "bias")}
    assert read.silence(module)[0] == "gate.weight"
    assert set(read.silence(module)) == set(read.others)
    x = torch.randn(3, 24)
    torch.testing.assert_close(module.gate(x), x)


def test_layers_are_no_heads() -> None:
    stack = nn.Module()
    stack.layers = nn.ModuleList([separate("q k v o")(24, 4) for _ in range(3)])
    read = projections(nn.Sequential(stack))[0]
    assert read.names["wq"] == "0.layers.0.q.weight"


def test_names_that_the_user_gives() -> None:
    module = made(STYLES["nameless"])
    names = {"q": "omega.weight", "k": "zeta.weight", "v": "alpha.weight"}
    read = projections(module, names)[0]
    assert read.names == {
        **{f"w{part}": path for part, path in names.items()},
        **{f"b{part}": path.replace("weight", "bias") for part, path in names.items()},
    }
    assert not read.guessed
    with pytest.raises(CallError, match=r"names: paths of the module's tensors, alpha.weight, .*; got q: nowhere"):
        projections(module, {"q": "nowhere"})


def test_nothing_to_read() -> None:
    assert projections(nn.Dropout(0.5)) == []
    with pytest.raises(CallError, match=r"every parameter has a size; got the lazy W_q.weight; call the module once"):
        projections(construct(Lazy))


# -- construction ------------------------------------------------------------------------------------------------


def test_sizes_differ_where_they_may() -> None:
    assert {tuple(one.shape) for one in construct(Bare).parameters()} == {(24, 18)}
    assert facts(construct(Gpt)).heads == 4
    assert construct(Grouped).wk.weight.shape == (12, 24)


def test_what_the_user_gives_wins() -> None:
    assert construct(Annotated, {"d_model": 32}).linears[0].weight.shape == (32, 32)
    assert construct(Gpt, {"config": {"n_embd": 32}}).c_proj.weight.shape == (32, 32)
    assert construct(Gpt, {"n_embd": 32}).c_proj.weight.shape == (32, 32)


def test_configurations_with_a_class_of_their_own() -> None:
    @dataclass
    class Settings:
        hidden: str
        dim: int = 4096
        n_heads: int = 32
        n_kv_heads: int | None = None
        head_dim: int = 128

    class Typed(Grouped):
        def __init__(self, args: Any) -> None:
            self.kind = type(args)
            super().__init__(args)

    Typed.__init__.__annotations__["args"] = Settings
    module = construct(Typed)
    assert module.kind is Settings
    assert module.wk.weight.shape == (24, 24)


def test_a_configuration_as_a_dictionary() -> None:
    class Chapter(nn.Module):
        def __init__(self, cfg: Any) -> None:
            super().__init__()
            self.sizes = cfg["emb_dim"], cfg["n_heads"], cfg["context_length"], cfg["drop_rate"], cfg.get("window", 7)
            self.known = "emb_dim" in cfg, "window" in cfg, hasattr(cfg, "window")

    module = construct(Chapter)
    assert module.sizes == (24, 4, 64, 0.1, 7)
    assert module.known == (True, False, False)


def test_construct_says_what_it_cannot_guess() -> None:
    class Strange(nn.Module):
        def __init__(self, d_model: int, wobble: int, flavour: str) -> None:
            super().__init__()

    with pytest.raises(CallError) as caught:
        construct(Strange)
    assert str(caught.value) == (
        "init: a value for each argument of Strange that no usual name explains; got none for wobble, flavour; "
        'pass init={"wobble": ..., "flavour": ...}, or --init "wobble=..., flavour=...", '
        'as in --init "d_model=32, n_heads=4"'
    )
    assert isinstance(construct(Strange, {"wobble": 1, "flavour": "x"}), Strange)
    with pytest.raises(CallError, match="init: arguments of Strange, which takes d_model, wobble, flavour; got colour"):
        construct(Strange, {"colour": 3})
    with pytest.raises(KindError, match="cls: a class; got an instance of Bare"):
        construct(Bare(2, 3))


def test_construct_says_what_the_constructor_raised() -> None:
    class Refuses(nn.Module):
        def __init__(self, dim: int) -> None:
            raise ValueError("never")

    with pytest.raises(CallError, match=r"init: arguments .*; got Refuses\(dim=24\), which raises ValueError: never"):
        construct(Refuses)


# -- facts -------------------------------------------------------------------------------------------------------


def test_facts_of_a_causal_module() -> None:
    read = facts(construct(Gpt))
    assert (read.name, read.heads, read.key_heads, read.longest) == ("Gpt", 4, None, 64)
    assert read.causal == "bias, a triangle"
    assert read.dropouts == (("attn_dropout", 0.1),)
    assert [(one.name, one.role) for one in read.arguments] == [
        ("x", "x"),
        ("layer_past", "cache"),
        ("use_cache", "use_cache"),
    ]
    assert pickle.loads(pickle.dumps(read)) == read


def test_facts_of_lists_caches_and_norms() -> None:
    heads = facts(construct(Heads))
    assert (heads.heads, heads.longest, heads.causal) == (4, 16, "heads.0.tril, a triangle")
    grouped = facts(construct(Grouped))
    assert (grouped.heads, grouped.key_heads, grouped.resets) == (4, 2, ("reset_cache",))
    assert grouped.argument("start") is not None
    assert grouped.argument("context") is None
    assert facts(construct(Fused)).norms == ("norm",)
    assert facts(nn.MultiheadAttention(8, 2)).batch_first is False
    assert facts(type("CausalThing", (Bare,), {})(3, 2)).causal == "the class's name"


# -- preparation -------------------------------------------------------------------------------------------------


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.weight / x.norm()


class PreNorm(nn.Module):
    """A norm by name, with an attention inside."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.fn, self.last = RMSNorm(width), separate("q k v o")(width, 2), nn.BatchNorm1d(width)

    def forward(self, x):
        return self.last(self.fn(self.norm(x)))


def test_norms_are_set_aside_and_nothing_else() -> None:
    module = nn.Sequential(PreNorm(6))
    assert set_aside(module) == ["0.norm", "0.last"]
    assert isinstance(module[0].norm, nn.Identity)
    assert isinstance(module[0].fn, Separate)
    assert set_aside(module) == []


def test_prepared_is_a_copy_that_can_be_asked() -> None:
    module = construct(Gpt).double().train()
    module.cached = module.c_attn(torch.randn(2, 3, 24, dtype=torch.float64))  # PyTorch does not copy results
    module.register_buffer("turns", torch.ones(3, dtype=torch.complex64))
    copy = prepared(module)
    assert {one.dtype for one in copy.parameters()} == {torch.float32}
    assert copy.turns.dtype == torch.complex64
    assert not any(part.training for part in copy.modules())
    assert all(part.training for part in module.modules())
    own = {one.data_ptr() for one in chain(module.parameters(), module.buffers())}
    assert own.isdisjoint(one.data_ptr() for one in chain(copy.parameters(), copy.buffers()))
