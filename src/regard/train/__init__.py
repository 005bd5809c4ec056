"""Learn W_Q, W_K, W_V, and the rest, on real data.

    θ_{t+1} = θ_t − η_t · AdamW(∇_θ Σ loss / count)

data         texts, images and pairs: what is read, what is skipped, and every batch as a function of (seed, step)
tasks        what is learned from each: the model, its loss, its measure on what was held out
schedule     η_t: warm-up and cosine;  optimiser: AdamW, and the length at which a gradient is clipped
learner      one step;  fitting: many of them, in memory
settings     what a run is made of;  folder: where it lives on the disk;  state: what a resumed run goes on from
run          a run from its first step to its last, watched by watchers: metrics, curve, samples, progress
toy          three matrices learned in NumPy alone;  ngrams: what counting reaches
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name(
    {
        "settings": "Settings",
        "options": "settings_of",
        "beginning": "repeated resume start",
        "run": "Interrupted Run",
        "fitting": "History fit",
        "schedule": "Schedule",
        "optimiser": "AdamW",
        "machine": "Machine",
        "learner": "Learner Taken",
        "batch": "Batch Task",
        "watchers.base": "Measured Watcher",
        "errors": "Diverged TrainingError",
        "toy": "learn",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="train")


def __dir__() -> list[str]:
    return list(__all__)
