"""Frames survive the round trip, and nothing malformed gets through."""

import contextlib
import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.engine.sandbox.inside import wire

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8).filter(lambda key: key != "__array__"), inner, max_size=4)
    ),
    max_leaves=12,
)
arrays = hnp.arrays(st.sampled_from([np.float32, np.int64, np.bool_, np.uint8]), hnp.array_shapes(max_side=4))


KEY = bytes(range(wire.KEY_BYTES))


def seal() -> wire.Seal:
    return wire.sealer(KEY, "answer")


def round_trip(message: object) -> object:
    stream = io.BytesIO()
    wire.send(stream, message, seal())
    stream.seek(0)
    answer = wire.receive(stream, seal())
    assert not stream.read()
    return answer


@given(values)
def test_plain_values_come_back(value: object) -> None:
    assert round_trip(value) == value


@given(st.lists(arrays, max_size=4))
def test_arrays_come_back_in_order(items: list[np.ndarray]) -> None:
    answer = round_trip({"first": items, "then": [1, items]})
    assert isinstance(answer, dict)
    for sent, first, second in zip(items, answer["first"], answer["then"][1], strict=True):
        for got in (first, second):
            assert got.dtype == sent.dtype and np.array_equal(got, sent, equal_nan=sent.dtype.kind == "f")


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array(["text"]), np.array([object()]), 1j])
def test_what_is_not_data_is_not_sent(value: object) -> None:
    with pytest.raises(TypeError):
        wire.send(io.BytesIO(), value, seal())


def frame(text: bytes, tail: bytes = b"") -> io.BytesIO:
    return io.BytesIO(struct.pack("<Q", len(text)) + text + tail)


@pytest.mark.parametrize(
    "stream",
    [
        io.BytesIO(b""),
        io.BytesIO(b"\x00"),
        io.BytesIO(struct.pack("<Q", 2**60)),
        frame(b"not json"),
        frame(b"[" * 100_000),
        frame(json.dumps({"__array__": ["object", [2]]}).encode()),
        frame(json.dumps({"__array__": ["float64", [-1]]}).encode()),
        frame(json.dumps({"__array__": ["float64", [2**60]]}).encode()),
        frame(json.dumps({"__array__": "float64"}).encode()),
        frame(json.dumps({"__array__": ["float64", [4]]}).encode(), b"short"),
    ],
)
def test_malformed_frames_raise_wire_error(stream: io.BytesIO) -> None:
    with pytest.raises(wire.WireError):
        wire.receive(stream, seal())


@given(st.binary(max_size=200))
def test_random_bytes_never_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(wire.WireError):
        wire.receive(io.BytesIO(data), seal())


def sent(*messages: object, key: bytes = KEY, direction: str = "answer") -> bytes:
    stream, made = io.BytesIO(), wire.sealer(key, direction)
    for message in messages:
        wire.send(stream, message, made)
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(sent("right", key=bytes(wire.KEY_BYTES)), id="made with another key"),
        pytest.param(sent("right", direction="request"), id="of another road"),
        pytest.param(sent("right").replace(b"right", b"wrong"), id="another text"),
        pytest.param(sent(np.zeros(2))[:-17] + b"\1" + sent(np.zeros(2))[-16:], id="another array"),
        pytest.param(sent("right")[:-16] + bytes(16), id="another seal"),
        pytest.param(sent("right")[:-16], id="no seal"),
        pytest.param(sent("before", "right")[-len(sent("right")) :], id="of another place"),
    ],
)
def test_what_the_other_side_did_not_seal_is_not_believed(data: bytes) -> None:
    with pytest.raises(wire.WireError, match=r"seal|hung up"):
        wire.receive(io.BytesIO(data), seal())


def test_each_frame_comes_once() -> None:
    stream, made = io.BytesIO(2 * sent("right")), seal()
    assert wire.receive(stream, made) == "right"
    with pytest.raises(wire.WireError, match="seal"):
        wire.receive(stream, made)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"__array__": ["float64", [10**300] * 3000]}),
        json.dumps({"__array__": ["float64", [2] * 1000]}),
        json.dumps({"__array__": ["float64", [2**60, 0]]}),
        "1" * 100_000,
    ],
)
def test_no_number_keeps_the_reader_busy(text: str) -> None:
    """What multiplies or reads numbers without end serves nobody else meanwhile."""
    frame = struct.pack("<Q", len(text)) + text.encode()
    with pytest.raises(wire.WireError, match=r"malformed|digits"):  # and not after it was multiplied out
        wire.receive(io.BytesIO(frame + bytes(wire.SEAL_BYTES)), wire.sealer(bytes(wire.KEY_BYTES), "answer"))


@pytest.mark.parametrize("value", [{"__array__": [1]}, 1 << 5000])
def test_what_could_be_taken_for_something_else_is_not_sent(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        wire.send(io.BytesIO(), value, wire.sealer(bytes(wire.KEY_BYTES), "answer"))
