"""One name in transformers' two registries: the function that attends, and the function that makes its mask.

A model asks for its attention by the name that its config holds. Which formula a call runs is found from the module
that calls, so that models under different formulas share the name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PretrainedConfig
from transformers.masking_utils import eager_mask, sdpa_mask

from ..algebra.errors import CallError
from .call import Call, Place
from .habits import Habit

if TYPE_CHECKING:
    from .handle import Use

NAME = "regard"
UNSET = object()

SERVING: WeakKeyDictionary[torch.nn.Module, list[tuple[Use, str]]] = WeakKeyDictionary()
"""Who serves a module, the latest last, and the module's name there."""


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What transformers calls: y as (batch, queries, heads, width), and the weights where they are asked for."""
    stack = SERVING.get(module)
    if not stack:
        raise CallError(
            f"use: {type(module).__name__} belongs to no model under regard.hf.use, but to a copy of one, or to a "
            "model that shares its config object; give each model its own, for example copy.deepcopy(config)"
        )
    for waiting, name in stack:
        waiting.saw(name)
    user, name = stack[-1]
    return user.attend(name, Call(module, query, key, value, attention_mask, options, user.left_out(module)))


def mask(*arguments: Any, **options: Any) -> torch.Tensor | None:
    """The mask that transformers makes, and on it where the first query stands.

    A causal mask may be left out where every module that gets it says that it is causal.
    """
    entry = _SWITCHED.get((id(options.get("config")), CONFIG))
    habits = [user.habits[id(options["config"])] for user in entry.users] if entry else []
    if not all(habit.leaves_out for habit in habits):
        options["allow_is_causal_skip"] = False
    make = eager_mask if any(habit.adds for habit in habits) else sdpa_mask
    made: torch.Tensor | None = make(*arguments, **options)
    if made is not None:
        made._regard_place = Place.of(options)
    elif options.get("allow_is_causal_skip", True):
        queries = options["q_length"] if "q_length" in options else len(options["cache_position"])
        for habit in habits:
            habit.left_out.add((int(queries), int(options["kv_length"])))
    return made


# -- registries and configs ------------------------------------------------------------------------------------


CONFIG = "_attn_implementation_internal"  # the public name's setter would also reach into sub-configs
OWNED = (CONFIG, "_attn_implementation", "attn_implementation")  # some modules keep the name beside their config


@dataclass
class Switched:
    """A config or module that goes by our name, what it went by before, and for whom."""

    owner: Any
    before: Any
    users: list[Use]


_LOCK = threading.RLock()
_SWITCHED: dict[tuple[int, str], Switched] = {}
_BEFORE: list[tuple[dict[str, Any], Any]] = []


def switch(user: Use, model: torch.nn.Module, habits: Mapping[int, Habit]) -> None:
    """Let a model's configs and modules name us; the first also enters the name."""
    owners = [*(habit.config for habit in habits.values()), *model.modules()]
    with _LOCK:
        if not _SWITCHED:
            _register()
        for owner, name in _names(owners):
            entry = _SWITCHED.setdefault((id(owner), name), Switched(owner, vars(owner).get(name, UNSET), []))
            entry.users.append(user)
            setattr(owner, name, NAME)


def switch_back(user: Use) -> None:
    """Let them name what they named before, where nobody else needs us; the last takes the name away."""
    with _LOCK:
        for (key, name), entry in list(_SWITCHED.items()):
            entry.users[:] = [other for other in entry.users if other is not user]
            if not entry.users:
                _restore(_SWITCHED.pop((key, name)), name)
        if not _SWITCHED:
            _unregister()


def _names(owners: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    """Where each owner keeps the name of its attention: a config always does."""
    for owner in owners:
        if isinstance(owner, PretrainedConfig):
            yield owner, CONFIG
        else:
            yield from ((owner, name) for name in OWNED if isinstance(vars(owner).get(name), str))


def _restore(entry: Switched, name: str) -> None:
    if entry.before is UNSET:
        delattr(entry.owner, name)
    else:
        setattr(entry.owner, name, entry.before)


def _register() -> None:
    for registry, function in ((AttentionInterface, attend), (AttentionMaskInterface, mask)):
        names = registry._global_mapping  # transformers has no public way to take a name out again
        _BEFORE.append((names, names.get(NAME, UNSET)))
        registry.register(NAME, function)


def _unregister() -> None:
    while _BEFORE:
        names, before = _BEFORE.pop()
        if before is UNSET:
            names.pop(NAME, None)
        else:
            names[NAME] = before
