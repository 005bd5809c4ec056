"""What auto takes: a choice that is kept is taken again by calls that do not differ, and by no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard as rg
from fused import needs_triton
from regard import dot, h, i, j, table
from regard.engines import costs, plan, sdpa, tiled, triton
from regard.engines.call import prepare

GENERATOR = torch.Generator().manual_seed(0)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR)


Q, K, V = (normal(2, 3, 11, 5) for _ in range(3))
BIAS, DY = normal(3, 21), normal(2, 3, 11, 5)
BIASED = rg.Attention(score=dot + table("bias")[h, i - j + 10])
MATRIX = rg.Attention(score=dot + table("bias")[i, j])
CAUSAL = rg.Attention(mask=rg.causal)


def turned(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, with their last axis in pieces."""
    return x.mT.contiguous().mT


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_TAKEN", {})


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The choices that were made and not only remembered."""
    found: list[str] = []
    fastest = plan._fastest
    monkeypatch.setattr(plan, "_fastest", lambda *call: found.append(fastest(*call)) or found[-1])
    return found


DIFFERENT: dict[str, Callable[[], Any]] = {
    "formula": lambda: rg.Attention()(Q, K, V),
    "totals": lambda: CAUSAL(Q, K, V, totals=True),
    "shape of q": lambda: CAUSAL(Q[:, :, :7], K, V),
    "shape of k": lambda: CAUSAL(Q, K[:, :1], V[:, :1]),
    "dtype": lambda: CAUSAL(Q.double(), K.double(), V.double()),
    "gradient of q": lambda: CAUSAL(Q.clone().requires_grad_(), K, V),
    "gradient of v": lambda: CAUSAL(Q, K, V.clone().requires_grad_()),
    "no gradients": lambda: torch.no_grad()(CAUSAL)(Q, K, V),
    "layout of q": lambda: CAUSAL(turned(Q), K, V),
    "layout of k": lambda: CAUSAL(Q, turned(K), V),
    "layout of v": lambda: CAUSAL(Q, K, turned(V)),
    "start": lambda: CAUSAL(Q, K, V, start=2),
    "a start that must be looked at": lambda: CAUSAL(Q, K, V, start=torch.tensor([0, 0])),
    "dropout": lambda: CAUSAL(Q, K, V, dropout=0.5, seed=0),
    "kernels": lambda: sdpa_kernel(SDPBackend.MATH)(CAUSAL)(Q, K, V),
    "library": lambda: CAUSAL(Q.numpy(), K.numpy(), V.numpy()),
    "lists": lambda: CAUSAL(Q.tolist(), K.tolist(), V.tolist()),
    "gradients asked for": lambda: CAUSAL.vjp(Q, K, V, DY),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_call_that_differs_is_chosen_for_anew(name: str, chosen: list[str]) -> None:
    for call in (lambda: CAUSAL(Q, K, V), DIFFERENT[name]):
        chosen.clear()
        call()
        assert len(chosen) == 1
        chosen.clear()
        call()
        assert not chosen, "a call that does not differ"


CHANGES: dict[str, tuple[rg.Attention, dict[str, Any], dict[str, Any], Any]] = {
    "a learned bias": (BIASED, {"bias": BIAS}, {"bias": BIAS.clone().requires_grad_()}, nullcontext),
    "starts apart": (MATRIX, {"start": 0, "bias": normal(30, 11)}, {"start": torch.tensor([0, 3])}, nullcontext),
    "no kernel": (CAUSAL, {}, {}, lambda: sdpa_kernel(SDPBackend.MATH)),
    "totals": (CAUSAL, {}, {"totals": True}, nullcontext),
    "dropout": (CAUSAL, {}, {"dropout": 0.5, "seed": 0}, nullcontext),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_pytorch_s_kernel_took_is_not_taken_where_it_would_refuse(name: str, monkeypatch: Any) -> None:
    attention, options, changes, context = CHANGES[name]
    ran: list[str] = []
    for engine in (sdpa, tiled):
        attend, label = engine.attend, engine.__name__.rpartition(".")[2]
        monkeypatch.setattr(engine, "attend", lambda call, a=attend, label=label: ran.append(label) or a(call))
    monkeypatch.setattr(plan, "_fastest", lambda call, want: plan._candidates(call, want)[0])  # the order of ENGINES
    attention(Q, K, V, **options)
    with context():
        attention(Q, K, V, **options | changes)
    attention(Q, K, V, **options)
    assert ran == ["sdpa", "tiled", "sdpa"]


def test_gradients_that_are_switched_off_keep_the_kernel(monkeypatch: Any) -> None:
    """A bias that is learned, in a call that learns nothing."""
    learned, call = BIAS.clone().requires_grad_(), lambda: prepare(BIASED, Q, K, V, tables={"bias": learned})
    assert plan.engine_for(call()) is tiled
    with torch.no_grad():
        monkeypatch.setattr(plan, "_fastest", lambda call, want: plan._candidates(call, want)[0])
        assert plan.engine_for(call()) is sdpa
    assert plan.engine_for(call()) is tiled


# -- copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3, 11, 5), (6, 11, 5), (11, 5), (2, 1, 3, 11, 5)])
def test_the_door_copies_nothing(shape: tuple[int, ...]) -> None:
    arrays = {
        name: x.flatten()[: torch.Size(shape).numel()].view(shape) for name, x in zip("qkv", (Q, K, V), strict=True)
    }
    tables = {"bias": BIAS, "ids": torch.arange(11)}
    attention = rg.Attention(score=dot + table("bias")[0, table("ids")[j]])
    call = prepare(attention, **arrays, start=None, tables=tables)
    for name, x in arrays.items():
        assert getattr(call, name).data_ptr() == x.data_ptr()
    for name, x in tables.items():
        assert call.tables[name].data_ptr() == x.data_ptr()


@pytest.mark.parametrize("engine", ["sdpa", "tiled", "dense"])
def test_y_is_what_the_engine_made(engine: str, monkeypatch: Any) -> None:
    module, made = plan.ENGINES[engine], []
    attend = module.attend
    monkeypatch.setattr(module, "attend", lambda call: made.append(attend(call)) or made[-1])
    y = CAUSAL(Q, K, V, engine=engine)
    assert y.data_ptr() == made[0].y.data_ptr()


def test_plain_arrays_reach_the_kernel_as_they_are(monkeypatch: Any) -> None:
    seen: list[int] = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def watched(*arrays: Any, **options: Any) -> Any:
        seen.extend(x.data_ptr() for x in arrays)
        return kernel(*arrays, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    by_position = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (Q, K, V)]
    for arrays in ([Q, K, V], by_position):
        CAUSAL(*arrays, engine="sdpa")
        assert seen == [x.data_ptr() for x in arrays]
        seen.clear()


def test_a_score_of_one_number_is_no_view_of_it() -> None:
    number = torch.tensor(2.0)
    scores = rg.Attention(score=table("number")).scores(Q, K, number=number)
    number += 1
    assert (scores == 2).all()


def test_blocks_are_not_counted_where_a_bare_call_takes_longer(monkeypatch: Any) -> None:
    counted = []
    count = tiled.cost
    monkeypatch.setattr(tiled, "cost", lambda call: counted.append(call) or count(call))
    small, large = (torch.ones(1, 1, size, 8) for size in (67, 4099))
    assert plan.engine_for(prepare(CAUSAL, small, small, small, tables={})) is sdpa
    assert not counted
    assert plan.engine_for(prepare(CAUSAL, large, large, large, tables={})) in (sdpa, tiled)
    assert counted


def test_what_is_read_from_a_mask_has_a_price() -> None:
    formula, mask = rg.Attention(mask=rg.given("mask")), torch.ones(1, 1, 1024, 1024, dtype=torch.bool).tril()
    x = torch.ones(1, 1, 1024, 8)
    told, fixed = (prepare(a, x, x, x, tables=t) for a, t in ((formula, {"mask": mask}), (CAUSAL, {})))
    assert tiled.cost(told).operations == tiled.cost(fixed).operations, "the same blocks"
    assert tiled.cost(told).seconds > tiled.cost(fixed).seconds


# -- on a GPU ------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What an engine would cost on a Hopper chip with 128 GiB: softmax of 16 heads."""
    from regard.engines.triton.templates import kept, launch

    monkeypatch.setattr(costs, "is_on_gpu", lambda _: True)
    monkeypatch.setattr(launch, "has_descriptors", lambda _: True)
    monkeypatch.setattr(kept, "usual_memory", lambda _: 2**31)

    def cost(
        engine: Any, n: int, batch: int = 2, *, gradients: bool, template: str = "hopper", width: int = 128
    ) -> Any:
        monkeypatch.setattr(triton, "_template", lambda _: SimpleNamespace(name=template))
        x = torch.zeros(1, dtype=torch.bfloat16, requires_grad=gradients).expand(batch, 16, n, width)
        return engine.cost(prepare(rg.Attention(), x, x, x, tables={}))

    return cost


@pytest.mark.parametrize(
    ("n", "batch", "gradients", "template", "fastest"),
    [
        (8192, 2, False, "hopper", triton),  # as measured: docs/gpu.md
        (8192, 2, True, "hopper", triton),
        (2048, 8, False, "hopper", triton),
        (2048, 8, True, "hopper", sdpa),  # the chip would wait for Python
        (128, 1, False, "hopper", sdpa),
        (128, 1, True, "hopper", sdpa),
        (8192, 2, False, "triton", sdpa),
        (8192, 2, True, "triton", sdpa),
    ],
)
@needs_triton
def test_the_longer_of_python_and_the_chip_counts(
    on_gpu: Callable[..., Any], n: int, batch: int, gradients: bool, template: str, fastest: Any
) -> None:
    def seconds(engine: Any) -> float:
        return float(on_gpu(engine, n, batch, gradients=gradients, template=template).seconds)

    assert min((sdpa, triton), key=seconds) is fastest


@needs_triton
def test_what_is_kept_on_the_way_back_counts_as_memory(on_gpu: Callable[..., Any]) -> None:
    rows = 4 * 2 * 16
    assert on_gpu(triton, 1024, gradients=False).bytes == rows * 1024
    assert on_gpu(triton, 1024, gradients=True).bytes == rows * 1024 + 2 * 2 * 16 * 1024**2  # all of dS
    assert on_gpu(triton, 65536, gradients=True).bytes == rows * 65536 + 2**31  # of some heads at a time
    assert on_gpu(triton, 65536, gradients=True, width=64).bytes == rows * 65536  # there it is made twice
    with rg.fused(memory=0):
        assert on_gpu(triton, 65536, gradients=True).bytes == rows * 65536
    with rg.fused(memory=2**20):  # said, Triton's template keeps it at every width
        assert on_gpu(triton, 65536, gradients=True, width=64, template="triton").bytes == rows * 65536 + 2**20


@needs_triton
def test_a_template_that_is_refused_spoils_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "is_on_gpu", lambda _: True)
    with rg.fused(template="hopper"):  # which no CPU has
        assert CAUSAL.plan(Q, K, V, engine="dense").engine == "dense"
        with pytest.raises(rg.EngineError, match="template: hopper cannot run this call"):
            CAUSAL(Q, K, V, engine="triton")


def test_where_arrays_lie_is_part_of_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The template, and with it the time, depends on whether vectors begin at multiples of 16 bytes."""
    monkeypatch.setattr(costs, "is_on_gpu", lambda _: True)
    room = torch.zeros(2, 3, 11, 9)
    near, odd, far = room[..., :8].contiguous(), room[..., 1:], room.flatten()[1 : 1 + 2 * 3 * 11 * 8].view(2, 3, 11, 8)
    keys = {triton.circumstances(prepare(rg.Attention(), x, near, near, tables={})) for x in (near, odd, far)}
    assert len(keys) == 3
