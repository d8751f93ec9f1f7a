"""Harness of 4.1: what a stranger makes of a learner's file, with a planted call wherever a load might run one."""

from __future__ import annotations

import base64
import bz2
import contextlib
import copy
import gzip
import io
import itertools
import json
import logging
import lzma
import os
import pickle
import random
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_04.harness.small_run import SmallRun

_MOST_FILES = 60
_MOST_LAYERS = 4  # of what lies in what: a pickle in base64 in a tensor in a file
_MADE = "planted-was-run"
# Finds its way without any name being given to it, as where `eval` gets no builtins.
_CALL = (
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
    f".__init__.__globals__['mkdir']('{_MADE}')"
)
_LAYERS: tuple[tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]], ...] = (
    (zlib.decompress, zlib.compress),
    (gzip.decompress, gzip.compress),
    (bz2.decompress, bz2.compress),
    (lzma.decompress, lzma.compress),
    (lambda blob: base64.b64decode(blob, validate=True), base64.b64encode),
    (lambda blob: bytes.fromhex(blob.decode()), lambda blob: blob.hex().encode()),
)
_Changed = Iterator[tuple[str, Any]]


class _Planted:
    """An object whose pickle makes a file or folder when it is read, and its text when it is run: it stands for any
    code. Some of what can do that belongs to the very libraries that a load needs."""

    def __init__(self, call: Callable[..., object] = os.mkdir, *arguments: object) -> None:
        self.call, self.arguments = call, arguments or (_MADE,)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call, self.arguments

    def __repr__(self) -> str:
        return _CALL

    def state_dict(self) -> dict[str, Any]:
        return {"planted": self}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def _saved(content: object) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def _array_file() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([_Planted()], dtype=object), allow_pickle=True)
    return file.getvalue()


def _named(module: str, name: str, argument: str = _MADE) -> bytes:
    """A file of `torch.save` whose pickle calls this, by the name that Python has for it now; a module may have
    imported others itself."""
    words = [b"\x8c" + bytes([len(word)]) + word.encode() for word in (module, name, argument)]
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_saved({}))) as found, zipfile.ZipFile(file, "w") as made:
        for member in found.namelist():
            planted = b"\x80\x04" + words[0] + words[1] + b"\x93" + words[2] + b"\x85R."
            made.writestr(member, planted if member.endswith("data.pkl") else found.read(member))
    return file.getvalue()


def foreign_files(file: np.ndarray) -> list[dict[str, Any]]:
    """In a worker of ours: files that are nothing but a planted call, then the learner's own, a call in each place.

    `kind` says which means of a load would run it: "pickle" of a whole file, one "inside", or "text".
    """
    names = (
        "model",
        "optimizer",
        "scheduler",
        "scaler",
        "sampler",
        "step",
        "rng",
        "python",
        "numpy",
        "torch",
    )
    others = [
        _Planted(np.savetxt, _MADE, [1.0]),
        _Planted(torch.save, 1, _MADE),
        _Planted(logging.FileHandler, _MADE),
        _Planted(eval, _CALL),
    ]
    whole = [_saved(dict.fromkeys(names, planted)) for planted in (_Planted(), *others)]
    whole += [*map(pickle.dumps, (_Planted(), *others)), _array_file()]
    whole += [_named("torch", "os.mkdir"), _named("random", "_os.mkdir"), _named("builtins", "eval", _CALL)]
    found = [("pickle", blob) for blob in whole]
    found += itertools.islice(_of_bytes(file.tobytes(), 0), _MOST_FILES)
    return [{"kind": kind, "file": np.frombuffer(blob, np.uint8)} for kind, blob in found]


def _of_bytes(blob: bytes, depth: int) -> _Changed:
    if depth > _MOST_LAYERS or not blob:
        return
    if blob.startswith((b"\x80", b"PK", b"\x93NUMPY")):
        yield "inside", _array_file() if blob[0] == 0x93 else pickle.dumps(_Planted())
    if blob.startswith(b"PK"):
        yield "inside", _saved(_Planted())
        yield from _of_zip(blob, depth)
    for take_off, put_on in _LAYERS:
        with contextlib.suppress(Exception):
            inner = take_off(blob)
            for kind, changed in _of_bytes(inner, depth + 1):
                yield kind, put_on(changed)
    with contextlib.suppress(ValueError):
        text = blob.decode()
        yield "text", _CALL.encode()
        for kind, changed in _of_value(json.loads(text), depth + 1):
            yield kind, json.dumps(changed).encode()


def _of_zip(blob: bytes, depth: int) -> _Changed:
    with contextlib.suppress(Exception):
        for kind, changed in _of_value(torch.load(io.BytesIO(blob), weights_only=True), depth + 1):
            yield kind, _saved(changed)
        return
    with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(blob)) as found:
        members = {name: found.read(name) for name in found.namelist()}
        for name, member in members.items():
            for kind, changed in _of_bytes(member, depth + 1):
                file = io.BytesIO()
                with zipfile.ZipFile(file, "w") as made:
                    for other, content in (members | {name: changed}).items():
                        made.writestr(other, content)
                yield kind, file.getvalue()


def _of_value(value: Any, depth: int) -> _Changed:
    """The same value with a planted call in one place after the other."""
    if isinstance(value, str):
        for kind, changed in _of_bytes(value.encode(), depth):
            with contextlib.suppress(ValueError):
                yield kind, changed.decode()
    elif isinstance(value, bytes | bytearray):
        for kind, changed in _of_bytes(bytes(value), depth):
            yield kind, type(value)(changed)
    elif isinstance(value, torch.Tensor):
        if not value.is_floating_point() and value.dim() == 1:
            for kind, changed in _of_value(value.tolist(), depth):
                yield kind, torch.tensor(changed, dtype=value.dtype)
    elif isinstance(value, list | tuple) and value and all(type(v) is int and 0 <= v < 256 for v in value):
        for kind, changed in _of_bytes(bytes(value), depth):
            yield kind, type(value)(changed)
    elif isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            for kind, changed in _of_value(item, depth):
                whole = list(value) if isinstance(value, tuple) else copy.copy(value)
                whole[key] = changed
                yield kind, tuple(whole) if isinstance(value, tuple) else whole


def load_foreign(seed: int, files: list[np.ndarray]) -> dict[str, Any]:
    """For each file whether loading it ran what stands in it; "own": so of files that the learner's own save made.

    A stranger can have that too, with a planted part or a planted generator in the run: a checksum or a secret word in
    the file is then the right one.
    """
    parts, path = SmallRun(seed, seed).parts(), Path("foreign.pt")
    keeper, ran = learner(**parts), []
    for file in files:
        path.write_bytes(file.tobytes())
        ran.append(_runs(keeper, path))
    own = []
    for name in (*parts, "random", "numpy"):
        path.unlink(missing_ok=True)
        planted = {key: _Planted() if key == name else part for key, part in parts.items()}
        with contextlib.suppress(Exception), _planted_generator(name):
            learner(**planted).save(path, 1)
        own += ["own"] if path.exists() and _runs(keeper, path) else []
    return {"ran": ran, "own": own}


def _runs(keeper: Any, path: Path) -> bool:
    made = Path(_MADE)
    with contextlib.suppress(Exception):  # a refusal is what we hope for
        keeper.load(path)
    if is_made := made.exists():
        made.rmdir() if made.is_dir() else made.unlink()
    return is_made


@contextlib.contextmanager
def _planted_generator(name: str) -> Iterator[None]:
    """The generator of this name, if it is one, says as its state something planted."""
    modules = {"random": (random, "getstate"), "numpy": (np.random, "get_state")}
    module, function = modules.get(name, (None, ""))
    if module is None:
        yield
        return
    real = getattr(module, function)
    state = list(real())

    def planted(*_: Any, **__: Any) -> tuple[Any, ...]:
        return (*state[:-1], _Planted())

    setattr(module, function, planted)
    try:
        yield
    finally:
        setattr(module, function, real)


def reads_safely(file: np.ndarray) -> bool:
    """In a worker of ours: whether `torch.load(weights_only=True)` reads the file, or it is no pickle at all."""
    try:
        torch.load(io.BytesIO(file.tobytes()), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return False
    except Exception:  # another format: nothing to unpickle
        return True
    return True
