"""Triton's interpreter, made fit for use: it runs kernels on the CPU, where there is no GPU."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import cache

import numpy as np
from triton.language import core
from triton.runtime import interpreter

_patch_tensor, _patch_language = interpreter._patch_lang_tensor, interpreter._patch_lang
_run, _splat = interpreter.GridExecutor.__call__, interpreter.InterpreterBuilder.create_splat


def _index(tensor, scope):
    """The interpreter of triton 3.6 takes int() of an array of one number, which NumPy 2.4 refuses."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def _once(function):
    """Every call of a jitted function would patch the whole language again, which takes longer than to run it."""
    if any(core.is_builtin(module.arange) for module in _languages(function)):
        return _patch_language(function)
    return interpreter._LangPatchScope()


@cache
def _languages(function):
    return [x for x in function.__globals__.values() if x is interpreter.tl or x is core]


def _quietly(self, *arguments, **options):
    """A chip does not warn of 0 / 0 and log 0, and kernels do not look at what comes of them."""
    with np.errstate(all="ignore"):
        return _run(self, *arguments, **options)


def _spread(self, kind, argument):
    """One truth, as of two numbers compared, spread over a block stays a truth."""
    made = _splat(self, kind, argument)
    made.data = made.data.astype(argument.data.dtype)
    return made


interpreter._patch_lang_tensor, interpreter._patch_lang = _index, _once
interpreter.InterpreterBuilder.create_splat = _spread
interpreter.GridExecutor.__call__ = _quietly
