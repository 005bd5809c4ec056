"""Lines of source that a formatter leaves as they are: nothing is wider than the page.

An expression that is too long is broken at its terms, in brackets; where that is not enough, its longest part gets a
line and a name of its own first. Between ‹ and › stands the name of a table, which is the caller's word: a name of
ours that is also a table's gets an underscore.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sympy.logic.boolalg import Boolean

from ...fold import fold
from ...functions import Where
from ...nodes import Read, walk
from .parts import ATOM, Part
from .source import Source

WIDTH = 100
SHORTEST_PART = 16  # what is shorter gains nothing by a name
_TABLE = re.compile(r"‹(\w+)›")


class Page:
    """Source, line by line, at one depth of indentation after the other."""

    def __init__(self, tables: Iterable[str], depth: int = 1) -> None:
        self.tables = frozenset(tables)
        self.lines: list[str] = []
        self.depth = depth
        self.names: set[str] = set()
        names = "|".join(sorted(self.tables))
        self.clash = re.compile(rf"(?<![\w.‹])({names})(?!\w|=(?!=))") if names else None

    def final(self, text: str) -> str:
        """The text with its tables named, and our own names out of their way."""
        code, mark, remark = text.partition("  # ")
        renamed = self.clash.sub(lambda match: self.ours(match[1]), code) if self.clash else code
        return _TABLE.sub(r"\1", renamed) + mark + remark

    def ours(self, name: str) -> str:
        """A name of ours, out of the way of the tables."""
        while name in self.tables:
            name += "_"
        return name

    def fits(self, text: str, indent: int = 0) -> bool:
        return 4 * (self.depth + indent) + len(self.final(text)) <= WIDTH

    def line(self, text: str, indent: int = 0) -> None:
        self.lines.append(" " * 4 * (self.depth + indent) + self.final(text))

    def comment(self, text: str) -> None:
        """A remark of ours, on a line of its own."""
        self.lines.append(" " * 4 * self.depth + f"# {text}")

    @contextmanager
    def inside(self, header: str) -> Iterator[None]:
        self.line(header)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self, wanted: str) -> str:
        """A name that stands for nothing else yet."""
        taken = self.names | self.tables
        name = next(name for name in (wanted, *(f"{wanted}_{count}" for count in range(2, 9999))) if name not in taken)
        self.names.add(name)
        return name

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, head: str, arguments: list[str], tail: str) -> None:
        """`head(arguments)tail`, on as many lines as it takes."""
        together = ", ".join(arguments)
        if self.fits(f"{head}({together}){tail}"):
            self.line(f"{head}({together}){tail}")
            return
        self.line(f"{head}(")
        if self.fits(together, 1):
            self.line(together, 1)
        else:
            for argument in arguments:
                self.line(f"{argument},", 1)
        self.line(f"){tail}")

    # -- expressions -----------------------------------------------------------------------------------------------

    def write(self, before: str, part: Part, after: str = "") -> bool:
        """One statement that holds the part; False, and nothing written, where it is too long for that."""
        if self.fits(before + part.text + after):
            self.line(before + part.text + after)
            return True
        if not self.can_break(part):
            return False
        self.line(f"{before}(")
        for piece in [part.text] if self.fits(part.text, 1) else part.pieces:
            self.line(piece, 1)
        self.line(f"){after}")
        return True

    def add_up(self, name: str, total: Part) -> None:
        """A sum under a name: one statement where that fits, otherwise term by term."""
        if self.write(f"{name} = ", total):
            return
        first, *rest = total.pieces or (total.text,)
        self.line(f"{name} = {first}")
        for term in rest:
            self.line(f"{name} {term[0]}= {term[2:]}")

    def can_break(self, part: Part) -> bool:
        """Whether the part may stand in brackets, one piece a line."""
        if not all(self.fits(piece, 1) for piece in part.pieces):
            return False
        inside = part.text[0] in "([" or part.text[-1] in ")]"  # formatters would break there, with two pieces
        return len(part.pieces) > 2 or (len(part.pieces) == 2 and not inside)


class Writer:
    """Writes nodes of a formula onto a page, with names for what is too long."""

    def __init__(self, page: Page, source: Source) -> None:
        self.page, self.source = page, source
        self.named: dict[Any, Part] = {}

    def assign(self, before: str, node: Any, after: str = "", shape: Any = None) -> None:
        """The statement `before node after`, and before it whatever it needs. `shape` has the last word on the part."""
        while True:
            memo = dict(self.named)
            part = fold(node, self.source, memo)
            part = part if shape is None else shape(part)
            if self.page.write(before, part, after):
                return
            if not (self._choose_first(node) or self._name_one(node, memo)):
                self.page.line(before + part.text + after)  # one word too long: nothing can be done
                return

    def _choose_first(self, node: Any) -> bool:
        return False

    def _name_one(self, root: Any, memo: dict[Any, Part]) -> bool:
        """Give the longest part that fits a line a name; False where there is none."""
        found = [node for node in self._candidates(root, memo) if self._is_worth(memo[node])]
        if not found:
            return False
        node = max(found, key=lambda node: self._merit(memo[node]))
        name = self.page.name(_role(root, node))
        self.page.add_up(name, memo[node])
        self.named[node] = memo[node].atom(name)
        return True

    def _merit(self, part: Part) -> tuple[bool, int]:
        """The longest that fits one line; where none does, the shortest."""
        fits, length = self.page.fits(f"part_22 = {part.text}"), len(part.text)
        return fits, length if fits else -length

    def _candidates(self, root: Any, memo: dict[Any, Part]) -> list[Any]:
        return [node for node in memo if node != root and node not in self.named]

    def _is_worth(self, part: Part) -> bool:
        fits = self.page.fits(f"part_22 = {part.text}") or self.page.can_break(part)
        long = len(part.text) >= SHORTEST_PART and (part.bond < ATOM or "(" in part.text)
        return fits and long and part.unsigned is None


class LazyWriter(Writer):
    """For plain Python, where the branch of a `where` that is not taken must not be evaluated."""

    def assign(self, before: str, node: Any, after: str = "", shape: Any = None) -> None:
        whole = fold(node, self.source, dict(self.named))
        written = whole if shape is None else shape(whole)
        if isinstance(node, Where) and shape is None and not self.page.fits(before + written.text + after):
            self._if_else(before, node)
        else:
            super().assign(before, node, after, shape)

    def _if_else(self, before: str, node: Any) -> None:
        condition, a, b = node.args
        self.assign("if ", condition, ":")
        for branch, header in ((a, None), (b, "else:")):
            if header is not None:
                self.page.line(header)
            outside, self.named = self.named, dict(self.named)
            self.page.depth += 1
            self.assign(before, branch)
            self.page.depth -= 1
            self.named = outside

    def _choose_first(self, node: Any) -> bool:
        """Choose between the branches of one `where` in lines of their own; False where there is none."""
        inner = next((part for part in _eager(node) if isinstance(part, Where) and part not in self.named), None)
        if inner is None:
            return False
        name = self.page.name("chosen")
        self._if_else(f"{name} = ", inner)
        self.named[inner] = fold(inner, self.source, dict(self.named)).atom(name)
        return True

    def _candidates(self, root: Any, memo: dict[Any, Part]) -> list[Any]:
        eager = set(_eager(root))
        return [node for node in super()._candidates(root, memo) if node in eager]


def _eager(node: Any) -> Iterator[Any]:
    """Every part that is evaluated in any case."""
    yield node
    for child in node.args[:1] if isinstance(node, Where) else node.args:
        yield from _eager(child)


def _role(root: Any, node: Any) -> str:
    if isinstance(node, Boolean):
        return "holds"
    is_index = any(isinstance(part, Read) and node in part.indices for part in walk(root))
    return "index" if is_index else "part"
