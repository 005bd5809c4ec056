"""The ledger: claims by their id, and a way to run them.

    @claim("K1", "A", "One matrix in both roles gives a symmetric score.", Verdict.HOLDS)
    def one_matrix() -> Measurements:
        yield Measured(asymmetry, "largest |s_ij − s_ji|", at_most=1e-12)

A row needs no more than that, in a module that `MODULES` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from time import perf_counter

from ..algebra.errors import MissingExtra
from ..experiments.store import NotMeasured
from .record import Claim, Figure, LedgerError, Measured, Measurements, Result, Verdict
from .sources import SOURCES

MODULES = tuple(
    f"rows.{name}"
    for name in (
        "elements",
        "similarity",
        "axes",
        "scores",
        "weights",
        "mistakes",
        "outputs",
        "positions",
        "programs",
        "phrases",
        "language",
        "distance",
        "structure",
        "vision",
        "pretrained",
    )
)
"""Where rows stand, in the order of the ledger; names are relative to this package."""

EXTRAS = {"PIL": "inputs", "scipy": "geometry", "sklearn": "geometry", "tokenizers": "inputs", "transformers": "hf"}
"""The extra of regard that brings a package, where it is not called like the package."""

Measure = Callable[[], Measurements]


class Ledger:
    """Claims by their id, in the order in which they came."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}

    def claim(
        self, name: str, sources: str, sentence: str, verdict: Verdict, *, needs: Iterable[str] = ()
    ) -> Callable[[Measure], Measure]:
        """Enter the decorated function under an id; it yields numbers with their bounds, the telling one first.

        sources: letters of `SOURCES`, as in "AB"
        needs:   packages that an extra brings; without them the claim is skipped, with a word on how to get them
        """
        unknown = [letter for letter in sources if letter not in SOURCES]
        if unknown or not sources:
            raise LedgerError(f"sources: letters among {', '.join(SOURCES)}, as in 'AB'; got {sources!r} for {name}")

        def enter(measure: Measure) -> Measure:
            if name in self.claims and _place(self.claims[name].measure) != _place(measure):
                raise LedgerError(f"id: one claim for each; got {name} again, for {measure.__name__}; choose another")
            self.claims[name] = Claim(name, sources, sentence, verdict, measure, tuple(needs))
            return measure

        return enter

    def select(self, ids: Iterable[str] | None = None) -> tuple[Claim, ...]:
        """The claims of these ids, in the order given; all of them where none is."""
        asked = self.claims if ids is None else [ids] if isinstance(ids, str) else ids
        names = [name.upper() for name in asked]
        unknown = [name for name in names if name not in self.claims]
        if unknown:
            raise LedgerError(f"ids: among {', '.join(self.claims)}; got {', '.join(unknown)}")
        return tuple(self.claims[name] for name in names)

    def run(self, ids: Iterable[str] | None = None) -> list[Result]:
        """Every claim measured; one that fails or raises is reported, and the rest still run."""
        return [measured(claim) for claim in self.select(ids)]


def _place(measure: Measure) -> tuple[str, str]:
    """Where a function stands: a module that is loaded again enters its claims again."""
    return measure.__module__, measure.__qualname__


def measured(claim: Claim) -> Result:
    """One claim, run."""
    began, found, figures = perf_counter(), list[Measured](), list[Figure]()
    error = skipped = None
    try:
        _require(claim.needs)
        for part in claim.measure():
            if isinstance(part, Figure):
                figures.append(part)
            else:
                found.append(part)
        error = None if found else f"{claim.id}: yields at least one measurement; got none"
    except (MissingExtra, NotMeasured) as problem:
        skipped = str(problem)
    except Exception as problem:  # noqa: BLE001 - one broken row must not hide the others
        error = f"{type(problem).__name__}: {problem}"
    return Result(claim, tuple(found), perf_counter() - began, error, skipped, tuple(figures))


def _require(packages: Iterable[str]) -> None:
    for package in packages:
        try:
            import_module(package)
        except ImportError:
            raise MissingExtra(package, EXTRAS.get(package, package)) from None


LEDGER = Ledger()
claim = LEDGER.claim


def _filled() -> Ledger:
    """The ledger with every row, in the order of `MODULES` whichever was loaded first; others come last."""
    names = [import_module(f".{module}", __package__).__name__ for module in MODULES]
    places = {name: place for place, name in enumerate(names)}
    entries = LEDGER.claims.items()
    LEDGER.claims = dict(sorted(entries, key=lambda entry: places.get(entry[1].measure.__module__, len(places))))
    return LEDGER


def ledger() -> tuple[Claim, ...]:
    """Every claim, in the order of the ledger."""
    return _filled().select()


def select(ids: Iterable[str] | None = None) -> tuple[Claim, ...]:
    """The claims of these ids; all of them where none is given."""
    return _filled().select(ids)


def run(ids: Iterable[str] | None = None) -> list[Result]:
    """The claims of these ids, measured; all of them where none is given."""
    return _filled().run(ids)


def running(ids: Iterable[str] | None = None) -> Iterator[Result]:
    """The same one by one, for those who show progress."""
    return map(measured, _filled().select(ids))
