"""The catalogue of bugs: every text is there, the lines to mend with are right, and the lines at fault are found."""

from __future__ import annotations

import ast
import math
import re
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from regard.algebra.errors import KindError
from regard.algebra.mistakes import MISTAKES
from regard.diagnosis.bugs import SEVERITIES, Bug, Reference
from regard.diagnosis.catalogue import CATALOGUE, GROUPS, joined

WARNINGS = {"empty rows are NaN", "one maximum for all rows", "finite mask value", "mask in the wrong corner"}
TEXTS = "name wrong hides advice near".split()
LIBRARIES = ["torch", "numpy", "jax", "python"]
KEEPS_NO_GRADIENT = {"gradient cut"}  # there is no such line in NumPy
NEUTRAL = ["import torch", "import numpy as np", "def attend(q, k, v):", '"""Attention."""', "", "    pass"]

every_bug = pytest.mark.parametrize("bug", CATALOGUE.values(), ids=CATALOGUE)


# -- texts ---------------------------------------------------------------------------------------------------------


def test_names_are_unique_and_in_the_order_of_the_groups() -> None:
    names = [bug.name for group in GROUPS.values() for bug in group]
    assert names == list(CATALOGUE)
    assert len(set(names)) == len(names)


def test_a_name_that_comes_twice_is_refused() -> None:
    twice = CATALOGUE["no mask"]
    with pytest.raises(KindError, match="catalogue: one bug to a name; got 'no mask' twice"):
        joined([(twice,), (twice,)])


@every_bug
def test_every_text_is_there_and_ends_as_a_sentence(bug: Bug) -> None:
    for name in TEXTS:
        assert getattr(bug, name).strip() == getattr(bug, name) != ""
    for text in (bug.wrong, bug.hides, bug.advice):
        assert text[-1] in ".)"
        assert "  " not in text
        assert len(text) < 330  # it is read in a terminal
    assert bug.hides != bug.wrong != bug.advice


@every_bug
def test_no_two_bugs_share_a_text(bug: Bug) -> None:
    others = [other for other in CATALOGUE.values() if other is not bug]
    assert all(other.wrong != bug.wrong and other.hides != bug.hides for other in others)
    assert all(other.seen.where != bug.seen.where for other in others)


@every_bug
def test_the_reference_is_an_address_and_one_short_line(bug: Bug) -> None:
    assert re.fullmatch(r"github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", bug.seen.where)
    assert "\n" not in bug.seen.title
    assert 15 < len(bug.seen.title) < 110


def test_severities() -> None:
    assert {bug.name for bug in CATALOGUE.values() if bug.severity == "warning"} == WARNINGS
    assert {bug.severity for bug in CATALOGUE.values()} == set(SEVERITIES)
    with pytest.raises(KindError, match="severity: error or warning; got 'fatal' for 'odd'"):
        Bug("odd", "w", "h", "a", {"any": "y = v"}, Reference("t", "w"), "y", severity="fatal")


def test_every_mistake_of_a_formula_has_its_bug() -> None:
    assert {mistake.name for mistake in MISTAKES} <= set(CATALOGUE)


def test_every_mutant_has_its_bug() -> None:
    from regard.diagnosis.mutants import MUTANTS

    assert set(MUTANTS) <= set(CATALOGUE)
    for name, forms in MUTANTS.items():
        assert CATALOGUE[name].mutant == forms


def test_a_bug_can_stand_in_a_set() -> None:
    assert len(set(CATALOGUE.values())) == len(CATALOGUE)


# -- lines to mend with --------------------------------------------------------------------------------------------

BATCH, H, N, D = 2, 3, 5, 4
SOFT = {"atol": 1e-5, "rtol": 1e-5}  # one line goes through float32 on purpose


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_of(flat: Any) -> Any:
    return flat.reshape(BATCH, N, H, D).transpose(0, 2, 1, 3)


def turned(t: Any, positions: Any) -> Any:
    """Turned by halves, as complex numbers: (a + ib) e^(i m θ)."""
    z = (t[..., : D // 2] + 1j * t[..., D // 2 :]) * np.exp(1j * np.outer(positions, THETA))
    return np.concatenate([z.real, z.imag], -1)


THETA = np.array([1.0, 0.1])
X, DY = normal(BATCH, N, H * D), normal(BATCH, H, N, D)
MATRICES = {name: normal(H * D, H * D + i)[:, : H * D] for i, name in enumerate(["Wq", "Wk", "Wv", "Wo"])}
Q, K, V = (heads_of(X @ MATRICES[name]) for name in ["Wq", "Wk", "Wv"])
SCORES = Q @ K.swapaxes(-1, -2) / np.sqrt(D)
CAUSAL = np.tri(N, dtype=bool)
PADDING = np.arange(N) < np.array([[N], [3]])
WEIGHTS = softmax(SCORES)
Y = WEIGHTS @ V
MERGED = Y.transpose(0, 2, 1, 3).reshape(BATCH, N, H * D)
DW = DY @ V.swapaxes(-1, -2)


def hidden(mask: Any) -> Any:
    return np.where(mask, SCORES, -np.inf)


RIGHT: dict[str, list[Any]] = {
    "q": [Q, Q / np.sqrt(D), turned(Q, np.arange(N))],
    "k": [K, turned(K, np.arange(N)), np.concatenate([K, K], -2)],
    "v": [V, X @ MATRICES["Wv"], np.concatenate([V, V], -2)],
    "scores": [SCORES, hidden(CAUSAL), hidden(PADDING[:, None, None, :])],
    "score": [SCORES[0, 0, 0, 0]],
    "row": [hidden(CAUSAL)[0, 0, 1]],
    "weights": [WEIGHTS, softmax(hidden(CAUSAL)), softmax(SCORES[0, 0, 1])],
    "y": [Y, MERGED, WEIGHTS @ (X @ MATRICES["Wv"])[:, None]],
    "y_i": [softmax(SCORES[0, 0, 1]) @ V[0, 0]],
    "out": [MERGED @ MATRICES["Wo"]],
    "causal": [CAUSAL],
    "positions": [N + np.arange(N)],
}
"""What a line may leave under a name."""

FLAT = {
    name: [value.transpose(0, 2, 1, 3).reshape(BATCH, N, H * D)] for name, value in {"q": Q, "k": K, "v": V}.items()
}


def convert(library: str, value: Any) -> Any:
    if library == "torch":
        return torch.as_tensor(value)
    return jnp.asarray(value) if library == "jax" else np.array(value)


def rotate(library: str) -> Any:
    return lambda t, positions: convert(library, turned(np.asarray(t), np.asarray(positions)))


def world(library: str, merged: bool) -> dict[str, Any]:
    """The names that a line may read, in the library's own arrays."""
    y = MERGED if merged else Y
    arrays = {"x": X, "q": Q, "k": K, "v": V, "scores": SCORES, "weights": WEIGHTS, "y": y, "dw": DW, **MATRICES}
    arrays |= {"mask": CAUSAL, "padding": PADDING, "cached_k": K, "cached_v": V, "positions": np.arange(N)}
    arrays |= {"angles": np.outer(np.arange(N), THETA)}
    sizes = {"batch": BATCH, "n": N, "n_q": N, "n_k": N, "n_heads": H, "n_kv_heads": H, "d_head": D, "embed_dim": H * D}
    modules = {"math": math, "np": np, "torch": torch, "F": functional, "nn": nn, "jax": jax, "jnp": jnp}
    rest = {"self": SimpleNamespace(training=False), "training": False, "p": 0.5, "rotate": rotate(library)}
    return {name: convert(library, value) for name, value in arrays.items()} | sizes | modules | rest


def plain_world() -> dict[str, Any]:
    """The same for pure Python: query 1 of the first head."""
    row, weights = SCORES[0, 0, 1].tolist(), softmax(SCORES[0, 0, 1]).tolist()
    lists = {"q_i": Q[0, 0, 0].tolist(), "k_j": K[0, 0, 0].tolist(), "v": V[0, 0].tolist(), "row": row}
    return lists | {"weights": weights, "mask_row": CAUSAL[1].tolist(), "math": math, "i": 1, "n_q": N, "n_k": N}


def left_by(lines: str, names: dict[str, Any]) -> dict[str, Any]:
    """What the lines assign."""
    before = dict(names)
    exec(compile(ast.parse(lines), "<mend>", "exec"), names)
    return {name: value for name, value in names.items() if name != "__builtins__" and value is not before.get(name)}


def fits(value: Any, expected: list[Any]) -> bool:
    value = np.asarray(value)
    return any(value.shape == np.shape(right) and np.allclose(value, right, **SOFT) for right in expected)


MENDS = [(bug.name, library) for bug in CATALOGUE.values() for library in bug.mend]


@every_bug
def test_every_library_has_lines_to_mend_with(bug: Bug) -> None:
    assert set(bug.mend) <= {*LIBRARIES, "any"}
    assert all(bug.mended(library) for library in LIBRARIES)
    needed = {"torch"} if bug.name in KEEPS_NO_GRADIENT else {"torch", "numpy"}
    assert "any" in bug.mend or needed <= set(bug.mend)


@pytest.mark.parametrize(("name", "library"), MENDS)
def test_lines_to_mend_with_are_python_and_at_most_three(name: str, library: str) -> None:
    lines = CATALOGUE[name].mend[library]
    assert ast.parse(lines).body
    assert len(lines.split("\n")) <= 3
    assert max(map(len, lines.split("\n"))) < 120


@pytest.mark.parametrize(("name", "library"), MENDS)
def test_lines_to_mend_with_compute_what_is_right(name: str, library: str) -> None:
    lines = CATALOGUE[name].mend[library]
    for kind in LIBRARIES[:3] if library == "any" else [library]:
        names = plain_world() if kind == "python" else world(kind, merged=lines.startswith("out"))
        for found, value in left_by(lines, names).items():
            right = RIGHT.get(found, []) + (FLAT.get(found, []) if library == "any" else [])
            assert found not in RIGHT or fits(value, right), f"{found} in {kind}"


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_the_gradient_to_mend_with_is_that_of_autograd(library: str) -> None:
    q, k, v = (torch.tensor(part, requires_grad=True) for part in (Q, K, V))
    dq, dk = torch.autograd.grad(functional.scaled_dot_product_attention(q, k, v), (q, k), torch.as_tensor(DY))
    found = left_by(CATALOGUE["gradient wrong"].mend[library], world(library, merged=False))
    assert np.allclose(found["dq"], dq)
    assert np.allclose(found["dk"], dk)


@pytest.mark.parametrize("library", ["torch", "numpy", "jax"])
def test_groups_to_mend_with_stay_together(library: str) -> None:
    names = world(library, merged=False) | {"k": convert(library, K[:, :2]), "n_heads": 4, "n_kv_heads": 2}
    found = left_by(CATALOGUE["groups repeated in the wrong order"].mend[library], names)
    assert np.array_equal(found["k"], K[:, [0, 0, 1, 1]])


@pytest.mark.parametrize("library", ["torch", "numpy", "jax"])
def test_empty_rows_to_mend_with_are_zero(library: str) -> None:
    mask = CAUSAL & (np.arange(N)[:, None] != 2)
    names = world(library, merged=False) | {"mask": convert(library, mask)}
    names["scores"] = convert(library, hidden(mask) if library == "numpy" else SCORES)
    found = np.asarray(left_by(CATALOGUE["empty rows are NaN"].mend[library], names)["weights"])
    assert (found[:, :, 2] == 0).all()
    assert np.allclose(found[:, :, 3], softmax(hidden(mask)[:, :, 3]), **SOFT)


def test_empty_rows_to_mend_with_keep_gradients_finite() -> None:
    """nan_to_num does not, after a mask that was added: the advice says so."""
    mask, gradients = torch.as_tensor(CAUSAL & (np.arange(N)[:, None] != 2)), {}
    for name in ["mended", "nan_to_num"]:
        scores = torch.tensor(SCORES, requires_grad=True)
        names = world("torch", merged=False) | {"mask": mask, "scores": scores}
        if name == "mended":
            weights = left_by(CATALOGUE["empty rows are NaN"].mend["torch"], names)["weights"]
        else:
            weights = torch.softmax(scores + torch.where(mask, 0.0, -math.inf), -1).nan_to_num(0.0)
        (gradients[name],) = torch.autograd.grad((weights * torch.as_tensor(normal(BATCH, H, N, N))).sum(), scores)
    assert gradients["mended"].isfinite().all()
    assert gradients["nan_to_num"].isnan().any()


# -- lines at fault ------------------------------------------------------------------------------------------------

FAULTS: dict[str, list[str]] = {
    "no root of d": ["scores = q @ k.transpose(-2, -1)", "s = sum(a * b for a, b in zip(q_i, k_j))"],
    "d for its root": ["scores = torch.matmul(q, k.mT) / d_k", "    att = att / self.head_dim"],
    "root of the model width": ["self.scale = embed_dim ** -0.5", "scores = scores / math.sqrt(C)"],
    "model width for its root": ["scores = Q @ K.T / d_model", "energy = energy / self.embed_size"],
    "root of the value width": ["scale = v.shape[-1] ** -0.5", "scores = scores / math.sqrt(v.size(-1))"],
    "root of the length": ["scores = q @ k.T / np.sqrt(len(k))", "scale = 1 / math.sqrt(x.shape[1])"],
    "times the root of d": ["scores = scores / keys.shape[-1] ** -0.5", "scores = scores * math.sqrt(d)"],
    "scale after the weights": ["w = F.softmax(scores, dim=-1) / math.sqrt(d)", "att = att.softmax(-1) * self.scale"],
    "wrong scale": ['scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.5', "self.scale = 8"],
    "softmax over queries": ["weights = torch.softmax(scores, dim=-2)", "w = e / np.exp(s).sum(0)"],
    "softmax over heads": ["attn = F.softmax(scores, dim=1)", "w = F.softmax(scores.flatten(2), dim=-1)"],
    "softmax over the batch": ["self.softmax = nn.Softmax(dim=0)", "w = jax.nn.softmax(s, axis=0)"],
    "softmax over all pairs": ["w = np.exp(s) / np.exp(s).sum()", "w = e / np.sum(e)"],
    "softmax twice": ["weights = F.softmax(weights, dim=-1)", "p = nn.Softmax(dim=-1)(p)"],
    "logarithm of the weights": ["w = F.log_softmax(scores, dim=-1)", "w = nn.LogSoftmax(dim=-1)(scores)"],
    "no total": ["weights = torch.exp(scores)", "w = (s - m).exp()"],
    "scores as weights": ["y = scores @ v", "F.softmax(scores, dim=-1)"],
    "weights transposed": ["y = weights.transpose(-2, -1) @ v", 'y = torch.einsum("bhij,bhid->bhjd", w, v)'],
    "maximum over queries": ["e = np.exp(s - s.max(axis=-2, keepdims=True))", "m = scores.max(axis=1)"],
    "mask after the weights": ["weights = weights.masked_fill(~mask, 0)", "attn = attn * mask"],
    "inverted mask": ["scores = scores.masked_fill(mask, -math.inf)", "mask = torch.triu(torch.ones(n, n))"],
    "strict mask": ["mask = torch.tril(torch.ones(n, n), diagonal=-1)", "row = [s if j < i else NEG for j, s in row]"],
    "shifted mask": ["mask = np.tril(np.ones((n, n)), 1)", "allowed = j <= i + 1"],
    "0/1 mask added": ["scores = scores + mask", "scores += attention_mask"],
    "hidden scores set to 0": ["scores = scores * mask", "scores = np.where(mask, scores, 0)"],
    "finite mask value": ["scores = scores.masked_fill(mask == 0, -1e9)", "scores = scores + (1 - m) * -10000.0"],
    "no mask": ["scores.masked_fill(~mask, -math.inf)", "y = F.scaled_dot_product_attention(q, k, v)"],
    "query and key exchanged": ["scores = np.where(mask.T, scores, -np.inf)", "scores = scores + bias.mT"],
    "mask in the wrong corner": [
        "mask = torch.ones(n_q, n_k).tril()",
        "mask = np.arange(n_k) <= np.arange(n_q)[:, None]",
    ],
    "padding on queries": ["mask = padding[:, None, :, None]", "pad = pad.unsqueeze(1).unsqueeze(3)"],
    "mask broadcast by accident": [
        "scores = scores.masked_fill(~padding_mask, -math.inf)",
        "s = np.where(mask, s, NEG)",
    ],
    "mask of another text": ["mask = mask.repeat(n_heads, 1, 1)", "mask = np.tile(mask, (h, 1, 1))"],
    "empty rows are NaN": ["weights = torch.softmax(scores, dim=-1)", "scores = np.where(m, scores, -np.inf)"],
    "heads split without transpose": ["q = q.view(batch, n_heads, n, d_head)", "q = q.reshape(B, H, N, -1)"],
    "heads merged without transpose": ["y = y.reshape(batch, n, -1)", "out = y.contiguous().view(B, N, C)"],
    "heads attend to heads": ["q = q.view(B, N, H, d)", "y = F.scaled_dot_product_attention(q, k, v)"],
    "groups repeated in the wrong order": ["k = k.repeat(1, groups, 1, 1)", "k = jnp.tile(k, (1, groups, 1, 1))"],
    "heads averaged": ["y = y.mean(1)", "    out += head(x)"],
    "key not transposed": ["scores = q @ k", "scores = np.matmul(q, k) / 2"],
    "queries and keys swapped": ["scores = k @ q.transpose(-2, -1)", "k, q, v = self.qkv(x).chunk(3, -1)"],
    "values from the input": ["y = weights @ x", "v = x"],
    "values from the keys": ["v = self.k_proj(x)", "y = weights @ k"],
    "values from the queries": ["v = self.q_proj(x)", "y = weights @ q"],
    "keys from the queries": ["k = self.q_proj(x)", "K = x @ Wq"],
    "weights never used": ["return v", "y = v"],
    "output projection forgotten": ["return y.transpose(1, 2).reshape(B, N, C)", "y = torch.cat(heads, dim=-1)"],
    "output projection per head": ["y = self.out_proj(y)", "y = y @ Wo"],
    "values rotated": ["v = apply_rotary(v, cos, sin)", "q, k, v = map(self.rope, (q, k, v))"],
    "keys rotated alone": ["k = self.rotary_emb(k)", "k = rotate(q, positions)"],
    "queries rotated alone": ["q = apply_rope(q, angles)", "q = rotary(q)"],
    "pairs of two kinds": ["x1, x2 = x[..., ::2], x[..., 1::2]", "cos = angles.cos().repeat_interleave(2, -1)"],
    "positions not moved on": ["positions = torch.arange(x.shape[1])", "q = self.rope(q)"],
    "position off by one after prefill": ["positions = torch.arange(past + 1, past + 1 + n)", "offset = cache_len - 1"],
    "cache on the wrong axis": ["k = torch.cat([self.cache_k, k], dim=1)", "k = np.concatenate((past_k, k), axis=1)"],
    "no maximum subtracted": ["e = torch.exp(scores)", "exps = [math.exp(s) for s in row]"],
    "one maximum for all rows": ["e = np.exp(s - s.max())", "m = np.max(scores)"],
    "low precision inside": ["scores = (q.half() @ k.half().mT)", "s = s.astype(np.float16)"],
    "dropout in evaluation": ["w = F.dropout(w, 0.1)", "keep = np.random.rand(*w.shape) > p"],
    "inputs changed in place": ["q *= scale", "scores = q.div_(8) @ k.mT"],
    "gradient cut": ["w = torch.softmax(s, -1).detach()", "s = q.data @ k.mT"],
    "gradient wrong": ["def backward(ctx, dy):", "    dq = ds @ k"],
    "batch elements see each other": ["self.attn = nn.MultiheadAttention(C, H)", "x = x.reshape(-1, C)"],
    "length baked in": ["mask = self.tril[:block_size]", "q = q.view(B, 128, H, d)"],
    "batch size baked in": ["q = q.view(32, -1, H, d)", "x = x.squeeze()"],
    "not deterministic": ["W = nn.Linear(C, C)", "W = np.random.randn(C, C)"],
    "returned weights are others": ["return y, F.softmax(q @ k.mT, -1)", "return y, weights.mean(1)"],
}


def test_every_bug_has_lines_at_fault() -> None:
    assert list(FAULTS) == list(CATALOGUE)


@every_bug
def test_lines_at_fault_are_found(bug: Bug) -> None:
    for line in FAULTS[bug.name]:
        assert ast.parse(line.strip() + (" pass" if line.endswith(":") else ""))
        assert re.search(bug.near, line), line


@every_bug
def test_lines_that_say_nothing_are_not_found(bug: Bug) -> None:
    assert [line for line in NEUTRAL if re.search(bug.near, line)] == []
