"""How often the fused engine would have each kernel compiled, over calls of many sizes, on a chip that is not there.

    python tests/pretend_lengths.py '{"template": "triton"}' "softmax(dot / sqrt(d))" …

prints for each formula how many versions of each kernel the calls asked for. Nothing is compiled.
"""

from __future__ import annotations

import collections
import json
import sys
from typing import Any

import torch
from triton.runtime import jit

import regard as rg
from pretend_gpu import pretend
from regard.example import example

ASKED: collections.Counter[str] = collections.Counter()
SIXTEENS = [(2, 4, 512), (1, 4, 512), (3, 1, 64), (2, 12, 320), (4, 16, 16), (1, 2, 1024)]  # batch, heads, n
OTHERS = [(2, 4, 100), (1, 4, 129), (3, 1, 17), (2, 12, 333), (4, 16, 65), (1, 2, 999)]
LONG = [(1, 1, 2**18), (1, 1, 2**18 + 1)]  # of which less than a pair stays cached, and no dS fits into 16 MiB
FEW = [(2, 4, 512), (1, 4, 1024), (3, 2, 1000), (2, 12, 601), (1, 1, 2048), (1, 16, 517)]  # a query, and many keys


class Promised:
    """A kernel that was never compiled."""

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *_: None


def asked(self: Any, key: str, _signature: Any, device: int, *_: Any) -> Promised:
    ASKED[self.fn.__name__] += 1
    return self.device_caches[device][0].setdefault(key, Promised())


def called(attention: rg.Attention, sizes: tuple[int, int, int], queries: int | None, choices: dict[str, Any]) -> None:
    batch, heads, n = sizes
    call = example(attention, batch=batch, heads=heads, n=n, width=64)
    q, k, v = (torch.tensor(x).bfloat16().requires_grad_() for x in (call.q, call.k, call.v))
    tables = {name: torch.tensor(x) for name, x in call.tables.items()}
    tables = {name: x.float().requires_grad_() if x.is_floating_point() else x for name, x in tables.items()}
    with rg.fused(**choices):
        if queries is None:
            attention(q, k, v, engine="triton", **tables).backward(torch.ones_like(v))
        else:
            with torch.no_grad():
                attention(q[:, :, -queries:], k, v, engine="triton", **tables)


def counted(text: str, groups: list[list[tuple[int, int, int]]], choices: dict[str, Any], queries: int | None) -> Any:
    """The versions of each kernel, after each group of calls."""
    attention = rg.parse(text)
    assert isinstance(attention, rg.Attention)
    ASKED.clear()
    found = []
    for group, far in zip(groups, LONG, strict=False):
        for sizes in group if attention.ranks or queries or choices.get("memory") else [*group, far]:
            called(attention, sizes, queries, choices)
        found.append(dict(ASKED))
    return found


def main() -> None:
    choices, *formulas = sys.argv[1:]
    pretend(90)
    jit.JITFunction._do_compile = asked
    for text in formulas:
        whole = counted(text, [SIXTEENS, OTHERS], json.loads(choices), None)
        few = counted(text, [FEW], json.loads(choices), 1)
        sys.stdout.write(json.dumps({"formula": text, "whole": whole, "few": few}) + "\n")


if __name__ == "__main__":
    main()
