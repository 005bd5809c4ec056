"""What modules of a class do, read from their code: whether they ask transformers for an attention, and how."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

import torch

REGISTRY = "ALL_ATTENTION_FUNCTIONS"  # by that name transformers' files ask
BASES = (
    "torch.nn.modules.module",
    "transformers.modeling_utils",
    "builtins",
)  # of every module: they attend to nothing
SOFTMAX = frozenset(["softmax", "Softmax", "scaled_dot_product_attention", "multi_head_attention_forward"])


class Source:
    """The code of a class of modules."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @cached_property
    def asking(self) -> FunctionType | None:
        """The function in which the class asks transformers for its attention."""
        found: dict[str, FunctionType] = {}
        for function in self._functions():
            found.setdefault(function.__name__, function)  # the first is what the others were overridden by
        return next((function for function in found.values() if REGISTRY in function.__code__.co_names), None)

    @property
    def eager(self) -> Callable[..., Any] | None:
        """The attention that its file writes out, for when no other is asked for."""
        if self.asking is None:
            return None
        names = [name for name in self.asking.__code__.co_names if "eager_attention" in name]
        found: Callable[..., Any] | None = vars(inspect.getmodule(self.asking)).get(names[0]) if names else None
        return found

    @cached_property
    def handed_over(self) -> frozenset[str]:
        """The names that the class gives to the attention itself, and those that its own one reads."""
        named = set() if self.asking is None else set(_keywords(self.asking.__code__))
        return frozenset(named | (set() if self.eager is None else set(inspect.signature(self.eager).parameters)))

    @cached_property
    def rewrites_mask(self) -> bool:
        """Whether it makes another mask of the one that it gets, before it asks."""
        steps = () if self.asking is None else dis.get_instructions(self.asking)
        return any(step.opname.startswith("STORE") and step.argval == "attention_mask" for step in steps)

    @cached_property
    def has_softmax(self) -> bool:
        """Whether it is an attention by name, and takes a softmax or calls PyTorch's kernel, in its file at least."""
        if not re.search("attention|attn", self.cls.__name__, re.IGNORECASE):
            return False
        called = (one for function in self._functions() for one in (function, *_called(function)))
        return any(SOFTMAX & set(function.__code__.co_names) for function in called)

    def _functions(self) -> Iterator[FunctionType]:
        """The functions of the class, those of its bases after its own, without decorators."""
        for base in self.cls.__mro__:
            for value in () if base.__module__ in BASES else vars(base).values():
                bare = inspect.unwrap(value) if callable(value) else value
                if isinstance(bare, FunctionType):
                    yield bare


_SOURCES: dict[type, Source] = {}


def source(module: torch.nn.Module) -> Source:
    """The code of a module's class."""
    return _SOURCES.setdefault(type(module), Source(type(module)))


def _keywords(code: CodeType) -> Iterator[str]:
    """Names of keyword arguments in the calls of a function: the compiler keeps them together."""
    for constant in code.co_consts:
        if isinstance(constant, tuple) and all(isinstance(name, str) for name in constant):
            yield from constant


def _called(function: FunctionType) -> Iterator[FunctionType]:
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            yield value
