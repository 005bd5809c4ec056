"""How a target is called, as a value: which arguments it takes, in which library and layout, and what it returns.

A reading turns a problem into a call, and what came back into arrays in the layout of problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .calling import Argument, Call, Outcome, Path
from .layouts import Layout
from .libraries import LIBRARIES
from .masks import GivenMask
from .problem import Array, Problem, Sizes, inputs, vectors
from .signature import Parameter

TOLERANCE = {"float64": 1e-5, "float32": 2e-4}  # of the output: a mistake changes far more, rounding far less
INPUT_OF = {"x": "x", "q": "x", "context": "context", "k": "context", "v": "memory"}
SQUARE = 5


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
    transposed: bool = False  # matrices are handed over as (out, in)
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
        if self.form == "vectors":
            return vectors(size, seed, spread)
        if self.shared:
            size = replace(size, keys=size.queries)
        problem = inputs(size, self.present, seed, spread, shared=self.shared)
        if "v" in self.roles:  # values have an input of their own
            memory = np.random.default_rng(seed + 1).normal(size=problem["context"].shape)
            problem = problem.but(memory=memory)
        return problem

    # -- the call --------------------------------------------------------------------------------------------------

    def call(self, problem: Problem, about: str = "", **wants: Any) -> Call:
        """The call that hands the problem over."""
        arguments = tuple(self._argument(parameter, problem) for parameter in self.taken)
        matrices = {name: problem[name] for name in self.present if name in problem.arrays}
        shown = ", ".join(f"{a.name} {np.shape(a.value)}" for a in arguments if not a.plain)
        return Call(
            arguments,
            self.language,
            wants.pop("dtype", self.dtype),
            instance=self.instance,
            matrices=matrices if self.instance is not None else {},
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
        if (array := self._array(role, problem)) is not None:
            return Argument(parameter.name, array, by)
        return Argument(parameter.name, self._plain(parameter, problem), by, plain=True)

    def _array(self, role: str, problem: Problem) -> Array | None:
        if role in ("mask", "padding", "lengths", "bias"):
            return None if self.mask is None else self.mask.array(problem, self.layout)
        if self.form == "vectors" and role in ("q", "k", "v"):
            return self.layout.of(problem[role])
        if role in INPUT_OF and self.form == "inputs":
            return self.layout.of(problem[INPUT_OF[role]], "bnd")
        if role[0] in "wb" and role in problem.arrays and self.instance is None:
            return self._matrix(problem[role])
        if role in ("wqkv", "wkv"):
            return self._matrix(np.concatenate([problem[f"w{letter}"] for letter in role[1:]], axis=1))
        return None

    def _matrix(self, matrix: Array) -> Array:
        return np.ascontiguousarray(matrix.T) if self.transposed or self.layout.axes == "dn" else matrix

    def _plain(self, parameter: Parameter, problem: Problem) -> Any:
        width = self.sizes.width
        known: dict[str, Any] = {
            "heads": problem.heads,
            "kv_heads": problem.groups,
            "width": width,
            "model_width": self.sizes.model_width if self.form == "inputs" else width,
            "scale": width**-0.5,
            "dropout": 0.0,
            "training": False,
            "causal": False,
            "use_cache": False,
            "return_weights": False,
            "start": 0,
        }
        return known.get(parameter.role, parameter.default)

    # -- what came back --------------------------------------------------------------------------------------------

    def shape(self, problem: Problem) -> tuple[int, ...]:
        """The shape that an output should have, in the layout of problems."""
        s = self.sizes
        if self.form == "vectors":
            return (problem.batch, problem.heads, problem.queries, int(problem["v"].shape[-1]))
        out = problem.get("wo")
        merged = s.heads * s.value_width if "wv" in self.present else problem["memory"].shape[-1]
        return (problem.batch, problem.queries, merged if out is None else int(out.shape[-1]))

    def read(self, outcome: Outcome, problem: Problem) -> Array | None:
        """The output in the layout of problems; None where it has another shape."""
        raw = outcome.at(self.output)
        return None if raw is None else self.canonical(raw, problem)

    def canonical(self, raw: Array, problem: Problem) -> Array | None:
        """One array that was returned, in the layout of problems."""
        axes = "bhnd" if self.form == "vectors" else "bnd"
        shape = self.shape(problem)
        if self.merged:
            return _unmerged(raw, shape)
        if raw.ndim != len(self.layout.axes):
            return None
        made = self.layout.back(raw, axes)
        return made if made.shape == shape else None

    def located(self, outcome: Outcome, problem: Problem) -> Reading | None:
        """This reading with the place of the output, and of the weights; None where nothing has the right shape."""
        for merged in (False, True) if self.layout.has("h") and self.layout.has("b") else (False,):
            reading = replace(self, merged=merged)
            found = [path for path, raw in outcome.arrays if reading.canonical(raw, problem) is not None]
            if found:
                weights = [path for path, raw in outcome.arrays if path != found[0] and _is_matrix(raw, problem)]
                return replace(reading, output=found[0], weights=weights[0] if weights else None)
        return None

    def returned_weights(self, outcome: Outcome, problem: Problem) -> Array | None:
        """The weights that were returned: (batch, heads, n_q, n_k), or without the axes that they do not have."""
        return None if self.weights is None else outcome.at(self.weights)

    def but(self, **said: Any) -> Reading:
        """The same reading with further arguments by role, as in `causal=True`."""
        return replace(self, said=tuple({**dict(self.said), **said}.items()))

    def words(self) -> Mapping[str, str]:
        """How it was read, for people."""
        shown = {
            "called as": f"({', '.join(_shown(parameter) for parameter in self.taken)})",
            "library": LIBRARIES[self.language].title,
            "layout": f"({self.layout.words})",
        }
        if self.layout.has("h") or self.form == "inputs":
            shown["heads"] = str(self.sizes.heads) + (
                f", {self.sizes.groups} of keys" if self.sizes.groups != self.sizes.heads else ""
            )
        if self.mask is not None:
            shown["mask"] = self.mask.words
        return shown


def _shown(parameter: Parameter) -> str:
    return parameter.name if parameter.name.lower() == parameter.role else f"{parameter.name}: {parameter.role}"


def _is_matrix(raw: Array, problem: Problem) -> bool:
    return raw.ndim >= 2 and raw.shape[-2:] == (problem.queries, problem.keys)


def _unmerged(raw: Array, shape: tuple[int, ...]) -> Array | None:
    """(batch, n, heads · d) as (batch, heads, n, d)."""
    batch, heads, n, width = shape
    if raw.shape != (batch, n, heads * width):
        return None
    return raw.reshape(batch, n, heads, width).transpose(0, 2, 1, 3)
