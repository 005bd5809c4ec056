"""The public face: trace, plan, self-attention, PyTorch's signature, the command."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import regard as rg
from regard import cli, dot, j, share, sqdist, table, zoo
from regard.example import example

RNG = np.random.default_rng(0)
X, WQ, WK, WV = (RNG.standard_normal(shape) for shape in ((5, 7), (7, 3), (7, 3), (7, 11)))


# -- trace and plan ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["dense", "python"])
@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_a_trace_holds_every_step(name: str, engine: str) -> None:
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=1, heads=2, n=5, width=3)
    trace = attention.trace(call.q, call.k, call.v, engine=engine, **call.tables)
    np.testing.assert_allclose(trace.y, attention(call.q, call.k, call.v, **call.tables), atol=1e-12)
    np.testing.assert_allclose(trace["weights"], attention.weights(call.q, call.k, **call.tables), atol=1e-12)
    np.testing.assert_allclose(trace.scores, attention.scores(call.q, call.k, **call.tables), atol=1e-12)
    assert ("mask" in [step.name for step in trace]) == (attention.mask is not None)
    for step in trace:
        assert f"{step.name}" in str(trace)
        assert str(step.shape) in str(trace)
    if attention.mask is not None:
        assert not trace.weights[~trace.mask].any()


def test_a_trace_knows_its_steps() -> None:
    trace = rg.Attention().trace(X, X, X)
    with pytest.raises(KeyError, match="the steps are q, k, v, scores, totals, weights, y"):
        trace["mask"]
    with pytest.raises(AttributeError, match="the steps are"):
        _ = trace.mask
    assert trace.totals.shape == (5,)


def test_a_table_called_like_a_step_hides_nothing() -> None:
    attention = rg.Attention(score=dot + table("weights")[j])
    weights = RNG.standard_normal(5)
    trace = attention.trace(X, X, X, weights=weights)
    np.testing.assert_array_equal(trace.weights, attention.weights(X, X, weights=weights))


def test_a_plan_says_why() -> None:
    plan = rg.Attention().plan(X, X, X)
    assert plan.engine == "dense"
    assert plan.operations == 2 * 5 * 5 * (7 + 7)
    assert "not: it loops in Python" in str(plan)
    assert rg.Attention().plan(X.tolist(), X.tolist(), X.tolist()).engine == "python"
    assert "python was asked for" in str(rg.Attention().plan(X, X, X, engine="python"))
    leaf = torch.as_tensor(X).requires_grad_()
    assert "keeps no graph" in str(rg.Attention().plan(leaf, leaf, leaf))
    with pytest.raises(rg.EngineError, match="python cannot run this call: it keeps no graph"):
        rg.Attention()(leaf, leaf, leaf, engine="python")


# -- self-attention ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, lambda x: x.tolist()])
def test_self_attention_is_the_texts_own_form(kind: Any) -> None:
    scores = (X @ WQ) @ (X @ WK).T / np.sqrt(3)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    y = rg.self_attention(*(kind(part) for part in (X, WQ, WK, WV)))
    np.testing.assert_allclose(np.asarray(y), weights @ X @ WV, atol=1e-13)
    no_values = rg.self_attention(*(kind(part) for part in (X, WQ, WK)))
    np.testing.assert_allclose(np.asarray(no_values), weights @ X, atol=1e-13)
    assert type(y) is type(kind(X))


def test_one_matrix_in_place_of_two() -> None:
    m = WQ @ WK.T / np.sqrt(3)
    np.testing.assert_allclose(rg.self_attention(X, M=m, Wv=WV), rg.self_attention(X, WQ, WK, WV), atol=1e-13)
    causal = rg.Attention(score=dot, mask=rg.causal)
    found = rg.self_attention(X, M=m, attention=causal)
    np.testing.assert_allclose(found, rg.self_attention(X, WQ, WK, attention=rg.Attention(mask=rg.causal)), atol=1e-13)


def test_self_attention_takes_any_formula_and_its_tables() -> None:
    attention = rg.Attention(score=-sqdist + table("t")[j])
    t = RNG.standard_normal(5)
    expected = attention(X @ WQ, X @ WK, X @ WV, t=t)
    np.testing.assert_array_equal(rg.self_attention(X, WQ, WK, WV, attention=attention, t=t), expected)


def test_two_matrices_or_one() -> None:
    for wrong in ({}, {"Wq": WQ}, {"Wq": WQ, "Wk": WK, "M": WQ}):
        with pytest.raises(rg.CallError, match="both Wq and Wk, or M alone"):
            rg.self_attention(X, **wrong)
    with pytest.raises(rg.CallError, match="transpose it"):
        rg.self_attention(X, WQ.T, WK)


# -- PyTorch's signature -----------------------------------------------------------------------------------------

Q, K, V = (torch.as_tensor(RNG.standard_normal(shape)) for shape in ((2, 6, 5, 3), (2, 6, 7, 3), (2, 6, 7, 11)))
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal counts from the first row": {"is_causal": True},
    "scale": {"scale": 0.3},
    "boolean mask": {"attn_mask": torch.as_tensor(RNG.random((5, 7)) < 0.8)},
    "boolean mask for each batch": {"attn_mask": torch.as_tensor(RNG.random((2, 1, 5, 7)) < 0.8)},
    "numbers to add": {"attn_mask": torch.as_tensor(RNG.standard_normal((5, 7)))},
    "numbers for each head": {"attn_mask": torch.as_tensor(RNG.standard_normal((6, 1, 7)))},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_drop_in_for_pytorch(name: str) -> None:
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V, **OPTIONS[name])
    found = rg.scaled_dot_product_attention(Q, K, V, **OPTIONS[name])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def test_grouped_heads_as_in_pytorch() -> None:
    k, v = K[:, :3], V[:, :3]
    expected = torch.nn.functional.scaled_dot_product_attention(Q, k, v, enable_gqa=True)
    torch.testing.assert_close(rg.scaled_dot_product_attention(Q, k, v, enable_gqa=True), expected, rtol=0, atol=1e-13)
    with pytest.raises(rg.CallError, match="enable_gqa=True"):
        rg.scaled_dot_product_attention(Q, k, v)


def test_one_key_head_is_broadcast_as_in_pytorch() -> None:
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K[:, :1], V[:, :1])
    torch.testing.assert_close(rg.scaled_dot_product_attention(Q, K[:, :1], V[:, :1]), expected, rtol=0, atol=1e-13)


# -- values ------------------------------------------------------------------------------------------------------


def test_gradients_are_a_tuple_of_three_with_tables_by_name() -> None:
    attention = rg.Attention(score=dot * table("t"))
    found = attention.vjp(X, X, X, X, t=2.0)
    dq, dk, dv = found
    assert (found.q is dq, found.k is dk, found.v is dv) == (True, True, True)
    assert found["t"] is found.tables["t"]
    assert found["t"].shape == ()


def test_attentions_travel() -> None:
    again = pickle.loads(pickle.dumps(zoo.alibi()))
    assert isinstance(again, rg.Attention)
    assert {zoo.alibi(): 1}[again] == 1


# -- the command -------------------------------------------------------------------------------------------------

RUNNER = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"})


def said(*arguments: str, code: int = 0) -> str:
    result = RUNNER.invoke(cli.app, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_formula_prints_everything(capsys: pytest.CaptureFixture[str]) -> None:
    text = said("formula", "softmax(dot / sqrt(d), mask=j <= i)", "--n", "4")
    for part in ("softmaxⱼ(qᵢ·kⱼ / √d)", "Symmetric", "Mask: of 64 blocks", "dense", "chosen", "q3"):
        assert part in text


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_every_entry_can_be_shown(name: str) -> None:
    assert zoo.ENTRIES[name].paper.split(":")[0] in said("zoo", name)
    assert "Weights of head 0" in said("formula", name)


def test_the_zoo_is_listed() -> None:
    text = said("zoo")
    assert all(name in text for name in zoo.ENTRIES)


def test_plain_output_is_only_that() -> None:
    assert said("formula", "softmax(dot)", "--latex") == rg.Attention(score=dot).latex() + "\n"
    assert said("formula", "softmax(dot)", "--mathml") == rg.Attention(score=dot).mathml() + "\n"
    source = said("formula", "softmax(dot)", "--code", "numpy")
    compile(source, "emitted", "exec")
    assert "regard" not in source.replace("Written by regard", "")


def test_without_a_command_there_is_a_tour() -> None:
    text = said()
    assert text.count("yᵢ = Σ") == 5
    assert "cat" in text
    assert said("--version").startswith("regard ")


def test_a_bare_score_is_read_as_softmax() -> None:
    assert "Read as the score of a softmax" in said("formula", "dot / d")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["formula", "softmax(dot"], "was never closed"),
        (["formula", "j <= i"], "formula: an attention"),
        (["formula", "softmax(dot)", "--code", "fortran"], "fortran"),
        (["formula", "softmax(dot)", "--shape", "1,2"], "--shape: batch, heads, positions, width"),
        (["zoo", "alib"], "did you mean alibi"),
    ],
)
def test_a_mistake_ends_in_a_sentence(
    arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["regard", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert problem in error
    assert "Traceback" not in error


def test_shared_weights_in_a_trace() -> None:
    trace = rg.Attention(weight=share(rg.relu)).trace(X, X, X)
    assert "Z over j of ψ(s) = relu(s)" in str(trace)
