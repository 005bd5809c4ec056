"""Attentions with names: each a function that gives its formula, with the paper it comes from.

>>> from regard import zoo
>>> zoo.alibi()
softmax(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=j <= i)
>>> zoo.ENTRIES["alibi"].paper
'Press, Smith, Lewis: Train Short, Test Long'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .algebra.errors import FormulaError
from .algebra.expressions import Expression
from .algebra.masks import causal, documents
from .algebra.masks import prefix as prefix_mask
from .algebra.masks import window as window_mask
from .algebra.symbols import (
    H,
    abs_,
    b,
    cosine,
    d,
    dot,
    exp,
    floor,
    h,
    i,
    j,
    log,
    maximum,
    minimum,
    n,
    relu,
    sqdist,
    sqrt,
    table,
    tanh,
    where,
)
from .algebra.symbols import sigmoid as sigmoid_function
from .algebra.weights import share
from .attention import Attention


@dataclass(frozen=True)
class Entry:
    """One attention of the zoo: what it is, where it was published, and how to make it."""

    name: str
    title: str
    paper: str
    year: int
    link: str
    make: Callable[..., Attention]

    @property
    def formula(self) -> Attention:
        """The formula with its default parameters."""
        return self.make()


ENTRIES: dict[str, Entry] = {}


def entry(
    title: str, paper: str, year: int, link: str
) -> Callable[[Callable[..., Attention]], Callable[..., Attention]]:
    """Enter a function into the zoo under its own name."""

    def enter(make: Callable[..., Attention]) -> Callable[..., Attention]:
        name = make.__name__
        ENTRIES[name] = Entry(name, title, paper, year, link, make)
        return make

    return enter


ROUNDING = 1e-4  # a distance that begins a bucket falls into it in every precision
VASWANI = ("Vaswani et al.: Attention Is All You Need", 2017, "arXiv:1706.03762")


@entry("scaled dot product", *VASWANI)
def scaled_dot() -> Attention:
    """softmax(q·k / √d): scores of unit spread at every width.

    >>> scaled_dot()
    softmax(dot / sqrt(d))
    """
    return Attention()


@entry("causal", *VASWANI)
def causal_dot() -> Attention:
    """Scaled dot product in which position i reads positions up to i.

    >>> causal_dot()
    softmax(dot / sqrt(d), mask=j <= i)
    """
    return Attention(mask=causal)


@entry(
    "unscaled dot product",
    "Luong, Pham, Manning: Effective Approaches to Attention-based NMT",
    2015,
    "arXiv:1508.04025",
)
def unscaled_dot() -> Attention:
    """softmax(q·k): the older form, whose scores grow with √d.

    >>> unscaled_dot()
    softmax(dot)
    """
    return Attention(score=dot)


@entry("bilinear", "Luong, Pham, Manning: Effective Approaches to Attention-based NMT", 2015, "arXiv:1508.04025")
def bilinear() -> Attention:
    """softmax(qᵀ M k): a matrix between query and key, which may have different widths. Table M: (d_q, d_k).

    >>> bilinear()
    softmax(dot(table("M")))
    """
    return Attention(score=dot(table("M")))


@entry("cosine with temperature", "Henry et al.: Query-Key Normalization for Transformers", 2020, "arXiv:2010.04245")
def cosine_similarity() -> Attention:
    """Directions alone decide; a learned temperature sets how sharply. Table temperature: a number.

    >>> cosine_similarity()
    softmax(cosine * table("temperature"))
    """
    return Attention(score=table("temperature") * cosine)


@entry("Euclidean (RBF kernel)", "Tsai et al.: Transformer Dissection", 2019, "arXiv:1908.11775")
def euclidean() -> Attention:
    """softmax(−‖q − k‖² / 2): the Gaussian kernel; nearness, not angle.

    >>> euclidean()
    softmax(-sqdist / 2)
    """
    return Attention(score=-sqdist / 2)


@entry("Mahalanobis", "Nielsen et al.: Elliptical Attention", 2024, "arXiv:2406.13770")
def mahalanobis() -> Attention:
    """softmax(−(q − k)ᵀ P (q − k) / 2): distance in the units of the data. Table P: (d, d).

    >>> mahalanobis()
    softmax(-sqdist(table("P")) / 2)
    """
    return Attention(score=-sqdist(table("P")) / 2)


@entry("ALiBi", "Press, Smith, Lewis: Train Short, Test Long", 2022, "arXiv:2108.12409")
def alibi() -> Attention:
    """A penalty that grows with distance, steeper or flatter by head.

    >>> alibi()
    softmax(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=j <= i)
    """
    return Attention(score=dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=causal)


@entry(
    "relative bias",
    "Shaw, Uszkoreit, Vaswani: Self-Attention with Relative Position Representations",
    2018,
    "arXiv:1803.02155",
)
def relative_bias(reach: int = 511) -> Attention:
    """A learned number for each head and offset, the same beyond `reach`. Table bias: (H, 2·reach + 1).

    >>> relative_bias(reach=2)
    softmax(dot / sqrt(d) + table("bias")[h, maximum(-2, minimum(2, i - j)) + 2])
    """
    if reach < 0:
        raise FormulaError(f"relative_bias: a reach of at least 0; got {reach}")
    return Attention(score=dot / sqrt(d) + table("bias")[h, _clamped(i - j, reach) + reach])


@entry("T5 buckets", "Raffel et al.: Exploring the Limits of Transfer Learning", 2020, "arXiv:1910.10683")
def t5_bias(buckets: int = 32, reach: int = 128) -> Attention:
    """No √d; a learned number for each head and bucket of distance: exact when near, logarithmic when far.

    Half of the buckets serve keys before the query, half keys after it. Table bias: (H, buckets).

    >>> t5_bias().ranks
    {'bias': 2}
    """
    if buckets < 4 or buckets % 4 or reach <= buckets // 4:
        raise FormulaError(f"t5_bias: buckets a multiple of 4, reach above buckets / 4; got {buckets} and {reach}")
    half = buckets // 2
    near = half // 2
    distance = abs_(i - j)
    scale = log(maximum(distance, 1) / near) / log(reach / near)
    far = near + floor((half - near) * scale + ROUNDING)
    bucket = where(distance < near, distance, minimum(far, half - 1)) + where(j > i, half, 0)
    return Attention(score=dot + table("bias")[h, bucket])


@entry("soft cap", "Gemma Team: Gemma 2", 2024, "arXiv:2408.00118")
def soft_cap(cap: float = 30) -> Attention:
    """Scores bent smoothly into [−cap, cap].

    >>> soft_cap()
    softmax(30 * tanh(dot / (30 * sqrt(d))))
    """
    return Attention(score=cap * tanh(dot / sqrt(d) / cap))


@entry("sliding window", "Beltagy, Peters, Cohan: Longformer", 2020, "arXiv:2004.05150")
def sliding_window(width: int = 1024) -> Attention:
    """Position i reads itself and the `width` − 1 positions before it.

    >>> sliding_window(4)
    softmax(dot / sqrt(d), mask=(j <= i) & (i - j <= 3))
    """
    return Attention(mask=window_mask(width))


@entry("prefix LM", "Raffel et al.: Exploring the Limits of Transfer Learning", 2020, "arXiv:1910.10683")
def prefix_lm() -> Attention:
    """All of the prompt, then causally. Table prompt: one length for each batch.

    >>> prefix_lm()
    softmax(dot / sqrt(d), mask=(j <= i) | (j < table("prompt")[b]))
    """
    return Attention(mask=prefix_mask(table("prompt")[b]))


@entry(
    "document packing", "Krell et al.: Efficient Sequence Packing without Cross-contamination", 2021, "arXiv:2107.02027"
)
def document_packing() -> Attention:
    """Several documents in one row, none reading another. Table ids: (n) or (batch, n) integers.

    >>> document_packing()
    softmax(dot / sqrt(d), mask=(j <= i) & equal(table("ids")[b, i], table("ids")[b, j]))
    """
    return Attention(mask=causal & documents("ids"))


@entry(
    "sigmoid",
    "Ramapuram et al.: Theory, Analysis, and Best Practices for Sigmoid Self-Attention",
    2024,
    "arXiv:2409.04431",
)
def sigmoid() -> Attention:
    """Every pair decides for itself; −log n starts the rows at a sum near 1.

    >>> sigmoid()
    each(sigmoid(s))(dot / sqrt(d) - log(n))
    """
    return Attention(weight=sigmoid_function, score=dot / sqrt(d) - log(n))


@entry("ReLU / n", "Wortsman et al.: Replacing Softmax with ReLU in Vision Transformers", 2023, "arXiv:2309.08586")
def relu_over_n() -> Attention:
    """relu(s) / n: sparse, and without a sum.

    >>> relu_over_n()
    each(relu(s) / n)(dot / sqrt(d))
    """
    return Attention(weight=lambda s: relu(s) / n)


@entry("squared ReLU", "Hua et al.: Transformer Quality in Linear Time", 2022, "arXiv:2202.10447")
def squared_relu() -> Attention:
    """relu(s)², shared: sparse rows that sum to 1.

    >>> squared_relu()
    share(relu(s) ** 2)(dot / sqrt(d))
    """
    return Attention(weight=share(lambda s: relu(s) ** 2))


@entry("softmax plus one", "Miller: Attention Is Off By One", 2023, "evanmiller.org/attention-is-off-by-one.html")
def softmax_plus_one() -> Attention:
    """One is added to the total, so that a row may read nothing.

    >>> softmax_plus_one()
    share(exp(s), sink=1)(dot / sqrt(d))
    """
    return Attention(weight=share(exp, sink=1))


@entry("learned sinks", "OpenAI: gpt-oss model card", 2025, "arXiv:2508.10925")
def learned_sinks() -> Attention:
    """A learned score for each head to which weight may go that reads nothing. Table sink: (H).

    >>> learned_sinks()
    share(exp(s), sink=exp(table("sink")[h]))(dot / sqrt(d), mask=j <= i)
    """
    return Attention(weight=share(exp, sink=exp(table("sink")[h])), mask=causal)


def _clamped(value: Expression, reach: int) -> Expression:
    return maximum(-reach, minimum(reach, value))
