"""Vocabularies on disk: JSON with a heading that says what it is; whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..algebra.errors import KindError

FORMAT, VERSION = "regard vocabulary", 1


def write(path: str | os.PathLike[str], kind: str, record: Mapping[str, Any]) -> None:
    """The record as a file. A reader finds the old file or the new one, never a part of it."""
    target = Path(path)
    text = json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **record}, ensure_ascii=False, indent=1)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")  # a rename must stay on one disk
    try:
        beside.write_text(f"{text}\n", encoding="utf-8", newline="\n")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], kinds: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The kind of vocabulary in a file, one of `kinds`, and its record."""
    found = _json(path)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        foreign = isinstance(found, dict) and "model" in found and "added_tokens" in found
        hint = "a tokenizer.json; pass it to BytePairs.wrap" if foreign else "other JSON"
        raise KindError(f"path: a file that a vocabulary saved; got {_name(path)}, which holds {hint}")
    if found.get("version") != VERSION or found.get("kind") not in kinds:
        told = f"{found.get('kind')!r} in version {found.get('version')!r}"
        raise KindError(
            f"path: a file that a vocabulary saved, in version {VERSION}; got {_name(path)}, which holds {told}; "
            "read it with the regard that wrote it"
        )
    return found["kind"], {name: value for name, value in found.items() if name not in ("format", "version", "kind")}


def _json(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError:  # of the encoding, or of JSON
        raise KindError(f"path: a file that a vocabulary saved; got {_name(path)}, which is no JSON") from None


def _name(path: str | os.PathLike[str]) -> str:
    return repr(os.fspath(path))
