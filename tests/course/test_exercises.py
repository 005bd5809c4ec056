"""Every exercise: its answer is right, what it begins with is not, and wrong answers are called by their names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import regard as rg
from regard.algebra.errors import KindError
from regard.course import CHAPTERS, lesson
from regard.course.exercises import of_chapter
from regard.course.exercises.exercise import Choice, Exercise, Quiz
from regard.course.exercises.judges import Checked, Compared
from regard.course.exercises.judging import judged
from regard.course.progress import Progress

KEYS = [chapter.key for chapter in CHAPTERS]
WRONG = [(key, name) for key in KEYS for name in of_chapter(key)[0].wrong]


@pytest.mark.parametrize("key", KEYS)
def test_the_answer_is_right(key: str) -> None:
    exercise, _ = of_chapter(key)
    verdict = judged(exercise, exercise.answer)
    assert verdict.right, verdict


@pytest.mark.parametrize("key", KEYS)
def test_where_it_begins_is_not_the_answer(key: str) -> None:
    exercise, _ = of_chapter(key)
    verdict = judged(exercise, exercise.start)
    assert not verdict.right
    assert verdict.found[0].says


@pytest.mark.parametrize(("key", "name"), WRONG)
def test_a_wrong_answer_is_called_by_its_name(key: str, name: str) -> None:
    exercise, _ = of_chapter(key)
    assert exercise.wrong[name] != exercise.answer
    verdict = judged(exercise, exercise.wrong[name])
    assert not verdict.right
    assert name in [one.name for one in verdict.found]


@pytest.mark.parametrize("key", KEYS)
def test_enough_is_known_to_go_wrong(key: str) -> None:
    exercise, quiz = of_chapter(key)
    assert len(exercise.wrong) >= 3
    assert exercise.hints
    assert len({choice.text for choice in quiz.choices}) == len(quiz.choices) >= 3
    assert all(choice.because for choice in quiz.choices)


# -- judging ---------------------------------------------------------------------------------------------------

TWICE = Exercise(
    function="twice", task="", start="", answer="def twice(x):\n    return 2 * x\n",
    judge=Compared(
        lambda x: 2 * x,
        ((np.arange(3.0),), (np.ones((2, 2)),)),
        {"squared": (lambda x: x * x, "It is multiplied with itself.", "return 2 * x")},
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("def twice(x):\n    return x * x\n", "squared"),
        ("def twice(x):\n    return x\n", "another result"),
        ("def twice(x):\n    return 'much'\n", "no numbers yet"),
        ("def twice(x):\n    return x[:1] * 2\n", "another shape"),
        ("def twice(x):\n    return 1 / 0\n", "it does not run"),
        ("def twice(x:\n    return x\n", "not Python"),
        ("def thrice(x):\n    return x\n", "no function"),
        ("", "empty"),
        (" \n\n", "empty"),
        ("import regard\ndef twice(x):\n    return 2 * x\n", "ready-made"),
        ("import sys\nsys.exit()\ndef twice(x):\n    return 2 * x\n", "it does not run"),
    ],
)
def test_what_is_wrong_has_a_name(answer: str, name: str) -> None:
    verdict = judged(TWICE, answer)
    assert not verdict.right
    assert [one.name for one in verdict.found] == [name]
    assert "/" not in verdict.found[0].says.replace("1 / 0", ""), "no path of this machine"


def test_an_empty_answer_is_not_called_a_missing_function() -> None:
    empty, missing = judged(TWICE, ""), judged(TWICE, "x = 1\n")
    assert empty.title == "The answer is empty."
    assert empty.title != missing.title


@pytest.mark.parametrize(
    ("kept", "shown"), [(None, "begin"), ("", "begin"), (" \n", "begin"), ("def a(): ...", "kept")]
)
def test_an_editor_that_was_emptied_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str | None, shown: str
) -> None:
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    page = lesson(5)
    if kept is not None:
        Progress.read().keep_answer(5, kept)
    assert page.answer().element.value == (page.task.start if shown == "begin" else kept)


def test_a_right_answer_is_right() -> None:
    assert judged(TWICE, "def twice(x):\n    return x + x\n").title == "Right, on all 2 inputs that it was tried on."


def test_an_answer_that_never_ends_is_ended() -> None:
    endless = "def twice(x):\n    while True:\n        pass\n"
    quick = Compared(lambda x: x, ((np.ones(1),),), seconds=2)
    verdict = judged(Exercise("twice", "", "", endless, quick), endless)
    assert [one.name for one in verdict.found] == ["it does not run"]


@pytest.mark.parametrize(
    "cheat",
    [
        "from torch.nn.functional import scaled_dot_product_attention as f",
        "import torch.nn.functional as F\nf = F.scaled_dot_product_attention",
        "import torch\nf = getattr(torch.nn.functional, 'scaled_dot_product_attention')",
        "from torch import nn\nf = nn.MultiheadAttention(4, 1)",
        "import regard.attention",
    ],
)
def test_ready_made_functions_are_refused(cheat: str) -> None:
    exercise = Exercise("attend", "", "", "", Checked(rg.Attention()))
    verdict = judged(exercise, f"{cheat}\ndef attend(q, k, v):\n    return f(q, k, v)\n")
    assert [one.name for one in verdict.found] == ["ready-made"]


def test_advice_on_the_command_line_is_not_given_to_a_reader() -> None:
    task = lesson(8).task
    (found,) = judged(task, task.answer.replace(".bool()", "")).found
    assert "masked_fill_ only supports boolean masks" in found.says
    assert "--layout" not in found.says


def test_a_verdict_sets_its_numbers() -> None:
    task = lesson(8).task
    assert re.search(r"Right, and (0|\d × 10⁻.|10⁻.) from", judged(task, task.answer).title.replace("\xa0", " "))


def test_a_question_has_one_right_answer() -> None:
    with pytest.raises(KindError, match="choices: two or more, one of them right; got 2 with 0 right"):
        Quiz("?", (Choice("a", "b"), Choice("c", "d")))
