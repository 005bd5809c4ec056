"""Models on disk: what was saved comes back, bit for bit; what cannot be is refused with a reason."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from regard import Attention, causal, d, dot, h, i, j, log, share, sigmoid, sqrt, table, window
from regard.algebra.errors import CallError, KindError, MissingExtra
from regard.inputs.positions import (
    NTK,
    ALiBi,
    Buckets,
    DynamicNTK,
    Learned,
    Linear,
    Llama3,
    LongRoPE,
    NoPosition,
    Offsets,
    Position,
    Relative,
    Rotary,
    Scaling,
    Sinusoidal,
    Stretched,
    Sum,
    YaRN,
)  # fmt: skip
from regard.nn import recipes
from regard.nn.bert import BERT
from regard.nn.checkpoints import tensors as files
from regard.nn.encoder_decoder import EncoderDecoder
from regard.nn.feed_forward import GatedFeedForward
from regard.nn.gpt import GPT
from regard.nn.models import Model
from regard.nn.norms import RMSNorm
from regard.nn.recipes import plain, value
from regard.nn.stacks import Decoder, Encoder
from regard.nn.storage import load, save
from regard.nn.style import LLAMA, Style, post_norm
from regard.nn.vit import ViT

V, D, HEADS, ROWS = 13, 12, 3, 7
IDS = torch.arange(2 * ROWS).reshape(2, ROWS) % V
X = torch.randn(2, ROWS, D, generator=torch.Generator().manual_seed(0))
Call = Callable[[Any], Tensor]

# -- every kind of model and of what it is made of -------------------------------------------------------------

POSITIONS: dict[str, Position] = {
    "none": NoPosition(),
    "waves": Sinusoidal(500.0, "halves"),
    "learned": Learned.random(ROWS, D),
    "rotary": Rotary(500.0, width=2, pairs="interleaved"),
    "linear": Rotary(scaling=Linear(2.5)),
    "ntk": Rotary(scaling=NTK(2.0)),
    "dynamic": Rotary(scaling=DynamicNTK(2.0, 5)),
    "yarn": Rotary(scaling=YaRN(2.0, 5, attention_factor=1.25, truncate=False)),
    "llama3": Rotary(scaling=Llama3(2.0, original=5)),
    "stretched": Rotary(scaling=Stretched((1.0, 2.0), 1.5)),
    "longrope": Rotary(scaling=LongRoPE((1.0, 2.0), (1.5, 2.5), 2.0, 5)),
    "alibi": ALiBi(),
    "alibi, both sides": ALiBi(HEADS, abs(i - j) / 2),
    "offsets": Relative.random(HEADS, Offsets(3, sides=1)),
    "buckets": Relative.random(HEADS, Buckets(8, 6)),
    "sum": Learned.random(ROWS, D) + Rotary() + Relative.random(HEADS, Offsets(2)),
}

FORMULAS: dict[str, Any] = {
    "one": Attention(0.1 * dot / sqrt(d), mask=window(3)),
    "several": [Attention(), Attention(dot / sqrt(d) - log(i + 1), sigmoid)],
    "a function": Attention(weight=share(lambda s: s**2 + 0.3)),
}

STYLES = {
    "llama": LLAMA,
    "post-norm": Style(residual=post_norm, epsilon=1e-12, dropout=0.1),
    "mixed": Style(RMSNorm, GatedFeedForward, "relu_squared", 17, bias=False),
}


def gpt(**options: Any) -> GPT:
    return GPT(V, D, 2, HEADS, **options)


def tables() -> dict[str, Tensor]:
    return {
        "bias": nn.Parameter(torch.randn(HEADS, ROWS)),
        "fixed": nn.Parameter(torch.randn(HEADS), requires_grad=False),
        "given": torch.arange(HEADS),
    }


TABLES = Attention(dot / sqrt(d) + table("bias")[h, i - j] * table("fixed")[h] + table("given")[h], mask=causal)

MODELS: dict[str, tuple[Callable[[], Model], Call]] = {
    **{f"position: {name}": (lambda p=p: gpt(position=p), lambda m: m(IDS)) for name, p in POSITIONS.items()},
    **{f"formula: {name}": (lambda f=f: gpt(attention=f), lambda m: m(IDS)) for name, f in FORMULAS.items()},
    **{f"style: {name}": (lambda s=s: gpt(style=s), lambda m: m(IDS)) for name, s in STYLES.items()},
    "untied": (lambda: gpt(tied=False, kv_heads=1, width=10, bias=False), lambda m: m(IDS)),
    "tables": (lambda: gpt(attention=TABLES, tables=tables()), lambda m: m(IDS)),
    "BERT": (lambda: BERT(V, D, 2, HEADS, segments=3), lambda m: m(IDS, lengths=[7, 5])),
    "ViT": (lambda: ViT((6, 4), 2, 5, D, 2, HEADS, channels=1), lambda m: m(X[:, None, :6, :4])),
    "ViT, mean": (lambda: ViT(4, (2, 1), 5, D, 2, HEADS, channels=1, pool="mean"), lambda m: m(X[:, None, :4, :4])),
    "Encoder": (lambda: Encoder(D, 2, HEADS), lambda m: m(X)),
    "Decoder": (lambda: Decoder(D, 2, HEADS, cross=Attention(dot)), lambda m: m(X, memory=X[:, :5])),
    "EncoderDecoder": (lambda: EncoderDecoder((V, 11), D, 2, HEADS), lambda m: m(IDS, IDS[:, :5] % 11)),
    "EncoderDecoder, one vocabulary": (lambda: EncoderDecoder(V, D, 2, HEADS), lambda m: m(IDS, IDS[:, :5])),
}


def trained(make: Callable[[], Model]) -> Model:
    """A model none of whose numbers is what it was made with."""
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def description(model: Model) -> Any:
    return plain(model.made_of)


@pytest.mark.parametrize("name", MODELS)
def test_what_was_saved_comes_back(name: str, tmp_path: Path) -> None:
    make, call = MODELS[name]
    model = trained(make)
    save(model, tmp_path / "model.safetensors")
    before = torch.get_rng_state()
    again = load(tmp_path / "model.safetensors")
    assert torch.equal(torch.get_rng_state(), before), "numbers were drawn and thrown away"
    assert type(again) is type(model)
    assert not again.training
    assert description(again) == description(model)
    assert list(again.state_dict()) == list(model.state_dict())
    for key, tensor in model.state_dict().items():
        assert again.state_dict()[key].dtype == tensor.dtype
        assert torch.equal(again.state_dict()[key], tensor), key
    learned = [(key, p.requires_grad) for key, p in model.named_parameters()]
    assert [(key, p.requires_grad) for key, p in again.named_parameters()] == learned
    assert again.count() == model.count()
    assert torch.equal(call(again), call(model))


@pytest.mark.parametrize("name", ["tables", "untied", "BERT", "EncoderDecoder, one vocabulary"])
def test_saved_twice_is_the_same_file(name: str, tmp_path: Path) -> None:
    save(trained(MODELS[name][0]), tmp_path / "one")
    save(load(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_dtypes_stay(dtype: torch.dtype, tmp_path: Path) -> None:
    model = trained(gpt).to(dtype)
    model.decoder.norm.float()  # several dtypes in one model
    save(model, tmp_path / "m")
    for key, tensor in load(tmp_path / "m").state_dict().items():
        assert tensor.dtype == (torch.float32 if "decoder.norm" in key else dtype)
        assert torch.equal(tensor, model.state_dict()[key])


def test_tied_parameters_are_stored_once_and_stay_one(tmp_path: Path) -> None:
    save(gpt(), tmp_path / "m")
    assert "head.weight" not in safetensors.torch.load_file(tmp_path / "m")
    again = load(tmp_path / "m")
    assert isinstance(again, GPT)
    assert again.head.weight is again.embedding.weight
    both = load_saved(EncoderDecoder(V, D, 1, HEADS), tmp_path)
    assert both.head.weight is both.target.weight is both.source.weight


def load_saved(model: Any, folder: Path) -> Any:
    save(model, folder / "m")
    return load(folder / "m")


@pytest.mark.parametrize("overlap", [V, V - 1, 0])
def test_parameters_that_share_memory_are_stored_apart(overlap: int, tmp_path: Path) -> None:
    model = gpt(tied=False)
    both = torch.randn(2 * V - overlap, D)
    model.embedding.weight, model.head.weight = nn.Parameter(both[:V]), nn.Parameter(both[V - overlap :])
    again = load_saved(model, tmp_path)
    assert torch.equal(again.embedding.weight, both[:V])
    assert torch.equal(again.head.weight, both[V - overlap :])
    assert (tmp_path / "m").stat().st_size < 4 * model.count() + 10_000


def test_a_loaded_model_does_not_need_its_file(tmp_path: Path) -> None:
    model = trained(gpt)
    again = load_saved(model, tmp_path)
    with (tmp_path / "m").open("r+b") as file:
        file.write(bytes((tmp_path / "m").stat().st_size))
    assert torch.equal(again(IDS), model(IDS))


def test_a_loaded_model_learns_on(tmp_path: Path) -> None:
    again = load_saved(gpt(position=Learned.random(ROWS, D)), tmp_path).train()
    again(IDS).sum().backward()
    assert all(parameter.grad is not None for parameter in again.parameters())


def test_model_saves_and_loads_itself(tmp_path: Path) -> None:
    model = gpt()
    model.save(tmp_path / "m")
    assert torch.equal(GPT.load(tmp_path / "m")(IDS), model(IDS))
    with pytest.raises(KindError, match=r"path: holds a BERT; got a GPT in .*; use GPT\.load"):
        BERT.load(tmp_path / "m")


def test_device_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    save(gpt(), tmp_path / "m")
    assert load(tmp_path / "m", device="meta").device.type == "meta"


# -- recipes ---------------------------------------------------------------------------------------------------

above = st.floats(1.0, 1e6, allow_nan=False)
factors = st.lists(above, min_size=1, max_size=4).map(tuple)
scalings = st.one_of(
    st.just(Scaling()),
    st.builds(Linear, above),
    st.builds(NTK, above),
    st.builds(DynamicNTK, above, st.integers(1, 99)),
    st.builds(YaRN, above, st.integers(1, 99), attention_factor=st.none() | above, truncate=st.booleans()),
    st.builds(Llama3, above, original=st.integers(1, 99)),
    st.builds(Stretched, factors, above),
    st.builds(LongRoPE, factors, factors, above, st.integers(2, 99)),
)
parts = st.one_of(
    st.builds(Sinusoidal, above, st.sampled_from(["halves", "interleaved"])),
    st.builds(Rotary, above, st.none() | st.integers(1, 9).map(lambda n: 2 * n), scaling=scalings),
    st.builds(ALiBi, st.sampled_from([None, 12]), st.sampled_from([i - j, abs(i - j), (i - j) * 0.1])),
)
styles = st.builds(
    Style,
    st.sampled_from([RMSNorm, Style.norm]),
    activation=st.sampled_from(["silu", "gelu_tanh"]),
    hidden=st.none() | st.integers(1, 99),
    bias=st.booleans(),
    epsilon=st.floats(1e-12, 1e-3),
)


@settings(max_examples=60)
@given(st.one_of(parts, st.lists(parts, min_size=2, max_size=3).map(lambda each: Sum(tuple(each))), styles))
def test_values_come_back_from_json(made: Any) -> None:
    assert value(json.loads(json.dumps(plain(made)))) == made


def test_a_description_is_readable() -> None:
    told = plain({"attention": Attention(mask=causal), "position": Learned.random(5, 3), "tokens": (7, 11)})
    assert told == {
        "dict": {
            "attention": {"Attention": repr(Attention(mask=causal))},
            "position": {"Learned": {"table": {"array": {"shape": [5, 3], "dtype": "float64", "role": "given"}}}},
            "tokens": {"tuple": [7, 11]},
        }
    }


def test_a_formula_that_reads_as_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "parse", lambda text: Attention(dot))
    with pytest.raises(KindError, match=r"attention: a formula that can be read from its own text; got softmax"):
        plain(Attention(), "attention")


# -- whole or not at all ---------------------------------------------------------------------------------------


def test_an_older_file_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    save(gpt(), path)
    before = path.read_bytes()

    def interrupted(_: Any, filename: Path, metadata: Any) -> None:
        Path(filename).write_bytes(b"half of")
        raise OSError("no space left")

    monkeypatch.setattr(safetensors.torch, "save_file", interrupted)
    with pytest.raises(OSError, match="no space left"):
        save(gpt(), path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["m"]


# -- refusals --------------------------------------------------------------------------------------------------


class OwnNorm(nn.LayerNorm):
    def __init__(self, dim: int, epsilon: float, bias: bool) -> None:
        super().__init__(dim, eps=epsilon, bias=bias)


class OwnModel(GPT):
    pass


def exchanged() -> GPT:
    model = gpt()
    model.head.weight = nn.Parameter(torch.zeros(V, D))
    return model


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: gpt(style=Style(norm=OwnNorm)),
            r"style\.norm: numbers, formulas, .*; got <class '.*OwnNorm'>, .* code",
        ),
        (lambda: gpt(style=Style(residual=lambda x, n, f: f(x))), r"style\.residual: .*; got <function"),
        (lambda: OwnModel(V, D, 1, HEADS), r"model: one of GPT, BERT, .*; got OwnModel; store its state_dict\(\)"),
        (lambda: nn.Linear(2, 3), r"model: one of GPT, .*; got Linear"),
        (exchanged, r"model: as its constructor made it; got head\.weight of shape \(13, 12\) and not None, 1 such"),
    ],
    ids=["own norm", "own residual", "own model", "no model", "exchanged"],
)
def test_what_no_file_can_describe_is_refused(make: Callable[[], Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(KindError, match=text):
        save(make(), tmp_path / "m")
    assert not list(tmp_path.iterdir())


class Compiled(nn.Module):
    """What torch.compile wraps a model in."""

    def __init__(self) -> None:
        super().__init__()
        self._orig_mod = gpt()


def test_a_compiled_model_is_saved_by_itself(tmp_path: Path) -> None:
    with pytest.raises(KindError, match="got Compiled; save the model that was compiled"):
        save(Compiled(), tmp_path / "m")


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(KindError, match=r"path: the file to write; got '.*', a folder; name a file in it"):
        save(gpt(), tmp_path)
    with pytest.raises(CallError, match=r"path: in a folder that is there; got '.*'; make '.*nowhere' first"):
        save(gpt(), tmp_path / "nowhere" / "m")


def whole(folder: Path) -> bytes:
    save(gpt(), folder / "whole")
    return (folder / "whole").read_bytes()


FOREIGN: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "empty": (lambda _: b"", "which is empty"),
    "short": (lambda _: b"abc", "which begins like none"),
    "text": (lambda _: b"Once upon a time, there was a file.", "which begins like none"),
    "header cut": (lambda f: whole(f)[:50], r"which is cut short: it has 50 bytes, its header tells of \d+ or more"),
    "data cut": (lambda f: whole(f)[:-9], r"which is cut short: .*; copy it again"),
    "damaged": (lambda f: whole(f)[:9] + b"!" + whole(f)[10:], "whose header is damaged; copy it again"),
    "GGUF": (lambda _: b"GGUF\x03\x00\x00\x00", "a GGUF file; let transformers read it"),
    "pickle": (lambda _: b"\x80\x02}q\x00.", "a pickle, which may run any code and is never loaded; .*save_file"),
    "too long": (lambda f: whole(f) + b"x", "which is none: "),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_that_are_no_safetensors(name: str, tmp_path: Path) -> None:
    content, text = FOREIGN[name]
    (tmp_path / "m").write_bytes(content(tmp_path))
    with pytest.raises(KindError, match=f"path: a safetensors file; got '.*m', {text}"):
        load(tmp_path / "m")


def test_pickles_are_refused(tmp_path: Path) -> None:
    torch.save(gpt().state_dict(), tmp_path / "m.pt")
    with pytest.raises(KindError, match=r"got '.*m\.pt', a pickle, which may run any code and is never loaded"):
        load(tmp_path / "m.pt")


def test_places_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"path: a safetensors file; got '.*nowhere', which is not there"):
        load(tmp_path / "nowhere")
    with pytest.raises(KindError, match=r"path: a safetensors file; got '.*', a folder; name the file in it"):
        load(tmp_path)


def rewritten(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A saved model whose description was changed."""
    save(gpt(), folder / "m")
    metadata, tensors = files.read(folder / "m")
    told = change(json.loads(metadata["regard"]))
    files.write(folder / "m", tensors, {"regard": told if isinstance(told, str) else json.dumps(told)})
    return folder / "m"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda told: told | {"version": 2}, r"version 1, .*; got version 2 with 'GPT' in .*; read it with the regard"),
        (lambda told: told | {"kind": "RNN"}, r"with one of GPT, .*; got version 1 with 'RNN'"),
        (lambda told: "{", "path: a description in JSON; got another"),
        (lambda told: "[]", "path: a description in JSON; got another"),
        (lambda told: {"version": 1, "kind": "GPT"}, "path: a description that can be read; got another in .*made_of"),
        (
            lambda told: told | {"made_of": {"style": {"Shoe": {}}}},
            "can be read; got another in .*: Shoe: one of tuple",
        ),
        (
            lambda told: told | {"made_of": {"style": {"Style": {"x": 1}}}},
            "can be read; got another in .* argument 'x'",
        ),
        (lambda told: told | {"made_of": {"a": {"Attention": "exec(1)"}}}, "can be read; got another in "),
        (lambda told: told | {"made_of": {}}, "path: a description that can be read; got another in .*tokens"),
        (
            lambda told: told | {"made_of": told["made_of"] | {"tokens": 17}},
            r"tensors as the file describes them; got embedding\.weight of shape \(13, 12\) and not \(17, 12\), 1 such",
        ),
    ],
)
def test_descriptions_that_cannot_be_read(change: Callable[[Any], Any], text: str, tmp_path: Path) -> None:
    path = rewritten(tmp_path, change)
    with pytest.raises(KindError, match=text):
        load(path)


def test_files_of_others_are_told_from_ours(tmp_path: Path) -> None:
    safetensors.torch.save_file({"w": torch.zeros(3)}, tmp_path / "m")
    with pytest.raises(KindError, match=r"a file that save wrote; got .*, which another library wrote; .*from_hugging"):
        load(tmp_path / "m")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtra, match=r"this needs safetensors, .*regard\[hf\]"):
        save(gpt(), tmp_path / "m")
