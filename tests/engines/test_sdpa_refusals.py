"""Why PyTorch's own kernel is refused, and what it never gives."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard as rg
from kernel_calls import DY, FORMULAS, TABLES, K, Q, V, agrees, call_of, normal, read
from regard import cosine, dot, i, j, sqdist, table, zoo
from regard.engines import sdpa
from regard.engines.call import prepare
from regard.example import example


def refused(attention: rg.Attention, *arrays: Any, **options: Any) -> str:
    """The reason why this call is refused, which the public error must carry."""
    arrays = arrays or (Q, K, V)
    call = call_of(attention, *arrays, **options)
    reason = sdpa.refusal(call)
    assert reason is not None
    options = read(attention) | options
    with pytest.raises(rg.EngineError, match=re.escape(f"engine: sdpa cannot run this call: {reason}")):
        attention(*arrays, engine="sdpa", **options)
    return reason


IRREDUCIBLE = {
    zoo.sigmoid(): "its kernel is softmax; the weight is each(sigmoid(s))",
    zoo.softmax_plus_one(): "its kernel is softmax; the weight is share(exp(s), sink=1)",
    zoo.soft_cap(): "the score is not slope · pair + bias with one pair of q and k",
    rg.Attention(score=dot + cosine): "the score is not slope · pair + bias with one pair of q and k",
    rg.Attention(score=i - j): "the score is not slope · pair + bias with one pair of q and k",
    rg.Attention(score=dot * j): "the slope j varies with j",
    rg.Attention(score=dot * (i - j)): "the slope i - j varies with j",
    rg.Attention(score=sqdist * i): "the slope i varies with i",
    rg.Attention(score=dot + table("line")[j], mask=rg.causal): (
        "bias and mask vary with j and with i - j: together N × n numbers"
    ),
    rg.Attention(score=-sqdist, mask=rg.causal): "bias and mask vary with j and with i - j: together N × n numbers",
    rg.Attention(score=dot + table("ij")[i, j], mask=rg.causal): (
        "bias and mask vary with i - j and with i and j: together N × n numbers"
    ),
    rg.Attention(score=dot + i * j): "the bias i * j is no vector over j or over i - j",
    rg.Attention(mask=rg.causal & rg.padding("lengths")): (
        'the mask (j <= i) & (j < table("lengths")[b]) is no vector over j or over i - j'
    ),
    rg.Attention(mask=i > 3): "the mask i >= 4 is no vector over j or over i - j",
    rg.Attention(mask=rg.causal & rg.given("keep")): (
        'the mask (j <= i) & given("keep") is no vector over j or over i - j'
    ),
    rg.Attention(mask=dot > 0): "the mask dot > 0 depends on q and k",
}


@pytest.mark.parametrize("attention", IRREDUCIBLE, ids=repr)
def test_formulas_that_do_not_reduce(attention: rg.Attention) -> None:
    assert sdpa.reduction(attention) == IRREDUCIBLE[attention]
    assert refused(attention) == IRREDUCIBLE[attention]


def test_other_libraries_are_refused() -> None:
    arrays = [x.numpy() for x in (Q, K, V)]
    assert refused(zoo.scaled_dot(), *arrays) == "it runs on PyTorch, not on numpy"
    assert refused(zoo.sigmoid(), *[x.tolist() for x in arrays]) == "it runs on PyTorch, not on numpy"


def test_no_values() -> None:
    call = prepare(rg.Attention(mask=rg.causal), Q, K, start=None, tables={})
    assert sdpa.refusal(call) == "there are no values, and PyTorch's kernel returns y alone"
    assert sdpa.refusal_by_value(call) is None


def test_widths_must_agree() -> None:
    reason = "values of width 3 beside keys of width 5 take PyTorch's N × n path"
    assert refused(zoo.scaled_dot(), Q, K, V[..., :3]) == reason


def test_dropout_is_refused() -> None:
    call = call_of(zoo.scaled_dot())
    object.__setattr__(call, "dropout", object())
    assert sdpa.refusal(call) == "PyTorch's kernel would drop other weights"


@pytest.mark.parametrize("arrays", [(Q[:0], K[:0], V[:0]), (Q[:, :, :0], K, V), (Q, K[:, :, :0], V[:, :, :0])])
def test_empty_axes_are_refused(arrays: tuple[Any, ...]) -> None:
    assert refused(zoo.scaled_dot(), *arrays) == "there is nothing to attend to"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_no_second_rounding(dtype: str) -> None:
    arrays = [x.to(getattr(torch, dtype)) for x in (Q, K, V)]
    before = f"would be rounded to {dtype} before the sum"
    assert refused(FORMULAS["slope of a head"], *arrays) == f'table("heads")[h] q {before}'
    assert refused(FORMULAS["metric"], *arrays) == f'dot(table("M")) {before}'
    assert refused(FORMULAS["causal cosine"], *arrays) == f"cosine {before}"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_distances_keep_their_digits_in_float64_alone(dtype: str) -> None:
    arrays = [x.to(getattr(torch, dtype)) for x in (Q, K, V)]
    told = f"‖k‖² − 2 q·k leaves too few digits of {{}} in {dtype}"
    assert refused(FORMULAS["distance"], *arrays) == told.format("sqdist")
    assert refused(FORMULAS["metric distance"], *arrays) == told.format('sqdist(table("P")[h])')
    agrees(FORMULAS["distance"])


def test_gradients_of_what_stands_in_the_mask_are_refused() -> None:
    learned = {"relative": TABLES["relative"].clone().requires_grad_()}
    reason = "PyTorch's kernel gives no gradient for {} in attn_mask"
    assert refused(FORMULAS["relative"], **learned) == reason.format("relative")
    k = K.clone().requires_grad_()
    assert refused(FORMULAS["distance"], Q, k, V) == reason.format("k")
    metrics = {"P": TABLES["P"].clone().requires_grad_()}
    assert refused(FORMULAS["metric distance"], Q, k, V, **metrics) == reason.format("P and k")
    with torch.no_grad():
        agrees(FORMULAS["relative"], **learned)
        agrees(FORMULAS["distance"], Q, k, V)
    agrees(FORMULAS["row bias"], rows=TABLES["rows"].clone().requires_grad_())  # it cancels


def test_matrices_start_together() -> None:
    starts = torch.tensor([0, 2])
    assert refused(FORMULAS["matrix"], start=starts) == "each batch starts elsewhere in the bias"


def test_pytorch_is_asked() -> None:
    assert sdpa.refusal(call_of(zoo.scaled_dot())) is None
    with sdpa_kernel(SDPBackend.MATH):
        assert refused(zoo.scaled_dot()) == "PyTorch would take its N × n path"


def test_a_pytorch_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "_fused_sdp_choice")
    assert sdpa.refusal(call_of(zoo.alibi())) is None


def test_other_devices_take_fewer_masks() -> None:
    def reason(attention: rg.Attention, start: Any = None) -> str | None:
        meta = [x.to("meta", torch.float32) for x in (Q, K, V)]
        tables = {name: x.to("meta") for name, x in read(attention).items()}
        return sdpa.refusal(prepare(attention, *meta, start=start, tables=tables))

    written = "PyTorch may write attn_mask out as N × n numbers on meta"
    assert reason(FORMULAS["window"]) == reason(FORMULAS["padding"]) == reason(zoo.causal_dot()) == written
    assert reason(FORMULAS["falling"]) == "PyTorch's kernels on meta need a scale above 0"


def test_vmap_is_refused() -> None:
    with pytest.raises(rg.EngineError, match="vmap hides an axis from PyTorch's kernel"):
        torch.vmap(lambda q, k, v: rg.Attention()(q, k, v, engine="sdpa"))(Q, K, V)


def test_a_nan_stays_where_it_is_read() -> None:
    k, v = K.clone(), V.clone()
    k[:, :, 9], v[:, :, 9] = torch.nan, torch.inf
    spread = "hold NaN or ∞, which PyTorch's kernel would spread to rows that do not read it"
    assert refused(zoo.causal_dot(), Q, k, v) == f"k and v {spread}"
    assert refused(FORMULAS["padding"], Q, K, v) == f"v {spread}"
    assert refused(FORMULAS["distance"], Q, k, V) == "k hold NaN or ∞, which PyTorch's kernel would spread to every row"
    for part in (sdpa.refusal_by_shape, sdpa.refusal_by_value):
        assert part(call_of(zoo.causal_dot())) is None
    assert sdpa.refusal_by_shape(call_of(zoo.causal_dot(), Q, k, v)) is None
    assert rg.Attention()(Q, k, v, engine="sdpa").isnan().all(), "every row reads every key"


def test_what_is_infinite_does_not_cancel() -> None:
    rows, zero = TABLES["rows"].clone(), torch.tensor(0.0, dtype=torch.float64)
    rows[1, 5] = -torch.inf
    told = "{} holds NaN or ∞, which does not cancel"
    assert refused(FORMULAS["row bias"], rows=rows) == told.format('table("rows")[b, i] - table("heads")[h]')
    logarithm = rg.Attention(score=dot + rg.log(table("zero")))
    assert refused(logarithm, zero=zero) == told.format('log(table("zero"))')
    assert (logarithm(Q, K, V, zero=zero) == 0).all()
    assert sdpa.refusal(call_of(logarithm, zero=zero + 1)) is None


def test_a_new_token_reads_every_key_a_nan_too() -> None:
    causal, q, k, v = rg.Attention(mask=j <= i), Q[:, :, -1:], K.clone(), V.clone()
    k[:, :, 9], v[:, :, 9] = torch.nan, torch.inf
    assert sdpa.refusal(call_of(causal, q, k, v)) is None
    assert causal(q, k, v, engine="sdpa").isnan().all()
    assert sdpa.refusal(call_of(causal, q, k, v, start=K.shape[2] - 2)) is not None, "the last key is hidden"


def test_sums_that_overflow_are_no_nan() -> None:
    half = [torch.full_like(x, 3e4, dtype=torch.float16) for x in (Q, K, V)]
    assert not sum(x.sum() for x in half).isfinite()
    assert sdpa.refusal(call_of(zoo.causal_dot(), *half)) is None


# -- steps, plan ------------------------------------------------------------------------------------------------


STEPS = {"score": "scores", "mask": "mask", "weights": "weights", "log_total": "totals"}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_not_returned(name: str) -> None:
    steps = sdpa.attend(call_of(zoo.causal_dot()))
    told = f'{STEPS[name]}: PyTorch\'s kernel returns y alone; got engine="sdpa"; take engine="dense"'
    with pytest.raises(rg.EngineError, match=f"^{re.escape(told)}$"):
        getattr(steps, name)


def test_scores_are_not_returned() -> None:
    with pytest.raises(rg.EngineError, match=r"^scores: PyTorch's kernel returns y alone"):
        sdpa.scores(call_of(zoo.causal_dot()))
    for ask in (rg.Attention().weights, rg.Attention().scores):
        with pytest.raises(rg.EngineError, match="engine: sdpa cannot run this call"):
            ask(Q, K, engine="sdpa")
    for ask in (
        lambda: rg.Attention()(Q, K, V, totals=True, engine="sdpa"),
        lambda: rg.Attention().trace(Q, K, V, engine="sdpa"),
    ):
        with pytest.raises(rg.EngineError, match="engine: sdpa cannot run this call"):
            ask()


def test_gradients_are_those_of_a_plain_call() -> None:
    told = "engine: sdpa cannot run this call: its gradients come from PyTorch's own derivative: call backward()"
    with pytest.raises(rg.EngineError, match=f"^{re.escape(told)}$"):
        zoo.causal_dot().vjp(Q, K, V, DY, engine="sdpa")
    assert not hasattr(sdpa, "vjp")


def test_every_call_has_a_cost() -> None:
    for entry in zoo.ENTRIES.values():
        call = example(entry.formula, n=37)
        for convert in (lambda x: x, torch.as_tensor):
            arrays = [convert(x) for x in (call.q, call.k, call.v)]
            plan = entry.formula.plan(*arrays, **{name: convert(x) for name, x in call.tables.items()})
            option = next(option for option in plan.options if option.engine == "sdpa")
            assert option.operations > 0
    small, large = (_bytes(normal(1, 1, n, 5)) for n in (101, 202))
    assert large < 3 * small, "memory grows with N, not with N²"


def _bytes(x: torch.Tensor) -> int:
    return next(option.bytes for option in zoo.alibi().plan(x, x, x).options if option.engine == "sdpa")
