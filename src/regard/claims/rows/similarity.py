"""Claims about how alike two vectors are: distance, dot product, cosine, and search by them."""

from __future__ import annotations

from itertools import product

import numpy as np

from ... import geometry
from ...algebra.symbols import dot, i, j, sqdist, table
from ...attention import Attention
from ..measure import gap, normal, relative_gap
from ..plots import Axis, Dots, Line, Upright, chart
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "G3",
    "A",
    "Euclidean distance depends on the units, and counts what correlated features share more than once.",
    Verdict.HOLDS,
)
def units_and_copies() -> Measurements:
    """‖D (x − y)‖ ≠ ‖x − y‖ for units D; (x − y)ᵀ Σ⁻¹ (x − y) is the same in all units, and blind to copies."""
    centimetres = _people(211)
    metres = centimetres * (0.01, 1.0)
    yield Measured(_moved(centimetres, metres), "share of people whose nearest is another one in metres", at_least=0.5)
    moved = _moved(_whitened(centimetres), _whitened(metres))
    yield Measured(moved, "the same by Mahalanobis", at_most=0)

    level = (centimetres - centimetres.mean(axis=0)) / centimetres.std(axis=0)
    thrice = level[:, [0, 0, 0, 1]]
    what = "share whose nearest is another one where the height stands there thrice"
    yield Measured(_moved(level, thrice), what, at_least=0.1)
    yield Measured(_moved(_whitened(level), _whitened(thrice)), "the same by Mahalanobis", at_most=0)

    with_body, against = np.array([1.0, 1.0]), np.array([1.0, -1.0])  # tall with large feet, tall with small ones
    metric = geometry.Mahalanobis.fit(level)
    ratio = metric.distance(against, 0 * against) / metric.distance(with_body, 0 * with_body)
    yield Measured(ratio, "tall with small feet over tall with large ones, by Mahalanobis", at_least=2)
    ratio = geometry.norm(against) / geometry.norm(with_body)
    yield Measured(ratio, "the same by Euclid", at_least=1, at_most=1)


def _people(count: int) -> np.ndarray:
    """Heights from about 150 to 185 centimetres, and shoe sizes from about 6 to 12: tall people have large feet."""
    body, feet = normal(2, 2, count)
    return np.column_stack([168 + 7 * body, 9 + 1.2 * (0.9 * body + 0.4 * feet)])


def _whitened(x: np.ndarray) -> np.ndarray:
    """A x, where Mahalanobis' distance is Euclid's; shrunk by next to nothing, as a copy has no variance of its own."""
    return np.asarray(geometry.Mahalanobis.fit(x, shrinkage=1e-9).whiten(x))


def _moved(x: np.ndarray, y: np.ndarray) -> float:
    """The share of rows whose nearest other row is another one in y than in x; a row is the nearest to itself."""
    one, other = (geometry.search(rows, rows, 2, metric="euclidean").indices[:, 1] for rows in (x, y))
    return float(np.mean(one != other))


@claim(
    "G4",
    "A",
    "A dot product is at most the product of the lengths, and equal to it for parallel vectors alone.",
    Verdict.HOLDS,
)
def cauchy_schwarz() -> Measurements:
    """‖x‖² ‖y‖² − ⟨x, y⟩² = Σ_(a<b) (x_a y_b − x_b y_a)² ≥ 0, and 0 exactly where x and y are parallel."""
    x = np.array(list(product(range(-2, 3), repeat=3)), float)  # small integers: no rounding anywhere
    products = np.asarray(geometry.gram(x))
    slack = np.outer(np.diag(products), np.diag(products)) - products**2
    parallel = ~np.any(np.cross(x[:, None], x[None]), axis=-1)
    yield Measured(np.sum((slack == 0) != parallel), f"of {slack.size} pairs, those that it misjudges", at_most=0)
    yield Measured(slack.min(), "least ‖x‖² ‖y‖² − ⟨x, y⟩²", at_least=0)
    largest, beyond = zip(*(_largest_cosine(dtype) for dtype in (np.float64, np.float32)), strict=True)
    yield Measured(max(largest), "largest |cos θ| of rounded vectors, parallel ones too", at_least=1, at_most=1)
    what = "share of parallel pairs whose ⟨x, y⟩ / (‖x‖ ‖y‖), as written, is beyond 1 by rounding"
    yield Measured(min(beyond), what, at_least=0.01)


def _largest_cosine(dtype: type) -> tuple[float, float]:
    """The largest |cos θ| of pairs, some of them parallel, of lengths from 2⁻⁶⁰ to 2⁶⁰; and how often 1 is exceeded."""
    x = normal(3, 1009, 7).astype(dtype)
    along = (x * normal(5, 1009, 1)).astype(dtype)
    far = 2.0 ** np.linspace(-60, 60, 1009)[:, None]
    cosines = [geometry.cosine(x, (y * far).astype(dtype)) for y in (along, normal(7, 1009, 7).astype(dtype))]
    lengths = np.sqrt(np.sum(x * x, axis=1)) * np.sqrt(np.sum(along * along, axis=1))
    return float(np.abs(cosines).max()), float(np.mean(np.abs(np.sum(x * along, axis=1)) / lengths > 1))


@claim(
    "G5",
    "A",
    "A squared distance is two squared lengths less twice the dot product; at equal lengths it ranks in reverse.",
    Verdict.HOLDS,
)
def distance_and_dot() -> Measurements:
    """‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖²."""
    q, k = normal(2, 11, 5), normal(3, 13, 5)
    products, distances = (Attention(score=score).scores(q, k) for score in (dot, sqdist))
    lengths = np.sum(q**2, axis=1)[:, None] + np.sum(k**2, axis=1)
    yield Measured(gap(distances, lengths - 2 * products), "largest error of the identity", at_most=1e-12)

    level = 3 * k / np.linalg.norm(k, axis=1, keepdims=True)
    yield Measured(_ranked_apart(q, level), "queries that rank keys of one length differently", at_most=0)
    yield Measured(_ranked_apart(q, k), "the same for keys of different lengths", at_least=1)
    by_distance, by_product = (Attention(score=score).weights(q, level) for score in (-sqdist / 2, dot))
    yield Measured(gap(by_distance, by_product), "largest difference of the weights at one length", at_most=1e-12)
    yield Measured(_error_of_the_law(q, k), "largest error of the weights that the algebra derives", at_most=1e-12)


def _error_of_the_law(q: np.ndarray, k: np.ndarray) -> float:
    """a ‖q − k‖² + c = −2a q·k + a ‖k‖² + c + (what depends on q alone, and cancels): a and c from the algebra."""
    attention = Attention(score=-sqdist / 3 + (i - j) / 4)
    law = attention.laws.affine
    assert law is not None
    derived = Attention(score=-2 * law.slope * dot + law.slope * table("squares")[j] + law.rest)
    return gap(attention.weights(q, k), derived.weights(q, k, squares=np.sum(k**2, axis=1)))


def _ranked_apart(q: np.ndarray, k: np.ndarray) -> int:
    """How many queries order the keys by rising distance other than by falling dot product."""
    nearest = np.argsort(Attention(score=sqdist).scores(q, k), axis=1)
    likest = np.argsort(-Attention(score=dot).scores(q, k), axis=1)
    return int(np.sum(np.any(nearest != likest, axis=1)))


@claim(
    "G6",
    "A",
    "The mean of the product of two random variables is an inner product, and a correlation is a cosine under it.",
    Verdict.HOLDS,
)
def correlation_is_a_cosine() -> Measurements:
    """⟨X, Y⟩ = E[X Y]; ρ(X, Y) = ⟨X − μ, Y − ν⟩ / (‖X − μ‖ ‖Y − ν‖): the cosine once both means are 0."""
    x = normal(2, 101, 7) @ normal(3, 7, 7) + (0, 1, 2, 3, 5, 7, 11)  # a random variable in each column, not of mean 0
    theirs, cosines = np.corrcoef(x.T), geometry.cosines((x - x.mean(axis=0)).T)
    yield Measured(gap(theirs, cosines), "largest difference of NumPy's corrcoef from a cosine", at_most=1e-14)
    yield Measured(gap(theirs, geometry.correlation(x)), "from our correlation", at_most=1e-14)
    yield Measured(gap(theirs, geometry.cosines(x.T)), "from the cosine where no mean is subtracted", at_least=0.1)

    products = np.asarray(geometry.expectation(x))
    B = normal(5, 7, 7)
    linear = relative_gap(products @ B, geometry.expectation(x, x @ B))
    yield Measured(linear, "largest error of E[X (Y B)] = E[X Y] B: linear", at_most=1e-13)
    yield Measured(gap(products, products.T), "largest difference of E[X Y] and E[Y X]: symmetric", at_most=1e-12)
    yield Measured(np.linalg.eigvalsh(products).min(), "least E[(X a)²] of unit vectors a: definite", at_least=1e-3)


@claim(
    "G7",
    "A",
    "Search by cosine finds what points the same way whatever its length: what a vector database does.",
    Verdict.HOLDS,
    needs=["sklearn"],
)
def search_by_cosine() -> Measurements:
    """The k largest q·c / (‖q‖ ‖c‖) of 100 003 rows c, the same for every λ c with λ > 0."""
    from sklearn.neighbors import NearestNeighbors

    corpus, queries, k = normal(2, 100_003, 64).astype(np.float32), normal(3, 7, 64).astype(np.float32), 10
    lengths = np.exp2(np.random.default_rng(5).integers(-20, 21, (len(corpus), 1))).astype(np.float32)

    def found(rows: np.ndarray, metric: str = "cosine", block: int | None = None) -> np.ndarray:
        return np.asarray(geometry.search(queries, rows, k, metric=metric, block=block, progress=False).indices)

    ours = found(corpus)
    stretched, by_product = found(corpus * lengths, block=9973), found(corpus * lengths, "dot")
    brute = np.argsort(-_cosines(queries, corpus), axis=1)[:, :k]
    theirs = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(corpus).kneighbors(queries)[1]
    what = f"of {ours.size} found, those that change where lengths become 2⁻²⁰ to 2²⁰, read in blocks of 9973"
    yield Measured(np.sum(ours != stretched), what, at_most=0)
    yield Measured(np.sum(ours != brute), "those that brute force in float64 ranks otherwise", at_most=0)
    yield Measured(np.sum(ours != theirs), "those that scikit-learn ranks otherwise", at_most=0)
    yield Measured(np.sum(ours != by_product), "those that change by dot product, which prefers long ones", at_least=35)


def _cosines(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    """Every cosine, in float64."""
    q, c = queries.astype(float), corpus.astype(float)
    q, c = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, c))
    return np.asarray(q @ c.T)


@claim("G12", "A", "At fixed lengths two vectors are farthest apart where they are orthogonal.", Verdict.WRONG)
def farthest() -> Measurements:
    """‖x − y‖² = ‖x‖² + ‖y‖² − 2 ‖x‖ ‖y‖ cos θ, greatest at θ = 180°: ‖x‖ + ‖y‖, beyond √(‖x‖² + ‖y‖²) at 90°."""
    degrees = np.arange(181)
    x, y = np.array([1.0, 0.0]), np.column_stack([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))])
    apart = np.asarray(geometry.distance(x, y))
    told = ", ".join(f"{apart[angle]:.3g} at {angle}°" for angle in (0, 90, 180))
    yield Measured(apart[180] - apart[90], "how much farther opposite vectors are", at_least=0.58, detail=told)
    yield Measured(degrees[apart.argmax()], "angle of the greatest distance, in degrees", at_least=180, at_most=180)
    yield Measured(gap(apart[[0, 90, 180]], (0, np.sqrt(2), 2)), "largest difference from 0, √2, 2", at_most=1e-15)
    yield Measured(np.diff(apart).min(), "least growth from one degree to the next", at_least=1e-5)
    yield Measured(gap(np.rad2deg(geometry.angle(x, y)), degrees), "largest error of the angle", at_most=1e-12)
    marks = Line(degrees, apart), Upright(90, "orthogonal"), Dots([180], apart[[180]], "accent", ["opposite"], size=9)
    angles = Axis("angle between two vectors of length 1", 0, 190, {at: f"{at}°" for at in (0, 45, 90, 135, 180)})
    drawn = chart(angles, Axis("distance", 0, 2.2, {0: "0", 1: "1", np.sqrt(2): "√2", 2: "2"}), *marks)
    yield Figure(drawn, "Past the right angle the distance goes on growing, until the vectors are opposite.")
