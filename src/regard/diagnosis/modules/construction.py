"""An instance of somebody's class, from the names of its constructor's arguments.

    MultiHead(d_model, n_heads, dropout=0.1)     d_model=24, n_heads=4
    SelfAttention(config)                        an object that answers every usual name
    SelfAttention(args: ModelArgs)               an instance of ModelArgs, made in the same way

What the user gives by `init` wins; sizes that have a default are replaced, to be small and to fit each other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from ...algebra.errors import CallError, KindError
from ..raised import line_of
from .found import REFUSED
from .usual import CONFIGS, HEADS, TRIED, Widths, alone, is_size, value

if TYPE_CHECKING:
    from torch import nn

FAILURES = (*REFUSED, AssertionError, NameError, ZeroDivisionError, ImportError)
Init = Mapping[str, Any]


class Config(dict[str, Any]):
    """A configuration that answers every usual name, as an attribute and as an item; others are unknown to it.

    >>> config = Config({"n_embd": 32}, Widths())
    >>> config.n_embd, config["n_head"], getattr(config, "window", None), "window" in config
    (32, 4, None, False)
    """

    def __init__(self, given: Init, widths: Widths) -> None:
        super().__init__(given)
        self.__dict__["_widths"] = widths

    def __missing__(self, name: str) -> Any:
        self[name] = value(name, self.__dict__["_widths"], frozenset())  # kept: what was asked for can be read back
        return self[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_widths" not in self.__dict__:  # while it is copied
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name}: no usual name; pass init={{{name!r}: ...}}") from None

    def __setattr__(self, name: str, given: Any) -> None:
        self[name] = given

    def __contains__(self, name: object) -> bool:
        return hasattr(self, str(name))

    def get(self, name: str, default: Any = None) -> Any:
        """An item, or the default for a name that is unknown."""
        return getattr(self, name, default)

    def __reduce__(self) -> tuple[Any, ...]:
        return Config, (dict(self), self.__dict__["_widths"])


def construct(cls: Callable[..., nn.Module], init: Init | None = None) -> nn.Module:
    """A module of an attention class; raises CallError where an argument has no usual name."""
    if hasattr(cls, "named_parameters") and not isinstance(cls, type):
        raise KindError(f"cls: a class; got an instance of {type(cls).__name__}; it needs no construct")
    made: nn.Module = made_from_names(cls, init)
    return made


def made_from_names(cls: Callable[..., Any], init: Init | None = None) -> Any:
    """An instance of any class, module or not."""
    failed: list[tuple[dict[str, Any], Exception]] = []
    for arguments in _attempts(cls, dict(init or {})):
        try:
            return cls(**arguments)
        except FAILURES as error:
            failed.append((arguments, error))
    raise _refusal(cls, *failed[0]) from failed[0][1]


# -- arguments ---------------------------------------------------------------------------------------------------


def _attempts(cls: Callable[..., Any], init: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments to try, one after the other: our sizes, then the class's own defaults."""
    _check(cls, init)
    for widths in TRIED:
        yield _arguments(cls, init, widths, replace=True)
    yield _arguments(cls, init, TRIED[0], replace=False)


def _arguments(cls: Callable[..., Any], init: Init, widths: Widths, *, replace: bool) -> dict[str, Any]:
    named = _parameters(cls)
    beside, chosen = frozenset(named), _own(named, init)
    sizes = widths if beside & set(HEADS) else alone(widths)
    flat = {name: given for name, given in init.items() if name not in named}
    for name, parameter in named.items():
        if name in init and not isinstance(init[name], Mapping):
            continue
        required = parameter.default is parameter.empty
        if required and name in CONFIGS:
            chosen[name] = _config(_annotation(cls, name), {**flat, **init.get(name, {})}, widths)
        elif required or (replace and is_size(name) and _is_whole(parameter.default)):
            chosen.setdefault(name, value(name, sizes, beside))
    takes_config = any(name in CONFIGS for name in chosen)
    return chosen if takes_config else {**flat, **chosen}


def _own(named: Mapping[str, inspect.Parameter], init: Init) -> dict[str, Any]:
    return {
        name: given for name, given in init.items() if name in named and not (name in CONFIGS and _is_config(given))
    }


def _is_config(given: Any) -> bool:
    return isinstance(given, Mapping)


def _config(kind: Any, given: Init, widths: Widths) -> Any:
    """A configuration of the annotated class if it can be made, else one that answers every usual name."""
    made_by_names = isinstance(kind, type) and kind not in {dict, object} and not issubclass(kind, Mapping)
    if not made_by_names:
        return Config(given, widths)
    try:
        return kind(**{**_sizes(kind, widths), **given})
    except (*FAILURES, KeyError):
        return Config(given, widths)


def _sizes(kind: type, widths: Widths) -> dict[str, Any]:
    """Values for the fields of a configuration that must be given, and for those that are sizes."""
    named = _parameters(kind)
    asked = {
        name: one
        for name, one in named.items()
        if one.default is one.empty or (is_size(name) and _is_whole(one.default))
    }
    return {name: value(name, widths, frozenset()) for name in asked}


def _parameters(cls: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        found = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: one for name, one in found.items() if one.kind not in rest}


def _annotation(cls: Callable[..., Any], name: str) -> Any:
    try:
        return get_type_hints(getattr(cls, "__init__", cls) if isinstance(cls, type) else cls).get(name)
    except (*FAILURES, SyntaxError):
        return None


def _is_whole(default: Any) -> bool:
    return isinstance(default, int) and not isinstance(default, bool)


# -- errors ------------------------------------------------------------------------------------------------------


def _check(cls: Callable[..., Any], init: Init) -> None:
    """Refuses names that the constructor does not take, and says which of its own nobody can guess."""
    named = _parameters(cls)
    takes_config = any(name in CONFIGS and one.default is one.empty for name, one in named.items())
    if strange := [name for name in init if name not in named and not takes_config and not _takes_any(cls)]:
        raise CallError(
            f"init: arguments of {_name(cls)}, which takes {', '.join(named) or 'none'}; got {', '.join(strange)}"
        )
    required = [name for name, one in named.items() if one.default is one.empty and name not in {*init, *CONFIGS}]
    if unknown := [name for name in required if not _is_known(name, frozenset(named))]:
        given, shown = (sep.join(f"{quote}{name}{quote}{sign}..." for name in unknown) for quote, sign, sep in _FORMS)
        raise CallError(
            f"init: a value for each argument of {_name(cls)} that no usual name explains; got none for "
            f'{", ".join(unknown)}; pass init={{{given}}}, or --init "{shown}", as in --init "d_model=32, n_heads=4"'
        )


_FORMS = (('"', ": ", ", "), ("", "=", ", "))


def _takes_any(cls: Callable[..., Any]) -> bool:
    try:
        found = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(one.kind is one.VAR_KEYWORD for one in found)


def _is_known(name: str, beside: frozenset[str]) -> bool:
    try:
        value(name, TRIED[0], beside)
    except KeyError:
        return False
    return True


def _refusal(cls: Callable[..., Any], tried: Init, error: Exception) -> CallError:
    given = ", ".join(f"{name}={'…' if isinstance(one, Config) else one!r}" for name, one in tried.items())
    where = f" ({line})" if (line := line_of(error)) else ""
    return CallError(
        f"init: arguments that {_name(cls)} can be made from; got {_name(cls)}({given}), which raises "
        f'{type(error).__name__}: {error}{where}; pass init={{...}}, or --init "d_model=32, n_heads=4"'
    )


def _name(cls: Callable[..., Any]) -> str:
    return getattr(cls, "__name__", type(cls).__name__)
