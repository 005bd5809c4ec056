"""PyTorch's multi-head attention, on any formula.

    q = W_q x + b_q        k = W_k z + b_k        v = W_v z′ + b_v        each cut into heads of the width d

    y_i = Σ_j w_ij v_j     out = W_o [y of head 1; … ; y of head H] + b_o

where w_ij is the formula's weight, under the masks of the call (multihead_masks).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own name
from torch.nn.utils.rnn import pad_sequence

from ..algebra.errors import CallError, KindError
from ..attention import Attention, parse
from .checks import check_dtype
from .multihead_masks import Formulas, beyond, check_nested, masked, of_keys, of_pairs, under_masks

PLAIN = Attention()


class MultiheadAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` with a formula: its arguments, its state dict, its results.

    attention: any formula, softmax(q·k / √d) unless said otherwise; `d` in it is the width of a head, and its
               tables are arguments of `forward` by name

    What `bias_k` and `add_zero_attn` append stands after the last key: it has the positions S and S + 1, `n` counts it,
    and the formula's own mask says who reads it, while the masks of a call always admit it.

    A query that no key is admitted for has weights of zero, and y = 0. PyTorch's module says NaN there when weights are
    asked for and where it takes its fast path, and 0 elsewhere.

    PyTorch's encoder layers compute softmax(q·k / √d) by themselves at inference, and never call their attention; those
    that hold this module do so for that formula alone, and for no other.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        attention: Attention = PLAIN,
    ) -> None:
        _check_heads(embed_dim, num_heads)
        options = {"bias": bias, "add_bias_kv": add_bias_kv, "add_zero_attn": add_zero_attn, "kdim": kdim, "vdim": vdim}
        super().__init__(embed_dim, num_heads, dropout, **options, batch_first=batch_first, device=device, dtype=dtype)
        self.attention = attention

    @property
    def attention(self) -> Attention:
        """The formula; another one may be put in its place."""
        return self._formulas.free

    @attention.setter
    def attention(self, attention: Attention) -> None:
        if not isinstance(attention, Attention):
            raise KindError(f"attention: an Attention, as in Attention(mask=causal); got {attention!r}")
        self._formulas: Formulas = under_masks(attention)
        # what PyTorch's layers ask before they compute plain attention from in_proj_weight in place of calling forward
        plain = attention == PLAIN and self.bias_k is None and not self.add_zero_attn
        self._qkv_same_embed_dim = self.in_proj_weight is not None and plain

    def _reset_parameters(self) -> None:
        told, self._qkv_same_embed_dim = self._qkv_same_embed_dim, self.in_proj_weight is not None
        super()._reset_parameters()
        self._qkv_same_embed_dim = told

    def extra_repr(self) -> str:
        """The sizes and the formula."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, attention={self.attention!r}"

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        start: Any = 0,
        **tables: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """The output and, where they are needed, the weights after dropout: the mean of the heads, or each head's.

        query, key, value: (L, B, width), (S, B, width) twice; (B, L, width) … with batch_first; (L, width) … for one
        key_padding_mask:  (B, S), or (S): True where a key is NOT read, or numbers to add to the scores
        attn_mask:         (L, S), or (B·H, L, S): True where a pair is NOT admitted, or numbers to add to the scores
        is_causal:         attn_mask is the causal one, so that j ≤ i can stand in its place; it does where neither
                           weights nor a mask of keys are asked for, and then holds for appended keys too, as in PyTorch
        start:             the position of the first query; 0, as PyTorch counts, unless said otherwise
        tables:            the formula's, by name
        """
        self._check_kinds(query=query, key=key, value=value)
        if query.is_nested or key.is_nested or value.is_nested:
            check_nested(self.batch_first, query, key, value, masks=(key_padding_mask, attn_mask, is_causal or None))
            return self._nested(query, key, value, need_weights, average_attn_weights, start=start, **tables)
        if is_causal and attn_mask is None:
            raise CallError(
                "is_causal: a hint that attn_mask is the causal mask, so that goes with it; got attn_mask=None; "
                "pass the mask too, or write Attention(mask=causal)"
            )
        batched = self._check_shapes(query, key, value)
        positions = 0 if batched and not self.batch_first else 1
        q, k, v = (self._heads(x if batched else x[None], positions) for x in self._projected(query, key, value))
        shape = (*q.shape[:3], k.shape[2])
        pairs, keys = of_pairs(attn_mask, *shape), of_keys(key_padding_mask, batched, shape)
        k, v = self._appended(k, self.bias_k), self._appended(v, self.bias_v)
        hint = is_causal and keys is None and not need_weights
        call = masked(self._formulas, pairs, keys, shape, k.shape[2] - shape[3], hint)
        options = {"start": start, "dropout": self.dropout if self.training else 0.0, **tables, **call.tables}
        if need_weights:
            weights = _weights(call.attention.text, q, k, [*options], [*options.values()])
            out = self._joined(weights.to(v.dtype) @ v, positions)
            dtype = torch.softmax(v.new_empty(1), dim=0).dtype  # under autocast, what the device has for weights
            weights = (weights.mean(dim=1) if average_attn_weights else weights).to(dtype)
        else:
            weights = None
            out = self._joined(call.attention(q, k, v, **options), positions)
        return (out, weights) if batched else (out[0], None if weights is None else weights[0])

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """W x + b of each, in one product for those that are one tensor."""
        E, W, bias = self.embed_dim, self.in_proj_weight, self.in_proj_bias
        if W is not None and query is key is value:
            return tuple(F.linear(query, W, bias).chunk(3, dim=-1))
        if W is not None and key is value:
            biases = (None, None) if bias is None else (bias[:E], bias[E:])
            return F.linear(query, W[:E], biases[0]), *F.linear(key, W[E:], biases[1]).chunk(2, dim=-1)
        matrices = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight) if W is None else W.chunk(3)
        parts = (None, None, None) if bias is None else bias.chunk(3)
        return tuple(F.linear(*three) for three in zip((query, key, value), matrices, parts, strict=True))

    def _heads(self, x: Tensor, positions: int) -> Tensor:
        """(…, heads · d) → (batch, heads, positions, d)."""
        return x.unflatten(-1, (self.num_heads, self.head_dim)).movedim(positions, -2)

    def _joined(self, y: Tensor, positions: int) -> Tensor:
        """W_o [y of head 1; … ] + b_o, with the axes as they came."""
        out: Tensor = self.out_proj(y.movedim(-2, positions).flatten(-2))
        return out

    def _appended(self, x: Tensor, learned: Tensor | None) -> Tensor:
        """Keys or values (batch, heads, positions, d) with the learned one and the zero one after them."""
        if learned is not None:
            row = self._heads(learned, 1).to(x.dtype).expand(x.shape[0], -1, -1, -1)
            x = torch.cat([x, row], dim=2)
        return F.pad(x, (0, 0, 0, 1)) if self.add_zero_attn else x

    def _check_kinds(self, **arrays: Tensor) -> None:
        """Tensors, in the dtype of the matrices."""
        W = self.q_proj_weight if self.in_proj_weight is None else self.in_proj_weight
        for name, array in arrays.items():
            if not isinstance(array, Tensor):
                raise KindError(f"{name}: a tensor; got {type(array).__name__}; torch.as_tensor makes one of an array")
            check_dtype(array, W, name)

    def _check_shapes(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether there is a batch."""
        widths = {"query": self.embed_dim, "key": self.kdim, "value": self.vdim}
        arrays = {"query": query, "key": key, "value": value}
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise CallError(
                f"axes: query, key and value have three axes, or two for one sequence; got {_shapes(arrays)}"
            )
        for name, array in arrays.items():
            if array.shape[-1] != widths[name]:
                argument = {"query": "embed_dim", "key": "kdim", "value": "vdim"}[name]
                raise CallError(
                    f"{name}: its last axis has the width {widths[name]}, {argument} of this module; "
                    f"got shape {tuple(array.shape)}; build the module with {argument}={array.shape[-1]}"
                )
        batch = 0 if self.batch_first else 1
        if key.shape[:-1] != value.shape[:-1] or (query.ndim == 3 and query.shape[batch] != key.shape[batch]):
            order = "batch, positions, width" if self.batch_first else "positions, batch, width"
            raise CallError(
                f"shapes: one value for each key, and one batch for all, as ({order}); got {_shapes(arrays)}; "
                f"batch_first is {self.batch_first}"
            )
        return bool(query.ndim == 3)

    def _nested(
        self, query: Tensor, key: Tensor, value: Tensor, need_weights: bool, average: bool, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Sequences of unequal lengths: as padded to the longest, with the padding masked."""
        padded = {id(x): pad_sequence(x.unbind(), batch_first=True) for x in (query, key, value)}
        q, k, v = padded[id(query)], padded[id(key)], padded[id(value)]
        out, weights = self.forward(q, k, v, beyond(key), need_weights, None, average, **options)
        rows = [row[: len(own)] for row, own in zip(out, query.unbind(), strict=True)]
        if weights is not None:
            empty = beyond(query)[..., None]
            weights = weights.masked_fill(empty if average else empty[:, None], 0.0)
        return torch.nested.as_nested_tensor(rows, layout=query.layout), weights


@lru_cache(maxsize=256)
def _known(text: str) -> Attention:
    attention = parse(text)
    assert isinstance(attention, Attention)
    return attention


def _in_graph(text: str, q: Tensor, k: Tensor, names: list[str], values: list[Any]) -> Any:
    """The weights of a formula that is given as text: a graph of torch.compile holds no formula."""
    return _known(text).weights(q, k, **dict(zip(names, values, strict=True)))


_weights = torch.compiler.allow_in_graph(_in_graph)

# -- checks ------------------------------------------------------------------------------------------------------


def _check_heads(embed_dim: int, num_heads: int) -> None:
    for name, size in (("embed_dim", embed_dim), ("num_heads", num_heads)):
        if size < 1:
            raise CallError(f"{name}: at least 1; got {size}")
    if embed_dim % num_heads:
        below = max(size for size in range(1, num_heads) if embed_dim % size == 0)
        raise CallError(
            f"num_heads: divides embed_dim, {embed_dim}; got {num_heads}; pass {below}, "
            f"or embed_dim={embed_dim - embed_dim % num_heads + num_heads}"
        )


def _shapes(arrays: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items())
