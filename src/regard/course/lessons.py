"""What a notebook builds its page from.

page = lesson(5)
page.opening()      title, question, what comes before
page.say("…")       Markdown with mathematics            page.mathematics(attention)      a formula, typeset
page.hand(slider)   something to move                    page.figure(svg, "…")            something to see
page.printed(…)     the same in three languages          page.exercise(answer), page.quiz(choice)
page.closing()      what to carry forward

Every part is a `Piece`: it reads the same in a notebook and in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ..attention import Attention
from .contents import CHAPTERS, Chapter, find_chapter
from .exercises import of_chapter
from .pieces import programs
from .pieces.code import coloured
from .pieces.numbers import words_set
from .pieces.piece import Piece, element, joined, same
from .pieces.prose import prose, typeset
from .pieces.styling import style
from .pieces.told import at_rest, cell_told, chapters_told, choice_told, verdict_told


def lesson(chapter: int | str) -> Lesson:
    """The page of a chapter, by its number or name."""
    return Lesson(find_chapter(chapter))


class Lesson:
    """The parts of one chapter's page."""

    def __init__(self, chapter: Chapter) -> None:
        self.chapter = chapter
        self.task, self.question = of_chapter(chapter.key)

    # -- how it begins and ends ---------------------------------------------------------------------------------

    def opening(self) -> Piece:
        """Title and question."""
        chapter = self.chapter
        before = chapters_told("It stands on", chapter.before)
        return _page(same(
            f"<style>{style()}</style><header><p class='label'>Chapter {chapter.number} of {len(CHAPTERS)}</p>"
            f"<h1>{escape(chapter.title)}</h1><p class='question'>{escape(chapter.question)}</p>{before}</header>"
        ))  # fmt: skip

    def closing(self) -> Piece:
        """What to carry forward, and where to go on."""
        carried = "".join(f"<li>{prose(one)[3:-4]}</li>" for one in self.chapter.carry)
        outside = "target='_blank' rel='noopener noreferrer'"
        reading = "".join(
            f"<li><a href='{one.link}' {outside}>{escape(one.title)}</a>, {escape(one.by)}</li>"
            for one in self.chapter.reading
        )
        more = f"<p class='label'>To read</p><ul>{reading}</ul>" if reading else ""
        after = chapters_told("Go on with", self.chapter.after)
        return _page(
            same(f"<footer><p class='label'>Carry forward</p><ul class='carry'>{carried}</ul>{more}{after}</footer>")
        )

    # -- to read and to see -------------------------------------------------------------------------------------

    def say(self, text: str, *, resting: str | None = None) -> Piece:
        """Prose, in Markdown; $…$ and $$…$$ are mathematics.

        resting: what is said in its place where nothing can be moved; the same unless given
        """
        return _page(Piece(prose(text), prose(text if resting is None else resting)))

    def aside(self, text: str) -> Piece:
        """A remark, in Markdown, that a reader may pass over."""
        return _page(same(f'<div class="aside">{prose(text)}</div>'))

    def mathematics(self, formula: Attention | str, says: str = "") -> Piece:
        """A formula of the library, or LaTeX, on a line of its own, with a word on it."""
        shown = formula.mathml() if isinstance(formula, Attention) else typeset(formula, block=True)
        note = f'<div class="says">{prose(says)}</div>' if says else ""
        return _page(same(f'<div class="formula">{shown}{note}</div>'))

    def figure(self, picture: str, caption: str = "", *, wide: bool = False) -> Piece:
        """A picture, as SVG or other HTML, with a caption in Markdown."""
        below = f"<figcaption>{prose(caption)}</figcaption>" if caption else ""
        return _page(same(f"<figure>{words_set(picture)}{below}</figure>"), wide=wide)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> Piece:
        """A table; floats are shown with three digits, and words may hold `code`."""
        top = "".join(f"<th>{escape(one)}</th>" for one in head)
        body = "".join(f"<tr>{''.join(map(cell_told, row))}</tr>" for row in rows)
        below = f"<figcaption>{prose(caption)}</figcaption>" if caption else ""
        return _page(same(f"<figure><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{below}</figure>"))

    def beside(self, *pieces: Piece, wide: bool = False) -> Piece:
        """Pieces beside each other, where there is room; three or more may want to be wider than the text."""
        cells = joined(element("div", piece) for piece in pieces)
        return _page(element("div", cells, class_="beside"), wide=wide or len(pieces) > 2)

    def stack(self, *pieces: Piece) -> Piece:
        """Pieces below each other."""
        return joined(pieces)

    def code(self, source: str) -> Piece:
        """A program to read."""
        return _page(same(coloured(source)))

    # -- to move ------------------------------------------------------------------------------------------------

    def hand(self, *movable: Any, says: str = "", wide: bool = False, resting: str | None = None) -> Piece:
        """Something to move: sliders, choices, or a widget; says what to do with it, in Markdown.

        resting: what stands in its place, as HTML, where nothing can be moved; found from it unless said
        """
        import marimo

        told = f'<div class="says">{prose(says)}</div>' if says else ""
        live = "".join(str(marimo.as_html(one).text) for one in movable)
        still = "".join(map(at_rest, movable)) if resting is None else resting
        return _page(
            Piece(f'<div class="hand">{told}{live}</div>', f'<div class="hand">{told}{still}</div>'), wide=wide
        )

    # -- in three languages -------------------------------------------------------------------------------------

    def printed(self, attention: Attention, *arrays: Any, form: str = "attention") -> Piece:
        """The formula as plain Python, NumPy and PyTorch, printed by the library and run on the arrays."""
        return _page(programs.side_by_side(programs.printed(attention, form, form), arrays), wide=True)

    def written(self, call: str, *arrays: Any) -> Piece:
        """The chapter's own three programs, course/programs/…; `call` is the function that is run on the arrays."""
        return _page(programs.side_by_side(programs.written(self.chapter.key, call), arrays), wide=True)

    # -- to write -----------------------------------------------------------------------------------------------

    def answer(self) -> Any:
        """The editor, with what was written last time."""
        import marimo

        from .progress import Progress

        kept = Progress.read().answer(self.chapter.number) or ""
        editor = marimo.ui.code_editor(kept if kept.strip() else self.task.start, language="python", min_height=180)
        return editor.form(submit_button_label="Judge it", bordered=False)

    def exercise(self, answer: Any) -> Piece:
        """The task, the editor and the hints."""
        task = f"<p class='label'>Exercise</p>{prose(self.task.task)}"
        hints = "".join(
            f"<details><summary>Hint {at}</summary>{prose(hint)}</details>"
            for at, hint in enumerate(self.task.hints, 1)
        )
        shown = f"<details><summary>An answer</summary>{coloured(self.task.answer)}</details>"
        live = f'<section class="exercise">{task}{answer}{hints}{shown}</section>'
        still = f'<section class="exercise">{task}{coloured(self.task.start)}{hints}{shown}</section>'
        return _page(Piece(live, still))

    def judged(self, answer: Any) -> Piece:
        """What became of the answer, once it is handed in."""
        if answer.value is None:
            return _page(Piece('<p class="waiting">Nothing was handed in yet.</p>', ""))
        from .exercises.judging import judged
        from .progress import Progress

        progress = Progress.read()
        progress.keep_answer(self.chapter.number, answer.value)
        with _waiting("judging your answer"):
            verdict = judged(self.task, answer.value)
        if verdict.right:
            progress.keep_solved(self.chapter.number)
        return _page(same(verdict_told(verdict)))

    # -- to answer ----------------------------------------------------------------------------------------------

    def choice(self) -> Any:
        """The choices of the question."""
        import marimo

        return marimo.ui.radio([choice.text for choice in self.question.choices])

    def quiz(self, choice: Any) -> Piece:
        """The question with its choices."""
        asked = f"<p class='label'>One question</p>{prose(self.question.question)}"
        choices = "".join(f"<li>{escape(one.text)}</li>" for one in self.question.choices)
        told = "".join(f"<li>{choice_told(self.question, one.text)}</li>" for one in self.question.choices)
        still = f"{asked}<ul>{choices}</ul><details><summary>Answers</summary><ul>{told}</ul></details>"
        return _page(
            Piece(f'<section class="quiz">{asked}{choice}</section>', f'<section class="quiz">{still}</section>')
        )

    def answered(self, choice: Any) -> Piece:
        """Why the choice is right or wrong."""
        if choice.value is None:
            return Piece("", "")
        from .progress import Progress

        chosen = self.question.chosen(choice.value)
        Progress.read().keep_choice(self.chapter.number, chosen.text, chosen.right)
        kind = "right" if chosen.right else "wrong"
        return _page(same(f'<div class="verdict {kind}">{choice_told(self.question, chosen.text)}</div>'))


# -- small parts -----------------------------------------------------------------------------------------------


def _page(piece: Piece, *, wide: bool = False) -> Piece:
    return element("div", piece, class_="lesson wide" if wide else "lesson")


def _waiting(says: str) -> Any:
    import marimo

    return marimo.status.spinner(says)
