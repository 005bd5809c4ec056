"""The process that measures: one job after the other, kept after each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from . import kept
from .arrays import Arrays, arrays, share
from .cases import OWN, Case, Job, Sizes, Step
from .checking import Reference
from .formulas import Formula, formulas
from .measuring import Clock, Work, copy, in_rounds, product, quartiles
from .peers import Here, runner
from .trial import alive_or_end, cleared, tried

Times = dict[str, list[float]]
FIRST_LIMIT = 150  # seconds
CACHES = ("HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")


class Worker:
    """Runs jobs and keeps what they find."""

    def __init__(self, document: kept.Document, path: Path, here: Here, sizes: Sizes, rounds: int, seed: int) -> None:
        self.document, self.path, self.now = document, path, path.with_suffix(".now")
        self.here, self.sizes, self.rounds, self.seed = here, sizes, rounds, seed
        self.formulas, self.clock = formulas(sizes.window), Clock(here, sizes)
        self.job = ""

    def run(self, jobs: list[Job], until: float) -> None:
        """All jobs that are not done, while there is time."""
        parts: dict[str, Callable[[Job], None]] = {
            "speed": self.speed, "decoding": self.decoding, "first": self.first,
        }  # fmt: skip
        left = [job for job in jobs if job.name not in self.document["done"]]
        for number, job in enumerate(left):
            if time.time() > until:
                self.document["left"] = [later.name for later in left[number:]]
                break
            self.job = job.name
            self.tell("")
            begin = time.time()
            parts[job.part](job)
            self.document["done"].append(job.name)
            self.keep()
            print(f"   {time.time() - begin:.1f} s", flush=True)
        self.keep()

    def keep(self) -> None:
        """Write all that is known."""
        kept.judge(self.document)
        kept.save(self.document, self.path)

    def tell(self, peer: str) -> None:
        """Say what is being done, to whoever watches."""
        self.now.write_text(f"{self.job}\n{peer}", encoding="utf-8")

    # -- speed ---------------------------------------------------------------------------------------------------

    def speed(self, job: Job) -> None:
        """A case beside the peers of one pass."""
        case: Case = job.what
        shape = (case.batch, case.heads, case.n, case.width)
        formula = self.formulas[case.formula]
        data = arrays(
            self._seed(case), self.here.device, shape, case.n, case.heads, formula.spread(case.width),
            grad=case.direction == "backward",
        )  # fmt: skip
        part = share(case.formula, case.n, self.sizes.window, data.x["ids"])
        operations = case.operations(part)
        facts = {**case.facts(), "share": round(part, 6), "operations": operations}
        record = kept.record(self.document, "speed", facts)
        ceiling, ceiling_operations = product(self.sizes, self.here)
        found, times = self._measured(job, formula, data, case.direction, ceiling)
        for peer, known in found.items():
            facts = {**known, **_rates(times, peer, operations, ceiling_operations)} if peer in times else known
            if peer not in OWN or record["peers"].get(peer, {}).get("state") != "timed":
                record["peers"][peer] = facts
        record.setdefault("ceiling", quartiles([ceiling_operations / t / 1e12 for t in times["ceiling"]]))
        _compare(record, times)
        self._said(job, found, times)

    def _measured(self, job: Job, formula: Formula, data: Arrays, direction: str, ceiling: Work) -> tuple[Any, Times]:
        """The peers of a job: what is known of each, and its seconds in each round."""
        reference, found, jobs = Reference(formula, data), {}, {"ceiling": ceiling}
        for peer in job.peers:
            if self._avoided(job.name, peer):
                found[peer] = {"state": "failed", "reason": "it hung, or the GPU did not answer after it"}
                continue
            build = partial(runner, peer, formula, data, direction, self.here)
            facts, ready = tried(build, direction, reference, self.clock, partial(self.tell, peer))
            found[peer] = facts
            if ready is not None:
                jobs[peer] = ready
        with torch.set_grad_enabled(direction == "backward"):
            times = self._timed(jobs)
        cleared()
        return found, times

    def _avoided(self, job: str, peer: str) -> bool:
        """Whether the peer took the process down before, in this case or in another pass of it."""
        return any(other == peer and _case(name) == _case(job) for name, other in self.document["avoided"])

    def _timed(self, jobs: dict[str, Work]) -> Times:
        try:
            return in_rounds(jobs, self.clock, self.rounds, self.seed, self.tell)
        except Exception as error:
            alive_or_end(self.clock, error)
            raise

    def _seed(self, what: Case | Step) -> int:
        return self.seed + zlib.crc32(repr(what).encode()) % 2**20

    def _said(self, job: Job, found: dict[str, Any], times: Times) -> None:
        """One line for each peer."""
        print(job.name, flush=True)
        for peer, facts in found.items():
            said = f"{1e3 * quartiles(times[peer])[1]:9.3f} ms" if peer in times else facts["state"]
            print(f"   {peer:14} {said}  {facts.get('reason', facts.get('error', ''))}", flush=True)

    # -- decoding ------------------------------------------------------------------------------------------------

    def decoding(self, job: Job) -> None:
        """A few queries against a long cache: bytes a second, beside a copy."""
        step: Step = job.what
        formula = self.formulas[step.formula]
        shape = (step.batch, step.heads, step.keys, step.width)
        data = arrays(
            self._seed(step), self.here.device, shape, step.queries, step.key_heads, formula.spread(step.width),
            grad=False,
        )  # fmt: skip
        ceiling, copied = copy(self.sizes, self.here)
        record = kept.record(self.document, "decoding", {**step.facts(), "bytes": step.bytes()})
        found, times = self._measured(job, formula, data, "forward", ceiling)
        for peer, facts in found.items():
            if peer in times:
                facts["state"] = "timed"
                facts["ms"] = quartiles([1e3 * t for t in times[peer]])
                facts["GBps"] = quartiles([step.bytes() / t / 1e9 for t in times[peer]])
                both = zip(times[peer], times["ceiling"], strict=True)
                facts["of_copy"] = quartiles([step.bytes() / t / (copied / of) for t, of in both])
            record["peers"][peer] = facts
        record["copy_GBps"] = quartiles([copied / t / 1e9 for t in times["ceiling"]])
        _compare(record, times)
        self._said(job, found, times)

    # -- first calls ---------------------------------------------------------------------------------------------

    def first(self, job: Job) -> None:
        """A first call in a fresh process with empty caches."""
        peer, formula, width, n = job.what
        facts = {"peer": peer, "formula": formula, "width": width, "n": n}
        record = kept.record(self.document, "first", facts)
        command = [sys.executable, sys.argv[0], "--first-call", *map(str, job.what)]
        command += ["--rehearse"] if self.here.rehearsal else []
        with tempfile.TemporaryDirectory() as empty:
            environment = {**os.environ, **{name: str(Path(empty) / name.lower()) for name in CACHES}}
            try:
                out = subprocess.run(
                    command, env=environment, timeout=FIRST_LIMIT, check=True, capture_output=True, text=True
                ).stdout
                record |= json.loads(out.splitlines()[-1])
            except subprocess.SubprocessError as error:
                record["failed"] = str(getattr(error, "stderr", "") or error)[-240:]
        print(
            job.name,
            {name: record[name] for name in ("forward_s", "backward_s", "again_s", "failed") if name in record},
            flush=True,
        )


def first_call(peer: str, name: str, width: int, n: int, here: Here, sizes: Sizes) -> dict[str, float]:
    """Seconds of the first call, forward and backward, and of a second one; the device is awake before."""
    formula = formulas(sizes.window)[name]
    shape = (max(1, sizes.tokens // n), sizes.features // width, n, width)
    data = arrays(0, here.device, shape, n, shape[1], formula.spread(width), grad=True)
    clock = Clock(here, sizes)
    torch.matmul(data.q, data.k.mT[..., :64]).sum().backward()
    clock.sync()
    begin = time.perf_counter()
    ready = runner(peer, formula, data, "backward", here)
    y = ready.call()
    clock.sync()
    forward = time.perf_counter()
    torch.autograd.grad(y, ready.leaves, data.dy)
    clock.sync()
    backward = time.perf_counter()
    ready.call()
    clock.sync()
    again = time.perf_counter()
    seconds = {"forward_s": forward - begin, "backward_s": backward - forward, "again_s": again - backward}
    return {name: round(value, 4) for name, value in seconds.items()}


def _case(job: str) -> str:
    """The name of a job without its pass."""
    part, _, rest = job.partition(" ")
    return rest.partition(" ")[2] if part == "speed" else job


def _rates(times: Times, peer: str, operations: float, ceiling: float) -> dict[str, Any]:
    both = list(zip(times[peer], times["ceiling"], strict=True))
    return {
        "state": "timed",
        "ms": quartiles([1e3 * t for t in times[peer]]),
        "TFLOPs": quartiles([operations / t / 1e12 for t in times[peer]]),
        "of_ceiling": quartiles([operations / t / (ceiling / of) for t, of in both]),
    }


def _compare(record: dict[str, Any], times: Times) -> None:
    """How many times as fast as each peer, by rounds: above 1, regard is the faster."""
    for own in OWN:
        for peer in times:
            if own in times and peer not in (own, "ceiling"):
                both = zip(times[peer], times[own], strict=True)
                record["ratios"].setdefault(own, {})[peer] = quartiles([theirs / ours for theirs, ours in both])
