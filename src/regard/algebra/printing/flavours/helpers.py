"""The small functions that emitted source may call. Each is printed only where it is called."""

from __future__ import annotations

import re

from ...functions import FUNCTIONS
from .page import Page

PYTHON = {
    "dot": '''
def dot(q, k):
    """q · k"""
    return sum(x * y for x, y in zip(q, k, strict=True))
''',
    "bilinear": '''
def bilinear(q, M, k):
    """qᵀ M k"""
    return sum(x * m * y for x, row in zip(q, M, strict=True) for m, y in zip(row, k, strict=True))
''',
    "sqdist": '''
def sqdist(q, k):
    """‖q − k‖²"""
    return sum((x - y) ** 2 for x, y in zip(q, k, strict=True))
''',
    "mahalanobis": '''
def mahalanobis(q, P, k):
    """(q − k)ᵀ P (q − k)"""
    difference = [x - y for x, y in zip(q, k, strict=True)]
    return bilinear(difference, P, difference)
''',
    "cosine": '''
def cosine(q, k):
    """q · k / (‖q‖ ‖k‖), and 0 where either vector is 0"""
    q_length, k_length = math.sqrt(dot(q, q)), math.sqrt(dot(k, k))
    if q_length == 0 or k_length == 0:
        return 0.0
    alike = dot([x / q_length for x in q], [y / k_length for y in k])
    return max(-1.0, min(1.0, alike))
''',
    "divide": '''
def divide(x, y):
    """x / y, infinite or NaN where y is 0"""
    if y != 0:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)
''',
    "power": '''
def power(x, y):
    """x to the power of y, infinite or NaN where Python would raise an exception"""
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf if x > 0 or y % 2 == 0 else -math.inf
    except ValueError:
        return math.inf if x == 0 else math.nan
''',
    "exp": '''
def exp(x):
    """exp(x), infinite where it overflows"""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
''',
    "log": '''
def log(x):
    """log(x), −∞ at 0 and NaN below"""
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan
''',
    "sqrt": '''
def sqrt(x):
    """√x, NaN below 0"""
    return math.sqrt(x) if x >= 0 else math.nan
''',
    "floor_divide": '''
def floor_divide(a, b):
    """a // b, and 0 where b is 0"""
    return a // b if b != 0 else 0
''',
    "remainder": '''
def remainder(a, b):
    """a % b, and 0 where b is 0"""
    return a % b if b != 0 else 0
''',
    "project": '''
def project(x, W):
    """x W"""
    return [[dot(row, column) for column in zip(*W, strict=True)] for row in x]
''',
}
NUMPY = {
    "unit": '''
def unit(x):
    """x scaled to length 1; the zero vector stays zero"""
    squares = (x * x).sum(axis=-1, keepdims=True)
    return x / np.sqrt(np.where(squares == 0, np.inf, squares))
''',
    "floor_divide": '''
def floor_divide(a, b):
    """a // b, and 0 where b is 0"""
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b))
''',
    "remainder": '''
def remainder(a, b):
    """a % b, and 0 where b is 0"""
    return np.where(b == 0, 0, a % np.where(b == 0, 1, b))
''',
}
TORCH = {
    "unit": '''
def unit(x):
    """x scaled to length 1; the zero vector stays zero, and its slope is 0"""
    squares = (x * x).sum(dim=-1, keepdim=True)
    return x / torch.sqrt(torch.where(squares == 0, torch.inf, squares))
''',
    "sqrt": '''
def sqrt(x):
    """√x, with a slope of 0 at 0, where that of torch.sqrt is infinite"""
    zero = x == 0
    return torch.where(zero, 0.0, torch.sqrt(torch.where(zero, 1.0, x)))
''',
    "floor_divide": '''
def floor_divide(a, b):
    """a // b, and 0 where b is 0"""
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    return torch.where(b == 0, 0, a // torch.where(b == 0, 1, b))
''',
    "remainder": '''
def remainder(a, b):
    """a % b, and 0 where b is 0"""
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    return torch.where(b == 0, 0, a % torch.where(b == 0, 1, b))
''',
}
OURS = {"python": PYTHON, "numpy": NUMPY, "torch": TORCH}


def helpers(flavour: str, source: str, page: Page) -> list[str]:
    """The definitions that `source` calls, each behind those that it calls itself."""
    known = OURS[flavour] | {name: f.helpers[flavour] for name, f in FUNCTIONS.items() if flavour in f.helpers}
    spelled = {page.ours(name): _spelled(definition, page) for name, definition in known.items()}
    found: list[str] = []
    _collect(source, spelled, found)
    return [spelled[name] for name in found]


def _spelled(definition: str, page: Page) -> str:
    return "\n".join(map(page.final, definition.strip("\n").split("\n")))


def _collect(source: str, known: dict[str, str], found: list[str]) -> None:
    for name, definition in known.items():
        if name not in found and name in _called(source):
            _collect(definition, known, found)
            found.append(name)


def _called(source: str) -> set[str]:
    """The functions that lines of code call; not those that their texts and comments speak of."""
    code = re.sub(r'"""[^"]*"""|#[^\n]*|def \w+', "", re.sub(r'"(\w+)"', "", source))
    return set(re.findall(r"(?<![\w.])([^\W\d]\w*)\(", code))
