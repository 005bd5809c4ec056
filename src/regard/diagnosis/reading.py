"""How a target is called, as a value: which arguments it takes, in which library and layout, and what it returns.

A reading turns a problem into a call, and what came back into arrays in the layout of problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import returned
from .calling import Argument, Call, Outcome, Path
from .handing import plain_values, position_table
from .layouts import Layout
from .libraries import LIBRARIES
from .masks import GivenMask
from .matrices import FUSED, IN_OUT, Written
from .problem import TABLES, Array, Problem, Sizes, drawn_inputs, drawn_tables, drawn_vectors
from .signature import Parameter

TOLERANCE = {"float64": 1e-5, "float32": 2e-4}  # of the output: a mistake changes far more, rounding far less
INPUT_OF = {"x": "x", "q": "x", "context": "context", "k": "context", "v": "memory"}
MASKS = ("mask", "padding", "lengths", "bias")


@dataclass(frozen=True)
class Reading:
    """One way to call the target."""

    form: str  # "vectors" or "inputs", as a problem
    language: str
    layout: Layout
    taken: tuple[Parameter, ...]  # the arguments that are handed over, in order
    sizes: Sizes
    present: frozenset[str] = frozenset()  # the matrices that there are
    instance: Any = None  # of a module: how it is made and filled
    written: Written = IN_OUT  # how a function takes its matrices
    mask: GivenMask | None = None
    said: tuple[tuple[str, Any], ...] = ()  # further arguments by their role
    output: Path = ()
    weights: Path | None = None
    merged: bool = False  # heads come back side by side

    # -- problems --------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> str:
        """The precision of the target's arrays."""
        return LIBRARIES[self.language].dtype

    @property
    def tolerance(self) -> float:
        """How far an output may be off."""
        return TOLERANCE[self.dtype]

    @property
    def roles(self) -> frozenset[str]:
        """What is handed over."""
        return frozenset(parameter.role for parameter in self.taken)

    @property
    def shared(self) -> bool:
        """Whether queries, keys and values are made of one input."""
        return self.form == "inputs" and not self.roles & {"context", "k", "v"}

    def problem(self, seed: int = 0, spread: float = 1.0, **sizes: Any) -> Problem:
        """A random problem of this reading's sizes, or of others."""
        size = replace(self.sizes, **sizes) if sizes else self.sizes
        if self.layout.one:
            size = replace(size, queries=1)
        if self.form == "vectors":
            return replace(drawn_vectors(size, seed, spread), options=drawn_tables(self.roles, size, seed))
        if self.shared:
            size = replace(size, keys=size.queries)
        problem = drawn_inputs(size, self.present, seed, spread, shared=self.shared)
        if "v" in self.roles:  # values have an input of their own
            memory = np.random.default_rng(seed + 1).normal(size=problem["context"].shape)
            problem = problem.but(memory=memory)
        return problem.but(**self._small(problem, grown=True))

    def _small(self, problem: Problem, grown: bool = False) -> dict[str, Array]:
        """The matrices of a module as it holds them: one small one where heads share it; grown, as x meets them."""
        matrices = {name: problem[name] for name in self.present if name in problem.arrays}
        found = None if self.instance is None else self.instance.projections
        if found is None or found.shared == 1:
            return matrices
        small = found.small(matrices)
        return dict(found.effective(small)) if grown else small

    # -- the call --------------------------------------------------------------------------------------------------

    def call(self, problem: Problem, about: str = "", **wants: Any) -> Call:
        """The call that hands the problem over."""
        arguments = tuple(self._argument(parameter, problem) for parameter in self.taken)
        shown = ", ".join(f"{a.name} {np.shape(a.value)}" for a in arguments if not a.plain)
        return Call(
            arguments,
            self.language,
            wants.pop("dtype", self.dtype),
            instance=self.instance,
            matrices=self._small(problem) if self.instance is not None else {},
            output=self.output,
            about=about or f"a call with {shown}",
            **wants,
        )

    def _argument(self, parameter: Parameter, problem: Problem) -> Argument:
        role = parameter.role
        by = "name" if parameter.by == "name" or not parameter.required else "either"
        said = dict(self.said)
        if role in said:
            return Argument(parameter.name, said[role], by, plain=True)
        if (array := self._array(parameter, problem)) is not None:
            return Argument(parameter.name, array, by)
        value = plain_values(self.form, self.sizes, problem).get(role, parameter.default)
        return Argument(parameter.name, value, by, plain=True)

    def _array(self, parameter: Parameter, problem: Problem) -> Array | None:
        role = parameter.role
        if role in MASKS:
            return None if self.mask is None else self.mask.array(problem, self.layout)
        if role in TABLES:
            return np.asarray(problem.options[TABLES[role][0]])
        if role == "positions":
            return position_table(parameter.name, problem.keys, self.sizes.width)
        if self.form == "vectors" and role in ("q", "k", "v"):
            return (self.layout.queries if role == "q" else self.layout).of(problem[role])
        if role in INPUT_OF and self.form == "inputs":
            return self.layout.of(problem[INPUT_OF[role]], "bnd")
        if self.instance is None and (role in FUSED or role in self.present):
            return self.written.of(role, problem.arrays, problem.heads, problem.groups)
        return None

    # -- what came back --------------------------------------------------------------------------------------------

    def shape(self, problem: Problem) -> tuple[int, ...]:
        """The shape that an output should have, in the layout of problems."""
        return returned.shapes(self, problem)[0]

    def read(self, outcome: Outcome, problem: Problem) -> Array | None:
        """The output in the layout of problems; None where it has another shape."""
        raw = outcome.at(self.output)
        return None if raw is None else self.canonical(raw, problem)

    def canonical(self, raw: Array, problem: Problem) -> Array | None:
        """One array that was returned, in the layout of problems."""
        return returned.canonical(self, raw, problem)

    def located(self, outcome: Outcome, problem: Problem) -> Reading | None:
        """This reading with the place of the output, and of the weights; None where nothing has a shape that fits."""
        for merged in (False, True) if self.form == "vectors" and self.layout.has("h") else (False,):
            reading = replace(self, merged=merged)
            ranked = [(returned.rank(reading, raw, problem), path) for path, raw in outcome.arrays]
            fit = [(rank, path) for rank, path in ranked if rank is not None]
            if fit:
                output = min(fit, key=lambda one: one[0])[1]
                arrays = [(path, raw) for path, raw in outcome.arrays if path != output]
                weights = [path for path, raw in arrays if returned.is_weights(raw, problem)]
                return replace(reading, output=output, weights=weights[0] if weights else None)
        return None

    def returned_weights(self, outcome: Outcome, problem: Problem) -> Array | None:
        """The weights that were returned: (batch, heads, n_q, n_k), or without the axes that they do not have."""
        return None if self.weights is None else outcome.at(self.weights)

    def but(self, **said: Any) -> Reading:
        """The same reading with further arguments by role, as in `causal=True`."""
        return replace(self, said=tuple({**dict(self.said), **said}.items()))

    def words(self) -> Mapping[str, str]:
        """How it was read, for people; the last row says how to tell check otherwise."""
        rows = {
            "called as": f"({', '.join(_shown(parameter) for parameter in self.taken)})",
            "library": LIBRARIES[self.language].title,
            "layout": f"({self.layout.words})",
        }
        if self.layout.has("h") or self.form == "inputs":
            grouped = f", {self.sizes.groups} of keys" if self.sizes.groups != self.sizes.heads else ""
            rows["heads"] = f"{self.sizes.heads}{grouped}"
        if self.mask is not None:
            rows["mask"] = self.mask.words
        return rows


def _shown(parameter: Parameter) -> str:
    return parameter.name if parameter.name.lower() == parameter.role else f"{parameter.name}: {parameter.role}"
