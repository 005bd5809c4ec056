"""What the default commands of training reach, and whether a run that is ended at any moment goes on exactly.

    python bench/train.py                       all of it: some 40 minutes on two cores
    python bench/train.py images kills          parts of it: images, text, kills, seeds

images  regard train images                     goal: at least 98 % of held-out digits right, in under 5 minutes
text    regard train text                       goal: 0.1 nats for each character below the best n-gram, same split
kills   twenty times `kill -9` at any moment, and resumed: goal: the rows of an undisturbed run, bit for bit
seeds   the same seed twice: goal: the same rows, bit for bit
"""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import keep

KILLS = 20
SMALL = "--dim 32 --depth 2 --heads 4 --context 32 --batch 8 --steps 400 --evaluate 40 --save 7 --sample 40".split()


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "regard", "train", *words]


def run(*words: str) -> float:
    """A command to its end; how many seconds it took, from its start."""
    began = time.perf_counter()
    subprocess.run(command(*words), check=True)
    return time.perf_counter() - began


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return found


def images(folder: Path) -> dict[str, Any]:
    """The default command on digits."""
    seconds = run("images", "--out", str(folder / "images"))
    best = result(folder / "images")["best"]
    return {"seconds": seconds, "accuracy": best["accuracy"], "step": best["step"], "goal": "0.98 in 300 s"}


def text(folder: Path) -> dict[str, Any]:
    """The default command on Python's reference, and n-grams of characters on the same split."""
    from regard.train import ngrams
    from regard.train.data import encoded, read_text, split, vocabulary_of

    seconds = run("text", "--out", str(folder / "text"))
    parts = split(read_text())
    tokens = encoded(parts, vocabulary_of(parts.training_texts))
    longest = 20
    counted = ngrams.best(
        tokens.training_ids, tokens.held_out_ids(before=longest - 1), orders=range(1, longest + 1),
        vocabulary_size=tokens.vocabulary_size, first=longest - 1,
    )  # fmt: skip
    best = result(folder / "text")["best"]
    return {
        "seconds": seconds, "nats_per_character": best["nats_per_character"], "step": best["step"],
        "ngram": counted.nats, "order": counted.order, "below": counted.nats - best["nats_per_character"], "goal": 0.1,
        "orders": [[row.order, str(row.smoothing), row.nats] for row in counted.table],
    }  # fmt: skip


def rows(folder: Path) -> dict[str, list[list[str]]]:
    """Every number of a run but the seconds."""
    tables = {}
    for name in ("metrics.csv", "held_out.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            found = list(csv.reader(file))
        at = found[0].index("seconds")
        tables[name] = [row[:at] + row[at + 1 :] for row in found]
    return tables


def model(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def kills(folder: Path) -> dict[str, Any]:
    """A run that is killed twenty times at random moments, beside one that is not."""
    seconds = run("text", *SMALL, "--out", str(folder / "whole"))
    draw, target, at = random.Random(0), folder / "killed", list[int]()
    while len(at) < KILLS:
        process = subprocess.Popen(_next(target), stdout=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.0, 0.4 * seconds))
        process.kill()
        if process.wait() == 0:  # it had come to its end: compare, and begin another
            compare(folder / "whole", target)
            shutil.rmtree(target)
            continue
        at.append(_written(target))
    subprocess.run(_next(target), check=True)
    compare(folder / "whole", target)
    return {"kills": len(at), "rows at each kill": at, "equal": True, "goal": "20, exact"}


def _next(target: Path) -> list[str]:
    """The command that goes on with a run, or begins it where no whole folder stands."""
    if (target / "settings.json").exists():
        return command("resume", str(target))
    shutil.rmtree(target, ignore_errors=True)
    return command("text", *SMALL, "--out", str(target))


def _written(target: Path) -> int:
    """How many steps stand in the table."""
    table = target / "metrics.csv"
    return max(0, len(table.read_text(encoding="utf-8").splitlines()) - 1) if table.exists() else 0


def compare(whole: Path, other: Path) -> None:
    assert rows(whole) == rows(other), "the rows differ"
    assert model(whole) == model(other), "the parameters differ"


def seeds(folder: Path) -> dict[str, Any]:
    """The same seed twice, and another."""
    for name, seed in (("first", "3"), ("second", "3"), ("other", "4")):
        run("text", *SMALL, "--seed", seed, "--out", str(folder / name))
    compare(folder / "first", folder / "second")
    return {"equal": True, "another seed differs": rows(folder / "first") != rows(folder / "other")}


PARTS = {"images": images, "text": text, "kills": kills, "seeds": seeds}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as place:
            found = PARTS[part](Path(place))
        keep("train", part, found, "torch")
        print(part, {name: value for name, value in found.items() if name != "orders"})
