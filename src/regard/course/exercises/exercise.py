"""An exercise, a question, and what becomes of an answer.

exercise   task, a text to begin with, a judge        verdict   right, or which mistake
quiz       a question, choices, and for each why
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...algebra.errors import KindError


@dataclass(frozen=True)
class Found:
    """A mistake in an answer: its name, what goes wrong, and how to mend it."""

    name: str
    says: str
    mend: str = ""


@dataclass(frozen=True)
class Verdict:
    """What became of an answer.

    title: in a sentence;  found: the mistakes, the worst first
    page:  more to see, as HTML: the report of a check, or numbers of an answer that is right
    """

    right: bool
    title: str
    found: tuple[Found, ...] = ()
    page: str = ""


class Judge(Protocol):
    """Who decides."""

    def __call__(self, target: str) -> Verdict:
        """The verdict on a function, given as "answer.py:attend"."""


READY_MADE: Mapping[str, str] = {
    "scaled_dot_product_attention": "PyTorch's own attention",
    "MultiheadAttention": "PyTorch's own module",
    "multi_head_attention_forward": "PyTorch's own attention",
    "flex_attention": "PyTorch's own attention",
    "regard": "this library",
}
"""Names that would answer in the reader's place."""


@dataclass(frozen=True)
class Exercise:
    """Something to write.

    function: the name that the answer defines
    task:     Markdown;  start: what stands in the editor;  answer: one that is right
    judge:    who decides
    wrong:    answers that people give, by the name of the mistake that is found in each
    refused:  names that may not stand in an answer, each with what it is
    hints:    one after the other, each tells more
    """

    function: str
    task: str
    start: str
    answer: str
    judge: Judge
    wrong: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=lambda: READY_MADE)
    hints: tuple[str, ...] = ()
    show: Callable[[str], str] | None = None
    """What more to show of an answer that is right, as HTML, given where it is."""


@dataclass(frozen=True)
class Choice:
    """One way to answer, and why it is right or wrong."""

    text: str
    because: str
    right: bool = False


@dataclass(frozen=True)
class Quiz:
    """A question with one right answer."""

    question: str
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        right = sum(choice.right for choice in self.choices)
        if right != 1 or len(self.choices) < 2:
            raise KindError(f"choices: two or more, one of them right; got {len(self.choices)} with {right} right")

    def chosen(self, text: str) -> Choice:
        """The choice of a text."""
        return next(choice for choice in self.choices if choice.text == text)
