"""Names that a package brings from its modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def by_name(home: Mapping[str, str]) -> dict[str, str]:
    """The module of each name, from the names of each module."""
    return {name: module for module, names in home.items() for name in names.split()}


def brought(package: str, names: Mapping[str, str], name: str, **extras: str) -> Any:
    """The value of a name, kept in the package; a module of the package by its own name.

    extras: which extra of regard brings a package that may be missing, as in torch="train"
    """
    try:
        return _found(package, names, name)
    except ModuleNotFoundError as missing:
        if missing.name not in extras:
            raise
        from .algebra.errors import MissingExtra

        raise MissingExtra(missing.name, extras[missing.name]) from None


def _found(package: str, names: Mapping[str, str], name: str) -> Any:
    if name in names:
        value = getattr(import_module(f".{names[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value
    if name in names.values():
        return import_module(f".{name}", package)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
