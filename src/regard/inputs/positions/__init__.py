"""Where an element stands, as values of one interface: added to vectors, applied to q and k, or added to the score.

added    Sinusoidal  Learned              x_i + p_i
rotary   Rotary, with a Scaling           R_i q_i · R_j k_j = q_i · R_(j−i) k_j
scored   ALiBi  Relative                  s_ij + bias(i − j)
"""

from .added import Learned, Sinusoidal
from .base import NoPosition, Position, Sum
from .rotary import Rotary, Turns
from .scaling import NTK, DynamicNTK, Linear, Llama3, LongRoPE, Scaling, Stretched, YaRN
from .scored import ALiBi, Buckets, Offsets, Relative

__all__ = [
    "NTK", "ALiBi", "Buckets", "DynamicNTK", "Learned", "Linear", "Llama3", "LongRoPE", "NoPosition", "Offsets",
    "Position", "Relative", "Rotary", "Scaling", "Sinusoidal", "Stretched", "Sum", "Turns", "YaRN",
]  # fmt: skip
