"""A ceiling on the memory of this process: what was in use when the target was loaded, and the allowance.

On Linux the system holds it (RLIMIT_DATA, which counts what is written to and leaves out the gigabytes of addresses
that libraries reserve). Elsewhere, where that limit is not kept, a thread looks at the memory in use. Windows has none.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LIBRARIES = 2 * 2**30  # what array libraries may take while the target is loaded; PyTorch and JAX take 0.3 GiB
OVER_MEMORY = 117  # the exit code of a process that the thread has stopped
GLANCE = 0.02  # seconds between two looks of the thread


class Ceiling:
    """The most that this process may have in use; none where the system tells nothing."""

    def __init__(self, allowance: int) -> None:
        self.allowance = allowance
        self.height = in_use() + allowance + LIBRARIES
        self._watched = False

    def settle(self) -> None:
        """From here on the allowance is the target's."""
        self.height = in_use() + self.allowance
        self.hold()

    def hold(self) -> None:
        """Let the limit hold."""
        if sys.platform == "linux":
            _limit(self.height)
        elif not self._watched and in_use():
            self._watched = True
            threading.Thread(target=self.watch, daemon=True).start()

    def lift(self) -> None:
        """Let it hold no longer, so that the one who tells of the trouble has room."""
        if sys.platform == "linux":
            _limit(None)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """What is taken inside, as by imports, is not counted."""
        before = in_use()
        self.lift()
        yield
        self.height += max(0, in_use() - before)
        self.hold()

    def watch(self) -> None:
        """Look again and again, and end the process when it has too much."""
        while in_use() <= self.height:
            time.sleep(GLANCE)
        os._exit(OVER_MEMORY)


def in_use() -> int:
    """Bytes that this process has asked for (Linux) or has held at most (elsewhere); 0 where no one can tell."""
    if sys.platform == "linux":
        return _linux_data()
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else 1024 * peak)


def limit_processor(seconds: float) -> None:
    """The system ends this process when it has computed for so long, even if no one is left to do it."""
    try:
        import resource
    except ImportError:
        return
    if math.isfinite(seconds):
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        wanted = math.ceil(seconds + time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (wanted if hard < 0 else min(wanted, hard), hard))


def _linux_data() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123 - imports nothing
        found = [line.split()[1] for line in status if line.startswith("VmData:")]
    return 1024 * int(found[0]) if found else 0


def _limit(height: int | None) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = resource.RLIM_INFINITY if height is None else height
    if hard != resource.RLIM_INFINITY:
        wanted = hard if height is None else min(height, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
