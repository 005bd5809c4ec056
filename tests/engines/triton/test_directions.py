"""What a formula knows of directions alone: lengths without a gradient, and gradients across their vectors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import regard as rg
from fused import DEVICE, needs_triton
from regard import causal, cosine, each, sigmoid

pytestmark = needs_triton

ATTENTIONS = {
    "shared": rg.Attention(8 * cosine, mask=causal),
    "each": rg.Attention(weight=each(sigmoid), score=3 * cosine - 1),
    "bent": rg.Attention(4 * cosine**3),
}


def drawn(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(shape, device=DEVICE).to(dtype)


def gradients(attention: rg.Attention, arrays: Any, engine: str) -> Any:
    leaves = [x.detach().requires_grad_() for x in arrays]
    y = attention(*leaves, engine=engine)
    return torch.autograd.grad(y, leaves, torch.linspace(-1, 1, y.numel(), device=DEVICE).view(y.shape).to(y.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("length", "width"), [(1, 16), (130, 40), (64, 128)])
def test_lengths(length: int, width: int, dtype: Any) -> None:
    from regard.engines.triton.templates.directions import lengths

    x = drawn(2, 3, length, width, dtype=dtype)
    x[1, 2, -1] = 0.0
    wanted = 1 / x.double().norm(dim=-1)
    torch.testing.assert_close(lengths(x).double(), torch.where(wanted.isinf(), 0.0, wanted), rtol=3e-7, atol=0)


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_float32_of_any_size_has_a_direction(size: float) -> None:
    """Whose length, squared, is no float32."""
    torch.manual_seed(0)
    arrays = [drawn(1, 2, 19, 8) for _ in range(3)]
    large = [size * arrays[0], arrays[1] / size, arrays[2]]
    attention = ATTENTIONS["shared"]
    torch.testing.assert_close(attention(*large, engine="triton"), attention(*arrays, engine="triton"))
    usual, found = gradients(attention, arrays, "triton"), gradients(attention, large, "triton")
    torch.testing.assert_close(size * found[0], usual[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[1] / size, usual[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["heads first", "sequence first"])
def test_what_is_along_a_vector_is_taken_out(layout: str) -> None:
    from regard.engines.triton.templates.directions import across

    x, dx = drawn(2, 2, 70, 24), drawn(2, 2, 70, 24)
    dx[0, 1, 3], x[0, 1, 3], x[1, 0, 5] = 0.0, float("nan"), 0.0
    wanted = dx - (x * dx).sum(-1, keepdim=True) / x.square().sum(-1, keepdim=True) * x
    wanted[0, 1, 3], wanted[1, 0, 5] = 0.0, dx[1, 0, 5]
    if layout == "sequence first":
        x, dx = (a.transpose(1, 2).contiguous().transpose(1, 2) for a in (x, dx))
    across(x, dx)
    torch.testing.assert_close(dx, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_gradients_are_those_of_the_whole_and_stand_across(name: str, groups: int) -> None:
    torch.manual_seed(1)
    q, k, v = drawn(2, 4, 37, 16), drawn(2, groups, 37, 16), drawn(2, groups, 37, 8)
    found = gradients(ATTENTIONS[name], (q, k, v), "triton")
    for one, other in zip(found, gradients(ATTENTIONS[name], (q, k, v), "dense"), strict=True):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)
    for x, dx in zip((q, k), found, strict=False):
        along = (x * dx).sum(-1).abs() / (x.norm(dim=-1) * dx.norm(dim=-1)).clamp(min=1e-12)
        assert float(along[dx.norm(dim=-1) > 1e-6].max()) < 1e-5


def test_a_gradient_in_half_precision_is_rounded_once() -> None:
    torch.manual_seed(2)
    arrays = [drawn(1, 2, 70, 64, dtype=torch.bfloat16) for _ in range(3)]
    exact = gradients(ATTENTIONS["each"], [x.double() for x in arrays], "dense")
    for one, other in zip(gradients(ATTENTIONS["each"], arrays, "triton"), exact, strict=True):
        assert float((one.double() - other).norm() / other.norm()) < 4e-3


def test_torch_func_differentiates_directions() -> None:
    q, k, v = (drawn(1, 2, 19, 8) for _ in range(3))
    found, wanted = (
        torch.func.grad(lambda q, e=engine: ATTENTIONS["shared"](q, k, v, engine=e).square().sum())(q)
        for engine in ("triton", "dense")
    )
    torch.testing.assert_close(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.jit.script, in torch.func
def test_torch_func_maps_no_directions() -> None:
    q, k, v = (drawn(3, 1, 2, 19, 8) for _ in range(3))
    with pytest.raises(rg.EngineError, match="vmap: triton"):
        torch.func.vmap(lambda q, k, v: ATTENTIONS["shared"](q, k, v, engine="triton"))(q, k, v)
    with pytest.raises(rg.EngineError, match="jvp: triton"):
        torch.func.jvp(lambda x: ATTENTIONS["shared"](x, k[0], v[0], engine="triton"), (q[0],), (q[1],))


def test_a_compiler_keeps_lengths_in_its_graph() -> None:
    q, k, v = (drawn(1, 2, 19, 8).requires_grad_() for _ in range(3))
    run = torch.compile(
        lambda q, k, v: ATTENTIONS["shared"](q, k, v, engine="triton"), backend="aot_eager", fullgraph=True
    )
    found, wanted = (
        torch.autograd.grad(f(q, k, v).square().sum(), (q, k, v))
        for f in (run, lambda *x: ATTENTIONS["shared"](*x, engine="dense"))
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)
