"""Bugs of the mask: hidden pairs have s_ij = −∞ before softmax; True admits."""

from __future__ import annotations

from ..bugs import MASKED, SOFTMAX, Bug, Reference

HIDDEN = {
    "torch": 'scores = scores.masked_fill(~mask, float("-inf"))',
    "numpy": "scores = np.where(mask, scores, -np.inf)",
    "jax": "scores = jnp.where(mask, scores, -jnp.inf)",
    "python": "row = [s if admitted else -math.inf for s, admitted in zip(row, mask_row)]",
}
"""Hidden pairs get −∞, before softmax."""

CAUSAL = {
    "torch": "causal = torch.ones(n_q, n_k, dtype=torch.bool, device=scores.device).tril(n_k - n_q)\n"
    'scores = scores.masked_fill(~causal, float("-inf"))',
    "numpy": "causal = np.tril(np.ones((n_q, n_k), dtype=bool), n_k - n_q)\nscores = np.where(causal, scores, -np.inf)",
    "jax": "causal = jnp.tril(jnp.ones((n_q, n_k), dtype=bool), n_k - n_q)\n"
    "scores = jnp.where(causal, scores, -jnp.inf)",
    "python": "row = [s if j <= i + n_k - n_q else -math.inf for j, s in enumerate(row)]",
}
"""Query i reads the keys j ≤ i, counted from the end: the last query reads all keys."""

PADDED = {
    "torch": 'scores = scores.masked_fill(~padding[:, None, None, :], float("-inf"))  # padding: (batch, keys)',
    "numpy": "scores = np.where(padding[:, None, None, :], scores, -np.inf)  # padding: (batch, keys)",
    "jax": "scores = jnp.where(padding[:, None, None, :], scores, -jnp.inf)  # padding: (batch, keys)",
}
"""A mask of real tokens stands on the axis of the keys: (batch, 1, 1, keys)."""

BUGS = (
    Bug(
        name="mask after the weights",
        wrong="Weights are set to 0 after they were divided by the total of all pairs. Rows sum to less than 1, and "
        "what is masked still counts in the total: raise a hidden score, and the admitted weights shrink.",
        hides="Hidden values are not read directly, so it looks masked. Outputs are only smaller, and the future leaks "
        "as that factor, which a model learns to use.",
        advice="Mask the scores with −∞ before softmax. Or, after masking the weights, divide by their sum again: that "
        "is right too.",
        mend=HIDDEN,
        seen=Reference(
            "timm's EVA model applied its mask after softmax",
            "github.com/huggingface/pytorch-image-models/pull/2236",
        ),
        near=rf"{MASKED}|{SOFTMAX}",
    ),
    Bug(
        name="inverted mask",
        wrong="True means hidden where the code takes it for admitted, or the reverse. A causal model reads only the "
        "future, and a padded batch reads only its padding.",
        hides="The future is easy to predict from, so a causal model's training and validation loss fall faster than "
        "they should; generation is what fails.",
        advice="Decide what True means and write it beside the mask. masked_fill fills where True; "
        "F.scaled_dot_product_attention admits where True; nn.MultiheadAttention hides where True. Invert with ~.",
        mend=HIDDEN,
        seen=Reference(
            "LLMs-from-scratch handed scaled_dot_product_attention a mask in which True meant hidden",
            "github.com/rasbt/LLMs-from-scratch/issues/1061",
        ),
        near=MASKED,
    ),
    Bug(
        name="strict mask",
        wrong="j < i in place of j ≤ i: a token cannot read itself, and the first row admits nothing, so it is NaN, "
        "or a mean of all values where the mask is a finite number.",
        hides="The token itself still arrives over the residual connection, and one bad row in a long sequence hardly "
        "moves the loss. With −∞ it shows at once, as NaN.",
        advice="Hide above the diagonal only: triu(diagonal=1) is what to hide, tril() or tril(0) what to admit. "
        "triu() without 1 hides the diagonal too.",
        mend=CAUSAL,
        seen=Reference(
            "a tutorial's masking hid the diagonal, and its first row became NaN",
            "github.com/pbloem/former/issues/10",
        ),
        near=rf"{MASKED}|<=?\s*\w+|\btriu_indices\(",
    ),
    Bug(
        name="shifted mask",
        wrong="j ≤ i + 1 in place of j ≤ i: every token reads the one that it should predict.",
        hides="It is what makes the loss fall: the answer is in the input. Training and validation loss go towards 0, "
        "and what the model generates is poor.",
        advice="tril(diagonal=1) admits one too many and triu(diagonal=2) hides one too few. And shift the targets "
        "once, in the data or in the loss, not in the mask.",
        mend=CAUSAL,
        seen=Reference(
            "its kin: in a demo language model the token to predict can be read from the unmasked source",
            "github.com/Lightning-AI/pytorch-lightning/issues/20920",
        ),
        near=rf"{MASKED}|<=?\s*\w+|\btriu_indices\(",
    ),
    Bug(
        name="0/1 mask added",
        wrong="A mask of zeros and ones is added to the score, where 0 and −∞ are meant. Hidden pairs lose a factor of "
        "e and stay readable.",
        hides="Hidden pairs do weigh less than before, so a picture of the weights shows the mask. The leak through it "
        "makes the loss fall, not rise.",
        advice="Only a mask of 0 and −∞ may be added. Turn a boolean one into that first, or use masked_fill or where. "
        "Adding True adds 1.",
        mend=HIDDEN,
        seen=Reference(
            "transformers: a boolean mask was added to the scores of Qwen3's eager attention",
            "github.com/huggingface/transformers/pull/41443",
        ),
        near=MASKED,
    ),
    Bug(
        name="hidden scores set to 0",
        wrong="Hidden scores become 0, not −∞: the score is multiplied by the mask, or filled with 0 or 1e-9. After "
        "exp they weigh as much as vectors at a right angle, and more than any key of negative score.",
        hides="0 looks like nothing, and before softmax it is not. Hidden pairs carry an ordinary weight, and the loss "
        "falls with what leaks.",
        advice="Fill with −∞. Multiplying by a mask is right for weights, after which they must be divided by their "
        "sum again. 1e-9 is a slip for −1e9.",
        mend=HIDDEN,
        seen=Reference(
            "a study multiplied its scores by the mask, and padding came back through softmax",
            "github.com/georg-wolflein/good-features/pull/1",
        ),
        near=MASKED,
    ),
    Bug(
        name="finite mask value",
        wrong="Hidden pairs get a number such as −10 000 in place of −∞. A row with nothing admitted becomes the mean "
        "of everything hidden, and an admitted score below the number loses to the hidden ones.",
        hides="With ordinary scores the hidden weights are exactly 0. Training can drive scores below the number and "
        "so read the future: the loss then falls to almost 0.",
        advice="Fill with −∞, and treat rows that admit nothing by themselves. −1e9 does not even fit into float16. "
        "If it must be finite, take torch.finfo(scores.dtype).min.",
        mend=HIDDEN,
        seen=Reference(
            "a GPT learned scores below its mask's −10 000, copied the future, and reached a loss near 0",
            "github.com/karpathy/minGPT/issues/75",
        ),
        near=r"-\s*\(?\d*\.?\d*e\+?\d|-\s*\d{3,}|2\s*\*\*\s*(31|32)|finfo|masked_fill",
        severity="warning",
    ),
    Bug(
        name="no mask",
        wrong="The mask is built, or handed over, and never applied: the future, or the padding, is read.",
        hides="More information makes a lower loss. A causal model that reads the future trains well and generates "
        "badly; padding only adds noise.",
        advice="Follow the mask from the argument to the scores. Usual causes: masked_fill without `scores =` (only "
        "masked_fill_ works in place), `if mask:` on a tensor, a fast path that forgot it, is_causal not handed on.",
        mend=HIDDEN,
        seen=Reference(
            "xformers skipped the causal mask whenever no other mask was passed",
            "github.com/facebookresearch/xformers/issues/103",
        ),
        near=rf"{MASKED}|{SOFTMAX}|\bmask\b.*:\s*$|scaled_dot_product",
    ),
    Bug(
        name="query and key exchanged",
        wrong="i and j change places in the mask or the bias: the matrix is transposed. A causal mask then admits the "
        "future and hides the past.",
        hides="A square matrix fits both ways round, and reading the future makes the loss fall faster.",
        advice="Rows are queries, columns are keys: mask[i, j] says whether query i reads key j. tril admits the past; "
        "triu, or a .T too many, turns it round. A relative bias is i − j, not j − i.",
        mend=CAUSAL,
        seen=Reference(
            "PyTorch 1.3: generate_square_subsequent_mask gave the transposed mask",
            "github.com/pytorch/pytorch/issues/29546",
        ),
        near=rf"{MASKED}|\bmask\w*\.(T|mT|t\(|transpose)|\bbias\b",
    ),
    Bug(
        name="mask in the wrong corner",
        wrong="With fewer queries than keys the causal mask starts in the upper left: the new queries are taken for "
        "the first positions. With a cache, one new query reads only the first key.",
        hides="Training has as many queries as keys, and there both corners agree. It shows in generation, as text "
        "that forgets its prompt.",
        advice="Count from the end: query i stands at position i + n_k − n_q, so use tril(n_k - n_q). is_causal=True "
        "of F.scaled_dot_product_attention starts at the upper left; a single new query needs no mask at all.",
        mend=CAUSAL,
        seen=Reference(
            "PyTorch: is_causal with one query and a cache admits the first key alone",
            "github.com/pytorch/pytorch/issues/103082",
        ),
        near=rf"{MASKED}|\barange\(",
        severity="warning",
    ),
    Bug(
        name="padding on queries",
        wrong="The mask of padding stands on the axis of queries: rows of padding are hidden, and the real tokens go "
        "on reading padding as keys.",
        hides="Rows of padding are thrown away later, so what is wrong in them does no harm; that real tokens read "
        "padding is noise which training gets used to. It changes with the length of the batch.",
        advice="Padding is something not to be read: give it the axis of keys, (batch, 1, 1, keys). "
        "unsqueeze(1).unsqueeze(2), not unsqueeze(1).unsqueeze(3) or unsqueeze(-1).",
        mend=PADDED,
        seen=Reference(
            "a Transformer tutorial put the padding of its targets on the queries, with unsqueeze(3)",
            "github.com/bentrevett/pytorch-seq2seq/issues/96",
        ),
        near=rf"{MASKED}|unsqueeze\(|expand_dims\(|\bNone\b\s*\]",
    ),
    Bug(
        name="mask broadcast by accident",
        wrong="A (batch, keys) mask is used as it is. Where the batch happens to be as large as the sequence, it "
        "broadcasts as (queries, keys): each sentence's padding hides keys from one query of every sentence.",
        hides="At every other batch size it raises an error, so it passes for code that runs. Hidden or not, a few "
        "keys more or less barely move the loss.",
        advice="Give the mask its axes before it meets the scores: padding[:, None, None, :]. The same with a (batch, "
        "n, n) mask and (batch, heads, n, n) scores: mask[:, None].",
        mend=PADDED,
        seen=Reference(
            "its kin: a mask without an axis for heads, which fits or fails as the sizes will have it",
            "github.com/hyunwoongko/transformer/issues/32",
        ),
        near=MASKED,
    ),
    Bug(
        name="mask of another text",
        wrong="Heads are folded into the batch in one order and the mask is repeated in the other, so most heads of a "
        "text are masked as another text of the batch should be.",
        hides="With one text, or texts of one length, all masks are the same. Otherwise some padding is read and some "
        "words are not, by an amount that changes with the batch.",
        advice="Heads next to each other need repeat_interleave(n_heads, dim=0), texts next to each other "
        "repeat(n_heads, 1, 1). Best is not to fold: keep (batch, heads, n, n), and give the mask an axis of 1.",
        mend=HIDDEN,
        seen=Reference(
            "CLIP4Clip: the mask of nn.MultiheadAttention was repeated for each head in the wrong order",
            "github.com/ArrowLuo/CLIP4Clip/issues/22",
        ),
        near=rf"\b(repeat|repeat_interleave|tile|expand)\(|{MASKED}",
    ),
    Bug(
        name="empty rows are NaN",
        wrong="A query that may read nothing has only −∞: softmax gives 0/0 = NaN, and NaN reaches every gradient.",
        hides="Causal rows always admit their own token. It needs a sentence of nothing but padding, or a window that "
        "padding fills, and such a batch comes late.",
        advice="Let such rows through softmax unmasked and set their weights to 0 afterwards. nan_to_num mends the "
        "output; where −∞ was added to the scores, their gradient stays NaN.",
        mend={
            "torch": "empty = ~mask.any(-1, keepdim=True)\n"
            'scores = scores.masked_fill(~(mask | empty), float("-inf"))\n'
            "weights = torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)",
            "numpy": "e = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), np.finfo(scores.dtype).min))\n"
            "weights = e / np.maximum(e.sum(-1, keepdims=True), np.finfo(scores.dtype).tiny)",
            "jax": "empty = ~mask.any(-1, keepdims=True)\n"
            "scores = jnp.where(mask | empty, scores, -jnp.inf)\n"
            "weights = jnp.where(empty, 0.0, jax.nn.softmax(scores, axis=-1))",
        },
        seen=Reference(
            "nn.MultiheadAttention: a row that admits nothing turns the gradients into NaN",
            "github.com/pytorch/pytorch/issues/41508",
        ),
        near=rf"{SOFTMAX}|inf\b",
        severity="warning",
    ),
)
