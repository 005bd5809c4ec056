"""Many processes on one GPU: kernels are compiled side by side, and one that hangs or dies takes nothing else along."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

Answers = list[tuple[Any, str | None]]  # (job, what went wrong)
SPAWN = multiprocessing.get_context("spawn")
START = 90.0  # seconds in which a process must have loaded PyTorch


def crowd(
    run: Callable[[Any], str | None],
    jobs: Iterable[list[Any]],
    workers: int,
    patience: float,
    until: float,
    told: Callable[[Any, str | None], None] = lambda _job, _answer: None,
) -> Answers:
    """The answer to every job, in the order in which they come; None where nothing went wrong.

    run:       a function of a module, called in another process
    jobs:      lists of jobs that share what they compile: one process takes a list, from its first to its last
    patience:  seconds after which a job counts as hung; its process is ended, and another takes the rest of the list
    until:     the time at which no further job is begun
    """
    waiting: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
    for together in jobs:
        waiting.put(list(together))
    answers: Answers = []

    def keep(job: Any, answer: str | None) -> None:
        answers.append((job, answer))
        told(job, answer)

    threads = [threading.Thread(target=_serve, args=(run, waiting, patience, until, keep)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _serve(run: Any, waiting: Any, patience: float, until: float, keep: Any) -> None:
    """One process after another, each until a job takes it down."""
    process = connection = None
    while True:
        try:
            together = waiting.get_nowait()
        except queue.Empty:
            break
        while together:
            job = together.pop(0)
            if time.time() > until:
                keep(job, "out of time")
                continue
            if process is None:
                process, connection = _started(run)
            answer, alive = _asked(connection, job, patience)
            keep(job, answer)
            if not alive:
                process.kill()
                process = None
    if process is not None:
        connection.send(None)
        process.join(10)
        process.kill()


def _started(run: Any) -> tuple[Any, Any]:
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=_work, args=(run, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.poll(START)  # it says that it is there
    ours.recv()
    return process, ours


def _asked(connection: Any, job: Any, patience: float) -> tuple[str | None, bool]:
    """The answer, and whether the process lives on."""
    try:
        connection.send(job)
        if not connection.poll(patience):
            return f"no answer in {patience:.0f} s", False
        return connection.recv()
    except (EOFError, OSError):
        return "its process died", False


def _work(run: Any, connection: Any) -> None:
    """The process: one job after another; where the GPU no longer answers, it ends."""
    import torch

    connection.send("here")
    while (job := connection.recv()) is not None:
        try:
            answer = run(job)
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is the answer
            answer = f"{type(problem).__name__}: {str(problem)[-300:]}"
        alive = True
        try:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
        except Exception as problem:  # noqa: BLE001 - the context is lost
            answer, alive = f"{answer or ''} {type(problem).__name__}: {str(problem)[:120]}", False
        connection.send((answer, alive))
        if not alive:
            break
