"""Three roles: what a row asks, what it is found by, what it sends. Which of them may be one?

q = W_q x        k = W_k x        v = W_v x        and W_v = 1, or one matrix in two or three places

At a party where all three differ, and in a language model; the ties have fewer parameters, which the table tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import mean, stdev
from typing import Any

import torch
from torch import nn

from ..train.fitting import fit
from ..train.optimiser import AdamW
from ..train.schedule import Schedule
from .language import NextCharacter, trained
from .party import STORIES, Guest, Listener, Party
from .reader import reader, size
from .record import Cell, Experiment, Outcome, Scale, Table, Tell
from .rewired import Nothing
from .values_drawing import draw

PARTY_STEPS, PARTY_RATE, PARTY_SEEDS = 300, 2e-2, 3
STEPS, SEEDS = 350, 2
OWN, SENT_AS_IT_IS, NONE = "W_q, W_k, W_v", "v = x", "no attention"


@dataclass(frozen=True)
class Roles:
    """Which matrices are one: `tie` changes the query, key and value of a layer."""

    name: str
    tie: Callable[[Any], None]


def _same(*roles: str) -> Callable[[Any], None]:
    """One matrix in these roles: that of the first."""

    def tie(layer: Any) -> None:
        for role in roles[1:]:
            setattr(layer, role, getattr(layer, roles[0]))

    return tie


def _sent_as_it_is(layer: Any) -> None:
    layer.value = nn.Identity()


ROLES = (
    Roles(OWN, _same()),
    Roles(SENT_AS_IT_IS, _sent_as_it_is),
    Roles("q = k", _same("key", "query")),
    Roles("k = v", _same("key", "value")),
    Roles("q = v", _same("query", "value")),
    Roles("q = k = v", _same("key", "query", "value")),
)


def at_the_party(roles: Roles, learned: bool, seed: int, scale: Scale) -> dict[str, float]:
    """The measures of a party, after training."""
    torch.manual_seed(seed)
    guest = Guest()
    roles.tie(guest)
    schedule = Schedule(scale.steps(PARTY_STEPS), PARTY_RATE)
    return fit(
        Listener(guest, learned), Party(seed, scale.steps(512)), schedule, optimiser=AdamW(decay=0.0), seed=seed
    ).last


def in_language(tie: Callable[[Any], Any], seed: int, scale: Scale, tell: Callable[[float], None]) -> tuple[float, int]:
    """Held-out nats for each character, and how many parameters the model has."""
    model = reader(seed)
    for block in model.blocks:
        tie(block)
    history = trained(model, NextCharacter(seed, measured=scale.steps(256)), scale.steps(STEPS), seed=seed, tell=tell)
    return history.last["loss"], size(model)


def _without(block: Any) -> None:
    block.attention = Nothing()


def run(scale: Scale, tell: Tell) -> Outcome:
    """Every tie in both places; parties are the shorter part."""
    numbers: dict[str, float] = {}
    for at, roles in enumerate(ROLES):
        tell(f"party, {roles.name}", 0.3 * at / len(ROLES))
        _measure_party(roles, scale, numbers)
    ties = {roles.name: partial(_tied, roles) for roles in ROLES} | {NONE: _without}
    for at, (name, tie) in enumerate(ties.items()):
        told = partial(_told, tell, f"language, {name}", 0.3 + 0.7 * at / len(ties), 0.7 / len(ties) / SEEDS)
        runs = [in_language(tie, scale.seed + seed, scale, partial(told, seed)) for seed in range(SEEDS)]
        numbers[f"{name}: nats"] = mean(nats for nats, _ in runs)
        numbers[f"{name}: spread"] = stdev(nats for nats, _ in runs)
        numbers[f"{name}: parameters"] = runs[0][1]
    return outcome_of(numbers)


def _tied(roles: Roles, block: Any) -> None:
    roles.tie(block.attention)


def _told(tell: Tell, what: str, first: float, share: float, seed: int, done: float) -> None:
    tell(what, first + share * (seed + done))


def _measure_party(roles: Roles, scale: Scale, numbers: dict[str, float]) -> None:
    for how, learned in (("mapped", True), ("as it is", False)):
        runs = [at_the_party(roles, learned, scale.seed + seed, scale) for seed in range(PARTY_SEEDS)]
        numbers[f"{roles.name}: {how}"] = mean(measures["right"] for measures in runs)
        numbers[f"{roles.name}: {how}, least"] = min(measures["right"] for measures in runs)
        numbers[f"{roles.name}: {how}, most"] = max(measures["right"] for measures in runs)
        if learned:
            for who in ("asked", "asker", "self"):
                numbers[f"{roles.name}: {who}"] = mean(measures[who] for measures in runs)


def outcome_of(numbers: dict[str, float]) -> Outcome:
    """Table and answer from the numbers."""
    rows = tuple(_row(roles.name, numbers) for roles in ROLES)
    none = (NONE, "—", "—", "—", round(numbers[f"{NONE}: nats"], 3), int(numbers[f"{NONE}: parameters"]))
    columns = (
        "roles",
        "party, a learned map behind, %",
        "party, heard as it is, %",
        "weight on the one asked / the asker",
        "language, nats",
        "parameters there",
    )
    return Outcome(says(numbers), Table(columns, (*rows, none)), numbers, {"chance": 1 / STORIES})


def _row(name: str, numbers: dict[str, float]) -> tuple[Cell, ...]:
    mapped, heard = (round(100 * numbers[f"{name}: {how}"]) for how in ("mapped", "as it is"))
    weights = f"{numbers[f'{name}: asked']:.2f} / {numbers[f'{name}: asker']:.2f}"
    return (name, mapped, heard, weights, round(numbers[f"{name}: nats"], 3), int(numbers[f"{name}: parameters"]))


def says(numbers: dict[str, float]) -> str:
    """The answer in words."""
    ties = [roles.name for roles in ROLES if roles.name not in (OWN, SENT_AS_IT_IS)]
    works = [name for name in ties if numbers[f"{name}: mapped, least"] > 0.9]
    fails = [f"{name} ({numbers[f'{name}: mapped']:.0%})" for name in ties if name not in works]
    own = numbers[f"{OWN}: nats"]
    costs = ", ".join(f"{name} {numbers[f'{name}: nats'] - own:+.2f}" for name in (SENT_AS_IT_IS, *ties))
    gained = numbers[f"{NONE}: nats"] - own
    symmetric = numbers["q = k: asked"] / max(numbers["q = k: asker"], 1e-9)
    why = f"; with q = k it reads the guest asked for {symmetric:.1f} times as much as the one who asks"
    return (
        f"At the party, as good as three matrices: {_listed(works)}; not so: {_listed(fails)}{why}. "
        f"Values sent as they are: {numbers[f'{SENT_AS_IT_IS}: as it is']:.0%} where they are heard as they are, "
        f"{numbers[f'{SENT_AS_IT_IS}: mapped']:.0%} where a learned map stands behind the sum. "
        f"In the language model, in nats against {own:.2f}: {costs}; attention as a whole brings {gained:.2f}."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


EXPERIMENT = Experiment(
    "values",
    "May what a row asks, what it is found by and what it sends be one?",
    ("V1", "V2"),
    3.0,
    run,
    draw,
    (12.0, 4.8),
)
