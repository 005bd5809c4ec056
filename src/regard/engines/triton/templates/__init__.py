"""The Triton template: one forward and one backward pass into which a formula's own functions are compiled.

    y_i = Σ_j w_ij v_j        w_ij = ψ(s_ij) / Z_i        s_ij = score(q_i, k_j, i, j, h, b)

`common` holds what the kernels share, `forward` and `backward` the kernels, `launch` the host's side of them; `kept` is
the way back on which dS is made once; `bands` and `tables` are gradients of what varies with i and j; `decode` is for
few queries; `dealing` shares work out over the chip.
"""

from __future__ import annotations

import os

if os.environ.get("TRITON_INTERPRET") == "1":
    from . import rehearsal  # noqa: F401 - which makes the interpreter fit for use
