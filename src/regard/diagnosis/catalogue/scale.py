"""Bugs of the scale: s_ij = q_i · k_j / √d, where d is the width of one head."""

from __future__ import annotations

from ..bugs import PRODUCT, ROOT, SOFTMAX, Bug, Reference

SCALED = {
    "torch": "scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])",
    "numpy": "scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])",
    "jax": "scores = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(k.shape[-1])",
    "python": "score = sum(a * b for a, b in zip(q_i, k_j)) / math.sqrt(len(k_j))",
}
"""The right score in each library; k's last axis is its width before the transpose, and its length after."""

BUGS = (
    Bug(
        name="no root of d",
        wrong="The score is not divided by √d. Scores of random vectors then spread like √d: softmax saturates, one "
        "key takes almost all the weight, and gradients vanish as d grows.",
        hides="At d = 4 the factor is only 2 and training looks normal. At larger d, W_Q and W_K slowly learn to be "
        "smaller, so the loss still falls; it falls later and ends higher.",
        advice="Divide the product by the square root of the last axis of k, before mask and softmax. "
        "F.scaled_dot_product_attention divides by itself, unless it is handed scale=1.0.",
        mend=SCALED,
        seen=Reference(
            "mlc-llm: a fallback path used the scale 1.0, and embeddings of BERT models were off",
            "github.com/mlc-ai/mlc-llm/pull/3426",
        ),
        near=rf"{PRODUCT}|{ROOT}",
    ),
    Bug(
        name="d for its root",
        wrong="The score is divided by d, or by √d twice. Scores of random vectors spread like 1/√d, and the weights "
        "are nearly uniform: every output is close to the mean of all values.",
        hides="The mean of the values is a useful feature, and W_Q and W_K can grow until the scores spread again. "
        "The loss falls, only more slowly.",
        advice="Take the square root, once. Look for `/ d_k` or `* d_k ** -1` without a root, and for two scalings: "
        "q scaled by hand and then given to F.scaled_dot_product_attention, which scales again.",
        mend=SCALED,
        seen=Reference(
            "cntkx: scaled_dot_product_attention divided by d_k and had no square root",
            "github.com/delzac/cntkx/issues/10",
        ),
        near=rf"{PRODUCT}|{ROOT}|/\s*(self\.)?\w*(d_?k|dim|size|depth)\b|scaled_dot_product",
    ),
    Bug(
        name="root of the model width",
        wrong="The score is divided by √(d·H), the width before heads were split. With H heads the scores are √H times "
        "too small, and the weights flatter than they should be.",
        hides="With one head nothing differs. With 8 heads the factor is 2.8, and W_Q and W_K learn to undo it; only "
        "weights that were trained elsewhere give visibly other outputs.",
        advice="Use the width of one head after the split: k.shape[-1], or embed_dim // n_heads. Not embed_dim, "
        "d_model, hidden_size or the C of x.shape.",
        mend=SCALED,
        seen=Reference(
            "vit-pytorch: the scale was taken from the model's width, not from the head's",
            "github.com/lucidrains/vit-pytorch/issues/65",
        ),
        near=ROOT,
    ),
    Bug(
        name="model width for its root",
        wrong="The score is divided by d·H, the whole width of the model and without a root. Scores almost vanish, and "
        "every query weighs all keys the same.",
        hides="Uniform weights still average the values, which is worth something, and the feed-forward layers go on "
        "learning. The loss falls as it would without attention.",
        advice="Two things at once: take the width of one head (k.shape[-1]), and take its square root.",
        mend=SCALED,
        seen=Reference(
            "half of it: a much-copied tutorial takes embed_size where head_dim is meant (there with its root)",
            "github.com/aladdinpersson/Machine-Learning-Collection/issues/65",
        ),
        near=rf"{PRODUCT}|{ROOT}|/\s*(self\.)?\w*(d_?model|dim|size|width)\b",
    ),
    Bug(
        name="root of the value width",
        wrong="The score is divided by √d_v, the width of the values, in place of √d, the width of the keys. Where "
        "they differ, scores are too large or too small by a constant.",
        hides="In most models values are as wide as keys, and then it is right. It shows when the widths part, and "
        "even then W_Q and W_K learn the factor.",
        advice="The product is a sum over the width of q and k, so that width belongs under the root: q.shape[-1] or "
        "k.shape[-1], not v.shape[-1].",
        mend=SCALED,
        seen=Reference(
            "GPT-2 takes the width of the values for its scale; there both widths are the same",
            "github.com/openai/gpt-2/issues/49",
        ),
        near=ROOT,
    ),
    Bug(
        name="root of the length",
        wrong="The score is divided by √N, the number of positions, in place of √d. Weights grow flatter as the "
        "sequence grows, and another length gives another model.",
        hides="At one fixed length it is only a constant factor, and where N = d (a favourite in small tests) it is "
        "right by accident.",
        advice="Take the last axis of q: q.shape[-1]. Usual causes: shape[1] or shape[-2], len(q), or the last axis of "
        "k after it was transposed, which is its length.",
        mend=SCALED,
        seen=Reference(
            "its kin, the other way round: size(2) meant as the length is the width when inputs have three axes",
            "github.com/onlybooks/llm/issues/18",
        ),
        near=rf"{ROOT}|\blen\(",
    ),
    Bug(
        name="times the root of d",
        wrong="The score is multiplied by √d, not divided by it. Scores of random vectors spread like d: softmax picks "
        "one key, and almost no gradient is left.",
        hides="A hard choice of one key still passes values on, and the other layers learn around it. At small d the "
        "loss looks normal.",
        advice="`/ d ** -0.5` multiplies. Write `* d ** -0.5` or `/ d ** 0.5`; and a variable called scale that holds "
        "√d is divided by, one that holds 1/√d is multiplied with.",
        mend=SCALED,
        seen=Reference(
            "LLMs-from-scratch: scores were divided by d to the power −0.5",
            "github.com/rasbt/LLMs-from-scratch/issues/856",
        ),
        near=ROOT,
    ),
    Bug(
        name="scale after the weights",
        wrong="Softmax sees the unscaled scores, and its weights are divided by √d afterwards. The weights are as "
        "saturated as without a scale, and every row sums to 1/√d.",
        hides="The output is only too small by a constant, which the output projection or a normalisation undoes. "
        "The saturation shows at large d alone.",
        advice="Move the scale inside: softmax(scores / √d), not softmax(scores) / √d. Often one bracket is in the "
        "wrong place.",
        mend={
            "torch": "weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]), dim=-1)",
            "numpy": "scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])\n"
            "e = np.exp(scores - scores.max(-1, keepdims=True))\nweights = e / e.sum(-1, keepdims=True)",
            "jax": "weights = jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / math.sqrt(k.shape[-1]), axis=-1)",
        },
        seen=Reference(
            "a ViT tutorial multiplied the scale onto the softmax's result",
            "github.com/FrancescoSaverioZuppichini/ViT/issues/2",
        ),
        near=rf"{SOFTMAX}|{ROOT}",
    ),
    Bug(
        name="wrong scale",
        wrong="The scores are multiplied by a number that is not 1/√d. Too large, and softmax saturates; too small, "
        "and it averages.",
        hides="W_Q and W_K learn the missing factor. It shows when weights are loaded from elsewhere, or when the "
        "width changes and the number does not.",
        advice="Compute the scale from the width of one head at each call. Look for a number written by hand, for a "
        "scale that belonged to another width, and for a learned temperature that starts elsewhere.",
        mend=SCALED,
        seen=Reference(
            "attorch: the layer handed its kernels the scale 0.5, right for a width of 4 alone",
            "github.com/BobMcDear/attorch/issues/14",
        ),
        near=rf"{PRODUCT}|{ROOT}|temperature",
    ),
)
