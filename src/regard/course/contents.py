"""What the course is made of: fifteen chapters, each with a question, and what to carry from it.

pixel → similarity → axes → queries → weight → values → order → masks → heads → learning → transformer
recurrence, interaction, length, model: what comes of it
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..algebra.errors import CallError


@dataclass(frozen=True)
class Reading:
    """Something to read outside of the course."""

    title: str
    by: str
    link: str


@dataclass(frozen=True)
class Chapter:
    """One chapter.

    name:     a word, as in `regard learn weight`
    question: what it answers
    before:   numbers of chapters that it stands on;  after: of those that go on from it
    carry:    what to remember when the rest is forgotten
    """

    number: int
    name: str
    title: str
    question: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    carry: tuple[str, ...]
    reading: tuple[Reading, ...] = ()

    @property
    def key(self) -> str:
        """Its name with its number, as its files have it: c05_weight."""
        return f"c{self.number:02}_{self.name}"

    @property
    def file(self) -> Path:
        """The notebook."""
        return Path(__file__).parent / "chapters" / f"{self.key}.py"


VASWANI = Reading("Attention is all you need", "Vaswani and others, 2017", "https://arxiv.org/abs/1706.03762")
BAHDANAU = Reading(
    "Neural machine translation by jointly learning to align and translate",
    "Bahdanau, Cho, Bengio, 2015", "https://arxiv.org/abs/1409.0473",
)  # fmt: skip
SIGMOID = Reading(
    "Theory, analysis and best practices for sigmoid self-attention",
    "Ramapuram and others, 2024", "https://arxiv.org/abs/2409.04431",
)  # fmt: skip
WHITENING = Reading(
    "Optimal whitening and decorrelation", "Kessy, Lewin, Strimmer, 2018", "https://arxiv.org/abs/1512.00809"
)
HEADS = Reading(
    "Are sixteen heads really better than one?", "Michel, Levy, Neubig, 2019", "https://arxiv.org/abs/1905.10650"
)
MEMORY = Reading(
    "Long short-term memory", "Hochreiter, Schmidhuber, 1997", "https://www.bioinf.jku.at/publications/older/2604.pdf"
)
LIMITS = Reading(
    "Representational strengths and limitations of transformers",
    "Sanford, Hsu, Telgarsky, 2023", "https://arxiv.org/abs/2306.02896",
)  # fmt: skip
SIMPLICIAL = Reading(
    "Logic and the 2-simplicial transformer",
    "Clift, Doryn, Murfet, Wallbridge, 2019", "https://arxiv.org/abs/1909.00668",
)  # fmt: skip
VISION = Reading("An image is worth 16×16 words", "Dosovitskiy and others, 2021", "https://arxiv.org/abs/2010.11929")

CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        1, "pixel", "A pixel and its neighbours",
        "What does the number 142 mean in a picture?",
        (), (2,),
        (
            "A number by itself is information; what stands around it makes it mean something.",
            "An image becomes a table: one row for each patch, and nothing is lost on the way.",
            "We look for new rows, each of which has looked at the others: X → Y, of one shape.",
        ),
        (VISION,),
    ),
    Chapter(
        2, "similarity", "How similar are two vectors?",
        "Two patches are close, or point the same way, or rise and fall together: which of these is “similar”?",
        (1,), (3, 4),
        (
            "Distance, dot product, cosine and correlation are one idea: an inner product, seen four ways.",
            "At equal lengths, ranking by dot product is ranking by distance, backwards.",
            "Units and shared causes fool Euclid: centimetres or metres decide who is nearest.",
        ),
    ),
    Chapter(
        3, "axes", "The axes of the data",
        "If some directions vary a hundred times as much as others, what is a fair distance?",
        (2,), (4,),
        (
            "The covariance has its own axes; along each of them it says how much the data spreads.",
            "Whitening turns the ellipse into a circle; Euclid is fair there.",
            "Mahalanobis is Euclid after whitening: one matrix Σ⁻¹ between two vectors.",
        ),
        (WHITENING,),
    ),
    Chapter(
        4, "queries", "A matrix that is not symmetric: queries and keys",
        "The boat needs the water to be understood. Does the water need the boat as much?",
        (2, 3), (5,),
        (
            "Any one matrix that serves both sides gives a symmetric score: asking and answering are then the same.",
            "Two matrices make two roles: q = x W_Q asks, k = x W_K answers, and s_ij = q_i · k_j need not equal s_ji.",
            "Between them stands one fixed matrix M = W_Q W_Kᵀ of rank d at most; only its entries are learned.",
        ),
        (BAHDANAU, VASWANI),
    ),
    Chapter(
        5, "weight", "From score to weight",
        "A score may be −3 or 40. How does it become a share of attention?",
        (4,), (6, 8),
        (
            "Any ψ that is never negative, divided by its sum over the keys, gives weights: softmax is ψ = exp.",
            "Scores of d numbers spread like √d; divided by √d they stay where softmax still listens.",
            "The sum runs over keys: each row is one query's budget of 1.",
        ),
        (VASWANI, SIGMOID),
    ),
    Chapter(
        6, "values", "Values, and the convex cloud",
        "Once we know whom to listen to: what do they say?",
        (5,), (7, 9),
        (
            "An output is an average of values with weights that sum to 1, so it stays inside their cloud.",
            "What makes a token found (its key) and what it sends (its value) are two jobs, with a matrix each.",
            "Attention mixes; it makes no new directions. The rest of a block does that.",
        ),
        (VASWANI,),
    ),
    Chapter(
        7, "order", "Order: the same words in another place",
        "“Cat sat” and “sat cat” hold the same words. How would attention know?",
        (6,), (8,),
        (
            "Without positions and mask, attention is equivariant: shuffle the input, and the output is shuffled too.",
            "A position can be added to the vector, turned into it, or subtracted from the score.",
            "A causal mask alone already tells order.",
        ),
        (Reading("RoFormer: rotary position embedding", "Su and others, 2021", "https://arxiv.org/abs/2104.09864"),
         Reading("Train short, test long: ALiBi", "Press, Smith, Lewis, 2022", "https://arxiv.org/abs/2108.12409")),
    ),
    Chapter(
        8, "masks", "Masks: who may read whom",
        "How is a model kept from reading the answer before it has given it?",
        (5, 7), (9, 11),
        (
            "A mask removes pairs before the sum: what is not admitted has weight 0 and no part in the total.",
            "Masked after softmax, rows no longer sum to 1 and the hidden side leaks through the total.",
            "Encoder: all read all. Decoder: each reads its past. Both together: and the target reads the source.",
        ),
        (VASWANI,),
    ),
    Chapter(
        9, "heads", "Heads: several questions at once",
        "A word wants its verb, its article and the word before it. Which one question finds all three?",
        (6, 8), (10, 11),
        (
            "One head has one notion of relevance, and its row has one unit of attention to spend.",
            "Several heads are several pairs of W_Q, W_K, with a part of the width each, put side by side again.",
            "It is still one matrix product for all heads together.",
        ),
        (HEADS,),
    ),
    Chapter(
        10, "learning", "Learning the matrices",
        "Nobody writes the matrices of queries, keys and values. Where do they come from?",
        (4, 6, 9), (11,),
        (
            "There is no closed form: the matrices begin at random, and a gradient moves them.",
            "The gradient of attention has a formula too: dψ = (dy · v − δ) / Z, then through the score.",
            "Before training the weights mean nothing; after it they point at what decides.",
        ),
    ),
    Chapter(
        11, "transformer", "A whole transformer, on images and on text",
        "What must stand around attention until it can write or see?",
        (8, 9, 10), (12, 15),
        (
            "A block is attention, then a layer on each token by itself, added to what was there, and normalised.",
            "The same block reads patches and words; only the way in and the way out differ.",
            "Stacked blocks are not one linear map: weights depend on what is read.",
        ),
        (VASWANI, VISION),
    ),
    Chapter(
        12, "recurrence", "One look across the table, against a chain of whispers",
        "Guest 1 tells a joke. What arrives at guest 20?",
        (11,), (13, 14),
        (
            "In attention any two positions are one step apart; in a recurrent net as many as lie between them.",
            "What passes through many hands fades: its gradient shrinks with every step.",
            "Attention works on all positions at once; the price is that it looks at all pairs.",
        ),
        (MEMORY, BAHDANAU),
    ),
    Chapter(
        13, "interaction", "What one layer cannot do",
        "Three cards that sum to ten: can one look find the other two at once?",
        (9, 12), (14,),
        (
            "A weight depends on one pair (i, j) and the total: two other tokens never meet inside it.",
            "What needs three at once needs another layer, many heads, or attention over pairs.",
            "Looking at pairs costs N³ where attention costs N².",
        ),
        (LIMITS, SIMPLICIAL),
    ),
    Chapter(
        14, "length", "A hundred thousand tokens",
        "All pairs of a hundred thousand tokens are ten thousand million. Where do they fit?",
        (5, 12), (15,),
        (
            "The matrix of weights need never be whole: rows are sums, and a sum can be taken block by block.",
            "A running maximum and a running total are all that softmax has to remember.",
            "Operations stay N²; memory falls from N² to N.",
        ),
        (Reading("FlashAttention", "Dao, Fu, Ermon, Rudra, Ré, 2022", "https://arxiv.org/abs/2205.14135"),),
    ),
    Chapter(
        15, "model", "Look into a real model",
        "What do the heads of a trained model in fact read?",
        (11, 14), (),
        (
            "Some heads read the token before, some the first, some what a word refers to: measured, not guessed.",
            "A weight says what was read, not why; blocking it says whether it mattered.",
            "The lens keeps q, k and one number a row, and shows any weight of any length.",
        ),
        (Reading("What does BERT look at?", "Clark and others, 2019", "https://arxiv.org/abs/1906.04341"),
         Reading("Attention is not explanation", "Jain, Wallace, 2019", "https://arxiv.org/abs/1902.10186")),
    ),
)  # fmt: skip


def find_chapter(asked: int | str) -> Chapter:
    """The chapter of a number or a name.

    >>> find_chapter("weight").number, find_chapter(5).name, find_chapter("05").name
    (5, 'weight', 'weight')
    """
    text = str(asked).strip().lower()
    for chapter in CHAPTERS:
        if text == chapter.name or (text.isdecimal() and int(text) == chapter.number):
            return chapter
    names = [chapter.name for chapter in CHAPTERS]
    near = get_close_matches(text, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise CallError(
        f"chapter: a number from 1 to {len(CHAPTERS)}, or a name among {', '.join(names)}; got {asked!r}{hint}"
    )
