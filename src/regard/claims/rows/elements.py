"""Claims about x_i: what one element says by itself, and an image as vectors."""

from __future__ import annotations

from itertools import product

import numpy as np

from ... import geometry
from ...inputs.images import patches
from ..measure import changed_bits, grey, photograph
from ..record import Measured, Measurements, Verdict
from ..registry import claim

SEGMENTS = {
    "sky": [(0, 330, 130, 640), (130, 330, 195, 545), (0, 0, 60, 175), (60, 0, 140, 80)],
    "water": [(245, 370, 308, 415), (245, 415, 288, 515)],
    "pagoda": [(105, 125, 335, 295)],
    "trees": [(345, 10, 427, 180), (330, 375, 427, 560), (220, 565, 427, 640)],
}
"""What is to be seen in the photograph, in boxes drawn by hand: top, left, bottom, right."""
SIZE, STEP = 16, 4  # of a patch; from one patch to the next
FIELD = 72  # of the chessboard that parts learning from testing: each segment lies on both colours
AXES = 10  # along which patches vary most: what is learned of them


@claim(
    "G0",
    "A",
    "The value of a pixel means nothing by itself; its neighbours tell what it belongs to.",
    Verdict.CONDITION,
    needs=["sklearn", "PIL"],
)
def one_pixel() -> Measurements:
    """1 / K < p(right | value) < p(right | patch), to tell which of K segments a pixel belongs to.

    No rule that reads one value v is right more often than Σ_v max_k p(v | k) / K, each segment counting alike. Rules
    are learned on the black fields of a chessboard and tested on the white ones, and the reverse; a patch's width of
    the photograph lies between them.
    """
    image, segment = grey("china"), _drawn()
    patch, value, truth = _elements(image, segment)
    shown = f"{', '.join(SEGMENTS)}; by chance 0.25"
    yield Measured(_right(value, truth), "right from a pixel's grey value", at_least=0.4, at_most=0.8, detail=shown)
    yield Measured(_right(patch, truth), "right by the same rule from the 16 × 16 pixels around it", at_least=0.82)
    counts = np.stack([np.bincount(image[segment == k], minlength=256) for k in range(len(SEGMENTS))])
    best = (counts / counts.sum(axis=1, keepdims=True)).max(axis=0).sum() / len(SEGMENTS)
    yield Measured(best, "the most that any rule has right of all pixels, from the value alone", at_most=0.8)
    several = np.count_nonzero(counts, axis=0) > 1
    told = ", ".join(name for name, count in zip(SEGMENTS, counts[:, 142], strict=True) if count)
    yield Measured(several.sum(), "of 256 values, those in several segments", at_least=128, detail=f"142: {told}")
    _, colours, truth = _elements(photograph("china"), segment)
    yield Measured(_right(colours, truth), "right from a pixel's three colours, which say most of it", at_least=0.82)


def _drawn() -> np.ndarray:
    """The number of the segment at each pixel; −1 outside."""
    segment = np.full((427, 640), -1)
    for number, boxes in enumerate(SEGMENTS.values()):
        for top, left, bottom, right in boxes:
            segment[top:bottom, left:right] = number
    return segment


def _truth(segment: np.ndarray) -> np.ndarray:
    """2 · segment + colour of the field at each pixel; −1 outside of segments, and between fields."""
    row, column = np.indices(segment.shape)
    inside = (segment >= 0) & (row % FIELD >= SIZE) & (column % FIELD >= SIZE)
    return np.where(inside, 2 * segment + (row // FIELD + column // FIELD) % 2, -1)


def _elements(image: np.ndarray, segment: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patches that lie in one segment and one field, their middle pixels, and the truth about them."""

    def cut(array: np.ndarray) -> np.ndarray:
        corners = product(range(0, SIZE, STEP), repeat=2)
        return np.concatenate([patches(array[y:, x:], SIZE, rest="crop").vectors for y, x in corners])

    vectors, truths = cut(image).astype(float), cut(_truth(segment))
    whole = (truths.min(axis=1) == truths.max(axis=1)) & (truths[:, 0] >= 0)
    pixels = vectors.reshape(len(vectors), SIZE, SIZE, -1)
    return vectors[whole], pixels[whole, SIZE // 2, SIZE // 2], truths[whole, 0]


def _right(x: np.ndarray, truth: np.ndarray) -> float:
    """The mean share of a segment that is told, learned on one colour of the chessboard and tested on the other."""
    segment, field = np.divmod(truth, 2)
    shares = []
    for learned in (0, 1):
        there, here = field == learned, field != learned
        told = _told(x[there], segment[there], x[here])
        shares += [np.mean(told[segment[here] == k] == k) for k in range(len(SEGMENTS))]
    return float(np.mean(shares))


def _told(x: np.ndarray, segment: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """argmax_k of −d_k(x, μ_k)²/2 − log √det Σ_k: the segment whose cloud, taken for a Gaussian one, is likeliest."""
    axes = geometry.Axes.of(x).vectors[:, :AXES]
    x, asked = x @ axes, asked @ axes

    def likelihood(cloud: np.ndarray) -> np.ndarray:
        metric = geometry.Mahalanobis.fit(cloud)
        distances = np.asarray(metric.distance(asked, cloud.mean(axis=0)))
        return np.asarray(-(distances**2) / 2 + np.linalg.slogdet(metric.whitening)[1])

    return np.asarray(np.argmax([likelihood(x[segment == k]) for k in range(len(SEGMENTS))], axis=0))


@claim(
    "G1",
    "A",
    "A colour image of 224 × 224 in patches of 16 × 16 is a matrix of 196 × 768, and nothing is lost.",
    Verdict.HOLDS,
    needs=["sklearn", "PIL"],
)
def image_as_matrix() -> Measurements:
    """N = (224 / 16)² = 196, D = 16 · 16 · 3 = 768, and the image is back bit for bit."""
    whole = photograph("china")
    image = whole[100:324, 100:324]
    cut = patches(image, 16)
    yield Measured(changed_bits(image, cut.image()), "bytes that differ in the image that is put together", at_most=0)
    yield Measured(len(cut), "rows, one for each patch", at_least=196, at_most=196)
    yield Measured(cut.shape[1], "columns, one for each number of a patch", at_least=768, at_most=768)
    patch = image[16:32, 48:64].reshape(-1)  # row 1, column 3
    yield Measured(changed_bits(patch, cut.vectors[1 * 14 + 3]), "bytes of row 17 that are not its patch's", at_most=0)
    padded, cropped = (patches(whole, 16, rest=rest).image() for rest in ("pad", "crop"))
    yield Measured(changed_bits(whole, padded), "bytes that differ where sides are no multiple of 16", at_most=0)
    lost = 1 - cropped.size / whole.size
    yield Measured(lost, "share that is lost where what fills no patch is dropped", at_least=0.01, at_most=0.05)
