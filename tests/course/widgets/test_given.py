"""What a widget is made of: wrong arguments are told which, what rule, what was given."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import regard as rg
from regard.algebra.errors import CallError, KindError

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

from regard.course.widgets import Ellipse, Matrix, Mistakes, Plane, Rows

X = np.arange(10.0).reshape(5, 2)
Q = np.ones((5, 3))

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Plane("text"), KindError, "points: an array or nested lists of numbers; got str"),
    (lambda: Plane(Q), CallError, r"points: rows of 2 numbers; got \(5, 3\)"),
    (lambda: Plane([1.0, 2.0]), CallError, "points: a matrix, one vector in each row; got 1 axes"),
    (lambda: Plane(np.zeros((0, 2))), CallError, r"points: 1 to 40 rows, .*; got \(0, 2\)"),
    (lambda: Plane([[1.0, np.nan]]), CallError, r"points: finite numbers; got nan at \[0, 1\]"),
    (lambda: Plane(X, labels=["a"]), CallError, "labels: 5 texts, one for each row; got 1"),
    (lambda: Plane(X, labels=[1, 2, 3, 4, 5]), KindError, "labels: a list of texts"),
    (lambda: Plane(X, values=X[:3]), CallError, "values: 5 rows, one for each key"),
    (lambda: Plane(X, query=[1.0]), CallError, "query: two numbers, a place in the plane"),
    (lambda: Plane(X, Wq=np.eye(3)), CallError, "Wq: a matrix of 2 × 2"),
    (lambda: Plane(X, attention="softmax"), KindError, "attention: an Attention"),
    (lambda: Plane(X, attention=rg.Attention(score=rg.dot + rg.table("bias")[rg.j])), CallError, "reads, bias; give"),
    (lambda: Rows(Q, X), CallError, "q, k: vectors of one width; got 3 and 2"),
    (lambda: Rows(np.ones((5, 17)), np.ones((5, 17))), CallError, "q: up to 16 columns"),
    (lambda: Rows(Q, Q, X[:2]), CallError, "v: 5 rows"),
    (lambda: Matrix("", {"a": Q}), CallError, "tokens: 1 to 40 words"),
    (lambda: Matrix("a b", {}), KindError, "heads: a dict of weights"),
    (lambda: Matrix("a b", {"one": np.eye(3)}), CallError, r"heads\['one'\]: 2 rows, one for each token"),
    (lambda: Matrix("a b c d e", {"one": Q}), CallError, r"heads\['one'\]: 5 × 5 weights"),
    (lambda: Matrix("a b", {"one": (Q, Q, Q)}), CallError, r"heads\['one'\]: q and k, two matrices; got 3"),
    (lambda: Matrix("a b", {"one": np.eye(2)}, head="two"), CallError, "head: one of one; got 'two'"),
    (lambda: Ellipse(X[:2]), CallError, "points: 3 to 40 rows"),
    (lambda: Ellipse(X, covariance=[[1.0, 0.0], [0.0, -1.0]]), CallError, "covariance: no negative eigenvalue"),
    (lambda: Mistakes(rg.Attention(), Q, X), CallError, "q, k: as many heads and one width"),
    (lambda: Mistakes(rg.Attention(), Q, Q, "a b"), CallError, "tokens: 5 texts, one for each row; got 2"),
    (lambda: Mistakes(rg.Attention(), Q, Q, mistake="no mask"), CallError, "mistake: one that the formula can make"),
]


@pytest.mark.parametrize(("make", "kind", "text"), WRONG, ids=[text[:28] for _, _, text in WRONG])
def test_a_wrong_argument_is_told(make: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_lists_will_do_and_names_are_numbers_where_none_are_given() -> None:
    assert Plane([[1, 0], [0, 1]]).given["labels"] == ["1", "2"]
    assert Rows([[1, 0]], [[1, 0], [0, 1]]).given["v"] == [[1, 0], [0, 1]]


def test_edges() -> None:
    assert Plane([[0.0, 0.0]]).given["reach"] > 0
    assert Ellipse(np.zeros((3, 2))).found["euclidean"]["nearest"] == 0
    assert Ellipse([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).at["spread"][1] > 0
    assert Matrix("one", {"a": [[1.0]]}).found["weights"] == [1.0]
    assert Rows([[1.0]], [[1.0]], labels="one").given["labels"] == ["one"]


def test_everything_is_plain(widget: Any) -> None:
    json.dumps([widget.kind, widget.given, widget.at, widget.found], allow_nan=False)
    assert widget.kind == type(widget).__name__.lower()
