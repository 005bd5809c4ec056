"""Running somebody's code: in this process as it is, or in a child with limits.

    with Child(Place("attention.py:attend"), Limits()) as runner:
        runner.ask(Call((q, k, v)))

A `Job` travels to where the target lives and runs there. The child is started at the first question; when the target
was stopped it is started again at the next, and what the target had learnt is forgotten.
"""

from __future__ import annotations

import os
import pickle
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import messages
from .connection import Connection, Flooded, Gone, Late
from .limits import (
    Limits,
    Stopped,
    died,
    late_call,
    late_session,
    late_start,
    left,
    out_of_memory,
    over_memory,
    over_printed,
)
from .loading import Source, source_of
from .memory import OVER_MEMORY
from .printed import Printed, Tally, captured
from .sending import pack


class Job(Protocol):
    """What is done with a target. It has a pickle, by the name of its class."""

    @property
    def about(self) -> str:
        """What is tried, in one line: "a call with q (2, 3, 5, 7)"."""

    def run(self, target: Any) -> Any:
        """Do it. The answer has a pickle that needs nothing of the target's own file."""


class Runner(Protocol):
    """Where a target lives."""

    @property
    def printed(self) -> Printed:
        """What the target has printed up to now."""

    def ask(self, job: Job) -> Any:
        """What the job returns. Its exceptions are raised here; `Stopped` where the target was stopped."""

    def close(self) -> None:
        """The end; no process is left behind."""

    def __enter__(self) -> Runner: ...

    def __exit__(self, *error: object) -> None: ...


@dataclass(frozen=True)
class Call:
    """The job of one plain call.

    >>> Here(max).ask(Call((2, 3)))
    3
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    about: str = "a call"

    def run(self, target: Any) -> Any:
        """target(*args, **kwargs)"""
        return target(*self.args, **self.kwargs)


def runner_for(target: object, limits: Limits | None) -> Runner:
    """A child where there are limits; this process where there are none."""
    return Here(target) if limits is None else Child(target, limits)


class Here:
    """The target in this process, without limits. What Python prints is kept from the terminal."""

    def __init__(self, target: object) -> None:
        self.source: Source = source_of(target)
        self._tally = Tally()
        with captured(self._tally):
            self.target = self.source.load()

    @property
    def printed(self) -> Printed:
        """What the target has printed up to now."""
        return self._tally.read()

    def ask(self, job: Job) -> Any:
        """What the job returns."""
        try:
            with captured(self._tally):
                return job.run(self.target)
        except SystemExit as error:
            raise left(f"sys.exit({'' if error.code is None else repr(error.code)})", job.about) from None
        except Exception as error:
            if out_of_memory(error):
                raise over_memory(None, job.about) from error
            raise

    def close(self) -> None:
        """Nothing to end."""

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Child:
    """The target in a process of its own, with limits; that process ends with this one, whatever happens."""

    def __init__(self, target: object, limits: Limits | None = None) -> None:
        self.source: Source = source_of(target)
        self.limits = limits or Limits()
        self._packed = pack(self.source)
        self._tally, self._spent = Tally(), 0.0
        self._connection: Connection | None = None
        self._end: Callable[[], object] = bool  # of a child that was not started: nothing to do
        self._starts = 0
        self._failure: Exception | None = None

    @property
    def printed(self) -> Printed:
        """What the target has printed up to now, also in processes that were stopped."""
        return self._tally.read()

    def ask(self, job: Job) -> Any:
        """What the job returns."""
        data = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        self._check_time(f"before {job.about}")
        connection = self._connection or self._start()
        answer = self._answer(connection, data, job.about)
        if isinstance(answer, messages.Answer):
            return answer.value
        raise self._trouble(answer, job.about)

    def close(self) -> None:
        """The child ends now; another question would start the next."""
        self._connection = None
        self._end()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- one start and one question --------------------------------------------------------------------------------

    def _start(self) -> Connection:
        """A child with the target in it. A target that could not be loaded is not tried again."""
        if self._failure is not None:
            raise self._failure
        connection = self._connection = Connection(self._tally, self.limits.printed)
        self._end = weakref.finalize(self, connection.kill)  # also when nobody closes, or Python ends
        try:
            with self._clock(runs=self._starts > 0):
                self._load(connection)
        except Exception as error:
            self._failure = error
            self.close()
            raise
        self._starts += 1
        return connection

    def _load(self, connection: Connection) -> None:
        hello = messages.Start(self._packed, self.limits.memory, self._processor_seconds(), connection.mark)
        about = f"loading {self.source.label}"
        said = self._told(connection, pickle.dumps(hello), about, about)
        if not isinstance(said, messages.Ready):
            raise self._trouble(said, about)

    def _processor_seconds(self) -> float:
        """More than it can use while we look after it; the system ends it then if we could not."""
        return (self.limits.start_seconds + self.limits.seconds) * (os.cpu_count() or 1)

    def _answer(self, connection: Connection, data: bytes, about: str) -> Any:
        said = self._told(connection, data, f"importing what the check needs for {about}", about)
        if not isinstance(said, messages.Begun):
            return said
        rest = self.limits.seconds - self._spent
        with self._clock(runs=True):
            if rest < self.limits.call_seconds:
                return self._heard(connection, rest, late_session(self.limits, about), about)
            return self._heard(connection, self.limits.call_seconds, late_call(self.limits, about), about)

    def _told(self, connection: Connection, data: bytes, doing: str, about: str) -> Any:
        """What the child says first after these bytes."""
        late = late_start(self.limits, doing)
        return self._heard(connection, self.limits.start_seconds, late, about, data)

    def _heard(self, connection: Connection, seconds: float, late: Stopped, about: str, data: bytes = b"") -> Any:
        """The next message of the child; where none comes, the child ends and the reason is raised."""
        try:
            if data:
                connection.send(data)
            return connection.receive(seconds)
        except Late:
            trouble = late
        except Gone as gone:
            trouble = over_memory(self.limits, about) if gone.code == OVER_MEMORY else died(gone.code, about)
        except Flooded:
            trouble = over_printed(self.limits, about, self.printed.first)
        except BaseException:  # an interrupt, above all
            self.close()
            raise
        self.close()
        raise trouble

    # -- what became of it -----------------------------------------------------------------------------------------

    def _trouble(self, said: Any, about: str) -> BaseException:
        """The exception for what the child said in place of an answer."""
        if isinstance(said, messages.Raised):
            return said.unpacked()
        self.close()
        return over_memory(self.limits, about) if said.why == "memory" else left(said.how, about)

    def _check_time(self, about: str) -> None:
        if self._spent >= self.limits.seconds:
            self.close()
            raise late_session(self.limits, about)

    @contextmanager
    def _clock(self, *, runs: bool) -> Iterator[None]:
        """What happens inside counts against the time of the session."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._spent += (time.monotonic() - began) * runs
