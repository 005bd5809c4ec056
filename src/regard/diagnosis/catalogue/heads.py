"""Bugs of the heads: (batch, n, H · d) is cut into (batch, H, n, d), and put together again."""

from __future__ import annotations

from ..bugs import CUT, RESHAPED, Bug, Reference

SPLIT = {
    "torch": "q, k, v = (t.view(batch, n, n_heads, d_head).transpose(1, 2) for t in (x @ Wq, x @ Wk, x @ Wv))",
    "numpy": "q, k, v = (np.swapaxes(t.reshape(batch, n, n_heads, d_head), 1, 2) for t in (x @ Wq, x @ Wk, x @ Wv))",
    "jax": "q, k, v = (jnp.swapaxes(t.reshape(batch, n, n_heads, d_head), 1, 2) for t in (x @ Wq, x @ Wk, x @ Wv))",
}
"""First the axes as they lie in memory, (batch, n, H, d); then heads before positions."""

MERGED = {
    "torch": "y = y.transpose(1, 2).reshape(batch, n, n_heads * d_head)",
    "numpy": "y = np.swapaxes(y, 1, 2).reshape(batch, n, n_heads * d_head)",
    "jax": "y = jnp.swapaxes(y, 1, 2).reshape(batch, n, n_heads * d_head)",
}
"""First positions before heads again; then the heads of one position side by side."""

BUGS = (
    Bug(
        name="heads split without transpose",
        wrong="view(batch, H, n, d) cuts the memory where it should exchange axes: a head receives whole tokens cut to "
        "pieces, and pieces of one token count as different positions.",
        hides="The shape is right, and the cut is the same in every step, so W_Q, W_K and W_V learn to live with it. "
        "With one head it changes nothing.",
        advice="view(batch, n, H, d) first, then transpose(1, 2). reshape and view never move numbers past each other; "
        "only transpose, permute and swapaxes do.",
        mend=SPLIT,
        seen=Reference(
            "FuxiCTR: three models cut their heads by view alone, after an example that many copied",
            "github.com/reczoo/FuxiCTR/issues/30",
        ),
        near=CUT,
    ),
    Bug(
        name="heads merged without transpose",
        wrong="(batch, H, n, d) is viewed as (batch, n, H · d) without a transpose: the output of one token is filled "
        "with one head's results for several tokens.",
        hides="The shape is right and the mixing always the same, so the layers above learn to compensate on easy "
        "tasks. With one head it changes nothing. A causal model leaks the future.",
        advice="transpose(1, 2) first, then reshape (or contiguous().view). A view that complains about strides is "
        "not mended by reshape alone.",
        mend=MERGED,
        seen=Reference(
            "transformer-from-scratch: no permute before the reshape, and its training test still passed",
            "github.com/jsbaan/transformer-from-scratch/pull/6",
        ),
        near=CUT,
    ),
    Bug(
        name="heads attend to heads",
        wrong="q, k and v stay (batch, n, H, d), so the product runs over heads: the heads of one token attend to each "
        "other, and no token reads another.",
        hides="The output has the right shape, and the feed-forward layers still learn what one token tells. Where "
        "n = H even the mask fits.",
        advice="Move heads before positions: transpose(1, 2) on q, k and v before the product, and back afterwards. "
        "F.scaled_dot_product_attention wants (batch, heads, positions, width); flash_attn the other order.",
        mend=SPLIT,
        seen=Reference(
            "FoundationStereo handed scaled_dot_product_attention (batch, positions, heads, width)",
            "github.com/NVlabs/FoundationStereo/pull/217",
        ),
        near=rf"{RESHAPED}|scaled_dot_product|\beinsum\(",
    ),
    Bug(
        name="groups repeated in the wrong order",
        wrong="With fewer key heads than query heads the key heads are tiled 0 1 0 1 in place of 0 0 1 1: half of "
        "the query heads or more read the keys of another group.",
        hides="Trained from scratch, the heads learn their new partners and nothing is lost. Weights that were trained "
        "elsewhere give wrong outputs.",
        advice="torch: repeat_interleave, not repeat or tile. NumPy and JAX: repeat with axis=1, not tile. By hand: "
        "k[:, :, None].expand(…) and then reshape.",
        mend={
            "torch": "k = k.repeat_interleave(n_heads // n_kv_heads, dim=1)\n"
            "v = v.repeat_interleave(n_heads // n_kv_heads, dim=1)",
            "numpy": "k = np.repeat(k, n_heads // n_kv_heads, axis=1)\nv = np.repeat(v, n_heads // n_kv_heads, axis=1)",
            "jax": "k = jnp.repeat(k, n_heads // n_kv_heads, axis=1)\nv = jnp.repeat(v, n_heads // n_kv_heads, axis=1)",
        },
        seen=Reference(
            "ONNX's Attention operator tiled its key heads where PyTorch repeats each",
            "github.com/onnx/onnx/pull/7274",
        ),
        near=r"\b(repeat|tile|expand|repeat_interleave|broadcast_to)\(|\bcat\(|concatenate\(",
    ),
    Bug(
        name="heads averaged",
        wrong="The heads' outputs are summed or averaged in place of being put side by side: all heads share the same "
        "d dimensions, and what is special to one is lost.",
        hides="The mean of several heads is a fair single head, so the loss falls; more heads then bring little.",
        advice="Put heads side by side on the last axis, then multiply by W_O. mean(1), sum(1) and += in a loop over "
        "heads are what to look for.",
        mend=MERGED,
        seen=Reference(
            "functional-transformer added each head's output to the embeddings, reported as a mistake",
            "github.com/awf/functional-transformer/issues/8",
        ),
        near=r"\b(mean|sum|stack|add)\(|\+=|\beinsum\(",
    ),
)
