"""Frames of JSON and raw arrays over a pipe, in both directions.

A frame is an 8-byte little-endian length, a JSON text of that length, the bytes of the arrays that the text names, in
order, and a seal of all this. Nothing in a frame can run code when it is read: there is no pickle on this road. This
file stands alone, because it is copied into the sandbox without the rest of the package.

The process that runs a cell holds both pipes, and a cell can find their descriptors. So the grader makes a key for each
process and sends it ahead of any cell; it is kept where code comes by frames and memory alone, and neither a request
nor an answer is believed that has no seal made with it (keyed BLAKE2, RFC 7693), or that comes a second time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import struct
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

KEY_BYTES = 32
SEAL_BYTES = 16
MAX_TEXT_BYTES = 16 * 2**20
MAX_ARRAY_BYTES = 512 * 2**20
MAX_DIMENSIONS = 64
MAX_BITS, MAX_DIGITS = 4096, 1240  # of an integer
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = frozenset(("bool", *_INTEGERS, "float16", "float32", "float64"))


_Read = Callable[[int], bytes]


class WireError(Exception):
    """The other side sent something that is not a frame, or hung up."""


class Readable(Protocol):
    """Something to read exactly `size` bytes from; fewer mean that the other side hung up."""

    def read(self, size: int, /) -> bytes: ...


class Writable(Protocol):
    """Something that takes all of what is written to it."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


Seal = Callable[[], Any]
"""Gives the hash object of the next frame in one direction."""


def sealer(key: bytes, direction: str) -> Seal:
    """Seals of the frames of a pipe, in their order: each holds for its own place in it.

    Args:
        key: `KEY_BYTES` that both sides know.
        direction: a word of at most 16 characters, so that no frame is believed on another road.
    """
    number, blake2b, person = 0, hashlib.blake2b, direction.encode()

    def seal() -> Any:
        nonlocal number
        number += 1
        return blake2b(struct.pack("<Q", number), key=key, person=person, digest_size=SEAL_BYTES)

    return seal


def send(stream: Writable, message: Any, seal: Seal) -> None:
    """Write one message: dicts with text keys, lists, numbers, text, None and NumPy arrays."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_pack(message, arrays)).encode()
    made = seal()
    for data in (struct.pack("<Q", len(text)) + text, *(array.tobytes() for array in arrays)):
        made.update(data)
        stream.write(data)
    stream.write(made.digest())
    stream.flush()


def receive(stream: Readable, seal: Seal) -> Any:
    """Read one message. Raises `WireError` on a closed pipe, a malformed or oversized frame, or another's seal."""
    made = seal()

    def read(size: int) -> bytes:
        data = stream.read(size)
        if data is None or len(data) < size:
            raise WireError("the other side hung up")
        made.update(data)
        return data

    (size,) = struct.unpack("<Q", read(8))
    if size > MAX_TEXT_BYTES:
        raise WireError(f"a frame of {size} bytes is over the limit of {MAX_TEXT_BYTES}")
    try:
        message = json.loads(read(size), parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame that is not JSON: {error}") from None
    message, expected = _unpack(message, read, [MAX_ARRAY_BYTES]), made.digest()
    if not hmac.compare_digest(expected, read(SEAL_BYTES)):
        raise WireError("a frame without the seal of the other side")
    return message


def _whole(digits: str) -> int:
    """To read, or to multiply, numbers of thousands of digits takes minutes in which nobody else here is served."""
    if len(digits) > MAX_DIGITS:
        raise WireError(f"a number of {len(digits)} digits")
    return int(digits)


def _pack(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.name not in DTYPES:
            raise TypeError(f"arrays of dtype {value.dtype} cannot be sent")
        arrays.append(np.ascontiguousarray(value))
        return {"__array__": [value.dtype.name, list(value.shape)]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        if set(value) == {"__array__"}:
            raise TypeError("a dict whose only key is `__array__` cannot be sent")
        return {str(key): _pack(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(item, arrays) for item in value]
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise TypeError(f"an integer of {value.bit_length()} bits cannot be sent")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _unpack(value: Any, read: _Read, budget: list[int]) -> Any:
    # Depth first in the order of the text, which is the order in which `_pack` met the arrays.
    if isinstance(value, dict):
        if set(value) == {"__array__"}:
            return _read_array(value["__array__"], read, budget)
        return {key: _unpack(item, read, budget) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpack(item, read, budget) for item in value]
    return value


def _read_array(description: Any, read: _Read, budget: list[int]) -> np.ndarray:
    try:
        name, shape = description
        is_shape = len(shape) <= MAX_DIMENSIONS and all(
            isinstance(n, int) and 0 <= n <= MAX_ARRAY_BYTES for n in shape
        )
        if name not in DTYPES or not is_shape:
            raise ValueError
        dtype = np.dtype(name)
        size = math.prod(shape) * dtype.itemsize
    except (TypeError, ValueError):
        raise WireError(f"a malformed array description: {description!r}"[:200]) from None
    budget[0] -= size
    if budget[0] < 0:
        raise WireError(f"arrays over the limit of {MAX_ARRAY_BYTES} bytes")
    return np.frombuffer(read(size), dtype=dtype).reshape(shape)
