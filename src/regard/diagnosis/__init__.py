"""Finds and names the bug in somebody's own attention: `rg.check(fn)`.

checking     the whole way: read, observe (observing), match, try the laws, report (findings)
             trying, reading, signature, modules, description    how the target is called
             problem, steps, mutants, search, matching, families what it computes, and with which mistakes
             laws                                                what the values of one call do not show
             catalogue, bugs                                     the mistakes, as data
             report, display                                     what a person reads
             command, options, magic, explaining                 the ways in beside the function: terminal, notebook
             sandbox                                             the child process in which the target runs
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name(
    {
        "checking": "check",
        "report": "Example Finding LawResult Report SourceLine",
        "bugs": "Bug Reference",
        "catalogue": "CATALOGUE",
        "sandbox.limits": "Limits Stopped TargetError",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name)


def __dir__() -> list[str]:
    return list(__all__)
