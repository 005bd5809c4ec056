"""Which argument plays which role, from the names that a callable gives them.

    f(q, k, v, mask=None)                q  k  v  mask
    forward(values, keys, query, mask)   v  k  q  mask
    f(x, Wq, Wk, Wv, Wo=None, n_heads=1) x  wq  wk  wv  wo  heads
    f(a, b, c)                           q  k  v         names that say nothing: by position

Functions, bound methods, partials, compiled functions (`jax.jit`, `torch.jit.script`) and builtins are read alike.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..algebra.errors import KindError
from .words import is_bias, letters, words

ROLES = {
    "x": "x xs inputs input inp hidden hidden_states hidden_state embeddings embedding emb embeds embedded seq "
    "sequence tokens src tgt features h z feats hiddens inputs_embeds",
    "context": "context ctx memory mem enc_out enc_output encoder_output encoder_outputs encoder_hidden_states "
    "key_value_states kv x_kv kv_input cond y source encoder_out context_x other crossattn_input cross_input",
    "mask": "mask masks attn_mask attention_mask src_mask tgt_mask trg_mask score_mask att_mask self_mask allowed",
    "bias": "attn_bias attention_bias position_bias score_bias rel_bias",
    "padding": "key_padding_mask padding_mask pad_mask src_key_padding_mask key_mask pad padding k_mask kv_mask "
    "tgt_key_padding_mask encoder_padding_mask",
    "lengths": "valid_lens valid_len lengths lens length seq_lens seqlens seq_lengths key_lengths",
    "causal": "causal is_causal use_causal_mask causal_mask masked autoregressive use_mask apply_mask use_causal "
    "apply_causal_mask is_masked look_ahead",
    "dropout": "dropout dropout_p p dropout_rate attn_dropout attention_dropout drop dropout_prob p_drop p_dropout "
    "pdrop drop_prob",
    "scale": "scale scaling softmax_scale sm_scale scale_factor scaling_factor",
    "cache": "cache past past_key_value past_key_values layer_past kv_cache past_kv incremental_state prev_kv past_kvs "
    "layer_cache cached_kv k_cache v_cache prev state",
    "use_cache": "use_cache return_cache use_kv_cache return_present",
    "start": "start_pos start offset pos_offset position_offset cache_position curr_pos current_pos input_pos "
    "pos_start start_position past_length",
    "positions": "position_ids positions pos pos_ids position position_embeddings freqs_cis freqs cos sin rope rotary "
    "rotary_emb rotary_pos_emb pos_emb token_positions cos_sin",
    "training": "training train is_training is_train",
    "return_weights": "return_weights need_weights return_attention return_attn output_attentions with_weights "
    "get_attn return_attention_weights return_attn_weights need_attn need_head_weights return_att return_scores",
    "heads": "n_heads num_heads n_head heads nhead nheads num_attention_heads n_q_heads num_q_heads head_num",
    "kv_heads": "n_kv_heads num_kv_heads kv_heads n_kv_head num_key_value_heads num_groups n_groups groups",
    "width": "d_k dk d_head head_dim dim_head d d_key head_size key_dim depth dim_k",
    "model_width": "d_model embed_dim dim emb_dim n_embd hidden_size model_dim",
    "params": "params parameters weights theta w",
    "sink": "sink sinks sink_logits sink_bias attention_sinks attn_sinks",
    "seed": "rng seed generator prng prng_key rng_key random_state",
}
ROLE = {name: role for role, names in ROLES.items() for name in names.split()}
MATRIX = {"w", "weight", "weights", "wt", "proj", "projection", "linear", "lin", "kernel", "m", "mat", "matrix", "in"}
VECTORS = {"x", "input", "inputs", "hidden", "state", "states", "tensor", "vec", "vectors"}  # query_states, x_q
GLUED = re.compile(r"w(qkv|kv|[qkvo])s?|[qkvo]w|b(qkv|[qkvo])|(wt)[qkvo]")
FAMILIES = {1: "x", 2: "x context", 3: "q k v", 4: "q k v mask", 5: "x wq wk wv wo"}  # of names that say nothing
PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Parameter:
    """One argument: its name, its role, and what it is when nobody gives it."""

    name: str
    role: str
    required: bool
    default: Any = None  # as text where it is no number, string or None
    by: str = "either"  # how it is handed over: "position", "name" or "either"


def parameters(target: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The arguments of a callable with their roles; of a module, those of its `forward`.

    >>> [p.role for p in parameters(lambda values, keys, query, mask=None: ...)]
    ['v', 'k', 'q', 'mask']
    >>> [p.role for p in parameters(lambda X, WQ, WK, WV, h=2: ...)]
    ['x', 'wq', 'wk', 'wv', 'heads']
    """
    said = [_named(one) for one in _arguments(target) if one.kind not in _REST]
    return tuple(_placed(_settled(said)))


_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_BY: dict[Any, str] = {inspect.Parameter.POSITIONAL_ONLY: "position", inspect.Parameter.KEYWORD_ONLY: "name"}

# -- one name ----------------------------------------------------------------------------------------------------


def _named(argument: inspect.Parameter) -> Parameter:
    required = argument.default is argument.empty
    default = None if required else argument.default
    plain = default if isinstance(default, PLAIN) else repr(default)
    role = _role(argument.name, default)
    return Parameter(argument.name, role, required, plain, _BY.get(argument.kind, "either"))


NO_MASKS = {"head_mask", "layer_head_mask", "row_mask", "query_mask", "q_mask", "cross_attn_head_mask"}
"""Masks of something else than pairs."""


def _role(name: str, default: object) -> str:
    """The role that a name says by itself; "" when none."""
    bare = name.strip("_")
    small = "_".join(words(bare)) if not bare.islower() else bare
    if small in NO_MASKS:
        return ""
    role = ROLE.get(small) or ROLE.get(bare.lower()) or _projection(bare) or ("mask" if "mask" in words(bare) else "")
    if role in {"mask", "causal"}:  # mask=True is a flag, causal_mask=None an array
        return "causal" if isinstance(default, bool) or (small not in _ARRAY_OR_FLAG and role == "causal") else "mask"
    return role


_ARRAY_OR_FLAG = {"causal_mask"}


def _projection(name: str) -> str:
    """`q` for vectors, `wq` for a matrix, `bq` for a bias, `wqkv` for three matrices in one."""
    said = [word for word in words(name) if word not in VECTORS]
    found = letters("_".join(said))
    if not found:
        return ""
    glued = any(GLUED.fullmatch(word) for word in said)
    if is_bias(name):
        return f"b{found}"
    if glued or MATRIX & set(said) or found == "o":
        return f"w{found}"
    return found if len(found) == 1 else {"kv": "context", "qkv": "qkv"}.get(found, "")


# -- all names together ------------------------------------------------------------------------------------------


METRICS = {"M", "P", "W", "A", "S", "metric", "precision", "Sigma_inv", "sigma_inv", "bilinear"}
"""Names of a matrix between queries and keys."""


def _settled(said: list[Parameter]) -> list[Parameter]:
    """What a name means beside the others: `key` next to `k` is a seed, `h` next to an input is a count of heads."""
    roles = [one.role for one in said]
    others = {one.name for one in said}
    settled = []
    for at, one in enumerate(said):
        role = one.role
        if one.name == "key" and ("k" in others or "K" in others):
            role = "seed"
        elif one.name in {"h", "H"} and (isinstance(one.default, int) or {"x", "q"} & set(roles[:at])):
            role = "heads"
        elif one.name in {"d", "D"} and {"c", "C"} & others:  # the fourth of a, b, c, d
            role = ""
        elif one.name in METRICS and one.required and {"q", "k", "v"} <= set(roles):
            role = "metric"
        elif role == "x" and {"x", "q"} & set(roles[:at]):
            role = "context" if one.required else ""
        elif role == "context" and "x" not in roles and "q" not in roles and one.required:
            role = "x" if not {"x", "context"} & set(roles[:at]) else "context"
        elif role == "q" and "k" not in roles and "context" in roles:
            role = "x"
        elif role == "params" and not one.required:
            role = ""
        settled.append(replace(one, role=role))
    return settled


def _placed(said: list[Parameter]) -> list[Parameter]:
    """Names that say nothing, and must be given, take the places that are left; all else is "other"."""
    left = iter(_left([one for one in said if one.required]))
    return [one if one.role else replace(one, role=next(left, "other") if one.required else "other") for one in said]


def _left(required: list[Parameter]) -> list[str]:
    """The roles that the required names leave open, in order."""
    roles, silent = [one.role for one in required], sum(not one.role for one in required)
    if silent == len(required):
        return FAMILIES.get(silent, "").split()
    if {"wq", "wk", "wv"} & set(roles) or ("x" in roles and silent >= 3):
        family = ["x", "wq", "wk", "wv", "wo"]
    elif {"q", "k", "v"} & set(roles):
        family = ["q", "k", "v", "mask"]
    else:
        family = ["x", "mask"] if "x" in roles else ["x"]
    return [role for role in family if role not in roles]


# -- finding the arguments ---------------------------------------------------------------------------------------


def _arguments(target: Any) -> list[inspect.Parameter]:
    is_module = hasattr(target, "forward") and hasattr(target, "named_parameters") and not isinstance(target, type)
    call = target.forward if is_module else target
    for read in (_of_python, _of_schema, _of_docstring):
        found = read(call)
        if found is not None:
            return found
    name = getattr(target, "__name__", type(target).__name__)
    raise KindError(
        f"target: a callable whose arguments have names; got {name}, which names none; "
        "wrap it: def attend(q, k, v): return ..."
    )


def _of_python(call: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return None


def _of_schema(call: Any) -> list[inspect.Parameter] | None:
    """The arguments of a scripted function, which carries a schema in place of a signature."""
    schema = getattr(call, "schema", None)
    if schema is None or not hasattr(schema, "arguments"):
        return None
    empty = inspect.Parameter.empty
    found = [(one.name, one.default_value if one.has_default_value() else empty) for one in schema.arguments]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [inspect.Parameter(name, kind, default=default) for name, default in found if name != "self"]


def _of_docstring(call: Any) -> list[inspect.Parameter] | None:
    """The arguments of a builtin, whose documentation begins with the call: `name(query, key, value, scale=None)`."""
    name, text = getattr(call, "__name__", ""), inspect.getdoc(call) or ""
    shown = re.search(rf"^\s*{re.escape(name)}(\([^()]*(?:\([^()]*\)[^()]*)*\))", text, re.MULTILINE) if name else None
    try:
        tree = ast.parse(f"def call{shown[1]}: ..." if shown else "")
    except SyntaxError:
        return None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return _of_tree(found[0].args) if found else None


def _of_tree(shown: ast.arguments) -> list[inspect.Parameter]:
    empty, values = inspect.Parameter.empty, [_constant(node) for node in shown.defaults]
    names = [one.arg for one in (*shown.posonlyargs, *shown.args)]
    defaults = [empty] * (len(names) - len(values)) + values
    kind, last = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    keyword = zip(shown.kwonlyargs, shown.kw_defaults, strict=True)
    return [
        *(inspect.Parameter(name, kind, default=default) for name, default in zip(names, defaults, strict=True)),
        *(inspect.Parameter(one.arg, last, default=_constant(node) if node else empty) for one, node in keyword),
    ]


def _constant(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
