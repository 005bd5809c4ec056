"""One peer on one case before it is timed: its first call, its error, its memory."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from .checking import Reference, right
from .measuring import Clock, Work, work
from .peers import NotDoneError, Runner

LOST = 3  # the exit status of a worker whose GPU no longer answers
LONGEST = 240  # characters of a reason


def tried(
    build: Callable[[], Runner], direction: str, reference: Reference, clock: Clock, tell: Callable[[], None]
) -> tuple[dict[str, Any], Work | None]:
    """What is known of the peer, and its work where it is right."""
    try:
        tell()
        return _tried(build, direction, reference, clock, tell)
    except NotDoneError as reason:
        return {"state": "skipped", "reason": str(reason)}, None
    except Exception as error:  # noqa: BLE001 - a peer that fails is a line of the table, not the end of the run
        alive_or_end(clock, error)
        return {"state": "failed", "reason": f"{type(error).__name__}: {error}"[:LONGEST]}, None
    finally:
        cleared()


def _tried(
    build: Callable[[], Runner], direction: str, reference: Reference, clock: Clock, tell: Callable[[], None]
) -> tuple[dict[str, Any], Work | None]:
    start = time.perf_counter()
    runner = build()
    with torch.set_grad_enabled(direction == "backward"):
        job = work(runner, direction, reference.arrays.dy)
        found = job.run(job.prepare())
        clock.sync()
        facts: dict[str, Any] = {"first_s": round(time.perf_counter() - start, 3)}
        with runner.within(), suppress(Exception):  # a plan that fails is no reason not to measure
            facts |= {"plan": said} if (said := runner.plan()) else {}
        if runner.exact:
            errors = reference.forward(found) if direction == "forward" else reference.backward(found, tell)
            facts["error"] = {name: float(f"{error:.3g}") for name, error in errors.items()}
            if not right(errors, direction):
                return {"state": "wrong", "reason": f"error {facts['error']}", **facts}, None
        else:
            facts["stands_for"] = "softmax"
        del found
        facts["above_inputs_MiB"] = _peak(job, clock)
    return {"state": "right", **facts}, job


def _peak(job: Work, clock: Clock) -> float | None:
    """MiB at the peak of one run (going back, the forward pass too), beside what was there before."""
    if not clock.cuda:
        return None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    job.run(job.prepare())
    torch.cuda.synchronize()
    return float(round((torch.cuda.max_memory_allocated() - before) / 2**20, 1))


def alive_or_end(clock: Clock, error: Exception) -> None:
    """End this process where the GPU no longer answers: whoever watches starts another, without this peer."""
    try:
        clock.sync()
    except Exception:  # noqa: BLE001 - whatever it says, the context is lost
        print(f"   the GPU no longer answers: {error}"[:LONGEST], flush=True)
        os._exit(LOST)


def cleared() -> None:
    """Give back what a peer held."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
