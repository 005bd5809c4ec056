"""The small functions that GPU kernels call where Triton's own are inexact, narrow, or missing.

Each is the text of one function, decorated with `jit` and written in `tl`: triton.jit and triton.language, or gluon.jit
and Gluon's language, in which the same words mean the same. Arguments are float32; those of `minimum`, `maximum`,
`floor_divide` and `remainder` may be integers. A function may call another of the same flavour.

    triton          a few units in the last place, the right limits, NaN outside the domain
    triton_fast     the chip's own instructions, whose errors are less than bfloat16 rounds; the others are as above

The numbers are minimax polynomials in float32, each with the interval and the relative error that it was fitted to.
"""

from __future__ import annotations

EXACT = {
    "exp": '''
@jit
def exp(x):
    """eˣ = 2ⁿ eʳ with |r| ≤ ½ log 2; 2ⁿ is made of its bits, which the low bits of `shifted` hold."""
    shifted = tl.minimum(tl.maximum(x * 1.4426950408889634 + 12583039.0, 12582913.0), 12583166.0)
    n = shifted - 12583039.0
    r = (x - n * 0.693359375) + n * 2.1219444e-4
    power = tl.cast(tl.cast(shifted, tl.int32, bitcast=True) << 23, tl.float32, bitcast=True)
    return tl.exp2(r * 1.4426950408889634) * power
''',
    "tanh": '''
@jit
def tanh(x):
    """x + x³ P(x²) for x² < 0.4 (2⁻²⁷), ±(1 − 2 / (e^|2x| + 1)) elsewhere."""
    square = x * x
    p = (-0.005665335 * square + 0.02060671) * square - 0.053730942
    p = (p * square + 0.13331354) * square - 0.3333328
    near = x + x * (square * p)
    far = 1.0 - 2.0 / (tl.exp2(tl.abs(x) * 2.8853900817779268) + 1.0)
    return tl.where(square < 0.4, near, tl.where(x < 0.0, -far, far))
''',
    "sigmoid": '''
@jit
def sigmoid(x):
    """1 / (1 + e⁻ˣ), from e^−|x|, which cannot overflow."""
    small = exp(-tl.abs(x))
    return tl.where(x < 0.0, small, 1.0) / (1.0 + small)
''',
    "softplus": '''
@jit
def softplus(x):
    """max(x, 0) + log(1 + z) with z = e^−|x|; log(1 + z) = z P(z) for 0 ≤ z ≤ 1 (2⁻³⁰)."""
    z = exp(-tl.abs(x))
    p = (0.0020302448 * z - 0.013407547) * z + 0.041478265
    p = (p * z - 0.0824418) * z + 0.12418439
    p = (p * z - 0.16105694) * z + 0.19890748
    p = (p * z - 0.24987271) * z + 0.3333256
    p = (p * z - 0.49999982) * z + 1.0
    return tl.maximum(x, 0.0) + z * p
''',
    "gelu": '''
@jit
def gelu(x):
    """max(x, 0) − a Φ(−a) with a = |x|; Φ(−a) = e^(−a²/2) t P(t), t = 1 / (1 + 0.38 a), for a ≤ 15 (2⁻²⁶)."""
    a = tl.minimum(tl.abs(x), 15.0)
    t = 1.0 / (1.0 + 0.38 * a)
    p = (0.023676014 * t - 0.14604442) * t + 0.36147505
    p = (p * t - 0.42554036) * t + 0.20323174
    p = (p * t - 0.052440546) * t + 0.10536767
    p = (p * t + 0.12685071) * t + 0.15183446
    p = (p * t + 0.15158968) * t
    square = a * a
    rest = tl.fma(a, a, -square)
    tail = exp(-0.5 * square) * (1.0 - 0.5 * rest)
    return tl.where(x <= 0.0, 0.0, x) - a * p * tail
''',
    "relu": '''
@jit
def relu(x):
    """max(x, 0); NaN stays NaN."""
    return tl.where(x <= 0.0, 0.0, x)
''',
    "minimum": '''
@jit
def minimum(a, b):
    """The smaller one; NaN where either is."""
    return tl.where((b < a) | (b != b), b, a)
''',
    "maximum": '''
@jit
def maximum(a, b):
    """The larger one; NaN where either is."""
    return tl.where((b > a) | (b != b), b, a)
''',
    "floor_divide": '''
@jit
def floor_divide(a, b):
    """⌊a / b⌋ on integers, whose // rounds towards 0 here; 0 where b is 0."""
    divisor = tl.where(b == 0, 1, b)
    quotient = a // divisor
    rest = a - quotient * divisor
    down = tl.where((rest != 0) & ((rest < 0) != (divisor < 0)), 1, 0)
    return tl.where(b == 0, 0, quotient - down)
''',
    "remainder": '''
@jit
def remainder(a, b):
    """a − b ⌊a / b⌋ on integers, with the sign of b; 0 where b is 0."""
    divisor = tl.where(b == 0, 1, b)  # which leaves 0
    rest = a % divisor
    other = (rest != 0) & ((rest < 0) != (divisor < 0))
    return tl.where(other, rest + divisor, rest)
''',
}

FAST = {
    "exp": '''
@jit
def exp(x):
    """eˣ; relative error 2⁻²² + |x| 2⁻²⁴."""
    return tl.exp2(x * 1.4426950408889634)
''',
    "log": '''
@jit
def log(x):
    """log x; error 2⁻²², relative to 1 or to the value, whichever is larger."""
    exponent = tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return exponent * 0.6931471805599453
''',
    "tanh": '''
@jit
def tanh(x):
    """tanh x; relative error 2⁻¹¹."""
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
''',
    "sigmoid": '''
@jit
def sigmoid(x):
    """½ tanh(½ x) + ½; error 2⁻¹² of 1."""
    return 0.5 * tanh(0.5 * x) + 0.5
''',
    "softplus": '''
@jit
def softplus(x):
    """max(x, 0) + log(1 + z) with z = e^−|x|; log(1 + z) = z P(z) for 0 ≤ z ≤ 1 (2⁻¹⁴)."""
    z = tl.exp2(tl.abs(x) * -1.4426950408889634)
    p = (0.041347302 * z - 0.1574272) * z + 0.30630094
    p = (p * z - 0.4969778) * z + 0.99994326
    return tl.maximum(x, 0.0) + z * p
''',
    "erf": '''
@jit
def erf(x):
    """tanh(x P(x²)) for |x| ≤ 4 (2⁻¹⁴); beyond, both are ±1. Relative error 2⁻¹¹, as that of tanh."""
    square = tl.minimum(x * x, 16.0)
    return tanh(x * ((-0.0016163585 * square + 0.103642225) * square + 1.1283138))
''',
    "gelu": '''
@jit
def gelu(x):
    """max(x, 0) − a Φ(−a) with a = |x|; Φ(−a) = e^(−a²/2) P(a) for a ≤ 5 (2⁻¹¹), and below 10⁻⁶ beyond."""
    a = tl.minimum(tl.abs(x), 5.0)
    p = (-2.5011554e-05 * a + 0.0005606008) * a - 0.0053547528
    p = (p * a + 0.028819164) * a - 0.09833447
    p = (p * a + 0.2302477) * a - 0.39420426
    p = (p * a + 0.49979076) * a
    return tl.where(x <= 0.0, 0.0, x) - p * tl.exp2(x * x * -0.7213475204444817)
''',
    "cos": '''
@jit
def cos(x):
    """cos(x − 2π n) with n the nearest integer to x / 2π; error 2⁻²⁰ up to |x| = 10⁷, 2⁻¹³ up to 10¹⁰."""
    n = tl.floor(x * 0.15915494309189535 + 0.5)
    angle = tl.fma(n, 1.7484556e-7, tl.fma(n, -6.2831855, x))
    return tl.inline_asm_elementwise("cos.approx.ftz.f32 $0, $1;", "=f,f", [angle], tl.float32, True, 1)
''',
    "sin": '''
@jit
def sin(x):
    """sin(x − 2π n) with n the nearest integer to x / 2π; error 2⁻²⁰ up to |x| = 10⁷, 2⁻¹³ up to 10¹⁰."""
    n = tl.floor(x * 0.15915494309189535 + 0.5)
    angle = tl.fma(n, 1.7484556e-7, tl.fma(n, -6.2831855, x))
    return tl.inline_asm_elementwise("sin.approx.ftz.f32 $0, $1;", "=f,f", [angle], tl.float32, True, 1)
''',
}


def kernels(name: str) -> dict[str, str]:
    """The definitions of that name, by flavour."""
    return {flavour: texts[name] for flavour, texts in {"triton": EXACT, "triton_fast": FAST}.items() if name in texts}
