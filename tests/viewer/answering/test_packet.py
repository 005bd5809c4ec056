"""Packets are read as they were written, by anyone who knows three sentences about them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from regard.algebra.errors import RegardError
from regard.viewer.answering.packet import Packet, packed, unpacked

ARRAYS = (
    np.arange(15, dtype=np.float16).reshape(3, 5),
    np.arange(7, dtype=np.uint8),
    np.zeros((0, 4), np.float32),
    -np.arange(6, dtype=np.int32).reshape(1, 2, 3)[:, ::-1],
)


def test_what_is_packed_comes_back() -> None:
    found = unpacked(packed(Packet({"name": "ψ", "parts": [1, {"a": None}]}, ARRAYS)))
    assert found.meta == {"name": "ψ", "parts": [1, {"a": None}]}
    for expected, array in zip(ARRAYS, found.arrays, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("name", ["", "a", "ab", "abc", "abcdefghijk"])
def test_every_array_begins_at_a_multiple_of_eight(name: str) -> None:
    data = packed(Packet({"name": name}, ARRAYS))
    length = int.from_bytes(data[:4], "little")
    assert (4 + length) % 8 == 0
    assert json.loads(data[4 : 4 + length])["arrays"][1] == {"dtype": "u1", "shape": [7]}
    at = 4 + length
    for array in ARRAYS:
        assert data[at : at + array.nbytes] == np.ascontiguousarray(array).tobytes()
        at += -(-array.nbytes // 8) * 8
    assert at == len(data)


def test_numbers_that_json_cannot_say_are_null() -> None:
    meta = {"a": float("nan"), "b": np.float32(0.5), "c": (np.int64(3), np.inf), "d": np.arange(2), "e": {3, 1}}
    found = unpacked(packed(Packet(meta))).meta
    assert found == {"a": None, "b": 0.5, "c": [3, None], "d": [0, 1], "e": [1, 3]}


def test_numbers_of_another_machine_are_turned_round() -> None:
    found = unpacked(packed(Packet({}, (np.arange(3, dtype=">f4"),)))).arrays[0]
    np.testing.assert_array_equal(found, [0, 1, 2])


def test_other_dtypes_and_torn_packets_are_refused() -> None:
    with pytest.raises(RegardError, match="packet: arrays of f2, f4, u1, i4; got float64; convert it"):
        packed(Packet({}, (np.zeros(2),)))
    with pytest.raises(RegardError, match="it was cut off"):
        unpacked(packed(Packet({"a": 1}))[:9])
