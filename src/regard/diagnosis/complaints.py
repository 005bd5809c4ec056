"""What to say when no reading of a target works: its own error, its line, and how to say how it is called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .calling import Outcome
from .description import Description
from .libraries import LIBRARIES
from .reading import Reading

Failed = Sequence[tuple[Reading, Outcome]]
UNCLEAR = {"other", "params", "cache"}
SHOWN = 3  # different failures, the likeliest reading first
ADVICE = (
    "Say how it is called: roles='q k v mask' or 'x wq wk wv', layout='bnd', heads=4, library='torch'; "
    "on the command line --as q,k,v,mask --layout bnd --heads 4 --library torch"
)


def complaint(description: Description, failed: Failed) -> str:
    """The same failure each time, or the likeliest ones, and the advice."""
    shown = f"{description.name}({', '.join(one.name for one in description.parameters)})"
    if description.module is not None and description.module.images:
        return (
            f"{shown}: its layers are convolutions over images (batch, channels, height, width), which check does not "
            "read; give it the attention inside: a function or module of (batch, positions, width)"
        )
    failed = _likeliest(description, failed)
    told = list(dict.fromkeys(_told(outcome) for _, outcome in failed))
    if not told:
        return f"{shown}: no way to call it is left by what was said\n{ADVICE}"
    if len(told) == 1:
        return f"{shown}: {_always(failed[0][1])}\n{_mend(*failed[0])}"
    first = [next(one for one in failed if _told(one[1]) == text) for text in told[:SHOWN]]
    lines = "\n".join(_tried(*one) for one in first)
    return (
        f"{shown}: no way to call it was found; what came of the likeliest:\n{lines}\n{ADVICE}{_not_understood(first)}"
    )


def _likeliest(description: Description, failed: Failed) -> Failed:
    """Those of the library that the code names, and of them first those that came furthest."""
    named = description.languages[0] != "python"
    own = [one for one in failed if one[0].language == description.languages[0] or not named] or failed
    return sorted(own, key=lambda one: -_reached(one[1]))


def _reached(outcome: Outcome) -> float:
    """How far a call came: to the end, or to a line."""
    line = outcome.where.split(":")[1:2]
    return float("inf") if not outcome.error else float(line[0]) if line and line[0].isdigit() else 0.0


def _told(outcome: Outcome) -> str:
    """What tells one failure from another: an error and its line, or what kind of thing was returned."""
    if outcome.error:
        return f"{outcome.kind}: {outcome.error.splitlines()[0]} {outcome.where}"
    return outcome.returned + " ".join(str(array.ndim) for _, array in outcome.arrays)


def _always(outcome: Outcome) -> str:
    if outcome.error:
        return f"it raises the same error however it is called:\n{_error(outcome)}"
    return f"it never returns an output: it {_returned(outcome)}, where an array with a row for each query is asked for"


def _mend(reading: Reading, outcome: Outcome) -> str:
    first = "Mend that first." if outcome.error else "Return the output, or a tuple of output and weights."
    return f"{first} It was called {_called(reading)}{_not_understood([(reading, outcome)])}"


def _not_understood(failed: Failed) -> str:
    """Arguments that must be given, and whose names say nothing: an error may come from what was given for them."""
    taken = [one for reading, _ in failed for one in reading.taken]
    names = dict.fromkeys(one.name for one in taken if one.role in UNCLEAR and one.required)
    shown = ", ".join(names)
    return f"; nothing says what {shown} may be: say roles=…, or wrap it as f(q, k, v)" if names else ""


def _tried(reading: Reading, outcome: Outcome) -> str:
    what = _error(outcome) if outcome.error else f"    it {_returned(outcome)}"
    return f"  {_called(reading)}:\n{what}"


def _called(reading: Reading) -> str:
    call = reading.call(reading.problem())
    names = ", ".join(f"{a.name} {_shape(a.value)}" if not a.plain else f"{a.name}={a.value!r}" for a in call.arguments)
    return f"with {names}, in {LIBRARIES[reading.language].title}"


def _shape(value: object) -> str:
    return str(np.shape(value[0] if isinstance(value, tuple) else value))  # type: ignore[arg-type]


def _error(outcome: Outcome) -> str:
    first = f"{outcome.kind}: {outcome.error.splitlines()[0]}" if outcome.error != outcome.kind else outcome.kind
    return f"    {first}" + (f"\n    {outcome.where}" if outcome.where else "")


def _returned(outcome: Outcome) -> str:
    shapes = ", ".join(str(np.shape(array)) for _, array in outcome.arrays)
    kind = {"NoneType": "None (is a return missing?)", "str": "text", "generator": "a generator"}
    return f"returns {kind.get(outcome.returned, outcome.returned)}" + (f" of shape {shapes}" if shapes else "")
