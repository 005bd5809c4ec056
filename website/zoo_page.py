"""The entries of docs/zoo.md: for each its picture, what it is, its mathematics, its text and its paper."""

from __future__ import annotations

from regard import zoo
from regard.zoo import Entry
from zoo_pictures import captions


def entries() -> str:
    """All entries as Markdown, in the order of the zoo."""
    shown = captions()
    return "\n\n".join(_section(entry, shown[name]) for name, entry in zoo.ENTRIES.items())


def _section(entry: Entry, panels: str) -> str:
    words = " ".join((entry.make.__doc__ or "").split(">>>")[0].split())
    return f"""### {entry.title}

![{entry.title}: {panels}](pictures/zoo/{entry.name}.svg)

{words}

```math
{entry.formula.latex()}
```

```python
>>> zoo.{entry.name}()
{entry.formula}

```

{entry.paper}, {entry.year}, [{entry.link}]({_address(entry.link)})"""


def _address(link: str) -> str:
    return f"https://arxiv.org/abs/{link.removeprefix('arXiv:')}" if link.startswith("arXiv:") else f"https://{link}"
