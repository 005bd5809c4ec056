"""What the config.json of a model of Hugging Face says of its rotary position, in its older and newer forms.

base      rope_theta, rotary_emb_base
width     head_dim · (partial_rotary_factor, rotary_pct), or rotary_dim
scaling   rope_scaling, or else rope_parameters: {"rope_type" or "type": …, "factor": …, …}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...algebra.errors import CallError, KindError
from .scaling import DynamicNTK, Linear, Llama3, LongRoPE, Scaling, YaRN, growth

Config = Mapping[str, Any]
SECTIONS = ("rope_scaling", "rope_parameters")  # as transformers does: the first that is told stands for all


def base_of(config: Config) -> float:
    """The base of the frequencies; 10000 where none is told."""
    found = _first(_told(config), "rope_theta"), _first(config, "rope_theta", "rotary_emb_base"), 10000.0
    return float(next(base for base in found if base is not None))


def width_of(config: Config) -> int | None:
    """How many features of a head are turned; None for all."""
    width: int | None = _first(config, "rotary_dim")
    share = _first(_told(config), "partial_rotary_factor") or _first(config, "partial_rotary_factor", "rotary_pct")
    if width is not None or share in (None, 1):
        return width
    head = _first(config, "head_dim") or _need(config, "hidden_size") // _need(config, "num_attention_heads")
    return int(head * share)


def scaling_of(config: Config) -> Scaling:
    """The scaling, as a value."""
    told = _told(config)
    kind = _first(told, "rope_type", "type") or "default"
    if kind not in KINDS or "mrope_section" in told:
        got = "mrope_section" if kind in KINDS else repr(kind)
        raise CallError(
            f"rope_type: one of {', '.join(KINDS)}; got {got}; build Rotary(scaling=…) with your own Scaling"
        )
    return KINDS[kind](told, config)


def _linear(told: Config, _: Config) -> Scaling:
    return Linear(_need(told, "factor"))


def _dynamic(told: Config, config: Config) -> Scaling:
    return DynamicNTK(_need(told, "factor"), _need(config, "max_position_embeddings"))


def _llama3(told: Config, config: Config) -> Scaling:
    low, high = _need(told, "low_freq_factor"), _need(told, "high_freq_factor")
    return Llama3(_need(told, "factor"), low, high, _original(told, config))


def _yarn(told: Config, config: Config) -> Scaling:
    factor, gain = _factor(told, config), told.get("attention_factor")
    one, other = told.get("mscale"), told.get("mscale_all_dim")
    if gain is None and one and other:
        gain = growth(factor, one) / growth(factor, other)
    betas = told.get("beta_fast") or 32.0, told.get("beta_slow") or 1.0
    truncate = told.get("truncate")
    return YaRN(factor, _original(told, config), *betas, gain, True if truncate is None else bool(truncate))


def _longrope(told: Config, config: Config) -> Scaling:
    short, long = (tuple(_need(told, name)) for name in ("short_factor", "long_factor"))
    return LongRoPE(short, long, _factor(told, config), _original(told, config), told.get("attention_factor"))


KINDS: dict[str, Callable[[Config, Config], Scaling]] = {
    "default": lambda told, config: Scaling(),
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
}


# -- reading ---------------------------------------------------------------------------------------------------


def _told(config: Config) -> Config:
    """The section about rotary positions; empty where there is none."""
    if not isinstance(config, Mapping):
        raise KindError(f"config: a dict, as in json.load or config.to_dict(); got {type(config).__name__}")
    name, told = next(((name, config[name]) for name in SECTIONS if config.get(name)), ("", {}))
    if not isinstance(told, Mapping):
        raise KindError(f"{name}: a dict; got {told!r}")
    if told and all(isinstance(part, Mapping) for part in told.values()):
        raise CallError(
            f"{name}: of one kind of layer; got {', '.join(told)}; "
            f'pass {{**config, "{name}": config["{name}"]["{next(iter(told))}"]}} for the first of them'
        )
    return told


def _first(told: Config, *names: str) -> Any:
    """The first of these that is told."""
    return next((told[name] for name in names if told.get(name) is not None), None)


def _need(told: Config, name: str) -> Any:
    if told.get(name) is None:
        raise CallError(
            f"{name}: the config must say it for this rope_type; got {', '.join(told) or 'an empty config'}"
        )
    return told[name]


def _original(told: Config, config: Config) -> int:
    """The length of training: beside the section, in it, or the longest there is."""
    name = "original_max_position_embeddings"
    found = _first(config, name) or _first(told, name)
    return int(_need(config, "max_position_embeddings") if found is None else found)


def _factor(told: Config, config: Config) -> float:
    """How much longer texts may be than in training."""
    factor = told.get("factor")
    return float(_need(config, "max_position_embeddings") / _original(told, config) if factor is None else factor)
