"""Arrays at the door: any library, any rank, and files of safetensors that another reader reads, too."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors.numpy import load as safetensors_load
from safetensors.numpy import save as safetensors_save

from regard.algebra.errors import CallError, KindError
from regard.viewer.arrays import four_axes, from_bfloat16, held, in_words, numpy_of, size_of
from regard.viewer.keeping import mapped

DTYPES = ["float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8"]


def numbers(*shape: int, dtype: Any = "float32") -> Any:
    return np.asarray(10 * np.random.default_rng(0).normal(size=shape)).astype(dtype)


def written(arrays: dict[str, Any]) -> Any:
    held_in = io.BytesIO()
    mapped.write(held_in, arrays)
    return np.frombuffer(held_in.getvalue(), np.uint8)


@pytest.mark.parametrize(("shape", "four"), [((3, 5), (1, 1, 3, 5)), ((2, 3, 5), (1, 2, 3, 5)), ((7, 2, 3, 5),) * 2])
@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor, jnp.asarray, lambda x: x.tolist()])
def test_axes_in_front(shape: Any, four: Any, make: Any) -> None:
    x = numbers(*shape)
    found = four_axes(make(x), "q")
    assert tuple(found.shape) == four
    assert isinstance(found, torch.Tensor if make is torch.as_tensor else np.ndarray)
    np.testing.assert_array_equal(numpy_of(found).reshape(shape), x)


def test_what_is_learned_is_looked_at_without_gradients() -> None:
    assert not held(torch.ones(3, requires_grad=True)).requires_grad


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.ones(3), CallError, "q: .*positions, width.*; got shape \\(3,\\)"),
        (np.ones((1, 1, 1, 2, 3)), CallError, "got shape"),
        (np.ones((2, 3), int), KindError, "real floating numbers; got dtype int64"),
        ("text", KindError, "an array or nested lists"),
    ],
)
def test_other_values_are_refused(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        four_axes(value, "q")


def test_bfloat16_is_exact() -> None:
    x = torch.tensor([[0.1, -3.7e20, float("inf"), 1e-39]], dtype=torch.bfloat16)
    np.testing.assert_array_equal(numpy_of(x).astype(np.float32), x.float().numpy())


def test_bfloat16_without_its_package_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = numbers(2, 3).astype(ml_dtypes.bfloat16)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    found = from_bfloat16(bits.view(np.uint16))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, bits.astype(np.float32))


def test_bytes_in_words() -> None:
    assert [in_words(size) for size in (0, 999, 1500, 51_200_000, 20e9, 3e13)] == [
        "0 B", "999 B", "1.5 kB", "51 MB", "20 GB", "30 TB",
    ]  # fmt: skip
    assert size_of(np.ones((2, 3), np.float16)) == size_of(torch.ones(2, 3, dtype=torch.bfloat16)) == 12


# -- safetensors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_another_reader_reads_the_same(dtype: str) -> None:
    arrays = {"q": numbers(2, 3, 5, dtype=dtype), "table.bias": numbers(7, 2, dtype=dtype), "one": numbers(dtype=dtype)}
    raw = written(arrays)
    for found in (safetensors_load(raw.tobytes()), mapped.read(raw), mapped.read(_by_others(arrays))):
        assert {name: (x.dtype, x.shape) for name, x in found.items()} == {
            name: (x.dtype, x.shape) for name, x in arrays.items()
        }
        for name, x in arrays.items():
            np.testing.assert_array_equal(found[name], x)


def _by_others(arrays: dict[str, Any]) -> Any:
    return np.frombuffer(safetensors_save(arrays), np.uint8)


def test_arrays_that_are_not_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "BLOCK", 5)
    x = numbers(5, 3, 2)
    views = {"moved": x.transpose(2, 0, 1), "reversed": x[::-1], "swapped": x.astype(">f4"), "none": x[:, :0]}
    found = mapped.read(written(views))
    for name, view in views.items():
        np.testing.assert_array_equal(found[name], view)


def test_numbers_begin_where_they_can_be_read_at_once() -> None:
    raw = written({"q": numbers(3)})
    assert int.from_bytes(raw[:8].tobytes(), "little") % 8 == 0


def test_one_array_with_two_names_is_written_once() -> None:
    x, y = numbers(50, 7), numbers(50, 7)
    raw = written({"q": x, "k": x, "v": y})
    assert raw.size < 2.5 * x.nbytes
    found = mapped.read(raw)
    np.testing.assert_array_equal(found["k"], x)
    assert sorted(safetensors_load(raw.tobytes())) == ["q", "v"]


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ([], "a JSON object"),
        ({"q": 3}, "an entry with a dtype"),
        ({"q": {**GOOD, "dtype": "PICKLE"}}, "an entry with a dtype"),
        ({"q": {**GOOD, "dtype": ["F32"]}}, "an entry with a dtype"),
        ({"q": {**GOOD, "shape": [-2]}}, "whole numbers"),
        ({"q": {**GOOD, "shape": [2.0]}}, "whole numbers"),
        ({"q": {**GOOD, "shape": [1] * 9}}, "whole numbers"),
        ({"q": {**GOOD, "data_offsets": [0]}}, "whole numbers"),
        ({"q": {**GOOD, "shape": [3]}}, "12 bytes inside"),
        ({"q": {**GOOD, "data_offsets": [8, 16]}}, "8 bytes inside"),
        ({"q": {**GOOD, "data_offsets": [8, 0]}}, "8 bytes inside"),
        ({"q": {**GOOD, "shape": [2**50, 2**50]}}, "bytes inside"),
        ({"q": {"dtype": "F32", "shape": [0, 2**50, 2**50], "data_offsets": [0, 0]}}, "a shape that an array can have"),
        ({"q": GOOD, "__metadata__": {"k": "other"}}, "other names of arrays"),
        ({"q": GOOD, "__metadata__": 3}, "other names of arrays"),
    ],
)
def test_a_header_that_lies_is_refused(header: Any, words: str) -> None:
    text = json.dumps(header).encode()
    raw = len(text).to_bytes(8, "little") + text + bytes(8)
    with pytest.raises(mapped.StoreError, match=words):
        mapped.read(np.frombuffer(raw, np.uint8))


@pytest.mark.parametrize("raw", [b"", b"1234567", (2**62).to_bytes(8, "little"), (9).to_bytes(8, "little") + b"{}"])
def test_a_file_that_is_cut_off_is_refused(raw: bytes) -> None:
    with pytest.raises(mapped.StoreError, match="safetensors"):
        mapped.read(np.frombuffer(raw, np.uint8))


def test_json_without_end_is_refused() -> None:
    with pytest.raises(mapped.StoreError, match="JSON"):
        mapped.read_json(b"[" * 200_000, "lens.json")
