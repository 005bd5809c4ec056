"""Each style is read as what it is; what cannot be read says why, in words that a learner can use."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from regard.algebra.errors import CallError, KindError
from regard.diagnosis.calling import Argument, Call
from regard.diagnosis.description import Describe
from regard.diagnosis.problem import Problem
from regard.diagnosis.sandbox.loading import Live
from regard.diagnosis.sandbox.process import Here
from regard.diagnosis.trying import Said, Trial, Unreadable, readings

sys.path.insert(0, str(Path(__file__).parent))
import styles
from targets import misbehaving  # type: ignore[import-not-found]


def read(target: Any, **said: Any) -> list[Trial]:
    runner = Here(Live(target))
    return readings(runner, runner.ask(Describe()), Said(**said))


def right(problem: Problem) -> Any:
    """softmax(q·k / √d) v of a problem, with heads and without."""
    if problem.form == "vectors":
        k, v = (np.repeat(problem[name], problem.heads // problem.groups, axis=1) for name in "kv")
        return styles.attend(problem["q"], k, v)
    sources = {"q": "x", "k": "context", "v": "memory"}
    one = np.eye(problem["x"].shape[-1])
    q, k, v = (problem[sources[c]] @ problem.arrays.get(f"w{c}", one) + problem.arrays.get(f"b{c}", 0.0) for c in "qkv")
    y = styles.joined(styles.attend(*(styles.cut(x, problem.heads) for x in (q, k, v))))
    return y @ problem["wo"] + problem.arrays.get("bo", 0.0) if "wo" in problem.arrays else y


def is_right(trial: Trial) -> bool:
    problem = trial.reading.problem()
    y = trial.reading.read(trial.outcome, problem)
    return y is not None and np.allclose(y, right(problem), rtol=0, atol=trial.reading.tolerance)


STYLES: dict[str, tuple[Any, str, str, int]] = {
    "heads_inside": (styles.heads_inside, "vectors", "bnhd", 3),
    "heads_come_back_joined": (styles.heads_come_back_joined, "vectors", "bhnd", 3),
    "one_text": (styles.one_text, "vectors", "nd", 1),
    "columns_are_tokens": (styles.columns_are_tokens, "vectors", "dn", 1),
    "one_query": (styles.one_query, "vectors", "d|nd", 1),
    "one_query_each": (styles.one_query_each, "vectors", "bd|bnd", 1),
    "one_query_of_lists": (styles.one_query_of_lists, "vectors", "d|nd", 1),
    "heads_in_columns": (styles.heads_in_columns, "inputs", "bnd", 3),
    "fewer_key_heads": (styles.fewer_key_heads, "vectors", "bhnd", 4),
    "scale_must_be_given": (styles.scale_must_be_given, "vectors", "bhnd", 3),
    "methods_of_tensors": (styles.methods_of_tensors, "vectors", "bhnd", 3),
    "matrices": (styles.matrices, "inputs", "bnd", 1),
    "out_in": (styles.out_in, "inputs", "bnd", 1),
    "heads_as_axes": (styles.heads_as_axes, "inputs", "bnd", 3),
    "heads_second": (styles.heads_second, "inputs", "bnd", 3),
    "fused": (styles.fused, "inputs", "bnd", 3),
    "stacked": (styles.stacked, "inputs", "bnd", 1),
    "Plain": (styles.Plain, "inputs", "bnd", 1),
    "Layers": (styles.Layers, "inputs", "bnd", 4),
    "Layers, an object": (styles.Layers(14, 7), "inputs", "bnd", 7),
    "InADictionary": (styles.InADictionary, "inputs", "bnd", 1),
    "OfLists": (styles.OfLists, "inputs", "bnd", 1),
    "WithoutMatrices": (styles.WithoutMatrices, "vectors", "bhnd", 3),
}


@pytest.mark.parametrize("name", STYLES)
def test_each_style_is_read_as_what_it_is(name: str) -> None:
    target, form, layout, heads = STYLES[name]
    believed = next((trial.reading for trial in read(target) if is_right(trial)), None)
    assert believed is not None
    if name == "OfLists":  # what one_text refuses is a batch
        layout = "nd"
    assert (believed.form, believed.layout.name, believed.sizes.heads) == (form, layout, heads)


def test_the_library_is_that_of_the_code() -> None:
    def in_torch(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.mT, -1) @ v

    def in_jax(q: Any, k: Any, v: Any) -> Any:
        return jnp.einsum("...ij,...jd->...id", q @ k.swapaxes(-1, -2), v)

    found = [
        read(one)[0].reading.language
        for one in (in_torch, in_jax, styles.one_text, styles.one_query_of_lists, styles.methods_of_tensors)
    ]
    assert found == ["torch", "jax", "numpy", "python", "torch"]
    assert Describe().run(styles.methods_of_tensors).languages[0] == "torch"  # by what only tensors can do


def test_many_queries_are_believed_before_one() -> None:
    """A softmax over the wrong axis is right for one query: it must not be read so."""

    def over_queries(q: Any, k: Any, v: Any) -> Any:
        scores = np.exp(q @ k.T)
        return scores / scores.sum(axis=0) @ v

    assert not any(trial.reading.layout.one for trial in read(over_queries))


def test_heads_that_are_averaged_have_the_width_of_one() -> None:
    def averaged(x: Any, Wq: Any, Wk: Any, Wv: Any, num_heads: int) -> Any:
        return styles.attend(*(styles.cut(x @ w, num_heads) for w in (Wq, Wk, Wv))).mean(axis=-3)

    trial = read(averaged)[0]
    y = trial.reading.read(trial.outcome, trial.reading.problem())
    assert y is not None
    assert y.shape[-1] == trial.reading.sizes.width


def turned(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def test_tables_of_positions_are_those_of_rotary() -> None:
    """q_n · k_m depends on n − m alone, in each of the forms in which tables are handed over."""
    seen: dict[str, Any] = {}

    def by_halves(q: Any, k: Any, v: Any, cos: Any, sin: Any, position_ids: Any) -> Any:
        seen.update(cos=cos, sin=sin, ids=position_ids)
        return styles.attend(turned(q, cos, sin), turned(k, cos, sin), v)

    def complex_pairs(q: Any, k: Any, v: Any, freqs_cis: Any) -> Any:
        seen.update(cis=np.asarray(freqs_cis))
        return torch.softmax(q @ k.mT, -1) @ v

    def in_one(q: Any, k: Any, v: Any, position_embeddings: Any) -> Any:
        seen.update(pair=[np.asarray(one) for one in position_embeddings])
        return styles.attend(q, k, v)

    for target in (by_halves, complex_pairs, in_one):
        read(target)
    one = np.ones(6)
    rows = [turned(one, cos, sin) for cos, sin in zip(seen["cos"], seen["sin"], strict=True)]
    assert np.allclose([rows[n] @ rows[n + 1] for n in range(4)], rows[0] @ rows[1])
    assert not np.allclose(rows[0], rows[1])
    assert np.allclose(seen["cis"], (seen["cos"] + 1j * seen["sin"])[:, :3], atol=1e-6)
    assert np.allclose(seen["pair"], [[seen["cos"]], [seen["sin"]]])
    assert seen["ids"].tolist() == list(range(5))


def test_optional_arguments_stay_away() -> None:
    def attend(q: Any, k: Any, v: Any, attn_bias: Any = None, scale: Any = None, positions: Any = None) -> Any:
        assert attn_bias is scale is positions is None
        return styles.attend(q, k, v)

    assert [one.name for one in read(attend)[0].reading.taken] == ["q", "k", "v"]


class SharedByHeads(nn.Module):
    """All heads go through one small matrix, each with its own columns."""

    def __init__(self, embed_size: int, heads: int) -> None:
        super().__init__()
        self.heads, wide = heads, embed_size // heads
        self.values, self.keys, self.queries = (nn.Linear(wide, wide, bias=False) for _ in range(3))
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, x: Any) -> Any:
        q, k, v = (
            layer(x.unflatten(-1, (self.heads, -1))).transpose(1, 2) for layer in (self.queries, self.keys, self.values)
        )
        y = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v
        return self.fc_out(y.transpose(1, 2).flatten(2))


def test_small_matrices_that_heads_share() -> None:
    trial = next(trial for trial in read(SharedByHeads) if is_right(trial))
    problem = trial.reading.problem()
    assert problem["wq"].shape == (24, 24)
    assert np.array_equal(problem["wq"][:6, :6], problem["wq"][6:12, 6:12])
    assert not problem["wq"][:6, 6:].any()
    assert trial.reading.call(problem).matrices["wq"].shape == (6, 6)


# -- what cannot be read -------------------------------------------------------------------------------------------


def complaint(target: Any, **said: Any) -> str:
    with pytest.raises((CallError, KindError)) as caught:
        read(target, **said)
    return str(caught.value)


def test_the_same_error_is_said_first_with_its_line() -> None:
    text = complaint(misbehaving.raises)
    first, error, line, advice = text.splitlines()
    assert first == "raises(q, k, v): it raises the same error however it is called:"
    assert error == "    ValueError: the shapes do not agree"
    assert line.startswith("    misbehaving.py:")
    assert line.endswith('raise ValueError("the shapes do not agree")')
    assert advice.startswith("Mend that first. It was called with q (2, 3, 5, 6), k (2, 3, 5, 6), v (2, 3, 5, 6)")


def test_the_line_is_the_innermost_of_the_users_own() -> None:
    def inner(q: Any) -> Any:
        return np.linalg.inv(q["missing"])

    def outer(q: Any, k: Any, v: Any) -> Any:
        return inner({"q": q}) @ k @ v

    assert 'return np.linalg.inv(q["missing"])' in complaint(outer)


def test_the_reading_that_came_furthest_is_shown_first() -> None:
    def typo(Q: Any, K: Any, V: Any) -> Any:
        scores = Q @ K.T / np.sqrt(Q.shape[-1])
        weights = styles.softmax(scores)  # noqa: F841
        return wieghts @ V  # type: ignore[name-defined]  # noqa: F821

    lines = complaint(typo).splitlines()
    assert lines[0] == "typo(Q, K, V): no way to call it was found; what came of the likeliest:"
    assert lines[1] == "  with Q (5, 6), K (5, 6), V (5, 6), in NumPy:"
    assert lines[2] == "    NameError: name 'wieghts' is not defined"
    assert "return wieghts @ V" in lines[3]
    assert "layout='bnd'" in lines[-1]
    assert "--as q,k,v,mask" in lines[-1]


RETURNED = {
    "returns_none": "it returns None (is a return missing?)",
    "returns_string": "it returns text",
    "returns_generator": "it returns a generator",
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_no_output(name: str) -> None:
    text = complaint(getattr(misbehaving, name))
    assert f"{name}(q, k, v): it never returns an output: {RETURNED[name]}" in text
    assert "Return the output, or a tuple of output and weights." in text


def test_outputs_of_another_shape_are_shown() -> None:
    assert "it returns ndarray of shape (2, 3, 1, 6)" in complaint(misbehaving.returns_wrong_shape)


def test_arguments_that_are_none_of_an_attention() -> None:
    assert complaint(misbehaving.takes_nothing).endswith("it takes none; give it arguments")
    text = complaint(misbehaving.takes_seven)
    assert "takes_seven(a, b, c, d, e, f, g): an attention takes q, k, v, or x with its matrices" in text
    assert "nothing says what a, b, c, d, e, f, g are; say what they are, in order: roles='q k v mask'" in text


def test_an_argument_that_nothing_explains() -> None:
    def general(query: Any, keys: Any, values: Any, gate: Any, warp: Any) -> Any:
        return np.einsum("...id,de,...je->...ij", query, gate * warp.reshape(11, 6, 6)[0], keys) @ values

    assert "nothing says what warp may be: say roles=…, or wrap it as f(q, k, v)" in complaint(general)


def test_a_class_that_cannot_be_made_shows_its_line() -> None:
    text = complaint(misbehaving.RaisesWhenMade)
    assert "which raises RuntimeError: no weights were found (misbehaving.py:" in text


def test_images_are_refused() -> None:
    class OverImages(nn.Module):
        def __init__(self, in_channels: int) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Conv2d(in_channels, in_channels, 1) for _ in range(3))

        def forward(self, x: Any) -> Any:
            b, c, h, w = x.shape
            q, k, v = (layer(x).flatten(2).mT for layer in (self.query, self.key, self.value))
            return (torch.softmax(q @ k.mT / c**0.5, -1) @ v).mT.reshape(b, c, h, w)

    text = complaint(OverImages)
    assert "convolutions over images (batch, channels, height, width), which check does not read" in text


def test_what_the_user_says_is_checked() -> None:
    with pytest.raises(KindError, match=r"layout: one of bhnd, .*; got 'xyz'"):
        Said(layout="xyz")
    with pytest.raises(KindError, match=r"library: one of python, numpy, torch, jax; got 'tf'"):
        Said(language="tf")
    with pytest.raises(KindError, match=r"at most as many roles as arguments, \(q, k, v\)"):
        read(styles.one_text, roles=("q", "k", "v", "mask"))
    assert issubclass(Unreadable, CallError)


# -- JAX -----------------------------------------------------------------------------------------------------------


def outcome(function: Callable[..., Any], **plain: Any) -> Any:
    arguments = [Argument("x", np.arange(6.0).reshape(2, 3))]
    arguments += [Argument(name, value, "name", plain=True) for name, value in plain.items()]
    return Call(tuple(arguments), "jax", "float32").run(function)


def test_a_function_that_cannot_be_compiled_is_called_all_the_same() -> None:
    def by_value(x: Any) -> Any:
        return x * 2 if float(x[0, 0]) == 0 else x

    found = [outcome(by_value).at(()) for _ in range(2)]
    assert np.array_equal(found, 2 * [2 * np.arange(6.0).reshape(2, 3)])


def test_compiling_keeps_errors_flags_and_low_precision() -> None:
    def flagged(x: Any, twice: bool = False) -> Any:
        return x * 2 if twice else x

    def halved(x: Any) -> Any:
        return (x + 0.001).astype(jnp.bfloat16).astype(jnp.float32)

    assert [outcome(flagged, twice=flag).at(())[0, 1] for flag in (True, False)] == [2, 1]
    assert outcome(halved).at(())[0, 2] == 2.0
    failed = outcome(lambda x: x @ x)
    assert failed.kind == "TypeError"
    assert failed.where.startswith("test_trying.py:")


# -- what a text says of its arguments -----------------------------------------------------------------------------


def test_a_text_that_says_what_comes_first_is_believed() -> None:
    def batch_first(q: Any, k: Any, v: Any) -> Any:
        """q: (batch, positions, width)."""
        assert q.ndim == 3
        return np.einsum("nmb,mbd->nbd", np.einsum("nbd,mbd->nmb", q, k), v)

    def batch_second(q: Any, k: Any, v: Any) -> Any:
        """q: [T, B, C]."""
        assert q.ndim == 3
        return np.einsum("nmb,mbd->nbd", np.einsum("nbd,mbd->nmb", q, k), v)

    def silent(q: Any, k: Any, v: Any) -> Any:
        assert q.ndim == 3
        return np.einsum("nmb,mbd->nbd", np.einsum("nbd,mbd->nmb", q, k), v)

    for target, refused in ((batch_first, "nbd"), (batch_second, "bnd"), (silent, "")):
        names = {trial.reading.layout.name for trial in read(target)}
        assert {"bnd", "nbd"} - names == ({refused} if refused else set())
