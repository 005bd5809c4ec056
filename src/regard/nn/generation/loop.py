"""Step after step: logits, a draw for each text, and the texts that are complete leave.

z = model(x_1 … x_n)        x_{n+1} = sampling(z)        n ← n + 1
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .drafts import Draft
from .rows import Feed
from .sampling import Sampling, log_probabilities, read_logits


def written(feed: Feed, drafts: list[Draft], sampling: Sampling) -> Iterator[list[str]]:
    """Write all drafts to their end; after each step, the text that each running one has gained."""
    numbers = list(range(len(drafts)))  # of the drafts that are running, one for each row
    while numbers:
        running = [drafts[number] for number in numbers]
        ids, chances = _step(read_logits(feed.logits(), numbers), running, sampling)
        yield [draft.take(*taken) for draft, *taken in zip(running, ids.tolist(), chances.tolist(), strict=True)]
        rows = [row for row, draft in enumerate(running) if draft.reason is None]
        if rows:
            feed.extend(ids, rows if len(rows) < len(running) else None)
        numbers = [numbers[row] for row in rows]


def _step(logits: Tensor, running: list[Draft], sampling: Sampling) -> tuple[Tensor, Tensor]:
    """One id for each text, and log P of it."""
    points = [draft.point() if sampling.temperature else 0.0 for draft in running]  # greedy leaves nothing to chance
    with torch.no_grad():
        ids = sampling.drawn(logits, torch.tensor(points, dtype=torch.float64))
        return ids, log_probabilities(logits, ids)
