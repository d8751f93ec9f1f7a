"""Harness of 4.1: files that are no whole checkpoint, such as those that end between two of its records."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner

_MOST_CUTS = 24
_END_OF_ZIP, _END_SIZE = b"PK\x05\x06", 22  # also where a file of `torch.save` ends
_BEGINNINGS = (b"\x80\x02}", b"\x80\x04\x95", b"\x93NUMPY")  # of what pickle and NumPy write
_MOST_BLOCKS = 10_000
_NOTHING = b"\0 \t\r\n"  # what may be missing at an end without a loss


class _Nothing:
    """A part that has nothing to tell."""

    def state_dict(self) -> dict[str, Any]:
        return {}


def ends_of_records(file: bytes) -> list[int]:
    """Where a file can be cut so that what is left may look whole: behind an archive, a pickle, a line or a block."""
    found = {
        at + _END_SIZE + int.from_bytes(file[at + 20 : at + _END_SIZE], "little")
        for at in _places(file, _END_OF_ZIP)
    }
    found |= {at for mark in _BEGINNINGS for at in _places(file, mark)}
    found |= {at + 1 for at in _places(file, b"\n")} if file.isascii() else set()
    for width, order in itertools.product((4, 8), ("little", "big")):
        found |= _ends_of_blocks(file, width, order)
    cuts = sorted(cut for cut in found if 0 < cut < len(file) and file[cut:].strip(_NOTHING))
    few = _MOST_CUTS // 2
    spread = cuts[: -few or None][:: max(1, len(cuts) // few)]
    return sorted({*spread, *cuts[-few:]})


def ones_that_lack(file: bytes) -> dict[str, bytes]:
    """By its name, the same file without one of its entries, if it is a dict that `torch.load` reads safely."""
    with contextlib.suppress(Exception):
        content = torch.load(io.BytesIO(file), weights_only=True)
        if isinstance(content, dict) and len(content) <= _MOST_CUTS:
            found = {}
            for left_out in content:
                blob = io.BytesIO()
                torch.save({name: value for name, value in content.items() if name != left_out}, blob)
                found[repr(left_out)] = blob.getvalue()
            return found
    return {}


def _places(file: bytes, mark: bytes) -> Iterator[int]:
    at = file.find(mark)
    while at >= 0:
        yield at
        at = file.find(mark, at + 1)


def _ends_of_blocks(file: bytes, width: int, order: Any) -> set[int]:
    """Of a file that is nothing but blocks, each behind its length; else empty."""
    ends: set[int] = set()
    at = 0
    while at < len(file) and len(ends) < _MOST_BLOCKS:
        at += width + int.from_bytes(file[at : at + width], order)
        ends.add(at)
    return ends if at == len(file) else set()


def broken_ones_taken(keeper: Any, parts: dict[str, Any], file: np.ndarray, cuts: list[int]) -> list[str]:
    """What a load lets pass without a word: no file at all, an empty one, a part of one, one that lacks a state.

    `parts` are those of another run, and are used up.
    """
    taken, path = [], Path("broken.pt")
    path.unlink(missing_ok=True)
    with contextlib.suppress(Exception):
        learner(**(parts | {"sampler": _Nothing()})).save(path, 1)
    contents: dict[str, bytes | None] = {
        "no file": None,
        "an empty file": b"",
        "half a file": bytes(file[: len(file) // 2]),
    }
    if path.exists():
        contents["a file without the sampler's state"] = path.read_bytes()
    contents |= {f"a file cut off after {cut} of {len(file)} bytes": bytes(file[:cut]) for cut in cuts}
    for name, content in contents.items():
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        try:
            keeper.load(path)
            taken.append(name)
        except Exception:
            continue
    return taken
