"""What positions refuse, and what they say to do instead."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import regard as rg
from regard.inputs.positions import (
    NTK,
    ALiBi,
    Buckets,
    DynamicNTK,
    Learned,
    Linear,
    Llama3,
    LongRoPE,
    Offsets,
    Relative,
    Rotary,
    Sinusoidal,
    Stretched,
    YaRN,
)

RNG = np.random.default_rng(0)
X, Q = RNG.standard_normal((2, 5, 14)), RNG.standard_normal((2, 3, 5, 14))
TABLE = RNG.standard_normal((23, 14))

RULE = "at: an integer, or integers: one for each entry of the batch, or (batch, rows); "
AT = "at: one integer for each of 2 entries of the batch; got shape "
REFUSED = [
    (lambda: Rotary().turn(Q, at=1.5), rg.KindError, RULE + "got 1.5"),
    (lambda: Rotary().turn(Q, at=True), rg.KindError, RULE + "got True"),
    (lambda: Rotary().turn(Q, at=None), rg.KindError, RULE + "got None"),
    (lambda: Rotary().turn(Q, at=np.zeros(2)), rg.KindError, RULE + "got dtype float64"),
    (lambda: Rotary().turn(Q, at=[[0, 1], [2]]), rg.KindError, RULE + "got rows of different lengths"),
    (
        lambda: Sinusoidal().add(torch.tensor(X), at=torch.zeros(2)),
        rg.KindError,
        RULE + "got dtype torch.float32",
    ),
    (
        lambda: Rotary().turn(Q, at=torch.zeros(2, dtype=torch.int64)),
        rg.KindError,
        "at: comes from NumPy or from the library of x, numpy; got torch",
    ),
    (
        lambda: Rotary().turn(torch.zeros(2, 3, 4), at=torch.zeros(2, dtype=torch.int64, device="meta")),
        rg.CallError,
        "device: at lies where x lies, on cpu; got it on meta; move it",
    ),
    (
        lambda: Sinusoidal().add(X, at=np.arange(5)),
        rg.CallError,
        AT + "(5,); the place of every row goes in as at[None, :]",
    ),
    (
        lambda: Rotary().turn(Q, at=np.zeros((3, 5), int)),
        rg.CallError,
        "at: the place of every row is (batch, rows), here (2, 5); got shape (3, 5)",
    ),
    (
        lambda: Rotary().turn(Q, at=np.zeros((2, 1), int)),
        rg.CallError,
        "at: the place of every row is (batch, rows), here (2, 5); got shape (2, 1)",
    ),
    (
        lambda: Rotary().turn(np.arange(6).reshape(3, 2)),
        rg.KindError,
        "like: real floating numbers; got dtype int64; convert it, for example to float32",
    ),
    (
        lambda: Sinusoidal().add(np.zeros(4)),
        rg.CallError,
        "x: at least two axes, (…, positions, width); got shape (4,)",
    ),
    (lambda: Sinusoidal().add("text"), rg.KindError, "x: an array or nested lists of numbers; got str"),
    (
        lambda: Learned(TABLE).add(X, at=[-2, 0]),
        rg.CallError,
        "at: the table has positions 0 to 22; got rows from -2 to 4; padding may stand at 0",
    ),
    (
        lambda: Learned(TABLE).add(X, at=-1),
        rg.CallError,
        "at: the table has positions 0 to 22; got rows from -1 to 3; padding may stand at 0",
    ),
    (
        lambda: Learned(TABLE).add(X, at=19),
        rg.CallError,
        "at: the table has positions 0 to 22; got rows from 19 to 23; shorten the text, or learn a longer table",
    ),
    (
        lambda: Learned(TABLE).add(X, at=[19, 0]),
        rg.CallError,
        "at: the table has positions 0 to 22; got rows from 0 to 23; shorten the text, or learn a longer table",
    ),
    (
        lambda: Learned(TABLE[:, :3]).add(X),
        rg.CallError,
        "table: vectors of the width of x, 14; got 3, shape (23, 3)",
    ),
    (
        lambda: Learned(TABLE).add(torch.tensor(X)),
        rg.KindError,
        "table: comes from the library of x, torch; got numpy; convert it",
    ),
    (
        lambda: Learned(torch.zeros(5, 2, device="meta")).add(torch.zeros(3, 2)),
        rg.CallError,
        "device: table lies where x lies, on cpu; got it on meta",
    ),
    (
        lambda: Learned(TABLE[0]),
        rg.CallError,
        "table: (longest, width), a vector for each position; got shape (14,)",
    ),
    (
        lambda: Learned(np.zeros((3, 2), int)),
        rg.KindError,
        "table: real floating numbers; got dtype int64; convert it",
    ),
    (lambda: Learned.random(3.0, 2), rg.KindError, "longest: an integer; got 3.0"),
    (lambda: Learned.random(3, 0), rg.CallError, "width: an integer of at least 1; got 0"),
    (
        lambda: Rotary().turn(Q[..., :5]),
        rg.CallError,
        "width: features are turned in pairs; got 5; pass an even width=, such as 4",
    ),
    (
        lambda: Rotary(width=5),
        rg.CallError,
        "width: features are turned in pairs; got 5; pass an even width=, such as 4",
    ),
    (lambda: Rotary(width=0), rg.CallError, "width: an integer of at least 2; got 0"),
    (lambda: Rotary(width=4.0), rg.KindError, "width: an integer; got 4.0"),
    (lambda: Rotary(width=16).turn(Q), rg.CallError, "width: at most the width of the vectors, 14; got 16"),
    (lambda: Rotary(base=0), rg.CallError, "base: a finite number above 0; got 0"),
    (lambda: Rotary(base=float("nan")), rg.CallError, "base: a finite number above 0; got nan"),
    (lambda: Sinusoidal("1e4"), rg.KindError, "base: a number; got '1e4'"),
    (lambda: Rotary(pairs="half"), rg.CallError, "pairs: 'halves' or 'interleaved'; got 'half'"),
    (lambda: Sinusoidal(pairs=["halves"]), rg.CallError, "pairs: 'halves' or 'interleaved'; got ['halves']"),
    (
        lambda: Rotary(scaling=4),
        rg.KindError,
        "scaling: a value such as Linear(4) or YaRN(4, 4096), or None; got 4",
    ),
    (
        lambda: Rotary().turn_pair(Q, Q[..., :3, :]),
        rg.CallError,
        "start: 5 queries cannot be the last rows of 3 keys; say where the first query stands, for example start=0",
    ),
    (
        lambda: Rotary().turns(Q)(Q[..., :3, :]),
        rg.CallError,
        "x: these turns are for 5 rows of width 14; got shape (2, 3, 3, 14)",
    ),
    (
        lambda: Rotary().turns(Q)(Q[..., :12]),
        rg.CallError,
        "x: these turns are for 5 rows of width 14; got shape (2, 3, 5, 12)",
    ),
    (
        lambda: Rotary().turns(Q)(Q.astype(np.float32)),
        rg.KindError,
        "x: these turns are for numpy, float64; got numpy, float32; make new ones",
    ),
    (
        lambda: Rotary().turns(Q)(torch.tensor(Q)),
        rg.KindError,
        "x: these turns are for numpy, float64; got torch, torch.float64; make new ones",
    ),
    (lambda: Linear(0.5), rg.CallError, "factor: a finite number of at least 1; got 0.5"),
    (lambda: NTK("2"), rg.KindError, "factor: a number; got '2'"),
    (lambda: NTK(True), rg.KindError, "factor: a number; got True"),
    (
        lambda: NTK(2).frequencies(1e4, 2),
        rg.CallError,
        "NTK: at least two pairs, a width of 4; got 2; Linear scales a single pair",
    ),
    (lambda: DynamicNTK(2, 0), rg.CallError, "original: an integer of at least 1; got 0"),
    (lambda: YaRN(2, 64, beta_fast=1, beta_slow=2), rg.CallError, "beta_fast: a finite number of at least 2; got 1"),
    (lambda: YaRN(2, 64, attention_factor=0), rg.CallError, "attention_factor: a finite number above 0; got 0"),
    (
        lambda: YaRN(2, 64).frequencies(1.0, 4),
        rg.CallError,
        "YaRN: waves of different lengths, a base other than 1; got 1",
    ),
    (lambda: Llama3(8, low=4, high=4), rg.CallError, "high: a finite number above 4; got 4"),
    (
        lambda: Stretched((1.0,)).frequencies(1e4, 4),
        rg.CallError,
        "factors: one for each of 2 pairs of features; got 1",
    ),
    (lambda: Stretched((1.0, 0.0)), rg.CallError, "factors: a finite number above 0; got 0.0"),
    (
        lambda: LongRoPE(1.0, (1.0,), 2, 64),
        rg.KindError,
        "short: a tuple of numbers, one for each pair of features; got 1.0",
    ),
    (lambda: LongRoPE((1.0,), (1.0,), 2, 1), rg.CallError, "original: an integer of at least 2; got 1"),
    (lambda: Rotary().settled(-1), rg.CallError, "length: an integer of at least 0; got -1"),
    (
        lambda: jax.jit(lambda at: Rotary(scaling=DynamicNTK(2, 64)).turn(jnp.zeros((3, 4)), at))(jnp.asarray(1)),
        rg.CallError,
        "at: DynamicNTK asks for the length, which a compiler hides; pass an int, or settled(length)",
    ),
    (lambda: ALiBi(0), rg.CallError, "heads: an integer of at least 1; got 0"),
    (
        lambda: ALiBi(distance=3),
        rg.KindError,
        "distance: an expression, as in i - j or abs(i - j); got 3",
    ),
    (
        lambda: Relative(np.zeros((3, 4))),
        rg.CallError,
        "an odd number of entries; got 4; for keys before the query alone pass bins=Offsets(3, sides=1)",
    ),
    (
        lambda: Relative(np.zeros((3, 4)), Buckets()),
        rg.CallError,
        "table: (heads, 32) for Buckets(count=32, reach=128, sides=2); got shape (3, 4)",
    ),
    (lambda: Relative(np.zeros(3)), rg.CallError, "table: (heads, entries); got shape (3,)"),
    (
        lambda: Relative(np.zeros((1, 3), bool)),
        rg.KindError,
        "table: real floating numbers; got dtype bool; convert it",
    ),
    (
        lambda: Relative(np.zeros((1, 3)), 1),
        rg.KindError,
        "bins: Offsets(reach) or Buckets(count, reach); got 1",
    ),
    (
        lambda: Relative(np.zeros((1, 3)), name="dot"),
        rg.FormulaError,
        'table: "dot" has a meaning of its own; choose another name',
    ),
    (lambda: Offsets(-1), rg.CallError, "reach: an integer of at least 0; got -1"),
    (
        lambda: Offsets(2, sides=3),
        rg.CallError,
        "sides: 1 for keys before the query, 2 for those after it, too; got 3",
    ),
    (lambda: Buckets(2), rg.CallError, "count: an integer of at least 4; got 2"),
    (lambda: Buckets(5), rg.CallError, "count: as many buckets before as after, an even number; got 5"),
    (lambda: Buckets(32, 8), rg.CallError, "reach: an integer of at least 9; got 8"),
    (
        lambda: Relative(np.zeros((1, 3))) + Relative(np.zeros((1, 3))),
        rg.CallError,
        "tables: one name for each; got relative twice; pass one of them another name=",
    ),
    (
        lambda: ALiBi().join("softmax(dot)"),
        rg.KindError,
        "join: an Attention, as in Attention(mask=causal); got 'softmax(dot)'",
    ),
    (lambda: Rotary() + 1, TypeError, "unsupported operand"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_refused_with_the_way_to_say_it(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()
