"""Bugs of behaviour: the formula is right for the one call that was tried, and the function is not."""

from __future__ import annotations

from ..bugs import PRODUCT, RESHAPED, SOFTMAX, Bug, Reference
from .scale import SCALED
from .weights import SHARED

BUGS = (
    Bug(
        name="dropout in evaluation",
        wrong="Weights are dropped in evaluation too: two calls on the same input differ, and every prediction is "
        "noisy.",
        hides="Training is meant to be noisy, and there nothing is wrong. Evaluation is a little worse than it could "
        "be, and nobody knows by how much.",
        advice="Functions do not know the mode: pass training=self.training to F.dropout, and dropout_p=0.0 to "
        "F.scaled_dot_product_attention outside training. A nn.Dropout obeys eval() if it was made in __init__.",
        mend={
            "torch": "y = F.scaled_dot_product_attention(q, k, v, dropout_p=p if self.training else 0.0)",
            "numpy": "if training:\n    weights = weights * (rng.random(weights.shape) >= p) / (1 - p)",
        },
        seen=Reference(
            "PyTorch: scaled_dot_product_attention drops whenever dropout_p is above 0, which surprised many",
            "github.com/pytorch/pytorch/issues/124464",
        ),
        near=r"(?i)drop|bernoulli|random|\brng\b",
    ),
    Bug(
        name="inputs changed in place",
        wrong="The call changes the arrays that it was given: q is scaled or k masked in the caller's memory, and a "
        "second call with the same arrays gives other outputs.",
        hides="In a model q, k and v are fresh at every step and used once. It shows when a cache, a mask or a test "
        "uses them again.",
        advice="Write `q = q * scale`, not `q *= scale`; masked_fill, not masked_fill_; no `scores[...] =` on an array "
        "that came in as an argument.",
        mend={
            "torch": "q = q / math.sqrt(q.shape[-1])",
            "numpy": "q = q / np.sqrt(q.shape[-1])",
        },
        seen=Reference(
            "FlashInfer: a review caught a scale that was multiplied in place and would grow with every call",
            "github.com/flashinfer-ai/flashinfer/pull/2084",
        ),
        near=r"[-+*/]=|\w_\(|\]\s*=[^=]|out\s*=",
    ),
    Bug(
        name="gradient cut",
        wrong="No gradient reaches q, k or v: the projections before them never learn, and stay as they were drawn.",
        hides="Random queries and keys are random features, and all other layers do learn. The loss falls, and stops "
        "early.",
        advice="Look for detach(), .data, .item(), torch.tensor(…) around a tensor, .numpy() and back, no_grad, and "
        "stop_gradient. Check that every parameter has a gradient that is not None and not 0.",
        mend={"torch": SHARED["torch"], "jax": SHARED["jax"]},
        seen=Reference(
            "A-GCN detached its attention matrix, so that two of its weight matrices were never trained",
            "github.com/queenie88/A-GCN/issues/4",
        ),
        near=r"detach|\.data\b|\.item\(|no_grad|inference_mode|\.numpy\(|(torch|jnp)\.(tensor|array)\(|stop_gradient|np\.",
    ),
    Bug(
        name="gradient wrong",
        wrong="The output is right, and the hand-written gradient is not: it differs from what small changes of the "
        "input do to the output.",
        hides="A gradient that points half the right way still goes downhill. Training is slower and ends higher, and "
        "looks like a bad learning rate.",
        advice="Compare with torch.autograd.gradcheck in float64. Usual slips: the row sum of the softmax's gradient, "
        "the scale missing in dq and dk, a transpose in dk or dv, the mask not applied again.",
        mend={
            "torch": "ds = weights * (dw - (dw * weights).sum(-1, keepdim=True))  # dw = dy @ v.transpose(-2, -1)\n"
            "dq = ds @ k / math.sqrt(k.shape[-1])\ndk = ds.transpose(-2, -1) @ q / math.sqrt(k.shape[-1])",
            "numpy": "ds = weights * (dw - (dw * weights).sum(-1, keepdims=True))  # dw = dy @ np.swapaxes(v, -1, -2)\n"
            "dq = ds @ k / np.sqrt(k.shape[-1])\ndk = np.swapaxes(ds, -1, -2) @ q / np.sqrt(k.shape[-1])",
        },
        seen=Reference(
            "diffusers: the backward pass of its cuDNN attention transposed keys and values twice",
            "github.com/huggingface/diffusers/issues/14338",
        ),
        near=r"backward|\bgrad|\bd(q|k|v|s|w|y|p|o)\b|custom_vjp|defvjp",
    ),
    Bug(
        name="batch elements see each other",
        wrong="What one sentence gives depends on the others in its batch: batch and positions are exchanged, or "
        "flattened together.",
        hides="The loss is computed on batches and falls. One sentence at a time, or another order of the batch, "
        "gives other outputs.",
        advice="nn.MultiheadAttention and nn.TransformerEncoderLayer take (positions, batch, width) unless "
        "batch_first=True. Keep the batch as the first axis of every product; do not merge it with positions.",
        mend={
            "torch": "attention = nn.MultiheadAttention(embed_dim, n_heads, batch_first=True)",
            "numpy": SCALED["numpy"],
            "jax": SCALED["jax"],
        },
        seen=Reference(
            "MOSA-Net: batch_first was left at False, and samples of a batch changed each other's results",
            "github.com/dhimasryan/MOSA-Net-Cross-Domain/issues/10",
        ),
        near=rf"MultiheadAttention|TransformerEncoderLayer|batch_first|{RESHAPED}|{SOFTMAX}|{PRODUCT}|\b(mean|sum|max)\(",
    ),
    Bug(
        name="length baked in",
        wrong="The code works for one number of positions and fails, or gives other results, for another.",
        hides="Training cuts everything to one length. The first shorter prompt shows it.",
        advice="Read the length from the input at each call. A stored mask or table is cut to it: mask[:n, :n].",
        mend={
            "torch": "n = x.shape[1]\ncausal = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()",
            "numpy": "n = x.shape[1]\ncausal = np.tril(np.ones((n, n), dtype=bool))",
            "jax": "n = x.shape[1]\ncausal = jnp.tril(jnp.ones((n, n), dtype=bool))",
        },
        seen=Reference(
            "xformers kept a causal mask of the longest length, which overshot shorter sequences",
            "github.com/facebookresearch/xformers/pull/66",
        ),
        near=rf"block_size|max_?(seq_?)?len|seq_?len|context_length|register_buffer|\btri[lu]\(|{RESHAPED}",
    ),
    Bug(
        name="batch size baked in",
        wrong="The code works for one size of batch and fails, or mixes sentences, for another.",
        hides="Training drops the last, smaller batch, so all batches are alike. Inference with one sentence shows it.",
        advice="Read the batch from the input at each call, and let at most one axis of a view be -1. Look for a "
        "number, a squeeze() without an axis, and x[0].",
        mend={
            "torch": "batch, n, _ = x.shape\nq = (x @ Wq).view(batch, n, n_heads, d_head).transpose(1, 2)",
            "numpy": "batch, n, _ = x.shape\nq = np.swapaxes((x @ Wq).reshape(batch, n, n_heads, d_head), 1, 2)",
            "jax": "batch, n, _ = x.shape\nq = jnp.swapaxes((x @ Wq).reshape(batch, n, n_heads, d_head), 1, 2)",
        },
        seen=Reference(
            "STereo TRansformer: its reshapes hold for a batch of one",
            "github.com/mli0603/stereo-transformer/issues/73",
        ),
        near=rf"batch_?size|\bbs\b|squeeze\(|\[0\]|{RESHAPED}",
    ),
    Bug(
        name="not deterministic",
        wrong="Two calls on the same input give different outputs, outside dropout: something is drawn at random in "
        "the call.",
        hides="Each training step looks at other data anyway, so the noise is not noticed, and the loss falls around "
        "it.",
        advice="Make parameters and random features in __init__, not in forward: a nn.Linear made in forward is new, "
        "and untrained, at every call. Draw from a seeded generator.",
        mend={
            "torch": "self.W_q = nn.Linear(embed_dim, embed_dim)  # in __init__, not in forward",
            "numpy": "rng = np.random.default_rng(0)  # once, outside the function",
            "jax": "key = jax.random.key(0)  # once, handed to the function",
        },
        seen=Reference(
            "Performer: random features were drawn anew at each call, in evaluation as well",
            "github.com/lucidrains/performer-pytorch/issues/10",
        ),
        near=r"rand|nn\.Linear\(|nn\.Parameter\(|\bempty\w*\(|default_rng|shuffle",
    ),
    Bug(
        name="returned weights are others",
        wrong="The weights that are returned are not those that mixed the values: before the mask, of one head, a mean "
        "over heads, or computed a second time.",
        hides="The output is right, and the loss with it. Pictures and analyses of the weights are wrong.",
        advice="Return the very array that is multiplied with v, per head, after mask and softmax.",
        mend={"any": "y = weights @ v  # and return these same weights"},
        seen=Reference(
            "fairseq: asked for the weights of each head, its attention returned their mean",
            "github.com/facebookresearch/fairseq/issues/3365",
        ),
        near=rf"\breturn\b|\b(weights|attn|probs)\w*\s*=|\bmean\(|{SOFTMAX}",
    ),
)
