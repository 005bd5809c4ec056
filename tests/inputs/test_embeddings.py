"""Ids to vectors: one row of the table each, in every library, with gradients; an id that is none is never guessed."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard.algebra.errors import CallError, KindError
from regard.inputs.byte_pairs import BytePairs
from regard.inputs.embeddings import Embedding
from regard.inputs.text import Characters, Words

V, D = 11, 5
TABLE = np.random.default_rng(0).standard_normal((V, D))
KINDS: dict[str, Any] = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
every_kind = pytest.mark.parametrize("kind", KINDS)
SHAPES = [(), (0,), (7,), (2, 3), (2, 0), (2, 3, 7)]


def drawn(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(1).integers(0, V, shape)


# -- x_n = Σ_t [t = t_n] E_t -----------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_a_row_for_each_id(kind: str, shape: tuple[int, ...], dtype: str) -> None:
    convert, ids = KINDS[kind], drawn(shape)
    expected = (ids[..., None] == np.arange(V)).astype(float) @ TABLE
    for given_ids in (convert(ids.astype(dtype)), ids.astype(dtype), ids.tolist()):
        found = Embedding(convert(TABLE))(given_ids)
        assert type(found) is type(convert(TABLE))
        assert found.shape == (*shape, D)
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_vectors_have_the_dtype_of_the_table(dtype: str) -> None:
    table = torch.as_tensor(TABLE).to(getattr(torch, dtype))
    assert torch.equal(Embedding(table)([3, 7, 3]), table[[3, 7, 3]])
    assert Embedding(jnp.asarray(TABLE, dtype))([1]).dtype == dtype


def test_torch_gathers_the_same_and_its_gradients() -> None:
    ids = torch.as_tensor(drawn((2, 7)))
    ours = torch.nn.Parameter(torch.as_tensor(TABLE))
    theirs = torch.nn.Embedding(V, D, _weight=torch.tensor(TABLE))
    dy = torch.as_tensor(np.random.default_rng(2).standard_normal((2, 7, D)))
    Embedding(ours)(ids).backward(dy)
    theirs(ids).backward(dy)
    torch.testing.assert_close(ours.grad, theirs.weight.grad, rtol=0, atol=1e-14)


def test_jax_differentiates_and_compiles_it() -> None:
    ids, table = jnp.asarray(drawn((2, 7))), jnp.asarray(TABLE)
    gradient = jax.jit(jax.grad(lambda table: Embedding(table)(ids).sum()))(table)
    counts = np.bincount(drawn((2, 7)).reshape(-1), minlength=V)
    np.testing.assert_array_equal(gradient, np.repeat(counts[:, None], D, 1))
    found = jax.vmap(lambda row: Embedding(table)(row))(ids)
    np.testing.assert_array_equal(found, TABLE[drawn((2, 7))])


def test_lists_make_a_table() -> None:
    embedding = Embedding([[1, 2], [3, 4], [5, 6]])
    assert embedding(2).tolist() == [5.0, 6.0]
    assert embedding(range(2)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (len(embedding), embedding.width) == (3, 2)
    assert repr(embedding) == "Embedding(3 × 2, float64, numpy)"


# -- ids that are none -----------------------------------------------------------------------------------------------


@every_kind
@given(ids=st.lists(st.integers(-3 * V, 3 * V), min_size=1, max_size=5), rows=st.sampled_from([1, 2]))
def test_ids_outside_of_the_table_are_named(kind: str, ids: list[int], rows: int) -> None:
    embedding, given_ids = Embedding(KINDS[kind](TABLE)), KINDS[kind](np.asarray([ids] * rows))
    wrong = [(place, number) for place, number in enumerate(ids) if not 0 <= number < V]
    if not wrong:
        assert embedding(given_ids).shape == (rows, len(ids), D)
        return
    place, number = wrong[0]
    with pytest.raises(CallError, match=rf"ids: from 0 to 10, .*; got {number} at position \(0, {place}\); negative"):
        embedding(given_ids)


def test_jax_cannot_look_at_ids_that_it_traces() -> None:
    look = jax.jit(lambda ids: Embedding(jnp.asarray(TABLE))(ids))
    found = np.asarray(look(jnp.asarray([0, -1, V - 1, V, -V])))
    np.testing.assert_array_equal(found[[0, 2]], TABLE[[0, V - 1]])
    assert np.isnan(found[[1, 3, 4]]).all()
    small = np.asarray(jax.jit(lambda ids: Embedding(jnp.asarray(np.tile(TABLE, (30, 1))))(ids))(jnp.uint8([255])))
    np.testing.assert_array_equal(small, TABLE[[255 % V]])


COMPILED = """
    import warnings
    import torch
    from regard.inputs.embeddings import Embedding

    warnings.filterwarnings("error", category=UserWarning)
    table = torch.randn(11, 5, requires_grad=True)
    look = torch.compile(lambda table, ids: Embedding(table)(ids), fullgraph=True, backend="aot_eager")
    ids = torch.tensor([[3, 7, 3], [0, 10, 1]])
    found, expected = look(table, ids), table[ids]
    assert torch.equal(found, expected)
    one, other = (torch.autograd.grad(x.sin().sum(), table)[0] for x in (found, expected))
    torch.testing.assert_close(one, other)
    for wrong in (-1, 11):
        try:
            look(table, ids.clone().fill_(wrong))
        except IndexError:
            continue
        raise AssertionError("an id outside of the table was taken")
"""


def test_torch_compiles_it() -> None:
    """In a process of its own, with warnings as errors but for those about array_api_compat's cache."""
    done = subprocess.run([sys.executable, "-c", dedent(COMPILED)], capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr


TWO = Embedding(TABLE[:2], Words(("the", "cat")))
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "one id": (lambda: TWO(2), CallError, "ids: from 0 to 1, a row of the table each; got 2; negative"),
    "position": (lambda: TWO([0, -1]), CallError, "got -1 at position 1; negative ids do not count from the end"),
    "floats": (lambda: TWO([0.0]), KindError, "ids: integers; got dtype float64"),
    "float tensor": (
        lambda: Embedding(torch.ones(2, 3))(torch.ones(2)),
        KindError,
        "ids: integers; got dtype torch.float",
    ),
    "truths": (lambda: TWO([True]), KindError, "ids: integers; got dtype bool"),
    "a truth": (lambda: TWO(True), KindError, "ids: integers in an array or nested lists; got bool"),
    "None": (lambda: TWO(None), KindError, "ids: integers in an array or nested lists; got NoneType"),
    "ragged": (lambda: TWO([[0], [0, 1]]), CallError, r"rows of one length; .* vocabulary\.batch\(texts\) fills them"),
    "texts": (lambda: TWO(["the", "cat"]), KindError, r"got several texts; vocabulary\.batch\(texts\) gives their ids"),
    "no vocabulary": (
        lambda: Embedding(TABLE)("the"),
        KindError,
        r"no vocabulary; got str; pass Embedding\(table, vocab",
    ),
    "unknown word": (lambda: TWO("the dog"), CallError, "got 'dog' at position 4"),
    "foreign": (lambda: TWO(torch.tensor([0])), KindError, "from the library of the table, numpy, or NumPy; got torch"),
    "elsewhere": (
        lambda: Embedding(torch.ones(2, 3))(torch.ones(2, dtype=torch.int64, device="meta")),
        CallError,
        "device: ids lie where the table lies, on cpu; got meta",
    ),
    "one axis": (lambda: Embedding(TABLE[0]), CallError, r"table: \(tokens, width\), .*; got shape \(5,\)"),
    "no rows": (lambda: Embedding(TABLE[:0]), CallError, r"at least one of each; got shape \(0, 5\)"),
    "integers": (
        lambda: Embedding(np.eye(2, dtype=int)),
        KindError,
        "table: real floating numbers; got dtype int64; conv",
    ),
    "no table": (lambda: Embedding("the"), KindError, "table: an array or nested lists of numbers; got str"),
    "no words": (lambda: Embedding(TABLE, ("a",)), KindError, "vocabulary: Characters, Words or BytePairs; got tuple"),
    "few rows": (
        lambda: Embedding(TABLE[:1], Words(("the", "cat"))),
        CallError,
        "table: a row for each of the vocabulary's 2 tokens; got 1 rows",
    ),
    "size": (lambda: Embedding.random(0, 3), CallError, "tokens: an integer of at least 1; got 0"),
    "width": (lambda: Embedding.random(3, 2.0), CallError, "width: an integer of at least 1; got 2.0"),
    "like": (lambda: Embedding.random(3, 2, like="torch"), KindError, "like: an array of .*; got str"),
    "like integers": (lambda: Embedding.random(3, 2, like=np.arange(2)), KindError, "like: .*; got dtype int64"),
    "no dict": (lambda: Embedding.of([("a", [1.0])]), KindError, "vectors: a dict from words to vectors; got list"),
    "empty": (lambda: Embedding.of({}), CallError, "vectors: at least one word; got none"),
    "no str": (lambda: Embedding.of({1: [1.0]}), KindError, "vectors: each word: a str; got int"),
    "two words": (lambda: Embedding.of({"New York": [1.0]}), CallError, "each is one word, .*; got 'New York'"),
    "two cases": (
        lambda: Embedding.of({"The": [1.0], "the": [1.0]}, lower=True),
        CallError,
        "vectors: one for each word, in whatever case with lower=True; got two for 'the'",
    ),
    "widths": (
        lambda: Embedding.of({"a": [1.0], "b": [1.0, 2.0]}),
        CallError,
        r"as many for each word; got shapes \(1,\) for 'a' and \(2,\) for 'b'",
    ),
    "numbers": (lambda: Embedding.of({"a": 1.0}), KindError, r"vectors\['a'\]: an array or nested lists .*; got float"),
    "libraries": (
        lambda: Embedding.of({"a": [1.0], "b": torch.ones(1)}),
        KindError,
        "vectors: all from one library; got numpy and torch",
    ),
    "no vector": (
        lambda: Embedding.of({"a": [1.0]}, unknown="<?>"),
        CallError,
        "vectors: one for each special or unknown token, too; got none for '<[?]>'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call()


# -- random tables ---------------------------------------------------------------------------------------------------


@every_kind
def test_random_numbers_are_the_same_in_every_library(kind: str) -> None:
    like = KINDS[kind](np.zeros(1, np.float32))
    embedding, expected = Embedding.random(V, D, seed=3, like=like), Embedding.random(V, D, seed=3)
    assert type(embedding.table) is type(like)
    assert embedding.table.dtype == like.dtype
    assert expected.table.dtype == np.float64
    np.testing.assert_array_equal(np.asarray(embedding.table), expected.table.astype(np.float32))
    assert not np.array_equal(expected.table, Embedding.random(V, D, seed=4).table)


@pytest.mark.parametrize("width", [2, 31, 257])
def test_random_vectors_are_about_one_long(width: int) -> None:
    """The mean of ‖x‖² is 1, and its variance 2 / width: within 4.5 standard deviations over 1009 vectors."""
    squares = (Embedding.random(1009, width).table ** 2).sum(1)
    assert abs(squares.mean() - 1) < 4.5 * (2 / width / 1009) ** 0.5


@pytest.mark.parametrize("make", [Characters.of, Words.of, BytePairs.of])
def test_a_vocabulary_lets_texts_in(make: Any) -> None:
    vocabulary = make("the cat sat", specials=("<pad>",))
    embedding = Embedding.random(vocabulary, D, like=torch.zeros(1))
    assert len(embedding) == len(vocabulary)
    assert torch.equal(embedding("the cat"), embedding.table[vocabulary.encode("the cat")])
    assert embedding("").shape == (0, D)
    ids, lengths = vocabulary.batch(["the cat", "sat"])
    assert embedding(ids).shape == (2, max(lengths), D)
    assert repr(embedding).startswith(
        f"Embedding({len(vocabulary)} × 5, torch.float32, torch, {type(vocabulary).__name__}"
    )


# -- words with given vectors ----------------------------------------------------------------------------------------

VECTORS = {
    "the": [0.30, 0.80], "cat": [1.00, 0.50], "sat": [0.70, 0.90], "on": [0.20, 0.30], "Brian": [0.60, 0.40],
    "typed": [0.50, 0.70], "into": [0.30, 0.40], "Is": [0.40, 0.60], "your": [0.30, 0.50], "warm": [0.80, 0.30],
    "black": [0.20, 0.70],
}  # fmt: skip
POSITIONS = np.asarray([[0.10, 0.00], [0.00, 0.10], [0.10, 0.10], [0.00, 0.20], [0.20, 0.00]])
PHRASES = {
    "The cat sat on the": [[0.40, 0.80], [1.00, 0.60], [0.80, 1.00], [0.20, 0.50], [0.50, 0.80]],
    "Brian typed cat into the": [[0.70, 0.40], [0.50, 0.80], [1.10, 0.60], [0.30, 0.60], [0.50, 0.80]],
    "Is your warm black cat": [[0.50, 0.60], [0.30, 0.60], [0.90, 0.40], [0.20, 0.90], [1.20, 0.50]],
}


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_with_its_positions(phrase: str) -> None:
    words = Embedding.of(VECTORS, lower=True)
    np.testing.assert_allclose(words(phrase) + POSITIONS, PHRASES[phrase], rtol=1e-15)


def test_words_keep_their_order_and_their_library() -> None:
    words = Embedding.of(VECTORS)
    assert words.vocabulary is not None
    assert words.vocabulary.tokens == tuple(VECTORS)
    np.testing.assert_array_equal(words.table, list(VECTORS.values()))
    with pytest.raises(CallError, match="got 'The' at position 0"):
        words("The cat")
    leaves = {word: torch.tensor(vector, requires_grad=True) for word, vector in VECTORS.items()}
    Embedding.of(leaves)("the cat the").sum().backward()
    assert leaves["the"].grad is not None
    assert leaves["the"].grad.tolist() == [2.0, 2.0]


def test_special_and_unknown_tokens_have_vectors() -> None:
    vectors = {"Cat": [1.0], "<Start>": [2.0], "<?>": [3.0]}
    words = Embedding.of(vectors, lower=True, specials=("<Start>",), unknown="<?>")
    assert words("cat DOG Cat").tolist() == [[1.0], [3.0], [1.0]]
    assert words([0, 1, 2]).tolist() == [[2.0], [3.0], [1.0]]


def test_texts_of_several_lengths_attend_as_they_would_alone() -> None:
    vocabulary = Words.of(list(PHRASES), specials=("<pad>",))
    embedding = Embedding.random(vocabulary, D, like=torch.zeros(1, dtype=torch.float64))
    several = ["The cat sat on the", "warm cat", "Is your"]
    ids, lengths = vocabulary.batch(several)
    attention, x = rg.Attention(mask=rg.padding("lengths")), embedding(ids)
    found = attention(x, x, x, lengths=torch.as_tensor(lengths))
    for y, text, length in zip(found, several, lengths, strict=True):
        alone = embedding(text)
        torch.testing.assert_close(y[:length], rg.Attention()(alone, alone, alone), rtol=0, atol=1e-14)
