"""abs relu floor minimum maximum where, and the integers' // and %: each beside its derivative."""

from __future__ import annotations

import math
from typing import Any

import sympy

from ..errors import FormulaError
from ..nodes import AtLeastZero
from .base import At, Elementary, Rising, calls, named
from .kernels import kernels


class Where(Elementary):
    """where(condition, a, b): a where the condition holds, b elsewhere."""

    name = "where"
    nargs = 3
    keeps_integers = True
    source = {
        "python": "({1} if {0} else {2})",
        "numpy": "np.where({0}, {1}, {2})",
        "torch": "torch.where({0}, {1}, {2})",
        "triton": "tl.where({0}, {1}, {2})",
    }
    latex = r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{otherwise}} \end{{cases}}"
    mathml = (
        "<mrow><mo>{{</mo><mtable><mtr><mtd>{1}</mtd><mtd><mtext>if </mtext>{0}</mtd></mtr>"
        "<mtr><mtd>{2}</mtd><mtd><mtext>otherwise</mtext></mtd></mtr></mtable></mrow>"
    )

    @classmethod
    def eval(cls, condition: Any, a: Any, b: Any) -> Any:
        if condition in (sympy.true, sympy.false):
            return a if condition == sympy.true else b
        return a if a == b else None

    @classmethod
    def scalar(cls, condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b

    @classmethod
    def array(cls, xp: Any, condition: Any, a: Any, b: Any) -> Any:
        return xp.where(condition, a, b)

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        (sure, possible), (a_low, a_high), (b_low, b_high) = arguments
        low = at(Where, possible, at(Minimum, a_low, b_low), b_low)
        high = at(Where, possible, at(Maximum, a_high, b_high), b_high)
        return at(Where, sure, a_low, low), at(Where, sure, a_high, high)


class Abs(Elementary):
    """|x|; its derivative at 0 is 0."""

    name = "abs"
    keeps_integers = True
    source = {"python": "abs({0})", "numpy": "np.abs({0})", "torch": "torch.abs({0})", "triton": "tl.abs({0})"}
    latex = r"\left|{0}\right|"
    mathml = "<mrow><mo>|</mo>{0}<mo>|</mo></mrow>"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x.is_nonnegative:
            return x
        return cls(-x) if x.could_extract_minus_sign() else None

    def _eval_is_nonnegative(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        x = self.args[0]
        return Where(~AtLeastZero(-x), sympy.S.One, Where(~AtLeastZero(x), sympy.S.NegativeOne, sympy.S.Zero))

    @classmethod
    def scalar(cls, x: Any) -> Any:
        return abs(x)

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return x * xp.sign(x)  # so that every automatic derivative at 0 is 0, too

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.abs(*arguments)

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        ((low, high),) = arguments
        ends = at(Abs, low), at(Abs, high)
        return at(Where, (low <= 0) & (high >= 0), 0, at(Minimum, *ends)), at(Maximum, *ends)


class Relu(Rising):
    """max(x, 0); its derivative at 0 is 0."""

    name = "relu"
    source = {
        "python": "max({0}, 0.0)",
        "numpy": "np.maximum({0}, 0.0)",
        "torch": "torch.relu({0})",
        "triton": "relu({0})",
    }
    helpers = kernels("relu")
    latex = named("relu")

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x.is_Number:
            return max(x, sympy.S.Zero)
        return x if x.is_positive else None

    def _eval_is_nonnegative(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return Where(~AtLeastZero(-self.args[0]), sympy.S.One, sympy.S.Zero)

    @classmethod
    def scalar(cls, x: float) -> float:
        return 0.0 if x <= 0 else x

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.where(x <= 0, xp.zeros_like(x), x)  # NaN stays NaN, and the slope at 0 is 0

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.clamp(arguments[0], min=0.0)


class Floor(Rising):
    """The largest integer that is not above x; its derivative is 0."""

    name = "floor"
    gives_integers = True
    source = calls("floor")
    latex = r"\left\lfloor {0} \right\rfloor"
    mathml = "<mrow><mo>⌊</mo>{0}<mo>⌋</mo></mrow>"

    @classmethod
    def eval(cls, x: Any) -> Any:
        if x.is_Number:
            return sympy.Integer(math.floor(x))
        return x if x.is_integer else None

    def _eval_is_integer(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return sympy.S.Zero

    @classmethod
    def scalar(cls, x: float) -> float:
        return float(math.floor(x)) if math.isfinite(x) else x

    @classmethod
    def array(cls, xp: Any, x: Any) -> Any:
        return xp.floor(x)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.floor(*arguments)


class _Extreme(Elementary):
    """One of two numbers. Where both are equal the derivative is that of the first in canonical order."""

    nargs = 2
    keeps_integers = True

    @classmethod
    def eval(cls, a: Any, b: Any) -> Any:
        if a == b:
            return a
        if a.is_Number and b.is_Number:
            return cls.scalar(a, b)
        first, second = sorted((a, b), key=sympy.default_sort_key)
        return None if (first, second) == (a, b) else cls(first, second)

    def _second_wins(self) -> Any:
        raise NotImplementedError

    def fdiff(self, argindex: int = 1) -> Any:
        chosen = Where(self._second_wins(), sympy.S.One, sympy.S.Zero)
        return chosen if argindex == 2 else 1 - chosen

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        (a_low, a_high), (b_low, b_high) = arguments
        return at(cls, a_low, b_low), at(cls, a_high, b_high)


class Minimum(_Extreme):
    """The smaller of two numbers."""

    name = "minimum"
    source = {
        "python": "min({0}, {1})",
        "numpy": "np.minimum({0}, {1})",
        "torch": "torch.minimum({0}, {1})",
        "triton": "minimum({0}, {1})",
    }
    helpers = kernels("minimum")
    latex = r"\min\left({0}, {1}\right)"

    def _second_wins(self) -> Any:
        return ~AtLeastZero(self.args[1] - self.args[0])

    @classmethod
    def scalar(cls, a: Any, b: Any) -> Any:
        return b if b < a or b != b else a

    @classmethod
    def array(cls, xp: Any, a: Any, b: Any) -> Any:
        return xp.where((b < a) | (b != b), b, a)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.minimum(*arguments)


class Maximum(_Extreme):
    """The larger of two numbers."""

    name = "maximum"
    source = {
        "python": "max({0}, {1})",
        "numpy": "np.maximum({0}, {1})",
        "torch": "torch.maximum({0}, {1})",
        "triton": "maximum({0}, {1})",
    }
    helpers = kernels("maximum")
    latex = r"\max\left({0}, {1}\right)"

    def _second_wins(self) -> Any:
        return ~AtLeastZero(self.args[0] - self.args[1])

    @classmethod
    def scalar(cls, a: Any, b: Any) -> Any:
        return b if b > a or b != b else a

    @classmethod
    def array(cls, xp: Any, a: Any, b: Any) -> Any:
        return xp.where((b > a) | (b != b), b, a)

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.maximum(*arguments)


class FloorDiv(Elementary):
    """a // b on integers, rounded down; 0 where b is 0."""

    name = "//"
    nargs = 2
    keeps_integers = True
    source = {
        "python": "({0} // {1})",
        "numpy": "({0} // {1})",
        "torch": "({0} // {1})",
        "triton": "floor_divide({0}, {1})",
    }
    helpers = kernels("floor_divide")
    latex = r"\left\lfloor \frac{{{0}}}{{{1}}} \right\rfloor"
    mathml = "<mrow><mo>⌊</mo><mfrac>{0}{1}</mfrac><mo>⌋</mo></mrow>"

    @classmethod
    def eval(cls, a: Any, b: Any) -> Any:
        if b == 0:
            raise FormulaError("//: the divisor is 0; got a division by the constant 0")
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) // int(b))
        return a if b == 1 else None

    def _eval_is_integer(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return sympy.S.Zero

    @classmethod
    def scalar(cls, a: int, b: int) -> int:
        whole = a // b if b else 0
        return whole if whole == whole else a  # the end of an interval may be infinite

    @classmethod
    def array(cls, xp: Any, a: Any, b: Any) -> Any:
        nothing = b == 0
        return xp.where(nothing, xp.zeros_like(a + b), a // xp.where(nothing, xp.ones_like(b), b))

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        (a_low, a_high), (b_low, b_high) = arguments
        low = at(Minimum, at(cls, a_low, b_low), at(cls, a_low, b_high))
        high = at(Maximum, at(cls, a_high, b_low), at(cls, a_high, b_high))
        return at(Where, b_low > 0, low, -math.inf), at(Where, b_low > 0, high, math.inf)


class Mod(Elementary):
    """a % b on integers, with the sign of b; 0 where b is 0."""

    name = "%"
    nargs = 2
    keeps_integers = True
    source = {
        "python": "({0} % {1})",
        "numpy": "({0} % {1})",
        "torch": "({0} % {1})",
        "triton": "remainder({0}, {1})",
    }
    helpers = kernels("remainder")
    latex = r"{0} \bmod {1}"
    mathml = "<mrow>{0}<mo>mod</mo>{1}</mrow>"

    @classmethod
    def eval(cls, a: Any, b: Any) -> Any:
        if b == 0:
            raise FormulaError("%: the divisor is 0; got a remainder by the constant 0")
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) % int(b))
        return sympy.S.Zero if b == 1 else None

    def _eval_is_integer(self) -> bool:
        return True

    def fdiff(self, argindex: int = 1) -> Any:
        return sympy.S.One if argindex == 1 else -FloorDiv(*self.args)

    @classmethod
    def scalar(cls, a: int, b: int) -> int:
        return a % b if b else 0

    @classmethod
    def array(cls, xp: Any, a: Any, b: Any) -> Any:
        nothing = b == 0
        return xp.where(nothing, xp.zeros_like(a + b), a % xp.where(nothing, xp.ones_like(b), b))

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        (a_low, a_high), (b_low, b_high) = arguments
        one_turn = at(FloorDiv, a_low, b_low) == at(FloorDiv, a_high, b_low)
        rises = (b_low == b_high) & (b_low > 0) & one_turn
        low = at(Where, rises, at(cls, a_low, b_low), at(Minimum, b_low + 1, 0))
        return low, at(Where, rises, at(cls, a_high, b_low), at(Maximum, b_high - 1, 0))
