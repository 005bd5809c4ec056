"""exp log sqrt tanh sigmoid softplus erf gelu cos sin: each beside its derivative."""

from __future__ import annotations

import math
from typing import Any

import sympy

from ..errors import FormulaError
from ..nodes import AtLeastZero
from .base import At, Elementary, Rising, calls, guarded, named
from .kernels import kernels
from .piecewise import Maximum, Minimum, Where

_exp, _cos, _sin, _tanh = guarded(math.exp), guarded(math.cos), guarded(math.sin), guarded(math.tanh)


class Exp(Rising):
    """eˣ."""

    name = "exp"
    source = calls("exp", triton="exp({0})")
    helpers = kernels("exp")
    latex = r"\exp\left({0}\right)"

    @classmethod
    def eval(cls, x: Any) -> Any:
        return sympy.S.One if x == 0 else None

    def _eval_is_positive(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return self

    @classmethod
    def scalar(cls, x: float) -> float:
        return float(_exp(x))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.exp(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.exp(*arguments)


class Log(Rising):
    """The natural logarithm; log 0 = −∞, NaN below."""

    name = "log"
    source = calls("log", triton_fast="log({0})")
    helpers = kernels("log")
    latex = r"\log\left({0}\right)"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x.is_Number and x <= 0:
            raise FormulaError(f"log: of a positive number; got log({x})")
        return sympy.S.Zero if x == 1 else None

    def fdiff(self, argindex: int = 1) -> Any:
        return 1 / self.args[0]

    @classmethod
    def scalar(cls, x: float) -> float:
        return -math.inf if x == 0 else float(guarded(math.log)(x))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.log(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.log(*arguments)

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        ((low, high),) = arguments  # NaN below 0: nothing is sure
        return at(Where, low >= 0, at(cls, low), -math.inf), at(Where, low >= 0, at(cls, high), math.inf)


class Sqrt(Rising):
    """√x, NaN below 0; its derivative at 0 is taken as 0."""

    name = "sqrt"
    source = calls("sqrt", triton="tl.sqrt_rn({0})", triton_fast="tl.sqrt({0})")
    latex = r"\sqrt{{{0}}}"
    mathml = "<msqrt>{0}</msqrt>"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x.is_Number and x < 0:
            raise FormulaError(f"sqrt: of a number that is not negative; got sqrt({x})")
        if x.is_Rational:
            root = sympy.Rational(math.isqrt(x.p), math.isqrt(x.q))
            return root if root**2 == x else None
        return Exp(x.args[0] / 2) if isinstance(x, Exp) else None

    def _eval_is_nonnegative(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        x = self.args[0]
        return 1 / (2 * self) if x.is_positive else Where(~AtLeastZero(-x), 1 / (2 * self), sympy.S.Zero)

    @classmethod
    def scalar(cls, x: float) -> float:
        return float(guarded(math.sqrt)(x))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        # automatic differentiation must not meet √0, whose slope is infinite
        zero = x == 0
        return xp.where(zero, xp.zeros_like(x), xp.sqrt(xp.where(zero, xp.ones_like(x), x)))

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.sqrt(*arguments)

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        ((low, high),) = arguments  # NaN below 0: nothing is sure
        return at(Where, low >= 0, at(cls, low), -math.inf), at(Where, low >= 0, at(cls, high), math.inf)


class Tanh(Rising):
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)."""

    name = "tanh"
    source = calls("tanh", triton="tanh({0})")
    helpers = kernels("tanh")
    latex = r"\tanh\left({0}\right)"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x == 0:
            return sympy.S.Zero
        return -cls(-x) if x.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 1) -> Any:
        return 1 - self**2

    @classmethod
    def scalar(cls, x: float) -> float:
        return float(_tanh(x))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.tanh(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        z = torch.expm1(torch.clamp(torch.mul(arguments[0], 2.0), max=40.0))  # z / (z + 2), twice as fast as tanh
        return torch.div(z, torch.add(z, 2.0))


class Sigmoid(Rising):
    """1 / (1 + e⁻ˣ)."""

    name = "sigmoid"
    source = calls("sigmoid", python="sigmoid({0})", numpy="sigmoid({0})", triton="sigmoid({0})")
    helpers = {
        **kernels("sigmoid"),
        "python": '''
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
''',
        "numpy": '''
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    return np.exp(-np.logaddexp(0, -x))
''',
    }
    latex = named("sigmoid")

    @classmethod
    def eval(cls, x: Any) -> Any:
        return sympy.Rational(1, 2) if x == 0 else None

    def _eval_is_positive(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return self * Sigmoid(-self.args[0])  # 1 − σ(x) = σ(−x), without the cancellation

    @classmethod
    def scalar(cls, x: float) -> float:
        small = _exp(-abs(x))
        return float((1 if x >= 0 else small) / (1 + small))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.exp(-xp.logaddexp(xp.zeros_like(x), -x))

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.sigmoid(*arguments)


class Softplus(Rising):
    """log(1 + eˣ)."""

    name = "softplus"
    source = {
        "python": "softplus({0})",
        "numpy": "np.logaddexp(0, {0})",
        "torch": "softplus({0})",
        "triton": "softplus({0})",
    }
    helpers = {
        **kernels("softplus"),
        "torch": '''
def softplus(x):
    """log(1 + exp(x)), also where torch.nn.functional.softplus rounds it to x"""
    return torch.logaddexp(x, torch.zeros_like(x))
''',
        "python": '''
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
''',
    }
    latex = named("softplus")

    def _eval_is_positive(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return Sigmoid(self.args[0])

    @classmethod
    def scalar(cls, x: float) -> float:
        return max(x, 0.0) + math.log1p(_exp(-abs(x))) if x == x else x

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.logaddexp(x, xp.zeros_like(x))

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.logaddexp(arguments[0], 0.0)


class Erf(Rising):
    """The error function 2/√π ∫₀ˣ e^(−t²) dt."""

    name = "erf"
    source = calls("erf", numpy="erf({0})", triton_fast="erf({0})")
    helpers = {
        **kernels("erf"),
        "numpy": '''
def erf(x):
    """The error function, which NumPy has not."""
    return np.vectorize(math.erf, otypes=[float])(x).astype(x.dtype)
''',
    }
    latex = named("erf")

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x == 0:
            return sympy.S.Zero
        return -cls(-x) if x.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 1) -> Any:
        return sympy.Float(2 / math.sqrt(math.pi)) * Exp(-(self.args[0] ** 2))

    @classmethod
    def scalar(cls, x: float) -> float:
        return math.erf(x)

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.erf(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.erf(*arguments)


class Gelu(Elementary):
    """x Φ(x), with Φ the normal distribution function."""

    name = "gelu"
    source = {
        "python": "gelu({0})",
        "numpy": "gelu({0})",
        "torch": "torch.nn.functional.gelu({0})",
        "triton": "gelu({0})",
    }
    helpers = {
        **kernels("gelu"),
        "python": '''
def gelu(x):
    """x times the normal distribution function at x."""
    return x * (1 + math.erf(x / math.sqrt(2))) / 2
''',
        "numpy": '''
def gelu(x):
    """x times the normal distribution function at x."""
    erf = np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)).astype(x.dtype)
    return x * (1 + erf) / 2
''',
    }
    latex = named("gelu")
    lowest = (-0.7517915246935645, -0.16997120747990369)  # where it turns, and its value there

    @classmethod
    def eval(cls, x: Any) -> Any:
        return sympy.S.Zero if x == 0 else None

    def fdiff(self, argindex: int = 1) -> Any:
        x = self.args[0]
        density = sympy.Float(1 / math.sqrt(2 * math.pi)) * Exp(-(x**2) / 2)
        return (1 + Erf(x / Sqrt(2))) / 2 + x * density

    @classmethod
    def scalar(cls, x: float) -> float:
        return 0.0 if x == -math.inf else x * (1 + math.erf(x / math.sqrt(2))) / 2

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        value = x * (1 + xp.erf(x / math.sqrt(2))) / 2
        return xp.where(x == -math.inf, xp.zeros_like(x), value)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        x = torch.clamp(arguments[0], min=-40.0)  # 0 · ∞ has no value
        return torch.mul(torch.mul(x, 0.5), torch.add(torch.erf(torch.mul(x, math.sqrt(0.5))), 1.0))

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        ((low, high),) = arguments
        turn, value = cls.lowest
        ends = at(cls, low), at(cls, high)
        return at(Where, (low <= turn) & (high >= turn), value, at(Minimum, *ends)), at(Maximum, *ends)


class _Wave(Elementary):
    """A function between −1 and 1."""

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        ((low, high),) = arguments
        return at(Where, low < high, -1.0, at(cls, low)), at(Where, low < high, 1.0, at(cls, low))


class Cos(_Wave):
    """The cosine of an angle."""

    name = "cos"
    source = calls("cos", triton_fast="cos({0})")
    helpers = kernels("cos")
    latex = r"\cos\left({0}\right)"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x == 0:
            return sympy.S.One
        return cls(-x) if x.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 1) -> Any:
        return -Sin(self.args[0])

    @classmethod
    def scalar(cls, x: float) -> float:
        return float(_cos(x))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.cos(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.cos(*arguments)


class Sin(_Wave):
    """The sine of an angle."""

    name = "sin"
    source = calls("sin", triton_fast="sin({0})")
    helpers = kernels("sin")
    latex = r"\sin\left({0}\right)"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x == 0:
            return sympy.S.Zero
        return -cls(-x) if x.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 1) -> Any:
        return Cos(self.args[0])

    @classmethod
    def scalar(cls, x: float) -> float:
        return float(_sin(x))

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.sin(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.sin(*arguments)
