"""Frames of JSON and raw arrays over a pipe, in both directions.

A frame is an 8-byte little-endian length, a JSON text of that length, then the bytes of the arrays that the
text names, in order. Nothing in a frame can run code when it is read: there is no pickle on this road. This file
stands alone, because it is copied into the sandbox without the rest of the package.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Protocol

import numpy as np

MAX_TEXT_BYTES = 16 * 2**20
MAX_ARRAY_BYTES = 512 * 2**20
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = frozenset(("bool", *_INTEGERS, "float16", "float32", "float64"))


class WireError(Exception):
    """The other side sent something that is not a frame, or hung up."""


class Readable(Protocol):
    """Something to read exactly `size` bytes from; fewer mean that the other side hung up."""

    def read(self, size: int, /) -> bytes: ...


class Writable(Protocol):
    """Something that takes all of what is written to it."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


def send(stream: Writable, message: Any) -> None:
    """Write one message: dicts with text keys, lists, numbers, text, None and NumPy arrays."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_pack(message, arrays)).encode()
    stream.write(struct.pack("<Q", len(text)) + text)
    for array in arrays:
        stream.write(array.tobytes())
    stream.flush()


def receive(stream: Readable) -> Any:
    """Read one message. Raises `WireError` on a closed pipe or a malformed or oversized frame."""
    (size,) = struct.unpack("<Q", _read(stream, 8))
    if size > MAX_TEXT_BYTES:
        raise WireError(f"a frame of {size} bytes is over the limit of {MAX_TEXT_BYTES}")
    try:
        message = json.loads(_read(stream, size))
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame that is not JSON: {error}") from None
    return _unpack(message, stream, [MAX_ARRAY_BYTES])


def _pack(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.name not in DTYPES:
            raise TypeError(f"arrays of dtype {value.dtype} cannot be sent")
        arrays.append(np.ascontiguousarray(value))
        return {"__array__": [value.dtype.name, list(value.shape)]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _pack(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(item, arrays) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _unpack(value: Any, stream: Readable, budget: list[int]) -> Any:
    # Depth first in the order of the text, which is the order in which `_pack` met the arrays.
    if isinstance(value, dict):
        if set(value) == {"__array__"}:
            return _read_array(value["__array__"], stream, budget)
        return {key: _unpack(item, stream, budget) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpack(item, stream, budget) for item in value]
    return value


def _read_array(description: Any, stream: Readable, budget: list[int]) -> np.ndarray:
    try:
        name, shape = description
        if name not in DTYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError
        dtype = np.dtype(name)
        size = math.prod(shape) * dtype.itemsize
    except (TypeError, ValueError):
        raise WireError(f"a malformed array description: {description!r}"[:200]) from None
    budget[0] -= size
    if budget[0] < 0:
        raise WireError(f"arrays over the limit of {MAX_ARRAY_BYTES} bytes")
    return np.frombuffer(_read(stream, size), dtype=dtype).reshape(shape)


def _read(stream: Readable, size: int) -> bytes:
    data = stream.read(size)
    if data is None or len(data) < size:
        raise WireError("the other side hung up")
    return data
