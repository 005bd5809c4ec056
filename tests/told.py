"""What the operators of the fused engine give, beside what compilers are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

OPERATORS = {"regard.fused.default", "regard.fused_backward.default"}


class _Compared(TorchDispatchMode):
    """Runs each of the operators twice: for its numbers, and for shapes alone."""

    def __init__(self, met: list[str]) -> None:
        super().__init__()
        self.met = met

    def __torch_dispatch__(self, operator: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        found = operator(*arguments, **(options or {}))
        if str(operator) in OPERATORS:
            fake = FakeTensorMode()
            alike = tree_map_only(torch.Tensor, lambda x: fake.from_tensor(x.detach()), arguments)
            with fake:
                told = operator(*alike)
            for number, pair in enumerate(zip(tree_leaves(found), tree_leaves(told), strict=True)):
                one, other = map(_layout, pair)
                assert one == other, f"{operator}, result {number}: {one}, and compilers are told {other}"
            self.met.append(str(operator))
        return found


def _layout(x: Any) -> tuple[Any, ...]:
    """Shape, steps of axes that are longer than 1, and dtype."""
    return tuple(x.shape), [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1], x.dtype


@contextmanager
def as_told() -> Iterator[None]:
    """Within it, both operators must run, and all that they give must lie as compilers are told."""
    met: list[str] = []
    with _Compared(met):
        yield
    assert set(met) == OPERATORS
