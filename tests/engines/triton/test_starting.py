"""Kernels of one pass are compiled before the first of them starts, once, and start in their order."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from fused import needs_triton

pytestmark = needs_triton


class Kernel:
    """Stands for a jitted function, and says what is done with it."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **options: self.told.append(f"run {self.name}{grid} {arguments} {options}")

    def warmup(self, *arguments: Any, grid: tuple[int, ...], **options: Any) -> None:
        self.told.append(f"compile {self.name}{grid} {arguments} {options}")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    import triton

    from regard.engines.triton import starting

    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    monkeypatch.setattr(starting, "_MET", set())
    return []


def test_a_kernel_alone_starts_at_once(told: list[str]) -> None:
    from regard.engines.triton.starting import start

    start(Kernel("a", told), (3,), 1, warps=4)
    assert told == ["run a(3,) (1,) {'warps': 4}"]


def test_the_first_time_all_are_compiled_and_then_they_start_in_their_order(told: list[str]) -> None:
    from regard.engines.triton.starting import start, together

    for _ in range(2):
        with together("key"):
            start(Kernel("a", told), (1,), 1)
            start(Kernel("b", told), (2,), 2)
            told.append("end")
    compiled = ["compile a(1,) (1,) {}", "compile b(2,) (2,) {}"]
    runs = ["run a(1,) (1,) {}", "run b(2,) (2,) {}"]
    assert told == ["end", *compiled, *runs, *runs, "end"]


def test_an_error_within_leaves_nothing_waiting(told: list[str]) -> None:
    from regard.engines.triton.starting import start, together

    def broken() -> None:
        with together("key"):
            start(Kernel("a", told), (1,))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        broken()
    start(Kernel("b", told), (1,))
    assert told == ["run b(1,) () {}"]


class Broken(Kernel):
    """A kernel that does not compile: neither beside others, nor alone."""

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*_: Any, **__: Any) -> None:
            raise ValueError("does not compile")

        return run

    def warmup(self, *arguments: Any, grid: tuple[int, ...], **options: Any) -> None:
        from triton.runtime._async_compile import active_mode

        mode = active_mode.get()
        assert mode is not None
        rest = (lambda _: None,) * (len(inspect.signature(mode.submit).parameters) - 3)  # triton 3.9 takes one more
        mode.submit("broken", self[grid], self.told.append, *rest)


def test_a_kernel_that_does_not_compile_says_so_and_leaves_the_others_alone(told: list[str]) -> None:
    from regard.engines.triton.starting import start, together

    def broken() -> None:
        with together("broken"):
            start(Broken("a", told), (1,))

    for _ in range(2):
        with pytest.raises(ValueError, match="does not compile"):
            broken()
    with together("whole"):
        start(Kernel("b", told), (1,))
    assert told == ["compile b(1,) () {}", "run b(1,) () {}"]
