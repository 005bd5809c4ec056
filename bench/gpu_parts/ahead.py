"""Everything compiled before anything is timed, by many processes side by side: what they compile lies on the disk."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from .cases import Case, Job, Sizes
from .crowd import crowd

PATIENCE = 150.0  # seconds that one peer may compile


def compile_ahead(jobs: list[Job], sizes: Sizes, processes: int, until: float) -> None:
    """Call every peer of every case once, elsewhere; what fails there will fail again, and be told then."""
    asked = {(peer, job.what): None for job in jobs if job.part == "speed" for peer in job.peers}
    slow = sorted(asked, key=lambda one: one[0] not in ("flex", "compiled"))
    begin = time.time()
    answers = crowd(partial(_called, sizes), [[one] for one in slow], processes, PATIENCE, until)
    failed = sum(answer is not None for _, answer in answers)
    print(f"{len(answers)} compiled ahead in {time.time() - begin:.0f} s, {failed} of them not", flush=True)


def _called(sizes: Sizes, one: tuple[str, Case]) -> Any:
    import torch

    from .arrays import arrays
    from .formulas import formulas
    from .measuring import work
    from .peers import GPU, runner

    peer, case = one
    formula = formulas(sizes.window)[case.formula]
    shape = (case.batch, case.heads, case.n, case.width)
    back = case.direction == "backward"
    data = arrays(0, "cuda", shape, case.n, case.heads, formula.spread(case.width), grad=back)
    with torch.set_grad_enabled(back):
        job = work(runner(peer, formula, data, case.direction, GPU), case.direction, data.dy)
        job.run(job.prepare())
        torch.cuda.synchronize()
    torch.cuda.empty_cache()
