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

    def warmup(self, *arguments: Any, grid: tuple[int, ...], **options: Any) -> Any:
        self.told.append(f"compile {self.name}{grid} {arguments} {options}")
        return Compiled(self.name, self.told)


class Compiled(Kernel):
    """Stands for a kernel that is compiled."""

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments: self.told.append(f"run {self.name}{grid} {arguments}")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    import triton

    from regard.engines.triton import starting

    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    monkeypatch.setattr(starting, "_MET", set())
    return []


def test_a_kernel_alone_starts_at_once(told: list[str]) -> None:
    from regard.engines.triton.starting import start

    start(Kernel("a", told), (3,), "x", warps=4)
    assert told == ["compile a(3,) ('x',) {'warps': 4}", "run a(3, 1, 1) ('x',)"]


def test_the_first_time_all_are_compiled_and_then_they_start_in_their_order(told: list[str]) -> None:
    from regard.engines.triton.starting import start, together

    for _ in range(2):
        with together("key"):
            start(Kernel("a", told), (1,), "x")
            start(Kernel("b", told), (2, 3), "y")
            told.append("end")
    compiled = ["compile a(1,) ('x',) {}", "compile b(2, 3) ('y',) {}"]
    alone = [compiled[0], "run a(1, 1, 1) ('x',)", compiled[1], "run b(2, 3, 1) ('y',)"]
    assert told == ["end", *compiled, *alone, *alone, "end"]


def test_an_error_within_leaves_nothing_waiting(told: list[str]) -> None:
    from regard.engines.triton.starting import start, together

    def broken() -> None:
        with together("key"):
            start(Kernel("a", told), (1,))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        broken()
    start(Kernel("b", told), (1,))
    assert told == ["compile b(1,) () {}", "run b(1, 1, 1) ()"]


class Broken(Kernel):
    """A kernel that does not compile: neither beside others, nor alone."""

    def warmup(self, *_arguments: Any, grid: tuple[int, ...], **_options: Any) -> Any:
        from triton.runtime._async_compile import active_mode

        def fail(*_: Any) -> None:
            raise ValueError(f"{self.name}{grid} does not compile")

        mode = active_mode.get()
        if mode is None:
            fail()
        rest = (lambda _: None,) * (len(inspect.signature(mode.submit).parameters) - 3)  # triton 3.9 takes one more
        return mode.submit("broken", fail, self.told.append, *rest)


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
    assert told == ["compile b(1,) () {}", "compile b(1,) () {}", "run b(1, 1, 1) ()"]


# -- what a kernel is told ---------------------------------------------------------------------------------------


def test_a_number_is_left_open_but_for_its_width(told: list[str]) -> None:
    from regard.engines.triton.starting import hint

    assert hint((0, 1, 16, 2**31 - 1, -(2**31))) == (3,) * 5
    assert hint((2**31, -(2**31) - 1, 2**40)) == (2**40 + 3,) * 3
    assert hint((True, None, 0.5, ("x", (7,)))) == (True, None, 0.5, ("x", (3,)))


def test_a_known_number_is_one_or_a_multiple_of_16_or_neither(told: list[str]) -> None:
    from regard.engines.triton.starting import Known, hint

    assert hint(tuple(map(Known, (1, 0, 16, 4096, 7, 17)))) == (1, 16, 16, 16, 3, 3)
    assert hint((Known(2**33), Known(2**33 + 1))) == (2**40 + 16, 2**40 + 3)


def test_numbers_that_grow_together_have_two_cases(told: list[str]) -> None:
    from regard.engines.triton.starting import hint, sixteens, steps

    assert hint(sixteens(64, 0, 4096)) == (16, 16, 16)
    assert hint(sixteens(64, 1, 4096)) == (3, 3, 3)
    assert hint(steps(4096, 64, 1)) == (16, 16, 1)
    assert hint(steps(4095, 64, 1)) == (3, 3, 1)
    assert hint(steps(1)) == (1,)
    assert steps(4095, 64, 1) == (4095, 64, 1)  # what the kernel is given
