"""Outcomes as a page to read: docs/experiments.md, and the pictures in it.

    python -m regard.experiments.pages docs

For each experiment its question, what is done (the docstring of its module), its table and its answer. Nothing on the
page is typed: what a run says is what stands there.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent

from .picture import drawn
from .record import Cell, Experiment, Outcome, Table, shown
from .registry import EXPERIMENTS, find
from .store import OUTCOMES

PICTURED = ("phrases", "recall", "mistakes", "direction")
"""Those whose picture stands on the page; `regard experiment` draws them all."""

INTRODUCTION = """\
# Experiments

Texts about attention leave questions open that training can answer: {count} experiments, each of a few minutes at
most on two cores.

```console
$ regard experiment                         # the list
$ regard experiment recall                  # one of them: its table, its answer, experiments/recall.png
$ regard experiment scale --share 0.1       # a first look, with a tenth of the steps
$ regard experiment --all --out figures     # all of them
$ regard claims --experiments               # the rows of the ledger that they decide
```

An outcome is kept under the hash of the code that it depends on: the second time it is known, until the code changes or
`--again` is said. [The ledger](claims.md) reads its numbers from there. Outcomes come with the package, each with the
hash of the source that measured it; where that is not the source here, the ledger says so. It holds numbers to bounds;
those below are from one machine.

In Python `find(name)` is an `Experiment`, `outcome(name)` what is known of it, an `Outcome`; where nothing is,
it raises `NotMeasured`, which names the command:

```python
>>> from regard.experiments import EXPERIMENTS, find
>>> find("recall").asks, find("recall").claims
('Does what was shown long ago still reach the answer?', ('L2',))
>>> from regard.experiments import Outcome, Scale, Table
>>> found = Outcome("Two are more than one.", Table(("heads", "right"), ((1, 0.56), (2, 1.0))), {{"gain": 0.44}})
>>> found.table.column("right"), Outcome.of_json(found.json()) == found
([0.56, 1.0], True)
>>> Scale(0.1).steps(500)                   # what an experiment does with --share 0.1
50

```

This page is written by `python -m regard.experiments.pages docs`, the outcomes by
`python bench/experiments.py`.

| | question | rows of the ledger |
|---|---|---|
{questions}
"""
SIGNS = re.compile(r"[|\\`]|<(?=[a-zA-Z/!])|(?<! )\*|\*(?! )|(?<![^\W_])_|_(?![^\W_])")  # that Markdown would read


def markdown(folder: Path) -> str:
    """The page of the outcomes in a folder, NAME.json each."""
    experiments = [find(name) for name in EXPERIMENTS]
    rows = (f"| [{one.name}](#{one.name}) | {one.asks} | {', '.join(one.claims)} |" for one in experiments)
    introduction = INTRODUCTION.format(count=len(experiments), questions="\n".join(rows))
    return "\n".join([introduction, *(_section(one, _outcome(one, folder)) for one in experiments)])


def write(folder: Path, docs: Path) -> None:
    """The page and its pictures, both of the same outcomes."""
    (docs / "experiments.md").write_text(markdown(folder), encoding="utf-8")
    for experiment in map(find, PICTURED):
        found = _outcome(experiment, folder)
        if found is not None:
            _small(drawn(experiment, found, docs / "pictures" / f"{experiment.name}.png"))


def table_of(table: Table) -> str:
    """A table in Markdown; numbers stand right.

    >>> print(table_of(Table(("heads", "what"), ((1, "one_two |"), (2, "W_q")))))
    | heads | what |
    |---:|---|
    | 1 | one_two \\| |
    | 2 | W_q |
    """
    numbers = [all(isinstance(row[at], int | float) for row in table.rows) for at in range(len(table.columns))]
    rule = "|".join("---:" if number else "---" for number in numbers)
    return "\n".join([_line(table.columns), f"|{rule}|", *map(_line, table.rows)])


def _line(cells: Iterable[Cell]) -> str:
    return f"| {' | '.join(_plain(shown(cell)) for cell in cells)} |"


def _plain(text: str) -> str:
    """Text as it is, whatever signs it holds."""
    return SIGNS.sub(lambda found: f"\\{found[0]}", text)


# -- one experiment --------------------------------------------------------------------------------------------


def _outcome(experiment: Experiment, folder: Path) -> Outcome | None:
    path = folder / f"{experiment.name}.json"
    return Outcome.of_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def _section(experiment: Experiment, found: Outcome | None) -> str:
    title, asked = f"## {experiment.name}", f"**{experiment.asks}**"
    if found is None:
        answer = [f"Not measured yet: `regard experiment {experiment.name}`, in about {experiment.minutes:g} minutes."]
    else:
        answer = [table_of(found.table), _plain(found.says)]
    picture = [f"![{experiment.asks}](pictures/{experiment.name}.png)"] if experiment.name in PICTURED and found else []
    return "\n\n".join([title, asked, *_done(experiment), *picture, *answer, ""])


def _done(experiment: Experiment) -> Iterator[str]:
    """What is done, from the docstring of the module: sentences as they are, all else as it stands."""
    docstring = inspect.getdoc(inspect.getmodule(experiment.run)) or ""
    for part in docstring.split("\n\n"):
        if part.strip() != experiment.asks:  # the question stands above already
            yield _plain(part) if part.rstrip().endswith((".", "?")) else f"```text\n{dedent(part)}\n```"


def _small(path: Path) -> None:
    """A picture of few colours takes a quarter of the bytes."""
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("RGB").reduce(2).quantize(64)
    few.save(path, optimize=True)


if __name__ == "__main__":
    write(OUTCOMES, Path(sys.argv[1]))
