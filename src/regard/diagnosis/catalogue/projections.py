"""Bugs of the projections: q = x W_Q, k = x W_K, v = x W_V, and y W_O at the end."""

from __future__ import annotations

from ..bugs import PRODUCT, PROJECTED, RESHAPED, Bug, Reference
from .heads import MERGED
from .scale import SCALED

OWN = {"any": "q, k, v = x @ Wq, x @ Wk, x @ Wv"}
"""Each role from its own matrix."""

BUGS = (
    Bug(
        name="key not transposed",
        wrong="q @ k in place of q @ kᵀ: width runs against positions, and entry (i, j) is not the product of query i "
        "with key j.",
        hides="It only runs where there are as many positions as dimensions, as in small tests with square matrices. "
        "There it gives numbers of the right size and shape.",
        advice="Exchange the last two axes of k: transpose(-2, -1), swapaxes(-1, -2) or .mT. `.T` reverses all axes, "
        "and transpose(1, 2) is another pair once there are heads. Test with n ≠ d.",
        mend=SCALED,
        seen=Reference(
            "its kin: transpose(key) without axes reversed all of them",
            "github.com/HomericIntelligence/Odyssey/issues/5648",
        ),
        near=PRODUCT,
    ),
    Bug(
        name="queries and keys swapped",
        wrong="The score is k_i · q_j in place of q_i · k_j: the matrix of scores is transposed before softmax, so "
        "each position is judged by the others' questions.",
        hides="Trained from scratch it is the same model under other names: W_Q learns what W_K should. It shows with "
        "weights from elsewhere, with a cache, and in cross-attention.",
        advice="q @ kᵀ: rows are queries. In einsum the first letter of the result is the query's. Check the order in "
        "which a packed projection is unpacked.",
        mend=SCALED,
        seen=Reference(
            "femtoGPT multiplies k by qᵀ, noticed when somebody added a cache",
            "github.com/keyvank/femtoGPT/issues/30",
        ),
        near=rf"{PRODUCT}|\b[kK](eys?)?\s*@|\b(chunk|split|unbind)\(|{PROJECTED}",
    ),
    Bug(
        name="values from the input",
        wrong="The weights mix x itself, not x W_V: what is sent is what was matched, and W_V receives no gradient.",
        hides="Mixing raw inputs is a sensible model, and the output projection learns part of what W_V would. The "
        "loss falls.",
        advice="Mix v. Look for `weights @ x`, for `v = x`, and for a parameter whose gradient is None.",
        mend={"any": "v = x @ Wv  # and then weights @ v, not weights @ x"},
        seen=Reference(
            "Motionformer: a typo left the values of its temporal attention unprojected",
            "github.com/facebookresearch/Motionformer/pull/6",
        ),
        near=rf"(@|\b(matmul|einsum|bmm)\().*\b(x|inputs?|hidden(_states)?)\b|\bv(alues?)?\s*=\s*x\b|{PROJECTED}",
    ),
    Bug(
        name="values from the keys",
        wrong="The values are the keys, or come from W_K: one matrix must both match and carry content, and W_V "
        "receives no gradient.",
        hides="Keys contain the input too, and a model with values tied to keys learns, only with less room. Tests "
        "that pass the same array as k and v cannot see it.",
        advice="Look for a line that was copied and changed in one place only: `value = self.k_proj(value)`, "
        "`cache_v = k`. Test with k and v different.",
        mend=OWN,
        seen=Reference(
            "an annotated Transformer computed its values with k_proj",
            "github.com/yflyzhang/AnnotatedTransformer/issues/1",
        ),
        near=rf"{PROJECTED}|\bv\w*\s*=.*\bk\w*\b|(@|matmul\().*\bk\w*\s*\)?$",
    ),
    Bug(
        name="values from the queries",
        wrong="The values are the queries, or come from W_Q: what is sent is what was asked, and W_V receives no "
        "gradient. In cross-attention the output never contains anything of the other sequence.",
        hides="In self-attention queries contain the input too, and a model with values tied to queries learns. Tests "
        "that pass one array as q and v cannot see it.",
        advice="Look for a line that was copied and changed in one place only: `value = self.query(x)`, "
        "`attend(q, k, q)`. Test with q, k and v different.",
        mend=OWN,
        seen=Reference(
            "TensorFlow's example for its Attention layer embedded the query where the value was meant",
            "github.com/tensorflow/tensorflow/pull/35859",
        ),
        near=rf"{PROJECTED}|\bv\w*\s*=.*\bq\w*\b|(@|matmul\().*\bq\w*\s*\)?$",
    ),
    Bug(
        name="keys from the queries",
        wrong="The keys come from W_Q, so k = q: scores are symmetric, a token asks for what it is itself, and W_K "
        "receives no gradient.",
        hides="A symmetric score is a fair measure of likeness, and attention to the like is often useful. The loss "
        "falls.",
        advice="Look for a line that was copied and changed in one place only: `key = self.query(x)`. A parameter "
        "whose gradient is None gives it away.",
        mend=OWN,
        seen=Reference(
            "its kin: queries and values were taken from the keys by copy and paste",
            "github.com/Khaliladib11/Transformer-from-scratch/issues/1",
        ),
        near=rf"{PROJECTED}|\bk\w*\s*=.*\bq\w*\b",
    ),
    Bug(
        name="weights never used",
        wrong="The weights are computed, and the values are returned as they are: no position reads another, and W_Q "
        "and W_K receive no gradient.",
        hides="Shapes are right, and what remains is a layer on each token alone, which learns what one token tells. "
        "The loss falls as it would without attention.",
        advice="Multiply weights @ v and return the product. Look for a result under a name that is never read again, "
        "and for a return of v or of the input.",
        mend={"any": "y = weights @ v"},
        seen=Reference(
            "a DA-RNN computed the inputs that its attention had weighted, and never read them",
            "github.com/Zhenye-Na/DA-RNN/issues/14",
        ),
        near=r"\breturn\b|(@|\b(matmul|einsum|bmm|dot)\().*\b[vV](alues?)?(_\w+)?\b|\by\w*\s*=\s*v",
    ),
    Bug(
        name="output projection forgotten",
        wrong="The heads are put side by side and returned: W_O is missing, so no head's result reaches the dimensions "
        "of another.",
        hides="W_V can do part of its work, and the feed-forward layer mixes the heads one step later. The loss falls.",
        advice="Multiply the merged heads by W_O before they are returned. Often it is defined in __init__ and never "
        "called, or its result is not what is returned.",
        mend={"any": "out = y @ Wo  # y: (batch, n, n_heads * d_head)"},
        seen=Reference(
            "a well-known TensorFlow Transformer had no projection after its heads",
            "github.com/Kyubyong/transformer/issues/117",
        ),
        near=rf"\breturn\b|{RESHAPED}|\bconcat(enate)?\(|\bcat\(",
    ),
    Bug(
        name="output projection per head",
        wrong="W_O is applied to each head by itself, or one d × d block of it to all heads: heads are not combined, "
        "and the blocks of W_O that join different heads are not used.",
        hides="Shapes fit, every head is transformed by something learned, and the next layer mixes the heads.",
        advice="First merge the heads to (batch, n, H · d), then multiply by the whole of W_O once.",
        mend={library: f"{line}\nout = y @ Wo" for library, line in MERGED.items()},
        seen=Reference(
            "its kin: one small projection was shared by all heads, after the split",
            "github.com/MarcoMeter/episodic-transformer-memory-ppo/pull/22",
        ),
        near=rf"{PROJECTED}|{RESHAPED}|\bcat\(",
    ),
)
