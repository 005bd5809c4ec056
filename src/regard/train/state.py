"""What a resumed run goes on from: one file, replaced when the new one is whole.

parameters, moments of the optimiser        tensors, bit for bit
step, seconds, best, scaler                 in its metadata
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..algebra.errors import KindError
from ..nn.checkpoints.tensors import read, write
from .disk import REFUSALS, reason
from .errors import TrainingError
from .learner import Learner

ENTRY, VERSION = "regard.training", 1


@dataclass
class Progress:
    """How far a run is.

    seconds: how long its steps took, over all processes that came after one another
    best:    the lowest loss on what was held out, and after how many steps it was seen
    """

    seconds: float = 0.0
    best: tuple[float, int] | None = None


def save_state(path: Path, learner: Learner, progress: Progress) -> None:
    """Write it. Where that fails, what stood there before stands there still."""
    told = {"version": VERSION, **asdict(progress), "step": learner.step, "scaler": learner.scaler.state_dict()}
    try:
        write(path, learner.tensors(), {ENTRY: json.dumps(told)})
    except REFUSALS as error:
        raise TrainingError(_unwritten(path, learner.step, error)) from error


def load_state(path: Path, learner: Learner) -> Progress:
    """Put a learner where the file says that one stood."""
    metadata, tensors = read(path)
    told = dict(json.loads(metadata.get(ENTRY, "{}")))
    if told.pop("version", None) != VERSION:
        raise KindError(f"checkpoint: one of version {VERSION}, which a run wrote; got another in {str(path)!r}")
    try:
        learner.restore(tensors, told["step"], told["scaler"])
    except (RuntimeError, KeyError) as error:
        first = str(error).splitlines()[-1].strip()
        raise TrainingError(
            f"checkpoint: of the model that the settings describe; got another in {str(path)!r}: {first}; "
            "were settings.json or vocabulary.json changed?"
        ) from None
    return Progress(told["seconds"], told["best"] and (told["best"][0], told["best"][1]))


def _unwritten(path: Path, step: int, error: Exception) -> str:
    stands = "the one before it still stands" if path.exists() else "there is none before it"
    return (
        f"step {step}: the checkpoint could not be written, since {reason(error)}; {stands}; "
        f"mend that, then go on with: regard train resume {path.parent}"
    )
