"""`import regard` is light, and what is not installed is missed only by those who ask for it."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

import regard

PUBLIC = """
    Attention CallError EngineError Expression FormulaError Gradients H KindError Lens Mask MissingExtra
    ParseError RegardError TableError Weight
    algebra b capture causal check claims cos cosine course d diagnosis documents dot each engines equal erf everywhere
    exp experiments floor fused gelu geometry given h hf i inputs j lens log maximum minimum n padding parse prefix relu
    s scaled_dot_product_attention self_attention share sigmoid sin softmax softplus sqdist sqrt table tanh viewer where
    window zoo
""".split()

BLOCK = """
    import sys

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in BLOCKED:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Blocked())
"""

HEAVY = ["torch", "triton", "jax", "transformers"]


def fresh(code: str, *, without: list[str]) -> subprocess.CompletedProcess[str]:
    """What a new process does with the code when these packages are not installed."""
    whole = f"BLOCKED = {without!r}\n{dedent(BLOCK)}\n{dedent(code)}"
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", whole], capture_output=True, check=False, encoding="utf-8"
    )


def succeeds(code: str, *, without: list[str]) -> str:
    done = fresh(code, without=without)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names() -> None:
    assert sorted(regard.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_there(name: str) -> None:
    assert getattr(regard, name) is not None
    assert name in dir(regard)


def test_a_star_hides_no_module_of_others() -> None:
    names: dict[str, object] = {"nn": "torch's", "train": "mine", "abs": abs}
    exec("from regard import *", names)
    assert (names["nn"], names["train"], names["abs"]) == ("torch's", "mine", abs)
    assert regard.nn.__name__ == "regard.nn"
    assert regard.train.__name__ == "regard.train"
    assert regard.testing.__name__ == "regard.testing"
    assert "testing" not in names
    assert {"nn", "testing", "train"} <= set(dir(regard))


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'attend'"):
        _ = regard.attend


def test_import_is_light() -> None:
    code = """
        import regard
        print(sorted({"numpy", "sympy", "array_api_compat", "typer", "rich"} & set(sys.modules)))
    """
    assert succeeds(code, without=[*HEAVY, "sympy", "numpy"]) == "[]\n"


def test_numpy_needs_no_torch() -> None:
    code = """
        import numpy as np
        import regard as rg
        from regard import dot, sqrt, d, i, j, table

        q, k, v = np.ones((3, 5)), np.ones((7, 5)), np.arange(14.0).reshape(7, 2)
        assert np.allclose(rg.Attention()(q, k, v), v.mean(axis=0))
        biased = rg.Attention(score=dot / sqrt(d) + table("bias")[j], mask=j <= i)
        assert biased(q, k, v, bias=np.zeros(7)).shape == (3, 2)
        grads = biased.vjp(q, k, v, np.ones((3, 2)), bias=np.zeros(7))
        assert [grad.shape for grad in grads] == [(3, 5), (7, 5), (7, 2)]
        print(rg.self_attention([[1.0, 0.0], [0.0, 1.0]], M=[[0.0, 0.0], [0.0, 0.0]]))
    """
    assert succeeds(code, without=HEAVY) == "[[0.5, 0.5], [0.5, 0.5]]\n"


def test_a_check_needs_no_torch_and_no_terminal() -> None:
    code = """
        import regard as rg
        from textwrap import dedent
        from pathlib import Path
        from tempfile import TemporaryDirectory

        source = dedent('''
            import numpy as np
            def attend(q, k, v):
                w = np.exp(q @ k.swapaxes(-1, -2))
                return w / w.sum(-1, keepdims=True) @ v
        ''')
        with TemporaryDirectory() as folder:
            file = Path(folder, "mine.py")
            file.write_text(source)
            print("no root of d" in [one.name for one in rg.check(f"{file}:attend").findings])
    """
    assert succeeds(code, without=[*HEAVY, "rich", "typer", "pytest", "cloudpickle", "IPython"]) == "True\n"


def test_pytest_is_named_where_it_is_missing() -> None:
    code = """
        import regard.testing
        regard.testing.parametrize(len)
    """
    done = fresh(code, without=["pytest"])
    assert 'this needs pytest, which is not installed: pip install "regard[testing]"' in done.stderr


def test_algebra_needs_no_array_library() -> None:
    code = """
        from regard.algebra.parsing import parse
        print(parse("softmax(dot / sqrt(d), mask=j <= i)"))
    """
    assert succeeds(code, without=[*HEAVY, "numpy", "array_api_compat"]) == "softmax(dot / sqrt(d), mask=j <= i)\n"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_command_names_its_extra(missing: str) -> None:
    code = """
        from regard.cli import main
        main()
    """
    done = fresh(code, without=[missing])
    assert done.returncode != 0
    assert f'this needs {missing}, which is not installed: pip install "regard[cli]"' in done.stderr
