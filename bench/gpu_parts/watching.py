"""The process that watches: a peer that hangs, or takes the GPU down, is left out, and the rest goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from . import kept

START = 120.0  # seconds in which PyTorch must have been loaded
OVERTIME = 1.0  # minutes beyond the budget that the job in hand may take


def watched(path: Path, minutes: float, patience: float) -> None:
    """Run the measuring process until it is done, again and again where it dies; what is kept in `path` is resumed.

    patience:  seconds without a sign of life after which a peer counts as hung
    """
    until = time.time() + 60 * minutes
    now = path.with_suffix(".now")
    signal.signal(signal.SIGTERM, _asked_to_end)
    while True:
        now.write_text("\n", encoding="utf-8")
        try:
            status = _watch(path, now, until, patience)
        except KeyboardInterrupt:  # what was found is shown all the same
            print("   ended from outside", flush=True)
            break
        if status == 0:
            break
        job, _, peer = now.read_text(encoding="utf-8").partition("\n")
        document = kept.load(path)
        print(f"   ended by {status}: {job}, {peer or 'no peer'}", flush=True)
        if not job or time.time() > until:
            break
        if peer in ("", "ceiling") or [job, peer] in document["avoided"]:
            document["done"].append(job)  # it is nobody's fault that can be left out
        else:
            document["avoided"].append([job, peer])
        kept.save(document, path)
    now.unlink(missing_ok=True)


def _watch(path: Path, now: Path, until: float, patience: float) -> int | str:
    """The exit status, or why the process was ended."""
    options = ["--worker", str(path), "--until", str(until)]
    worker = subprocess.Popen([sys.executable, sys.argv[0], *sys.argv[1:], *options])
    try:
        while True:
            try:
                return worker.wait(timeout=1)
            except subprocess.TimeoutExpired:
                if reason := _over(now, until, patience):
                    return reason
    finally:
        worker.kill()
        worker.wait()


def _over(now: Path, until: float, patience: float) -> str | None:
    """Why the process must be ended, where it must."""
    quiet = time.time() - now.stat().st_mtime
    started = bool(now.read_text(encoding="utf-8").strip())
    if quiet > (patience if started else max(patience, START)):
        return f"{quiet:.0f} s without a sign of life"
    return "the end of the budget" if time.time() - until > 60 * OVERTIME else None


def _asked_to_end(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a handler
    raise KeyboardInterrupt
