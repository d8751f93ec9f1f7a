"""Harness of 4.2: saves that are killed, and looked at between any two calls to the system."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_04.harness.disk import (
    FOLDER,
    expect,
    is_synced,
    renamed,
)
from autograder.lessons.lesson_04.harness.tracing import forked, stops

# Such as one that another process is just writing.
_OTHERS = ("best.pt", "best.pt.tmp", "last.pt.json", "last.best.pt.tmp", "last-2.pt", ".best.pt.swp")
_SMALL: tuple[dict[str, Any], ...] = ({}, {"step": 0})
_MAX_SEEN = 12  # different contents of the file; what is wrong shows in the first few


def _content(seed: int, version: int) -> dict[str, Any]:
    """A checkpoint of about 128 kB; each version differs from the others everywhere, but in step and size by twos."""
    weight = np.random.default_rng([seed, version]).random(
        (64 - 8 * (version // 2 % 3), 512), dtype=np.float32
    )
    model, moments = torch.from_numpy(weight), torch.from_numpy(weight[::-1, :16].copy())
    plain = {
        "lr": 1e-3,
        "name": "Adam\u2009W\n",
        "betas": [0.9, -0.0],
        "amsgrad": False,
        "best": None,
        "scores": [],
    }
    half: dict[Any, Any] = {
        "bias": moments[0].bfloat16(),
        "count": torch.tensor(version),
        "mask": moments[:, 0] > 0.5,
    }
    half |= {
        "": moments[1].half(),
        "bytes": moments[2].clone().view(torch.uint8),
        "none": torch.zeros(0, 3),
        -1: [[], [2**70]],
    }
    return {
        "step": version // 2,
        "note": None,
        "model": {"weight": model, "half": half, "loss": float("inf"), "worst": float("nan")},
        "optimizer": {"moments": moments.double(), "groups": [plain, {0: moments[:2].t(), 1: {}}]},
    }


def _are_equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, float):
        return repr(one) == repr(other)  # NaN is NaN, and -0.0 not 0.0
    if isinstance(one, dict):
        return list(one) == list(other) and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return bool(one == other)


def _version(file: np.ndarray, seed: int) -> int:
    """Which version the file holds, whole and unchanged; -1 for none. Asked of a worker of ours alone."""
    path = Path("looked-at.pt")
    path.write_bytes(file.tobytes())
    with contextlib.suppress(Exception):
        found = torch.load(path, map_location="cpu", weights_only=True)
        version = int(found["model"]["half"]["count"])
        if _are_equal(found, _content(seed, version)):
            return version
    return -1


def versions(files: list[np.ndarray], seed: int) -> list[int]:
    """In a worker of ours: the version in each file."""
    return [_version(file, seed) for file in files]


def are_read(files: list[np.ndarray]) -> list[bool]:
    """In a worker of ours: whether each of the small checkpoints is in its file."""
    path, found = Path("looked-at.pt"), []
    for file, small in zip(files, _SMALL, strict=True):
        path.write_bytes(file.tobytes())
        try:
            found.append(torch.load(path, weights_only=True) == small)
        except Exception:
            found.append(False)
    return found


def _read(path: Path) -> np.ndarray:
    """The file as whoever comes after a kill finds it; empty when there is none."""
    with contextlib.suppress(OSError):
        return np.frombuffer(path.read_bytes(), np.uint8)
    return np.zeros(0, np.uint8)


def _as_file(content: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def _begin(seed: int, name: str = "last.pt") -> Path:
    """A folder with an older checkpoint of this name, and another one beside it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    path = FOLDER / name
    path.write_bytes(_as_file(_content(seed, 0)))
    for other in _OTHERS:
        (FOLDER / other).write_bytes(b"another checkpoint")
    expect(path)
    return path


def _beside(*paths: Path) -> list[str]:
    return sorted({path.name for path in FOLDER.iterdir()} - {*_OTHERS, *(path.name for path in paths)})


def _changed_others() -> list[str]:
    """Which of the other files are no longer what they were."""
    return [name for name in _OTHERS if _read(FOLDER / name).tobytes() != b"another checkpoint"]


def save_thrice(seed: int) -> dict[str, Any]:
    """Saves in a row, the first where there is no file yet: what is there after each, and what was forced to the disk.

    It is one dict whose content changes, as a training's does. The second time the path is absolute, the third time it
    is a bare name. "changed" are the versions whose dict was another one afterwards, negative where the working folder
    was.
    """
    path, content = _begin(seed, "last.pt"), _content(seed, 0)
    path.unlink()
    files, synced, early, seconds, changed = [], [], [], [], []
    home = Path.cwd()
    for version in (1, 2, 3):
        content.clear()
        content |= _content(seed, version)
        given = {1: path.relative_to(home), 2: path, 3: Path(path.name)}[version]
        os.chdir(FOLDER if version == 3 else home)
        expect(path)
        start = time.perf_counter()
        learner(content, given)
        seconds.append(time.perf_counter() - start)
        if Path.cwd() != (FOLDER if version == 3 else home):
            changed.append(-version)
        os.chdir(home)
        if not _are_equal(content, _content(seed, version)):
            changed.append(version)
        files.append(_read(path))
        is_on_disk, was_before = is_synced(path)
        synced.append(is_on_disk)
        early.append(was_before)
    return {
        "files": files,
        "beside": _beside(path),
        "others": _changed_others(),
        "changed": changed,
        "synced": synced,
        "early": early,
        "seconds": min(seconds),
    }


def save_small(seed: int) -> dict[str, Any]:
    """Saves of almost nothing, and of nothing: the files, and whether they were forced to the disk first."""
    path, files, are_synced = _begin(seed), [], []
    for content in _SMALL:
        expect(path)
        learner(dict(content), path)
        files.append(_read(path))
        are_synced.append(all(is_synced(path)))
    return {"files": files, "synced": are_synced}


def kill_saves(seed: int, num_kills: int, longest: float) -> dict[str, Any]:
    """Children that save without end, each killed after a random time: the file that each leaves, and what it may be.

    Each child tells through a pipe when a save has returned: that version, or the one after it, must be there. At the
    end one more save, undisturbed, beside what the killed ones have left.
    """
    if not hasattr(os, "fork"):
        return {"files": [], "allowed": [], "error": ""}
    path = _begin(seed)
    contents, rng = [_content(seed, version) for version in range(10)], np.random.default_rng(seed)
    files: list[np.ndarray] = []
    allowed: list[list[int]] = []
    last = 0
    for _ in range(num_kills):
        first = (last + 1) % 10
        child, done = forked(functools.partial(_save_for_ever, contents, first, path))
        told = os.read(done, 1)  # it has begun: the clock of the kill starts here
        time.sleep(rng.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told += os.read(done, 2**16)
        os.close(done)
        if b"!" in told:
            said = told.partition(b"!")[2].decode(errors="replace")
            return {"files": files, "allowed": allowed, "error": said}
        before = (first + len(told) - 1) % 10
        files.append(_read(path))
        allowed.append([before, (before + 1) % 10])
        last = _version_of(path)
        if last < 0:
            break  # the next child would begin with a broken file
    try:
        learner(contents[5], path)
        return {"files": [*files, _read(path)], "allowed": [*allowed, [5]], "error": ""}
    except Exception as error:
        return {"files": files, "allowed": allowed, "error": f"{type(error).__name__}: {error}"[:200]}


def _version_of(path: Path) -> int:
    """The version by the file's own word, to go on with; what it is worth is found out elsewhere."""
    with contextlib.suppress(Exception):
        return int(torch.load(path, map_location="cpu", weights_only=True)["model"]["half"]["count"])
    return -1


def _save_for_ever(contents: list[Any], at: int, path: Path, tell: int) -> None:
    try:
        while True:
            learner(contents[at], path)
            os.write(tell, b".")
            at = (at + 1) % len(contents)
    except Exception as error:
        os.write(tell, f"!{type(error).__name__}: {error}".encode()[:200])


def _name_of_a_temporary(seed: int, name: str) -> str:
    """What the file is called in which a save to `name` is written; `name` where that is not in the same folder."""
    path = _begin(seed, name)
    renamed.clear()
    learner(_content(seed, 0), path)
    return renamed[-1] if renamed else name


def look_between_calls(seed: int, is_odd: bool) -> dict[str, Any]:
    """What the files hold between any two calls to the system of two saves: what a kill there would leave.

    The first goes where there is no file yet, the second over an older one; `is_odd`: that one has the name under which
    another save was written, as it ends in ".tmp" where a temporary file does. A stopped process and a killed one leave
    the same files, so this tells of some hundred kills. Where the machine allows no tracing, the files are read over
    and over beside a child that saves.
    """
    if not hasattr(os, "fork"):
        return {"files": [], "first": [], "num_looks": 0}
    name = "model v2.best.ckpt"
    path = _begin(seed, _name_of_a_temporary(seed, name) if is_odd else name)
    new, content = FOLDER / "first one", _content(seed, 1)
    seen: dict[Path, list[np.ndarray]] = {path: [_read(path)], new: []}
    num_looks = 0

    def save_both() -> None:
        expect(new)
        learner(content, new)
        expect(path)
        learner(content, path)

    for _ in stops(save_both):
        num_looks += 1
        for looked_at, files in seen.items():
            if len(files) < _MAX_SEEN and (looked_at == path or looked_at.exists()):
                file = _read(looked_at)
                if not files or not np.array_equal(file, files[-1]):
                    files.append(file)
    return {"files": seen[path], "first": seen[new], "num_looks": num_looks}
