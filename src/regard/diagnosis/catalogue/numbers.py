"""Bugs of arithmetic: right on paper, wrong in floating point."""

from __future__ import annotations

from ..bugs import PRODUCT, SOFTMAX, Bug, Reference
from .weights import SHARED

BUGS = (
    Bug(
        name="no maximum subtracted",
        wrong="exp is taken of the raw scores. It overflows to ∞ at scores of 89 in float32 and 12 in float16, and "
        "∞/∞ is NaN.",
        hides="Scores of a young model are below 10. They grow with training and with width, and NaN comes after "
        "hours.",
        advice="Subtract the largest score of each row before exp; the weights stay the same. Library softmax "
        "functions do so by themselves.",
        mend=SHARED,
        seen=Reference(
            "ExecuTorch: a score of 151 overflowed the plain softmax of its Vulkan attention, and Phi-4-mini gave NaN",
            "github.com/pytorch/executorch/pull/18407",
        ),
        near=r"\bexp\(",
    ),
    Bug(
        name="one maximum for all rows",
        wrong="One maximum of the whole array is subtracted from all rows. A row whose scores lie 104 below it "
        "underflows to 0 in float32, and 0/0 is NaN.",
        hides="For scores of similar size it is exact. It needs one outlier in another row, head or sentence of the "
        "batch.",
        advice="Take the maximum of each row, and keep its axis: scores.max(-1, keepdims=True), not scores.max().",
        mend=SHARED,
        seen=Reference(
            "Keras on Theano made its softmax stable with the maximum of the whole array",
            "github.com/keras-team/keras/pull/9606",
        ),
        near=r"\b(a?max|amax)\(|\bexp\(",
        severity="warning",
    ),
    Bug(
        name="low precision inside",
        wrong="Scores or sums are held in half precision: in float16 scores above 65 504 overflow and small weights "
        "vanish, in bfloat16 weights keep 8 bits, and sums over many keys stop growing.",
        hides="On short sequences and mild scores the error is one of rounding, like noise. It grows with length, and "
        "ends in NaN.",
        advice="Compute scores, softmax and sums in float32, and convert the result back. Look for .half(), "
        ".astype(float16), .to(bfloat16), and for an accumulator in the type of its inputs.",
        mend={
            "torch": "weights = torch.softmax(scores.float(), dim=-1).to(q.dtype)",
            "numpy": "scores = q.astype(np.float32) @ np.swapaxes(k, -1, -2).astype(np.float32) / np.sqrt(k.shape[-1])",
            "jax": "weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(q.dtype)",
        },
        seen=Reference(
            "OPT in transformers: the softmax of its attention gave NaN in half precision",
            "github.com/huggingface/transformers/pull/17437",
        ),
        near=rf"half|float16|bfloat16|autocast|dtype|{SOFTMAX}|{PRODUCT}",
    ),
)
