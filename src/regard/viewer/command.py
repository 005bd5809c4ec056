"""`regard lens`: what the command does once its options are read.

TEXT, --file, or neither    the live model on a text          --image     a vision model, or raw patches, on an image
--open                      a lens that was saved             --gallery   those that ship with the package
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError, KindError
from .arrays import in_words
from .models.finding import USUAL, absent, live_model
from .models.live import Kept, Live, Say
from .models.seeing import live_images

SENTENCE = "The animal didn't cross the street because it was too tired."
Look = Callable[[Callable[[Any, Say], Any], Any], Any]  # has a reader read, and shows what it tells
LETTERS = 2**20  # bytes of a text file
IMAGE = 2**26  # bytes of an image file


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line."""

    text: str | None = None
    file: Path | None = None
    image: Path | None = None
    open: Path | None = None
    gallery: bool = False
    model: str | None = None
    save: Path | None = None
    kept: Kept = field(default_factory=Kept)

    def check(self) -> None:
        """Refuse two things to look at, and what would be left out silently."""
        given = {"TEXT": self.text, "--file": self.file, "--image": self.image, "--open": self.open}
        named = [name for name, value in {**given, "--gallery": self.gallery or None}.items() if value is not None]
        if len(named) > 1:
            raise CallError(f"lens: one thing to look at; got {' and '.join(named)}; leave out all but one")
        if self.model is not None and (self.open or self.gallery):
            raise CallError(f"--model: for a text or an image; got it with {named[0]}; leave one of them out")
        if self.save is not None and (self.open or self.gallery):
            raise CallError(f"--save: of a new look; got it with {named[0]}, which is saved already; leave it out")
        chosen = {"--layers": self.kept.layers is not None, "--half": self.kept.half}
        if any(chosen.values()) and self.model is None and (self.open or self.gallery or self.image):
            option = next(name for name, given in chosen.items() if given)
            raise CallError(f"{option}: of a model that reads a text or is named; got it with {named[0]}; leave it out")
        if self.kept.patch is not None and (self.image is None or self.model is not None):
            raise CallError("--patch: with --image, in place of a model; got it without; leave it out")
        if self.text is not None and not self.text.strip():
            raise CallError("TEXT: some; got none; leave it out for a sentence of ours")


def show(console: Any, asked: Asked, *, host: str, port: int | None, browser: bool) -> None:
    """Look, and serve what was seen until Ctrl-C."""
    from .server import serve, shipped

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    def look(reader: Callable[[Any, Say], Any], given: Any) -> Any:
        with console.status("running the model") as status:
            return reader(given, status.update)

    asked.check()
    lenses, live = seen(asked, say, look)
    for lens in lenses:
        say(f"{lens.title}: {counted(len(lens), 'layer')}, {in_words(lens.bytes)} kept")
        for lost in lens.missing:
            say(f"  not captured: {lost.name}, {lost.why}")
    if asked.save is not None and lenses:
        say(f"saved in {lenses[0].save(asked.save)}")
    entries = shipped()
    if not lenses and not entries:
        raise CallError(f"gallery: lenses that ship with the package; got none; {live.how}")
    serve(lenses, live, shipped=entries, host=host, port=port, browser=browser, say=say)


def seen(asked: Asked, say: Say, look: Look) -> tuple[list[Any], Live]:
    """The lens that was asked for, if it can be had, and what looks at more."""
    if asked.open is not None:
        return [opened(asked.open)], live_images(asked.kept)
    if asked.image is not None:
        content = read_image(asked.image)
        live = live_images(asked.kept) if asked.model is None else live_model(asked.model, asked.kept, say)
        if live.image is None:
            raise CallError(f"--model: one that reads images, with --image; got {asked.model!r}; {live.how}")
        say(f"{live.words}, on {asked.image.name}")
        return [look(live.image, content)], live
    return _read(asked, say, look)


def _read(asked: Asked, say: Say, look: Look) -> tuple[list[Any], Live]:
    """A text under the live model; where there is none, the gallery, and how to get it."""
    text = asked.text if asked.file is None else read_text(asked.file)
    lacking = absent(USUAL) if asked.model is None else None
    images = live_images(asked.kept)
    if asked.gallery or lacking is not None:
        how = "the live model is not loaded; start without --gallery" if lacking is None else str(lacking)
        say(f"opening the gallery; for a live model: {how}" if lacking is not None else "opening the gallery")
        return [], replace(images, how=how)
    live = live_model(asked.model or USUAL, asked.kept, say)
    if live.text is None:
        raise CallError(f"--model: one that reads texts, or --image; got {asked.model!r}; {live.how}")
    say(live.words)
    return [look(live.text, text or SENTENCE)], replace(live, image=images.image)


# -- files ------------------------------------------------------------------------------------------------------


def opened(path: Path) -> Any:
    """A lens that was saved."""
    from .lenses import Lens

    if not path.exists():
        raise CallError(f"--open: a lens that was saved; got {str(path)!r}, where nothing is")
    return Lens.open(path)


def read_text(path: Path) -> str:
    """The text of a file."""
    content = _content(path, "--file", LETTERS, "a file of text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise KindError(f"--file: text in UTF-8; got {str(path)!r}, which is none; for a picture: --image")
    if not text.strip():
        raise CallError(f"--file: some text; got {str(path)!r}, which is empty")
    return text


def read_image(path: Path) -> bytes:
    """The bytes of an image file."""
    return _content(path, "--image", IMAGE, "an image file")


def _content(path: Path, option: str, most: int, what: str) -> bytes:
    if not path.is_file():
        got = "a folder" if path.is_dir() else "no plain file" if path.exists() else "nothing there"
        raise CallError(f"{option}: {what}; got {str(path)!r}, {got}")
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise CallError(f"{option}: {what} that can be read; got {str(path)!r}: {error.strerror}") from None
    if len(content) > most:
        raise CallError(f"{option}: at most {most:,} bytes; got more in {str(path)!r}; take a part of it")
    return content


# -- words ------------------------------------------------------------------------------------------------------


def counted(count: int, what: str) -> str:
    """ "1 layer", "6 layers"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
