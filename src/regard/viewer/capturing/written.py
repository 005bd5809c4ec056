"""Attention that a module writes out itself: products, a softmax, and a product with values.

    scores = q @ k.mT · scale + bias;  weights = softmax(scores);  y = weights @ v

Each step is followed from the product of q and k on, so that q, k and the formula are kept; a few rows show whether
they give the module's own weights. Where they do not, or the steps are lost, the weights themselves are kept. The
softmax of a classifier or of a router is multiplied with no values, or with weights of the model: no attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from . import products
from .facts import Facts, Features, Scores, Weights, arithmetic, masked, reshaped, transposed
from .followed import keep

if TYPE_CHECKING:
    from .mode import Mode

Function = Callable[..., Any]
SAME = (
    "to type type_as float half bfloat16 double contiguous clone detach view reshape unflatten flatten squeeze "
    "unsqueeze view_as reshape_as nan_to_num"
).split()
ARITHMETIC = {
    "mul": "mul", "multiply": "mul", "__mul__": "mul", "__rmul__": "mul", "mul_": "mul", "add": "add", "add_": "add",
    "__add__": "add", "__radd__": "add", "sub": "sub", "subtract": "sub", "sub_": "sub", "__sub__": "sub",
    "rsub": "rsub", "__rsub__": "rsub", "div": "div", "divide": "div", "true_divide": "div", "div_": "div",
    "__truediv__": "div",
}  # fmt: skip
FUNCTIONS = ("tanh", "relu", "sigmoid", "abs")
PROJECTIONS = ("linear", "conv1d", "conv2d", "conv3d", "addmm")


class Written:
    """Follows the steps of attention that is written out. `seers` are the functions that it looks at, by name."""

    def __init__(self, mode: Mode) -> None:
        self.facts, self._mode = Facts(), mode
        self.open: dict[object, str] = {}  # the modules of softmaxes of scores whose values were not seen yet
        self.problems: dict[str, str] = {}  # what went wrong, by module
        self.seers: dict[str, Function] = {
            **dict.fromkeys(SAME, self._same),
            **dict.fromkeys(ARITHMETIC, self._arithmetic),
            **dict.fromkeys(FUNCTIONS, self._function),
            **dict.fromkeys(PROJECTIONS, self._projection),
            **dict.fromkeys(("matmul", "bmm", "__matmul__", "__rmatmul__"), self._matmul),
            **dict.fromkeys(("transpose", "swapaxes", "swapdims", "permute", "__get__"), self._transposed),
            **dict.fromkeys(("masked_fill", "masked_fill_"), self._masked),
            **dict.fromkeys(("dropout", "alpha_dropout"), self._dropout),
            **dict.fromkeys(("softmax", "_softmax"), self._softmax),
            **dict.fromkeys(("split", "chunk", "unbind", "tensor_split"), self._parted),
            "where": self._where, "einsum": self._einsum, "baddbmm": self._baddbmm, "__getitem__": self._changed,
        }  # fmt: skip

    def look(self, function: Function, arguments: Any, options: Any, made: Any) -> None:
        """A function that is followed has run."""
        try:
            self.seers[function.__name__](function, arguments, options, made)
        except Exception as problem:  # noqa: BLE001 - whatever is odd about a step, the model goes on
            self.forget(made)
            self.problems.setdefault(self._mode.places.name or "", f"{type(problem).__name__}: {problem}")

    def forget(self, tensor: Any) -> None:
        """A tensor was written to, by a step that is not followed."""
        self.facts.note(tensor, None)

    def unread(self) -> dict[str, str]:
        """Why steps were not followed to their end, by module."""
        why = "it takes a softmax of scores, and no product of that with values was seen"
        lost = {name: f"a step of it could not be followed: {problem}" for name, problem in self.problems.items()}
        return dict.fromkeys(self.open.values(), why) | lost

    # -- steps that keep what a tensor is --------------------------------------------------------------------------

    def _same(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        fact = self.facts.of(arguments[0]) if arguments else None
        if fact is not None and isinstance(made, torch.Tensor) and made is not arguments[0]:
            self.facts.note(made, reshaped(fact, tuple(arguments[0].shape), tuple(made.shape)))

    def _transposed(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        fact = self.facts.of(arguments[0]) if arguments else None
        if fact is not None and isinstance(made, torch.Tensor):
            order = products.order(function, arguments, options)
            self.facts.note(made, None if order is None else transposed(fact, order))

    def _dropout(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        fact = self.facts.of(arguments[0]) if arguments else None
        if isinstance(fact, Weights):
            clean = arguments[0] if fact.clean is None else fact.clean
            self.facts.note(made, fact if made is arguments[0] else replace(fact, clean=clean))

    def _projection(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        if isinstance(made, torch.Tensor) and made.shape[-1] > 1 and made.ndim <= 4:
            self.facts.note(made, Features())

    def _parted(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        fact = self.facts.of(arguments[0]) if arguments else None
        for part in made if isinstance(fact, Features) else ():
            self.facts.note(part, fact)

    def _changed(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        """Weights of which a part is taken, or that are changed, are still weights; their scores are lost."""
        fact = self.facts.of(arguments[0])
        self._lose(fact, arguments[0], made)

    def _lose(self, fact: Any, before: Any, made: Any) -> None:
        if isinstance(made, torch.Tensor) and isinstance(fact, Features):
            self.facts.note(made, fact)
        elif isinstance(fact, Weights) and isinstance(made, torch.Tensor) and made.ndim == before.ndim:
            self.facts.note(made, Weights(None, fact.axis, token=fact.token))

    # -- steps of scores -------------------------------------------------------------------------------------------

    def _arithmetic(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        name = ARITHMETIC[function.__name__]
        parts: list[Any] = [*arguments, options.get("other")]
        first, second = parts[:2] if len(parts) > 1 else (None, None)
        swapped = not isinstance(self.facts.of(first), Scores) and self.facts.of(second) is not None
        base: Any = second if swapped else first
        other = first if swapped else second
        fact = self.facts.of(base)
        plain = set(options) <= {"other"}
        if isinstance(fact, Scores) and tuple(made.shape) == tuple(base.shape) and plain:
            turned = swapped != (name == "rsub")
            name = "sub" if name == "rsub" else name
            self.facts.note(made, arithmetic(name, fact, other, turned, tuple(made.shape)))
        elif fact is not None:
            self.forget(made)
            if not isinstance(fact, Features) or tuple(made.shape) == tuple(base.shape):
                self._lose(fact, base, made)

    def _function(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        fact = self.facts.of(arguments[0]) if arguments else None
        if isinstance(fact, Scores) and made is not arguments[0]:
            self.facts.note(made, fact.then(function.__name__))

    def _masked(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        fact = self.facts.of(arguments[0]) if arguments else None
        if isinstance(fact, Scores):
            left_out, fill = (*arguments[1:], options.get("mask"), options.get("value"))[:2]
            fill = options.get("value", fill) if len(arguments) == 2 else fill
            self.facts.note(made, masked(fact, left_out, fill, tuple(made.shape)))
        elif fact is not None:
            self._lose(fact, arguments[0], made)

    def _where(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        if len(arguments) == 3 and not options:
            truths, kept, other = arguments
            fact = self.facts.of(kept)
            if isinstance(fact, Scores) and tuple(made.shape) == tuple(kept.shape):
                self.facts.note(made, masked(fact, ~truths, other, tuple(made.shape)))
            elif isinstance(turned := self.facts.of(other), Scores) and tuple(made.shape) == tuple(other.shape):
                self.facts.note(made, masked(turned, truths, kept, tuple(made.shape)))
            elif isinstance(fact, Weights):
                self._lose(fact, kept, made)

    # -- the softmax, and products -------------------------------------------------------------------------------

    def _softmax(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        scores = arguments[0] if arguments else options.get("input")
        fact = self.facts.of(scores)
        axis = products.axis(arguments, options)
        if axis is None or made.ndim < 2 or isinstance(fact, Features | Weights):
            return
        place = axis if axis < 0 else axis - made.ndim
        if isinstance(fact, Scores) and place == -1:
            token = object()
            self.open[token] = self._mode.places.name or ""
            self.facts.note(made, Weights(fact, token=token))
        elif made.ndim >= 3 and place in (-1, -2):
            self.facts.note(made, Weights(None, place))

    def _matmul(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        first, second = (*arguments, *(options[name] for name in ("other", "mat2", "tensor2") if name in options))[:2]
        if function.__name__ == "__rmatmul__":
            first, second = second, first
        found = products.read_matmul(self.facts, self._mode.places.made, first, second)
        self._product(made, found)

    def _einsum(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        found = products.read_einsum(self.facts, self._mode.places.made, arguments)
        if found is None:  # heads that are mixed are still weights
            for operand in (one for one in arguments if isinstance(self.facts.of(one), Weights)):
                if tuple(operand.shape) == tuple(made.shape):
                    self._lose(self.facts.of(operand), operand, made)
        self._product(made, found)

    def _product(self, made: Any, found: Any) -> None:
        if isinstance(found, Scores):
            self.facts.note(made, found)
        elif found is not None:
            fact, weights, values = found
            self.open.pop(fact.token, None)
            with self._mode.rest():
                keep(self._mode, fact, weights, values)

    def _baddbmm(self, function: Any, arguments: Any, options: Any, made: Any) -> None:
        names = ("input", "batch1", "batch2")
        parts = [*arguments, *(options[name] for name in names[len(arguments) :] if name in options)]
        if len(parts) == 3:
            found = products.read_matmul(self.facts, self._mode.places.made, parts[1], parts[2])
            if isinstance(found, Scores):
                alpha, beta = options.get("alpha", 1), options.get("beta", 1)
                found = found if alpha == 1 else found.then("times", float(alpha))
                added = parts[0] if beta == 1 else parts[0] * beta
                self.facts.note(made, found if beta == 0 else found.then("plus", added, tuple(made.shape[:-2])))
