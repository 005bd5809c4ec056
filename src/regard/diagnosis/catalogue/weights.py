"""Bugs of the weights: w_ij = exp(s_ij) / Σ_j exp(s_ij), y_i = Σ_j w_ij v_j."""

from __future__ import annotations

from ..bugs import SOFTMAX, Bug, Reference

SHARED = {
    "torch": "weights = torch.softmax(scores, dim=-1)",
    "numpy": "e = np.exp(scores - scores.max(-1, keepdims=True))\nweights = e / e.sum(-1, keepdims=True)",
    "jax": "weights = jax.nn.softmax(scores, axis=-1)",
    "python": "exps = [math.exp(s - max(row)) for s in row]\nweights = [e / sum(exps) for e in exps]",
}
"""The right weights in each library; scores are (…, queries, keys), and `row` holds the scores of one query."""

BUGS = (
    Bug(
        name="softmax over queries",
        wrong="The total runs over queries in place of keys: columns sum to 1, and rows do not. A query may read "
        "everything twice or nothing at all, and under a causal mask early rows depend on later queries.",
        hides="Outputs are still positive mixtures of the values, of a plausible size. In a causal model the later "
        "tokens leak through the total, so training and validation loss even fall below those of a right model.",
        advice="Normalise over keys, the last axis: dim=-1. dim=1 is right for scores of two axes and wrong for "
        "(batch, n, n); dim=-2 is always the queries.",
        mend=SHARED,
        seen=Reference(
            "labml's diffusion U-Net: softmax(dim=1), and the quality of the images hardly changed when it was mended",
            "github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146",
        ),
        near=SOFTMAX,
    ),
    Bug(
        name="softmax over heads",
        wrong="The total runs over heads: for every pair the heads compete with each other, and rows do not sum to 1. "
        "With one head every weight is exactly 1.",
        hides="Weights stay between 0 and 1 and every head still learns something of its own, so the loss falls, "
        "though no query chooses between keys.",
        advice="Scores are (batch, heads, queries, keys): normalise over the last axis, dim=-1. dim=1 came from code "
        "for (batch, keys), or heads were flattened together with the keys.",
        mend=SHARED,
        seen=Reference(
            "DETR's mask head: one softmax over heads and pixels together; mended, it segments better",
            "github.com/facebookresearch/detr/issues/247",
        ),
        near=rf"{SOFTMAX}|\bflatten\(",
    ),
    Bug(
        name="softmax over the batch",
        wrong="The total runs over the batch: sentences that happen to share a batch leak into each other's weights. "
        "With a batch of one every weight is exactly 1.",
        hides="Training always sees full batches, and the loss falls. It shows at inference, one sentence at a time, "
        "or when the same sentence gives other outputs in other company.",
        advice="Normalise over keys, dim=-1. dim=0 came from code for one vector of scores, or from nn.Softmax() "
        "without dim, which guesses.",
        mend=SHARED,
        seen=Reference(
            "PyTorch-NLP: softmax over dim 0, so that a batch of one had nothing but ones for weights",
            "github.com/PetrochukM/PyTorch-NLP/issues/2",
        ),
        near=SOFTMAX,
    ),
    Bug(
        name="softmax over all pairs",
        wrong="There is one total for the whole matrix: all weights together sum to 1, a row of N to about 1/N. "
        "Queries compete with each other, and outputs shrink as sequences grow.",
        hides="The weights are positive and ordered as they should be, and a normalisation after attention scales the "
        "small outputs up again.",
        advice="Give the sum its axis, and keep it: e.sum(-1, keepdims=True), not e.sum() or np.sum(e); and do not "
        "flatten the scores before softmax.",
        mend=SHARED,
        seen=Reference(
            "nntrainer: the softmax of its attention layer flattened the last three axes into one",
            "github.com/nntrainer/nntrainer/pull/1602",
        ),
        near=rf"{SOFTMAX}|\bsum\(|\bflatten\(",
    ),
    Bug(
        name="softmax twice",
        wrong="Softmax is applied to weights that already went through it. Its inputs lie between 0 and 1, so no "
        "weight is more than e times another; and hidden keys, whose weight was 0, come back.",
        hides="Rows sum to 1 and all weights are positive, so every quick test passes. The model learns with weights "
        "that are nearly uniform.",
        advice="Remove one of the two. Often a function that is called get_scores or attention already ends in a "
        "softmax, or nn.Softmax stands in a nn.Sequential as well.",
        mend=SHARED,
        seen=Reference(
            "FLAVA in transformers applied softmax twice in its attention",
            "github.com/huggingface/transformers/pull/31322",
        ),
        near=SOFTMAX,
    ),
    Bug(
        name="logarithm of the weights",
        wrong="The weights are logarithms of probabilities: all negative, the largest in size for the keys that fit "
        "least. Under a mask they are −∞, and outputs become infinite or NaN.",
        hides="Without a mask the output is finite and depends smoothly on the input; W_V learns the sign. The loss "
        "falls somewhat.",
        advice="Use softmax, not log_softmax: log_softmax belongs to the loss. Or take exp of it before the values "
        "are mixed.",
        mend=SHARED,
        seen=Reference(
            "its kin: a distillation took log_softmax of the teacher's attention where weights were wanted",
            "github.com/jongwooko/Pytorch-MiniLM/issues/2",
        ),
        near=r"(?i)log_?softmax|\blog\(",
    ),
    Bug(
        name="no total",
        wrong="exp is taken and never divided by its sum: rows do not sum to 1, outputs grow with the number of keys "
        "and exponentially with the scores.",
        hides="Every weight is right but for one factor per query, and the normalisation of the next layer removes "
        "most of it. It shows on longer sequences, or as an overflow.",
        advice="Divide by the sum over keys, kept as an axis: weights / weights.sum(-1, keepdims=True). In code that "
        "runs over blocks of keys, divide once at the end.",
        mend=SHARED,
        seen=Reference(
            "its kin: flash-attention hands back probabilities for debugging that were never divided by their total",
            "github.com/Dao-AILab/flash-attention/issues/902",
        ),
        near=SOFTMAX,
    ),
    Bug(
        name="scores as weights",
        wrong="The scores themselves are the weights: negative and unbounded, they sum to nothing in particular, and "
        "outputs grow with the number of keys.",
        hides="q (kᵀ v) is linear attention without its feature map, and that can learn. The loss falls, and is "
        "unstable on long sequences.",
        advice="Put softmax between scores and values. Look for a line that was commented out, and for a result that "
        "nobody used: `F.softmax(scores, dim=-1)` changes nothing by itself.",
        mend=SHARED,
        seen=Reference(
            "FlexFlow: the softmax of its BERT proxy was commented out, and there was no scale",
            "github.com/flexflow/flexflow-train/issues/467",
        ),
        near=rf"{SOFTMAX}|@\s*v\w*\b|matmul\(.*\bv\w*\s*\)",
    ),
    Bug(
        name="weights transposed",
        wrong="The values are mixed with the transposed weights, y_i = Σ_j w_ji v_j: position i receives what others "
        "thought of it, and the weights it uses do not sum to 1.",
        hides="With as many queries as keys the shapes fit. Self-attention scores are similar in both directions, so "
        "outputs look reasonable; a causal model reads the future, and its loss falls fast.",
        advice="Multiply weights @ v with weights as (queries, keys). In einsum, sum over the key's letter: "
        "'bhij,bhjd->bhid'. Where values come first (v @ w), it is w that must be transposed.",
        mend={
            "any": "y = weights @ v",
            "python": "y_i = [sum(w * v_j[c] for w, v_j in zip(weights, v)) for c in range(len(v[0]))]",
        },
        seen=Reference(
            "a Self-Attention GAN wrote permute(0, 1, 2), which transposes nothing, before it mixed the values",
            "github.com/heykeetae/Self-Attention-GAN/issues/11",
        ),
        near=r"(@|\b(matmul|einsum|bmm|dot)\().*\b[vV](alues?)?(_\w+)?\b|\bsum\(.*\bv\w*\[",
    ),
    Bug(
        name="maximum over queries",
        wrong="The largest score of each column is subtracted before exp, and the sum is taken over rows. The shift no "
        "longer cancels: a key that some query likes much is damped for all queries.",
        hides="Rows sum to 1 and every weight is positive, so the usual tests pass, and the change is smooth enough to "
        "learn around.",
        advice="Take maximum and sum over the same axis, the last, and keep it: max(-1, keepdims=True). Without "
        "keepdims a square matrix broadcasts the maxima of rows along columns, with no error.",
        mend=SHARED,
        seen=Reference(
            "Triton's tl.softmax without keep_dims spread the maxima of rows over columns",
            "github.com/triton-lang/triton/issues/11406",
        ),
        near=r"\b(a?max|amax|sum)\(|\bexp\(",
    ),
)
