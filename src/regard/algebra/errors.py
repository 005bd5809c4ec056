"""What can go wrong, as a tree. Every text names the argument, the rule, what was given, and what to do.

    RegardError (ValueError)
    ├── FormulaError        a formula that means nothing
    │   └── ParseError      ... in text, with the place
    ├── KindError           (also TypeError) the wrong kind of thing: a string, a tensor, a plain bool
    ├── CallError           arrays that do not fit the formula or each other
    │   └── TableError      ... a table missing, unused, of the wrong rank, or read outside its range
    └── EngineError         an engine that was asked for by name and cannot do this
    MissingExtra (ImportError)   an optional dependency that is not installed

`except RegardError` catches all but the last.
"""

from __future__ import annotations


class RegardError(ValueError):
    """Base of every error that regard raises about a formula or its arguments."""


class FormulaError(RegardError):
    """The formula itself means nothing."""


class ParseError(FormulaError):
    """Text that is no formula; the message points at the place."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        shown, caret = _excerpt(text, column)
        super().__init__(f"{problem}\n    {shown}\n    {caret}")
        self.text, self.column, self.problem = text, column, problem

    def __reduce__(self) -> tuple[type, tuple[str, int, str]]:
        return ParseError, (self.text, self.column, self.problem)


class KindError(RegardError, TypeError):
    """The wrong kind of thing stands where something else belongs."""


class CallError(RegardError):
    """The arrays of a call do not fit the formula or each other."""


class TableError(CallError):
    """A table is missing, unused, of the wrong rank or kind, or read outside its range."""


class EngineError(RegardError):
    """An engine that was asked for by name cannot run this call."""


class MissingExtra(ImportError):  # noqa: N818 - named after what is missing, like ModuleNotFoundError
    """An optional dependency is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f'this needs {module}, which is not installed: pip install "regard[{extra}]"')


def _excerpt(text: str, column: int, width: int = 72) -> tuple[str, str]:
    """The part of `text` around `column`, and a caret below the place."""
    first = max(0, column - width // 2)
    shown = text[first : first + width].replace("\n", " ")
    return shown, " " * (column - first) + "^"
