"""What a capture keeps, within which bounds, and that it leaves everything as it was."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import regard as rg
import regard.nn as rn
from hf import tiny
from regard import Attention, H, causal, d, dot, h, i, j, sqrt, table
from regard.algebra.errors import CallError, KindError
from regard.viewer.capturing import capture, foreseen
from viewer.capturing import by_hand

BATCH, HEADS, LENGTH, WIDTH, DEPTH = 2, 4, 11, 5, 3


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (y.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for y in self.inner(x).chunk(3, -1))
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


def made() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(*(Layer() for _ in range(DEPTH))).eval(), torch.randn(BATCH, LENGTH, HEADS * WIDTH)


def seen_of(**options: Any) -> Any:
    model, x = made()
    with torch.no_grad(), capture(model, **options) as seen:
        model(x)
    return seen


BYTES = 3 * BATCH * HEADS * LENGTH * WIDTH * 4  # q, k and v of one layer

# -- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [[1], {"1"}, 1, lambda name: name == "1"])
def test_chosen_layers(layers: Any) -> None:
    seen = seen_of(layers=layers)
    assert [kept.name for kept in seen.layers] == ["1"]
    assert seen.missing == []


def test_values_and_half() -> None:
    seen = seen_of(values=False, half=True)
    assert {kept.v for kept in seen.layers} == {None}
    assert {kept.q.dtype for kept in seen.layers} == {torch.float16}
    assert seen.bytes == DEPTH * BYTES * 2 // 3 // 2
    whole = seen_of().layers[0].parts.weights()
    torch.testing.assert_close(seen.layers[0].parts.weights(), whole, rtol=0, atol=2e-3)


def test_numbers_too_large_for_half_stay_as_they_are() -> None:
    model, x = made()
    with torch.no_grad(), capture(model, half=True, layers=[0]) as seen:
        model(x * 1e6)
    assert seen.layers[0].q.dtype == torch.float32
    assert "too large for float16" in seen.notes[0]


def test_chosen_heads_of_the_kernel() -> None:
    seen, whole = seen_of(heads=[3, 1]), seen_of()
    for kept, all_heads in zip(seen.layers, whole.layers, strict=True):
        assert kept.heads == (3, 1)
        torch.testing.assert_close(kept.parts.weights(), all_heads.parts.weights()[:, [3, 1]])


FORMULAS = {
    "alibi": Attention(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=causal),
    "table": Attention(dot + table("bias")[h, i, j]),
    "both": Attention(dot * h + table("bias")[h, i, j]),
    "index": Attention(dot + table("bias")[(h + 1) % H, i, j]),
    "metric": Attention(dot(table("metric")[h])),
    "mask": Attention(mask=(i + j + h) % H < 2),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_chosen_heads_count_as_the_model_counts_them(name: str) -> None:
    formula = FORMULAS[name]
    tables = {"bias": torch.randn(HEADS, LENGTH, LENGTH), "metric": torch.randn(HEADS, WIDTH, WIDTH)}
    model = rn.SelfAttention(
        HEADS * WIDTH, HEADS, kv_heads=2, attention=formula, tables={one: tables[one] for one in formula.ranks}
    )
    x = torch.randn(BATCH, LENGTH, HEADS * WIDTH)
    with torch.no_grad(), capture(model) as whole:
        model(x)
    with torch.no_grad(), capture(model, heads=(2, 0, 3)) as some:
        model(x)
    expected = whole.layers[0].parts.weights()[:, [2, 0, 3]]
    torch.testing.assert_close(some.layers[0].parts.weights(), expected, rtol=0, atol=1e-6)


def test_chosen_heads_of_sinks_and_of_weights() -> None:
    model = tiny.model("gpt_oss")
    with torch.no_grad():
        own = model(tiny.tokens(), output_attentions=True).attentions
        with capture(model, heads=[5, 2]) as seen:
            model(tiny.tokens())
    torch.testing.assert_close(seen.layers[1].parts.weights(), own[1][:, [5, 2]], rtol=0, atol=1e-5)
    hand, x = by_hand.made(by_hand.mixed)
    with torch.no_grad(), capture(hand, heads=[2]) as seen:
        hand(x)
    torch.testing.assert_close(seen.layers[0].parts.weights(), hand[1].weights[:, [2]])


def test_heads_that_are_not_there_are_missing() -> None:
    seen = seen_of(heads=[7])
    assert seen.layers == []
    assert seen.missing[0].why == "it has 4 heads, and none of those that were chosen"


def test_what_does_not_fit_is_listed_with_what_to_do() -> None:
    seen = seen_of(limit=2 * BYTES)
    assert [kept.name for kept in seen.layers] == ["0", "1"]
    (missing,) = seen.missing
    assert missing.name == "2"
    assert missing.why == (
        "it takes 5.28 kB, and 0 bytes are left of limit=; choose layers= or heads=, keep less by half=True or "
        "values=False, stream to disk by folder=, or raise limit="
    )


def test_a_folder_holds_what_memory_need_not(tmp_path: Path) -> None:
    seen, plain = seen_of(folder=tmp_path / "lens", limit=BYTES), seen_of()
    assert len(seen.layers) == DEPTH
    assert seen.folder == tmp_path / "lens"
    for kept, other in zip(seen.layers, plain.layers, strict=True):
        torch.testing.assert_close(torch.as_tensor(kept.parts.weights()), other.parts.weights())


def test_progress_is_told_after_each_call() -> None:
    told: list[tuple[int, int]] = []
    seen_of(progress=lambda count, size: told.append((count, size)))
    assert told == [(count, count * BYTES) for count in (1, 2, 3)]


def test_who_is_told_may_end_it() -> None:
    def stop(count: int, size: int) -> None:
        raise KeyError(count)

    with pytest.raises(KeyError):
        seen_of(progress=stop)


def test_bytes_are_foreseen_where_a_config_tells() -> None:
    model = tiny.model("llama")
    with torch.no_grad(), capture(model) as seen:
        model(tiny.tokens())
    assert foreseen(model, 13, batch=2) == seen.bytes
    assert foreseen(made()[0], 13) is None


def test_copies_are_kept_and_not_the_arrays_of_the_model() -> None:
    class Reuses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = F.scaled_dot_product_attention(x, x, x)
            x.zero_()
            return y

    with capture(model := Reuses()) as seen:
        model(torch.ones(1, 1, 3, 5))
    assert bool((seen.layers[0].q == 1).all())


# -- what stays as it was ---------------------------------------------------------------------------------------------


def state(model: nn.Module) -> Any:
    hooks = [
        (len(one._forward_hooks), len(one._forward_pre_hooks), one.training, sorted(vars(one)))
        for one in model.modules()
    ]
    everywhere = (nn.Module.__call__, torch.overrides.has_torch_function, torch._C._len_torch_function_stack())
    config = getattr(model, "config", None)
    return hooks, everywhere, None if config is None else config.to_dict()


@pytest.mark.parametrize("fails", [True, False])
def test_everything_is_as_before_also_after_an_error(fails: bool) -> None:
    from transformers.modeling_utils import AttentionInterface

    class Breaks(nn.Module):
        def forward(self, x: Any) -> Any:
            if fails:
                raise ZeroDivisionError
            return x

    model = tiny.model("bert")
    model.encoder.layer[1].output.add_module("last", Breaks())
    model.encoder.layer[1].output.register_forward_hook(lambda module, arguments, y: module.last(y))
    words, asks = tiny.tokens(), AttentionInterface.get_interface
    before, weights = state(model), copy.deepcopy(model.state_dict())
    try:
        with torch.no_grad(), capture(model) as seen:
            model(words)
    except ZeroDivisionError:
        assert fails
    else:
        assert not fails
    assert len(seen.layers) == 2
    assert state(model) == before
    assert AttentionInterface.get_interface is asks
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_gradients_flow_and_layers_that_run_again_are_not_counted() -> None:
    model, x = made()
    model[1] = rn.SelfAttention(HEADS * WIDTH, HEADS)

    def loss() -> torch.Tensor:
        y = x
        for layer in model:
            y = torch.utils.checkpoint.checkpoint(layer, y, use_reentrant=False)
        return y.square().sum()

    expected = torch.autograd.grad(loss(), list(model.parameters()))
    with capture(model) as seen:
        torch.autograd.backward(loss())
    found = [weight.grad for weight in model.parameters()]
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert [kept.name for kept in seen.layers] == ["0", "1", "2"]


def test_captures_inside_each_other_and_in_other_threads() -> None:
    model, x = made()
    other, _ = made()
    found: list[int] = []

    def elsewhere() -> None:
        with capture(other) as seen:
            other(x)
        found.append(len(seen.layers))

    with torch.no_grad(), capture(model) as outer, capture(model[1]) as inner:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        model(x)
        thread.join()
        other(x)
    assert [kept.name for kept in outer.layers if "outside" not in kept.name] == ["0", "1", "2"]
    assert found == [DEPTH]
    assert "Layer" in [kept.name for kept in inner.layers]


# -- what is refused --------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    model, x = made()
    with pytest.raises(KindError, match=r"model: a torch.nn.Module; got int"):
        capture(3)  # type: ignore[arg-type]
    for heads in ([], [1, 1], [-1], "a"):
        with pytest.raises(CallError, match="heads: different numbers from 0 on"):
            capture(model, heads=heads)
    with pytest.raises(KindError, match="layers: numbers from 0 on, names of modules, or a function of names"):
        capture(model, layers=[0.5])  # type: ignore[list-item]
    with capture(model) as seen:
        model(x)
    with pytest.raises(CallError, match="one with block for each"):
        seen.__enter__()


def test_what_was_seen_is_a_lens_after_the_block() -> None:
    model = nn.TransformerEncoderLayer(12, 3, 7, batch_first=True).eval()
    with capture(model) as seen:
        model(torch.randn(1, 5, 12))
        with pytest.raises(rg.CallError, match="lens: of a model that has run"):
            _ = seen.lens
    assert seen.lens.weights(0).shape == (3, 5, 5)
    named = rg.lens(seen, tokens="the cat sat right there", title="cats")
    assert (named.title, named.axes[0][named[0].key].labels[1]) == ("cats", " cat")
