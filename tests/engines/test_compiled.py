"""Calls inside torch.compile: one graph, with PyTorch's own kernel wherever a plain call takes it.

Each runs in a process of its own: the checks of shapes that tests add are not for Dynamo to read.
"""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

HELP = """
import warnings
import torch
import regard as rg
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

warnings.filterwarnings("error", category=UserWarning)
torch.manual_seed(0)
q, k, v = (torch.randn(2, 4, 11, 8, requires_grad=True) for _ in range(3))
W = torch.randn(8, 8, requires_grad=True)
causal, alibi, capped = rg.Attention(mask=rg.causal), rg.zoo.alibi(), rg.zoo.soft_cap()


def compiled(function):
    names = set()

    def note(graph, _):
        names.update(str(part.target) for part in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    return torch.compile(function, fullgraph=True, backend=aot_autograd(fw_compiler=note, bw_compiler=note)), names


def same(function, *leaves):
    run, names = compiled(function)
    one, other = run(*leaves), function(*leaves)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    gradients = (torch.autograd.grad(y.sin().sum(), leaves) for y in (one, other))
    for found, expected in zip(*gradients):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    return names


KERNEL = "aten._scaled_dot_product_flash_attention_for_cpu.default"
BACK = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
"""

CASES = {
    "causal, by auto": """
        names = same(lambda q, k, v: causal(q, k, v), q, k, v)
        assert {KERNEL, BACK} <= names, names
        assert not any("where" in name or "arange" in name for name in names), "one flag, and no mask"
        """,
    "the last query": """
        names = same(lambda q, k, v: causal(q[:, :, -1:], k, v), q, k, v)
        assert {KERNEL, BACK} <= names and not any("where" in name for name in names), names
        """,
    "a bias over i - j": """
        assert KERNEL in same(lambda q, k, v: alibi(q, k, v), q, k, v)
        """,
    "what does not reduce": """
        assert {"regard.tiled.default", "regard.tiled_backward.default"} <= same(capped, q, k, v)
        """,
    "PyTorch's signature": """
        ours = rg.scaled_dot_product_attention
        assert {KERNEL, BACK} <= same(lambda q, k, v: ours(q, k, v, is_causal=True), q, k, v)
        assert KERNEL in same(lambda q, k, v: ours(q, k[:, :2], v[:, :2], scale=0.3, enable_gqa=True), q, k, v)
        keep = torch.rand(11, 11) < 0.7
        assert KERNEL in same(lambda q, k, v: ours(q, k, v, attn_mask=keep), q, k, v)
        run, _ = compiled(lambda q, scale: ours(q, q, q, scale=scale))
        for scale in (0.3, 0.5, 0.7):  # the third is a number that the compiler would hold open
            torch.testing.assert_close(run(q, scale), ours(q, q, q, scale=scale))
        """,
    "self-attention": """
        assert KERNEL in same(lambda x, W: rg.self_attention(x, W, W, W, attention=causal), q, W)
        assert KERNEL in same(lambda x, W: rg.self_attention(x, M=W), q, W)
        """,
    "a start as a number": """
        run, _ = compiled(lambda q, start: causal(q[:, :, :1], q, q, start=start))
        for start in (3, 5, 7):
            torch.testing.assert_close(run(q, start), causal(q[:, :, :1], q, q, start=start))
        """,
    "one kernel is switched off": """
        from torch.nn.attention import SDPBackend, sdpa_kernel
        with sdpa_kernel(SDPBackend.MATH):
            assert "regard.tiled.default" in same(lambda q, k, v: causal(q, k, v), q, k, v)
        """,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_compiles_whole(name: str) -> None:
    code = HELP + dedent(CASES[name])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]
