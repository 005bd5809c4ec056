"""A child process and the pipes to it. Started afresh: it knows nothing of this process but its search path."""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, BinaryIO

from . import messages
from .printed import Tally

BOOT = """
import sys
sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from regard.diagnosis.sandbox.child import main
main()
"""
QUIET = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")},
    "VECLIB_MAXIMUM_THREADS": "1",
    "REGARD_SANDBOX": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "MPLBACKEND": "Agg",  # a figure that is shown waits for nobody
    "PYTHONIOENCODING": "utf-8:backslashreplace",
}
GLANCE = 0.05  # seconds between two looks at whether the child still lives
FAREWELL = 0.5  # seconds that the last words of a child may take


class Late(Exception):  # noqa: N818 - an event
    """No answer in time."""


class Gone(Exception):  # noqa: N818 - an event
    """The process has ended."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Flooded(Exception):  # noqa: N818 - an event
    """It prints too much."""


class Connection:
    """A child process that reads what is sent, and whose messages are received; what it prints goes to the tally."""

    def __init__(self, tally: Tally, most: int) -> None:
        self.mark = secrets.token_bytes(16)
        self.process = _spawned()
        self._tally, self._most, self._room = tally, most, most
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._marks, self._flood = threading.Semaphore(0), threading.Event()
        _in_background(self._hear)
        self._ear = _in_background(self._overhear)
        self._ended = False

    def send(self, data: bytes) -> None:
        """Bytes to the child."""
        self._room = self._most
        try:
            messages.write(_open(self.process.stdin), data)
        except OSError:
            raise Gone(self._code()) from None

    def receive(self, seconds: float) -> Any:
        """The next message of the child; or Late, Gone, Flooded."""
        message = pickle.loads(self._frame(time.monotonic() + seconds))  # noqa: S301 - from our own child
        if not isinstance(message, messages.Begun):
            self._marks.acquire(timeout=FAREWELL)  # all is counted that was printed before it
        if self._flood.is_set():
            raise Flooded
        return message

    def kill(self) -> None:
        """The child and its own children end now."""
        if self._ended:  # its number may be another's by now
            return
        self._ended = True
        _kill(self.process)
        self._ear.join(FAREWELL)
        with suppress(OSError):
            _open(self.process.stdin).close()

    def _frame(self, until: float) -> bytes:
        while not self._flood.is_set():
            alive = self.process.poll() is None
            wait = min(until - time.monotonic(), GLANCE) if alive else FAREWELL  # its last words may be on the way
            try:
                frame = self._answers.get(timeout=max(0.0, wait))
            except Empty:
                frame = None if not alive else b""
            if frame is None:
                raise Gone(self._code())
            if frame:
                return frame
            if time.monotonic() >= until:
                raise Late
        raise Flooded

    def _code(self) -> int:
        try:
            return self.process.wait(FAREWELL)
        except subprocess.TimeoutExpired:  # it closed its pipes and lives on
            _kill(self.process)
            return 0

    def _hear(self) -> None:
        with _open(self.process.stdout) as stream:
            while (answer := messages.read(stream)) is not None:
                self._answers.put(answer)
            self._answers.put(None)

    def _overhear(self) -> None:
        """Count what is printed. The end of each part may be the beginning of a mark, so it waits for the next."""
        with _open(self.process.stderr) as stream:
            rest = b""
            while data := os.read(stream.fileno(), 2**16):
                *done, rest = (rest + data).split(self.mark)
                for text in done:
                    self._count(text)
                    self._marks.release()
                safe = max(0, len(rest) - len(self.mark) + 1)
                self._count(rest[:safe])
                rest = rest[safe:]
                if self._flood.is_set():
                    return  # the pipe fills up, and the child waits for its end
            self._count(rest)

    def _count(self, text: bytes) -> None:
        self._tally.take(text[: self._room])
        self._room -= len(text)
        if self._room < 0:
            self._flood.set()


def _spawned() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this very Python, and our own code
        [sys.executable, "-P", "-c", BOOT, *map(str, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        start_new_session=True,  # an interrupt of the terminal is for us alone, and its children end with it
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def _environment() -> dict[str, str]:
    """Ours, with one thread and no GPU; JAX there counts in as many bits as here."""
    jax = sys.modules.get("jax")
    wide = getattr(getattr(jax, "config", None), "jax_enable_x64", None)
    return {**os.environ, **QUIET, **({} if wide is None else {"JAX_ENABLE_X64": str(int(wide))})}


def _in_background(work: object) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def _open(stream: IO[bytes] | None) -> BinaryIO:
    assert stream is not None, "all three are pipes"
    return stream  # type: ignore[return-value]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
