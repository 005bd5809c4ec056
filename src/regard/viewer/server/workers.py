"""Threads that answer: a few for each kind of work, so that a heavy question never stands before a light one.

    waiting → a thread takes it → the answer        a client that goes away: its work stops, its thread is free

Threads are daemons: work that does not look at its `Stop` never keeps the process from ending.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from ..work import Stop, Stopped
from .refusals import Refusal

T = TypeVar("T")


@dataclass(eq=False)
class _Task(Generic[T]):
    """One piece of work, the loop that waits for it, and what it comes to."""

    work: Callable[[], T]
    stop: Stop
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]

    def run(self) -> None:
        """On a thread: do it, and tell the loop."""
        try:
            self.stop.check()
            found = self.work()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self._tell(self.future.set_exception, error)
        else:
            self._tell(self.future.set_result, found)

    def _tell(self, say: Callable[[Any], None], found: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            self.loop.call_soon_threadsafe(lambda: None if self.future.done() else say(found))


class Workers:
    """So many threads, and so many pieces of work that may wait for them."""

    def __init__(self, threads: int, waiting: int, name: str = "work") -> None:
        self.threads, self.waiting, self.name = threads, waiting, name
        self.tasks: set[_Task[Any]] = set()  # that someone waits for
        self._queue: deque[_Task[Any]] = deque()
        self._ready = Condition()
        self._started = 0

    async def do(self, work: Callable[[], T], stop: Stop) -> T:
        """The outcome of work, on a thread; given up, and never begun if it waits, where the caller is cancelled."""
        if len(self.tasks) >= self.threads + self.waiting:
            raise Refusal(503, "work: no more than can wait; got one too many; ask again", {"Retry-After": "1"})
        loop = asyncio.get_running_loop()
        task: _Task[T] = _Task(work, stop, loop, loop.create_future())
        self._put(task)
        try:
            return await task.future
        finally:
            self._take_back(task)

    def close(self) -> None:
        """Stop all work, and answer those who wait for it."""
        for task in self.tasks:
            task.stop.set()
            if not task.future.done():
                task.future.set_exception(Stopped("stopped: the server ends"))

    def _put(self, task: _Task[Any]) -> None:
        self.tasks.add(task)
        with self._ready:
            self._queue.append(task)
            self._ready.notify()
        if self._started < self.threads:
            self._started += 1
            Thread(target=self._go, name=f"regard {self.name} {self._started}", daemon=True).start()

    def _take_back(self, task: _Task[Any]) -> None:
        task.stop.set()
        self.tasks.discard(task)
        with self._ready, suppress(ValueError):  # a thread has it already
            self._queue.remove(task)

    def _go(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._queue)
                task = self._queue.popleft()
            task.run()
            del task  # what it holds is not kept until the next one comes
