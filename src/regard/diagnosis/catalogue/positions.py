"""Bugs of the positions: q and k are turned by angles m θ, so that scores see the distance; a cache moves on."""

from __future__ import annotations

from ..bugs import PLACED, Bug, Reference

TURNED = {"any": "q, k = rotate(q, positions), rotate(k, positions)"}
"""Queries and keys are turned by the same angles, values are not."""

MOVED = {
    "torch": "start = cached_k.shape[-2]\npositions = torch.arange(start, start + n, device=q.device)",
    "numpy": "start = cached_k.shape[-2]\npositions = np.arange(start, start + n)",
    "jax": "start = cached_k.shape[-2]\npositions = jnp.arange(start, start + n)",
}
"""New tokens stand behind all that the cache held before they were added."""

JOINED = {
    "torch": "k = torch.cat((cached_k, k), dim=-2)\nv = torch.cat((cached_v, v), dim=-2)",
    "numpy": "k = np.concatenate((cached_k, k), axis=-2)\nv = np.concatenate((cached_v, v), axis=-2)",
    "jax": "k = jnp.concatenate((cached_k, k), axis=-2)\nv = jnp.concatenate((cached_v, v), axis=-2)",
}

BUGS = (
    Bug(
        name="values rotated",
        wrong="The values are turned too. What is mixed then depends on absolute positions: shift the whole sentence, "
        "and the output changes.",
        hides="Absolute positions in the values are information, and on sequences of the trained lengths the model "
        "uses them. It shows on longer ones, and with weights from elsewhere.",
        advice="Turn q and k only. Look for a loop or a map over (q, k, v).",
        mend=TURNED,
        seen=Reference(
            "x-transformers rotated its values as well, a leftover of early experiments",
            "github.com/lucidrains/x-transformers/issues/182",
        ),
        near=PLACED,
    ),
    Bug(
        name="keys rotated alone",
        wrong="Only the keys are turned. Scores depend on the key's absolute position, not on the distance to the "
        "query.",
        hides="Position 0 is not turned, early positions hardly, and absolute positions are of some use: the loss "
        "falls. Long sequences suffer.",
        advice="Turn q with the same angles. Look for a result that is assigned to the wrong name, as in "
        "`k = rotate(q)`, or thrown away.",
        mend=TURNED,
        seen=Reference(
            "vLLM-Omni: the rotated query was assigned to the key, so queries were not turned and keys twice",
            "github.com/vllm-project/vllm-omni/pull/3828",
        ),
        near=PLACED,
    ),
    Bug(
        name="queries rotated alone",
        wrong="Only the queries are turned. Scores depend on the query's absolute position and not on where the key "
        "stands: keys have no order.",
        hides="Without order among keys attention still finds content, and a causal mask tells some order by itself.",
        advice="Turn k with the same angles, before it enters the cache.",
        mend=TURNED,
        seen=Reference(
            "Hunyuan-DiT turns queries alone in its cross-attention; there on purpose, and readers ask what it does",
            "github.com/Tencent-Hunyuan/HunyuanDiT/issues/66",
        ),
        near=PLACED,
    ),
    Bug(
        name="pairs of two kinds",
        wrong="Angles are laid out for neighbours (0, 1), (2, 3), … and the rotation pairs halves (0, d/2), …, or q "
        "and k use different kinds. Two numbers of a pair are turned by different angles, which is no rotation.",
        hides="At position 0 all angles are 0, and at the first positions they are small: the first words look right. "
        "Trained from scratch, the model adapts; loaded weights give noise.",
        advice="One kind throughout. Halves: cat((angles, angles)) with rotate_half. Neighbours: repeat_interleave(2) "
        "with x[..., 0::2] and x[..., 1::2]. Converted weights need the kind that they were trained with.",
        mend={
            "torch": "angles = torch.cat((angles, angles), dim=-1)  # (n, d_head), halves\n"
            "turned = torch.cat((-q[..., d_head // 2 :], q[..., : d_head // 2]), dim=-1)\n"
            "q = q * angles.cos() + turned * angles.sin()",
            "numpy": "angles = np.concatenate((angles, angles), axis=-1)  # (n, d_head), halves\n"
            "turned = np.concatenate((-q[..., d_head // 2 :], q[..., : d_head // 2]), axis=-1)\n"
            "q = q * np.cos(angles) + turned * np.sin(angles)",
            "jax": "angles = jnp.concatenate((angles, angles), axis=-1)  # (n, d_head), halves\n"
            "turned = jnp.concatenate((-q[..., d_head // 2 :], q[..., : d_head // 2]), axis=-1)\n"
            "q = q * jnp.cos(angles) + turned * jnp.sin(angles)",
        },
        seen=Reference(
            "TinyLlama gave gibberish where weights for halves met a rotation of neighbours",
            "github.com/jzhang38/TinyLlama/issues/24",
        ),
        near=rf"{PLACED}|\b(cos|sin)\b|::\s*2|repeat_interleave|view_as_complex|//\s*2",
    ),
    Bug(
        name="positions not moved on",
        wrong="After the prompt, positions start at 0 again: each new token is turned as if it were the first, and its "
        "distance to the cached keys is wrong.",
        hides="Training has no cache and is right, so the loss says nothing. Generated text is fluent for a word or "
        "two and then drifts.",
        advice="Start at the length of the cache. arange(n) over the new tokens is what to look for. Test: a prompt "
        "and then one token must give what the whole sequence gives.",
        mend=MOVED,
        seen=Reference(
            "mlx-vlm: every token that Qwen3-Omni generated had position 0",
            "github.com/Blaizzy/mlx-vlm/issues/1983",
        ),
        near=rf"\barange\(|\brange\(|{PLACED}|position|offset",
    ),
    Bug(
        name="position off by one after prefill",
        wrong="After the prompt, positions are one too high or too low: every distance to the cached keys is off by "
        "one.",
        hides="Training is right, and one position more or less changes little: text stays fluent, and only a "
        "comparison with the whole sequence shows it.",
        advice="Read the length of the cache before the new keys are added to it, once for all layers. Positions "
        "count from 0: after a prompt of n tokens the next one is n.",
        mend=MOVED,
        seen=Reference(
            "flash-linear-attention: the first layer counted the new token, and all layers above were one too far",
            "github.com/fla-org/flash-linear-attention/issues/766",
        ),
        near=rf"\barange\(|[-+]\s*1\b|{PLACED}|position|offset|seq_?len",
    ),
    Bug(
        name="cache on the wrong axis",
        wrong="New keys are joined to the cache along heads or batch, not along positions: nothing old is read, or "
        "heads grow from step to step.",
        hides="Training has no cache. Where it broadcasts, no error is raised either, and the model generates as if it "
        "had no prompt.",
        advice="In (batch, heads, positions, width) positions are axis -2; before the transpose they are axis 1. Join "
        "and measure the length on that axis.",
        mend=JOINED,
        seen=Reference(
            "its kin: a cache was moved on by the number of heads, read from the axis next to positions",
            "github.com/fla-org/flash-linear-attention/issues/126",
        ),
        near=r"\b(cat|concat|concatenate|stack)\(|cache\w*\[|past\w*",
    ),
)
