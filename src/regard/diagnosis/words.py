"""What a name says of queries, keys, values and the output: `W_q`, `to_q`, `query_proj`, `toqueries` all say q.

    letters("W_query") = "q"      letters("qkv_proj") = "qkv"      letters("to_out") = "o"      letters("norm1") = ""

A name is cut into words at underscores, dots, digits and capitals; words that only say "a matrix" are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
LETTER = {
    **dict.fromkeys("q qs qry query queries wq wqs qw bq qb querys".split(), "q"),
    **dict.fromkeys("k ks key keys wk wks kw bk kb".split(), "k"),
    **dict.fromkeys("v vs val vals value values wv wvs vw bv vb".split(), "v"),
    **dict.fromkeys("o out output outputs wo ow bo wout wouts outproj".split(), "o"),
    **dict.fromkeys("final unify unifyheads combine merge concat".split(), "o"),
}
BIASES = {"b", "bias", "biases", "bq", "bk", "bv", "bo", "qb", "kb", "vb", "bqkv", "bkv"}
MATRIX = set(  # words that say "a matrix" and no more
    "w weight weights wt m mat matrix kernel to proj projection project projector linear linears lin layer fc dense "
    "conv net map mapping transform c p param params parameter head heads all embed in the a t".split()
) | (BIASES & {"b", "bias", "biases"})
LAST = set("proj projection projector linear lin fc dense".split())  # the last matrix often has no other name
FUSED = {"cattn", "inproj", "packedproj", "fusedproj", "attproj", "attnproj", "inprojection"}
ASIDE = set(  # words of tensors that are no projections
    "norm ln layernorm rmsnorm cache cached past mask pos position positions positional rel relative rope rotary freqs "
    "inv cos sin table embedding embeddings lora gate gamma beta scale temperature mlp ffn ff feed ffw intermediate "
    "dropout tril triu causal alibi slopes sink sinks bn logit tau".split()
)


def words(name: str) -> list[str]:
    """The words of a name, in small letters.

    >>> words("W_query"), words("queryProj"), words("WQ")
    (['w', 'query'], ['query', 'proj'], ['wq'])
    """
    return [part.lower() for part in PART.findall(name)]


def letters(name: str) -> str:
    """Which of q, k, v and o a name speaks of, in its order; empty when of none.

    >>> letters("kqv_proj"), letters("query_key_value"), letters("c_attn"), letters("k_norm")
    ('kqv', 'qkv', 'qkv', '')
    """
    said = words(name)
    if "".join(word for word in said if word not in {"weight", "bias"}) in FUSED:
        return "qkv"
    found = [_of(word) for word in said if word not in MATRIX]
    joined = "".join(found)
    return joined if all(found) and len(set(joined)) == len(joined) and joined in ORDERS else ""


def is_bias(name: str) -> bool:
    """Whether a name speaks of a bias: `bias`, `b_q`, `bq`, `q_bias`."""
    return bool(BIASES & set(words(name)))


def is_aside(name: str) -> bool:
    """Whether a name is that of a norm, a cache, a table of positions or a feed-forward part."""
    return bool(ASIDE & set(words(name)))


def may_be_last(name: str) -> bool:
    """Whether a name says "a matrix" and no more, as that of an output projection often does: `proj`, `dense`, `fc`."""
    said = set(words(name))
    return bool(said & LAST) and said <= MATRIX


def _orders(parts: Iterable[str]) -> set[str]:
    return {"".join(order) for part in parts for order in _permutations(part)}


def _permutations(part: str) -> list[str]:
    if len(part) < 2:
        return [part]
    return [first + rest for at, first in enumerate(part) for rest in _permutations(part[:at] + part[at + 1 :])]


ORDERS = _orders(["q", "k", "v", "o", "qkv", "kv", "qk"])


def _of(word: str) -> str:
    """The letters of one word: `query`, `toqueries`, `qkv`, `wqkv`."""
    if word in LETTER:
        return LETTER[word]
    for bare in (word, word.removeprefix("w"), word.removeprefix("to"), word.removeprefix("b")):
        if bare in LETTER:
            return LETTER[bare]
        if len(bare) > 1 and bare in ORDERS:
            return bare
    return ""
