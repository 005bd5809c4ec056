"""A task that only attention can do: fetch the colour of the guest whom you seek.

    x_i = [ name | sought | colour ]          t_i = the colour of the guest whose name is sought_i

Guests meet at a party. Each wears a name, seeks the name of another guest, and holds a colour. Nobody can find t_i
in x_i alone, and where a guest stands says nothing: i has to ask, j has to answer, and j's colour has to be handed
over. Names and sought names are axes of their own (one 1, the rest 0), a colour is three numbers from −1 to 1.

What a perfect learner would find:

    W_Q reads `sought`, W_K reads `name`:  q_i · k_j is large where sought_i = name_j, so that j is i's partner
    W_V reads `colour`:                    v_j is what j holds

E‖colour‖² = 3 · 1/3 = 1. Whoever reads all N guests alike answers with their mean colour and errs by 1 − 1/N: chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._checks import check_count
from ..._shapes import Array, Float
from ...algebra.errors import CallError

NAMES = "Ada Ben Cleo Dan Emmy Finn Gus Hana Ida Jan Kim Leo".split()
COLOUR = 3  # red, green, blue


class Parties(NamedTuple):
    """Parties that were drawn: p of them, each of N guests.

    x:       the guests, what attention gets to see
    t:       the colour that each has to fetch
    name:    the number of the name that each wears
    partner: the place of the guest whom each seeks
    """

    x: Float[Array, "p N D"]
    t: Float[Array, "p N colour"]
    name: Array
    partner: Array


@dataclass(frozen=True)
class Task:
    """Parties of so many guests, whose names are among so many.

    >>> parties = Task(guests=5, names=7).draw(2, np.random.default_rng(0))
    >>> parties.x.shape, parties.t.shape
    ((2, 5, 17), (2, 5, 3))
    """

    guests: int = 6
    names: int = 8

    def __post_init__(self) -> None:
        check_count("guests", self.guests, 2)
        check_count("names", self.names, 2)
        if not self.guests <= self.names <= len(NAMES):
            raise CallError(
                f"names: one for each of {self.guests} guests, and at most {len(NAMES)}; got {self.names}; "
                f"for example Task(guests={min(self.guests, len(NAMES))}, names={len(NAMES)})"
            )

    @property
    def width(self) -> int:
        """D: of a guest."""
        return 2 * self.names + COLOUR

    @property
    def parts(self) -> dict[str, slice]:
        """Where a guest keeps what."""
        P, D = self.names, self.width
        return {"name": slice(0, P), "sought": slice(P, 2 * P), "colour": slice(2 * P, D)}

    @property
    def chance(self) -> float:
        """The loss of whoever reads all guests alike."""
        return 1 - 1 / self.guests

    def draw(self, parties: int, rng: np.random.Generator) -> Parties:
        """So many parties: all names differ within one, and nobody seeks himself."""
        p, N = parties, self.guests
        name = rng.permuted(np.tile(np.arange(self.names), (p, 1)), axis=1)[:, :N]
        partner = (np.arange(N) + rng.integers(1, N, (p, N))) % N
        colour = rng.uniform(-1, 1, (p, N, COLOUR))
        sought, t = np.take_along_axis(name, partner, 1), np.take_along_axis(colour, partner[..., None], 1)
        axes = np.eye(self.names)
        return Parties(np.concatenate([axes[name], axes[sought], colour], axis=-1), t, name, partner)
