"""Times on a device: peers take turns in random order, and only ratios within one round are compared."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .cases import Sizes
from .peers import Here, Runner

SAMPLE = 8e-3  # seconds of work in one sample, at most MOST runs
MOST = 8
CYCLES = 2e9  # of the chip in a second, about


@dataclass(frozen=True)
class Work:
    """`run(prepare())` is timed, `prepare` is not: going back, it is the forward pass."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


def work(runner: Runner, direction: str, dy: Any) -> Work:
    """One direction of a peer."""

    def forward() -> Any:
        with runner.within():
            return runner.call()

    def backward(y: Any) -> Any:
        with runner.within():
            return torch.autograd.grad(y, runner.leaves, dy)

    if direction == "backward":
        return Work(backward, forward)
    return Work(lambda _: forward())


class Clock:
    """Events on the GPU, or the wall clock of a rehearsal."""

    def __init__(self, here: Here, sizes: Sizes) -> None:
        self.cuda = here.device == "cuda"
        self.scratch = torch.zeros(sizes.scratch, dtype=torch.int8, device=here.device)

    def sync(self) -> None:
        """Wait for the device; here an error of a kernel comes to light."""
        if self.cuda:
            torch.cuda.synchronize()

    def sample(self, job: Work, repeats: int, ahead: float = 0.0) -> float:
        """Seconds of one run: the median of a few, each after the caches were filled with something else.

        ahead:  seconds for which the device waits first, so that Python is ahead of it and is not measured
        """
        if not self.cuda:
            return statistics.median(self._walled(job) for _ in range(repeats))
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
        if ahead:
            torch.cuda._sleep(int(ahead * CYCLES))
        for begin, end in events:
            prepared = job.prepare()
            self.scratch.max()  # read, not written: what is written has to leave the cache while the job runs
            begin.record()
            job.run(prepared)
            end.record()
        torch.cuda.synchronize()
        times: list[float] = [begin.elapsed_time(end) for begin, end in events]
        return statistics.median(times) / 1e3

    def _walled(self, job: Work) -> float:
        prepared = job.prepare()
        start = time.perf_counter()
        job.run(prepared)
        return time.perf_counter() - start

    def sized(self, job: Work) -> tuple[int, float]:
        """How many runs make a sample, and how far ahead Python must be."""
        self.sample(job, 2)
        seconds = self.sample(job, 3)
        self.sync()
        start = time.perf_counter()
        job.run(job.prepare())
        host = time.perf_counter() - start
        self.sync()
        repeats = max(1, min(MOST, round(SAMPLE / max(seconds, 1e-6))))
        waiting = repeats if seconds < 2 * host else 1
        return repeats, min(0.05, 1.5 * host * waiting) if self.cuda else 0.0


def in_rounds(
    jobs: dict[str, Work], clock: Clock, rounds: int, seed: int, tell: Callable[[str], None]
) -> dict[str, list[float]]:
    """The seconds of each job in each round; one round before the first is not counted."""
    plans = {}
    for name, job in jobs.items():
        tell(name)
        plans[name] = clock.sized(job)
    order, turns = list(jobs), random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(-1, rounds):
        turns.shuffle(order)
        for name in order:
            tell(name)
            seconds = clock.sample(jobs[name], *plans[name])
            if turn >= 0:
                times[name].append(seconds)
    return times


def quartiles(values: list[float]) -> list[float]:
    """First quartile, median, third."""
    if len(values) < 2:
        return [values[0]] * 3
    return [float(f"{value:.5g}") for value in statistics.quantiles(values, n=4, method="inclusive")]


def product(sizes: Sizes, here: Here) -> tuple[Work, float]:
    """The ceiling: a large product of matrices of random numbers, and its operations."""
    side = sizes.ceiling
    a, b = (torch.randn(side, side, device=here.device, dtype=torch.bfloat16) for _ in range(2))
    into = torch.empty_like(a)
    return Work(lambda _: torch.matmul(a, b, out=into)), 2 * side**3


def copy(sizes: Sizes, here: Here) -> tuple[Work, float]:
    """The bandwidth: a large copy, and its bytes, read and written."""
    source = torch.randint(-128, 127, (sizes.copied,), dtype=torch.int8, device=here.device)
    into = torch.empty_like(source)
    return Work(lambda _: into.copy_(source)), 2 * sizes.copied
