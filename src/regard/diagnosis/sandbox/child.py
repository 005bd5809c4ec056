"""What the child process does: load the target, then run one job after the other on it.

The three streams it is born with become: standard input, the jobs; standard output, the answers; standard error, what
the target prints. Before the target is loaded the first two are moved out of its reach: it reads nothing from standard
input, and both outputs lead to the third.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, NoReturn

from . import messages
from .limits import out_of_memory
from .memory import Ceiling, limit_processor


def main() -> NoReturn:
    """Serve until the other side has gone."""
    jobs, answers = _streams()
    inbox: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(jobs, inbox), daemon=True).start()
    start: messages.Start = pickle.loads(inbox.get())  # noqa: S301 - from the process that started this one
    limit_processor(start.seconds)
    ceiling = Ceiling(start.memory)
    target, said = _loaded(start.source, ceiling)
    while True:
        _finish(start.mark)
        messages.write(answers, _packed(said))
        said = _done(target, inbox.get(), ceiling, answers)


def _streams() -> tuple[BinaryIO, BinaryIO]:
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return jobs, answers


def _listen(jobs: BinaryIO, inbox: SimpleQueue[bytes]) -> None:
    """Pass the jobs on. When the other side closes or dies the process ends, whatever the target is doing."""
    while (job := messages.read(jobs)) is not None:
        inbox.put(job)
    os._exit(0)


def _finish(mark: bytes) -> None:
    """All that was printed goes out, then the mark."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # the target may have closed or replaced it
            stream.flush()
    with suppress(OSError):
        os.write(2, mark)


def _loaded(source: bytes, ceiling: Ceiling) -> tuple[Any, Any]:
    """The target, and what to say: Ready, or why there is none."""
    from .sending import unpack

    ceiling.hold()
    sys.dont_write_bytecode = True  # a check leaves nothing in the folder of the target
    try:
        target = unpack(source)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the other side must know
        ceiling.lift()
        return None, _trouble(error)
    ceiling.settle()
    return target, messages.Ready()


def _done(target: Any, data: bytes, ceiling: Ceiling, answers: BinaryIO) -> Any:
    """What to say after a job."""
    try:
        with ceiling.raised():
            job = pickle.loads(data)  # noqa: S301 - from the process that started this one
            messages.write(answers, _packed(messages.Begun()))
        value = job.run(target)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the other side must know
        ceiling.lift()
        return _trouble(error)
    return messages.Answer(value)


def _trouble(error: BaseException) -> Any:
    if out_of_memory(error):
        return messages.Ended("memory")
    if isinstance(error, SystemExit):
        return messages.Ended("exit", f"sys.exit({'' if error.code is None else repr(error.code)})")
    text = "".join(traceback.format_exception(error))
    known = isinstance(error, Exception) and type(error).__module__ in sys.modules  # else the pickle would import it
    try:
        packed = pickle.dumps(error) if known else None
    except Exception:  # noqa: BLE001 - an exception may hold anything
        packed = None
    return messages.Raised(packed, text)


def _packed(said: Any) -> bytes:
    """The pickle of an answer; of the trouble, where it has none."""
    try:
        return pickle.dumps(said, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - an answer may hold anything
        return pickle.dumps(_trouble(error))
