"""A target as bytes: a place by its text, a live object by value, together with the module that it was written in.

What was written in a notebook, in a test or in a file edited since cannot be imported by another process, or would be
another function there; so the functions and classes of the target's own modules travel as code. Installed packages
and the standard library are imported there.
"""

from __future__ import annotations

import functools
import io
import pickle
import site
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ...algebra.errors import MissingExtra
from .limits import TargetError, out_of_memory
from .loading import Live, Place, shown

HERE = "pass its place, as 'path.py:name', or limits=None to run it in this process, without limits"


def pack(source: Live | Place) -> bytes:
    """The bytes of a source."""
    return pickle.dumps(source) if isinstance(source, Place) else _pack_live(source)


def unpack(data: bytes) -> Any:
    """The target itself, loaded here."""
    try:
        source = _OnCpu(io.BytesIO(data)).load()
    except Exception as error:
        if out_of_memory(error):
            raise
        raise TargetError(
            f"target: it must come out of its pickle in the child process; got {type(error).__name__}: {error}; {HERE}"
        ) from None
    return source.load()


# -- there -----------------------------------------------------------------------------------------------------


class _OnCpu(pickle.Unpickler):
    """Reads tensors from any device as tensors on the CPU: the child sees no other."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _storage_on_cpu
        return super().find_class(module, name)


def _storage_on_cpu(data: bytes) -> Any:
    import torch

    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)


# -- here ------------------------------------------------------------------------------------------------------


def _pack_live(source: Live) -> bytes:
    cloudpickle, source = _cloudpickle(), Live(plain(source.target))
    with ExitStack() as after:
        for module in dict.fromkeys(own_modules(source.target)):
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                after.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return bytes(cloudpickle.dumps(source))
        except Exception as error:  # noqa: BLE001 - what it holds may refuse in any way
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TargetError(
                f"target: it is sent to a child process, so all that it holds must have a pickle; "
                f"got {shown(source.target)}: {reason}; {HERE}"
            ) from None


def plain(target: Any) -> Any:
    """What torch.compile was given: the same function, which has a pickle and needs no minutes of compiling."""
    for name in ("_torchdynamo_orig_callable", "_orig_mod"):
        target = getattr(target, name, target)
    return target


def _cloudpickle() -> Any:
    try:
        return import_module("cloudpickle")
    except ImportError:
        error = MissingExtra("cloudpickle", "check")
        error.msg = f"{error}; or {HERE}"
        raise error from None


def own_modules(target: Any) -> Iterator[ModuleType]:
    """The modules in which the target was written, except what another process can import as it is."""
    for part in _parts(target):
        module = sys.modules.get(getattr(part, "__module__", None) or "")
        if module is not None and module.__name__ != "__main__" and not _installed(module):
            yield module


def _parts(target: Any) -> Iterator[Any]:
    """The functions and classes that make the target."""
    if isinstance(target, functools.partial):
        for part in (target.func, *target.args, *target.keywords.values()):
            yield from _parts(part)
        return
    yield target
    if (bound := getattr(target, "__self__", None)) is not None and not isinstance(bound, ModuleType):
        yield from _parts(bound)
    if (inner := getattr(target, "__wrapped__", None)) is not None:
        yield from _parts(inner)
    torch = sys.modules.get("torch")
    modules = target.modules() if torch and isinstance(target, torch.nn.Module) else ()
    for thing in (target, *modules):
        yield from thing.__mro__ if isinstance(thing, type) else type(thing).__mro__


def _installed(module: ModuleType) -> bool:
    """Whether another process can import it: ours, Python's own, or in a folder of packages."""
    root, file = module.__name__.partition(".")[0], getattr(module, "__file__", None)
    if root in ("regard", "builtins") or root in sys.stdlib_module_names:
        return True
    return file is not None and any(Path(file).is_relative_to(folder) for folder in _package_folders())


@functools.cache
def _package_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    named = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(dict.fromkeys([*named, *site.getsitepackages(), site.getusersitepackages()]))
