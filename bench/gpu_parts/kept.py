"""The document that a run keeps: runs, and records with the run each was measured in."""

from __future__ import annotations

import json
import math
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from .cases import FIRST_SECONDS, OF_COPY, goals

PARTS = ("speed", "decoding", "first")
IDENTITY = {
    "speed": ("formula", "width", "n", "direction"),
    "decoding": ("formula", "queries", "keys", "batch", "heads", "key_heads", "width"),
    "first": ("peer", "formula", "width", "n"),
}
Document = dict[str, Any]


def fresh(rehearsal: bool, settings: dict[str, Any]) -> Document:
    """An empty document of a run that begins now."""
    run = {"made": datetime.now(UTC).isoformat(timespec="seconds"), "settings": settings}
    return {"rehearsal": rehearsal, "runs": [run], "done": [], "avoided": [], **{part: [] for part in PARTS}}


def load(path: Path) -> Document:
    """What was kept."""
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    return document


def save(document: Document, path: Path) -> None:
    """Replace the file when the new one is whole: a run may end at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(_plain(document), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


def _plain(value: Any) -> Any:
    """JSON has no NaN: it is written as a word."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _said(*command: str) -> str | None:
    """What a command prints, where there is one."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def machine() -> dict[str, Any]:
    """Versions, processor, and the GPU as it was found."""
    import torch

    found: dict[str, Any] = {"python": platform.python_version(), "system": platform.system(), "versions": {}}
    found["commit"] = _said("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    for package in ("torch", "triton", "numpy", "sympy"):
        try:
            found["versions"][package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found["versions"][package] = None
    if torch.cuda.is_available():
        chip = torch.cuda.get_device_properties(0)
        found |= {
            "gpu": chip.name, "multiprocessors": chip.multi_processor_count, "memory_GiB": chip.total_memory // 2**30,
            "capability": f"{chip.major}.{chip.minor}", "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "driver, clock, power limit": _said(
                "nvidia-smi", "--query-gpu=driver_version,clocks.sm,power.limit", "--format=csv,noheader"
            ),
        }  # fmt: skip
    else:
        found["processor"] = platform.machine()
    return found


def record(document: Document, part: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The record of a case; a new one where there was none."""
    found: dict[str, Any]
    for found in document[part]:
        if _identity(part, found) == _identity(part, facts):
            return found
    made = {**facts, "run": len(document["runs"]) - 1, "peers": {}, "ratios": {}}
    document[part].append(made)
    return made


def _identity(part: str, found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found[name] for name in IDENTITY[part])


def judge(document: Document) -> None:
    """Write beside each record which goals it has, and whether they are reached."""
    for found in document["speed"]:
        found["goals"] = []
        for own, peer, least in goals(found):
            ratio = found["ratios"].get(own, {}).get(peer)
            judged = bool(ratio) or found["peers"].get(own, {}).get("state") in ("wrong", "failed")
            verdict = {"own": own, "peer": peer, "least": least, "ratio": ratio and ratio[1], "judged": judged}
            found["goals"].append({**verdict, "reached": bool(ratio and ratio[1] >= least)})
    if document["rehearsal"]:  # nothing that a CPU does is judged
        return
    for found in document["decoding"]:
        of_copy = found["peers"].get("regard", {}).get("of_copy")
        found["goal"] = {"least": OF_COPY, "reached": bool(of_copy and of_copy[1] >= OF_COPY)}
    for found in document["first"]:
        if found["peer"] == "regard":
            seconds = [found[name] for name in ("forward_s", "backward_s") if name in found]
            found["goal"] = {"most": FIRST_SECONDS, "reached": bool(seconds) and max(seconds) <= FIRST_SECONDS}


def joined(documents: list[Document]) -> Document:
    """Several runs in one document: a peer measured again in a case replaces its older measurement there.

    Every ratio is of one run, that of its peer.
    """
    whole = fresh(any(document["rehearsal"] for document in documents), {})
    whole["runs"] = []
    for document in documents:
        before = len(whole["runs"])
        whole["runs"] += document["runs"]
        for part in PARTS:
            cases = {_identity(part, found): found for found in whole[part]}
            for found in document[part]:
                anew = {**found, "run": found["run"] + before}
                cases[_identity(part, found)] = _merged(cases.get(_identity(part, found)), anew)
            whole[part] = list(cases.values())
    return whole


def _merged(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    if old is None or "peers" not in new:
        return new
    owns = {*old["ratios"], *new["ratios"]}
    ratios = {own: {**old["ratios"].get(own, {}), **new["ratios"].get(own, {})} for own in owns}
    return {**new, "peers": {**old["peers"], **new["peers"]}, "ratios": ratios}
