"""regard: attention, written once.

    y_i = Σ_j w_ij v_j        w_ij = ψ(s_ij) / Z_i        s_ij = score(q_i, k_j, i, j, h, b)

Importing this loads neither SymPy nor PyTorch; a name brings what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "attention": "Attention Gradients parse self_attention",
    "drop_in": "scaled_dot_product_attention",
    "diagnosis": "check",
    "viewer.lenses": "Lens",
    "viewer.looking": "lens",
    "viewer.capturing": "capture",
    "engines.triton.options": "fused",
    "algebra.symbols": (
        "H b cos cosine d dot erf exp floor gelu h i j log maximum minimum n relu s sigmoid sin softplus sqdist sqrt "
        "table tanh where"
    ),
    "algebra.expressions": "Expression Mask equal",
    "algebra.weights": "Weight each share softmax",
    "algebra.masks": "causal documents everywhere given padding prefix window",
    "algebra.errors": "CallError EngineError FormulaError KindError MissingExtra ParseError RegardError TableError",
}
_MODULES = "algebra claims course diagnosis engines experiments geometry hf inputs nn testing train viewer zoo".split()
_NAMES = {name: module for module, names in _HOME.items() for name in names.split()}
_OTHERS = {"nn", "testing", "train"}  # names that others have, too: no star brings ours

__all__ = sorted({*_NAMES, *_MODULES} - _OTHERS)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    if name == "abs":  # by name only: a star import must not hide the builtin, which works on expressions too
        return import_module(".algebra.symbols", __name__).abs_
    if name in _NAMES:
        value = getattr(import_module(f".{_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """%load_ext regard: brings %%check to a notebook."""
    import_module(".diagnosis.magic", __name__).load(shell)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "abs", *_OTHERS]
