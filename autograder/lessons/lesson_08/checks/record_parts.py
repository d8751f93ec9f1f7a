"""The parts of a record of 8.3: the code, the machine, the files and the metrics."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from autograder.engine import Job

_STATES = {
    "": "all is committed",
    "clean": "all is committed",
    "changed": "a file was changed since",
    "staged": "a change was added to the index, and is not committed",
    "removed": "a file was removed since",
    "new": "there is a new file, which no commit has",
}


def sha256(content: np.ndarray) -> str:
    """Of the bytes of a file, in hexadecimal."""
    return hashlib.sha256(content.tobytes()).hexdigest()


def require_git(job: Job, git: Any, run: dict[str, Any], answer: dict[str, Any]) -> None:
    """Fail unless it is the commit at which the run began, and says whether the project was as committed."""
    git = git if isinstance(git, dict) else {}
    job.require(
        "is_dirty" in git and "commit" in git,
        expected='git with "commit" and "is_dirty"',
        got=f"{', '.join(git) or 'nothing'}",
        likely="a run record without the dirty flag: the commit alone does not say which code ran",
        look="`git status --porcelain` prints a line for each changed file",
    )
    commit, began_at = git["commit"], str(answer["began_at"])
    job.require(
        commit == began_at,
        expected=f"the commit that the run began at, {began_at}",
        got=str(commit)[:60],
        likely="the commit is read after the run, when the project has moved on"
        if commit == answer["ended_at"]
        else "the end of the line that git prints stands behind the hash"
        if str(commit).strip() == began_at
        else "the hash is cut short: the whole one has 40 digits"
        if began_at.startswith(str(commit))
        else "another commit, or another text, is recorded",
        look='ask `git("rev-parse", "HEAD")` before training starts',
    )
    state, dirty = run["state"], run["state"] not in ("", "clean")
    got = git["is_dirty"]
    job.require(
        got is dirty,
        expected=f"is_dirty {str(dirty).lower()}: {_STATES[state]}",
        got=repr(got)[:80],
        likely=_why_not_dirty(got, run)
        if isinstance(got, bool)
        else "what git prints, and not true or false",
        look="any output of `git status --porcelain` means dirty; ask before training starts",
    )


def _why_not_dirty(got: bool, run: dict[str, Any]) -> str:
    state = run["state"]
    if got and run["spoils"]:
        return "the dirty flag is asked for when the run is over: who edits meanwhile makes a clean run dirty"
    if got:
        return "the dirty flag does not follow the state of the project when the run begins"
    if state == "new":
        return (
            "new files are not seen: `git diff` and `git describe` look only at files that git knows already"
        )
    if state == "staged":
        return (
            "what is added to the index is not seen: `git diff` compares with the index, not with the commit"
        )
    return "the dirty flag does not follow the state of the project when the run begins"


def require_machine(job: Job, record: dict[str, Any], threads: int) -> None:
    """Fail unless the versions are those that ran, and the hardware is counted; torch was set to so many threads."""
    environment = record["environment"] if isinstance(record["environment"], dict) else {}
    wanted = {"python": platform.python_version(), "torch": version("torch"), "numpy": version("numpy")}
    for name, expected in wanted.items():
        found = environment.get(name)
        number = expected.partition("+")[0]
        job.require(
            isinstance(found, str) and number in found,
            expected=f"environment with {name} {expected}",
            got=repr(found)[:60] if name in environment else f"no {name}",
            likely="what the run ran on is missing or unknown, so a difference of the last bits cannot be explained",
            look="`platform.python_version()`, `torch.__version__`, `numpy.__version__`",
        )
    hardware = record["hardware"] if isinstance(record["hardware"], dict) else {}
    cores = os.cpu_count() or 1
    for name, least, most in (("num_cores", 1, cores), ("num_threads", threads, threads)):
        found = hardware.get(name)
        is_number = isinstance(found, int) and not isinstance(found, bool)
        job.require(
            is_number and least <= int(found or 0) <= most,
            expected=f"hardware with {name}, {f'at most {cores} here' if least < most else most}",
            got=repr(found)[:60] if name in hardware else f"no {name}",
            likely="cores and threads are confused: the machine has the ones, and torch is told how many of the others "
            "to use"
            if is_number
            else "what the run ran on is missing or unknown, so a difference of the last bits cannot be explained",
            look="`os.cpu_count()`, `torch.get_num_threads()`",
        )


def require_artifacts(job: Job, found: Any, run: dict[str, Any]) -> None:
    """Fail unless each file that training wrote is there with its hash, and nothing else."""
    wanted = {name: sha256(content) for name, content in run["artifacts"].items()}
    found = found if isinstance(found, dict) else {}
    missing, extra = wanted.keys() - found.keys(), found.keys() - wanted.keys()
    if missing and extra:
        likely = 'files are named otherwise: by their name alone, by a whole path, or without "/"'
    elif missing:
        likely = _why_missing(missing, wanted, run)
    elif extra:
        likely = "run.json counts itself, or folders are counted as files"
    else:
        likely = "the hash is not that of the file's bytes"
    job.require(
        found == wanted,
        expected=f"artifacts {', '.join(sorted(wanted)) or 'none'}, each with its sha256",
        got=", ".join(sorted(map(str, found)))[:160] or "none",
        likely=likely,
        look="`out.rglob('*')`, files alone, names relative to `out`, before run.json is written",
    )


def _why_missing(missing: Any, wanted: dict[str, str], run: dict[str, Any]) -> str:
    if len(missing) == len(wanted):
        return f"the files that training wrote are not listed{' after a failure' if run['failure'] else ''}"
    if missing == {name for name in wanted if "/" in name}:
        return "only the files of the folder itself are listed, not those in folders inside"
    if all(name.endswith("run.json") for name in missing):
        return "run.json of a folder inside is taken for the record itself"
    return "files are left out by their name: hidden ones, those without an ending, or of an ending nobody thought of"


def require_metrics(job: Job, metrics: Any, run: dict[str, Any]) -> None:
    """Fail unless accuracy is that of all samples, and that of each slice stands beside it."""
    metrics = metrics if isinstance(metrics, dict) else {}
    right = run["labels"] == run["predictions"]
    where = np.array(run["slices"])
    _require_accuracy(job, "accuracy", metrics.get("accuracy"), float(right.mean()))
    slices = metrics.get("slices")
    slices = slices if isinstance(slices, dict) else {}
    job.require(
        {*slices} == {*run["slices"]},
        expected=f"metrics with slices {', '.join(map(repr, sorted({*run['slices']})))}",
        got=str(slices)[:120],
        likely="metrics without slices: one number hides what got worse",
        look="one entry for each name in `slices`",
    )
    for name, found in slices.items():
        found = found if isinstance(found, dict) else {}
        size = int((where == name).sum())
        _require_accuracy(
            job, f"accuracy of slice {name!r}", found.get("accuracy"), float(right[where == name].mean())
        )
        job.require(
            found.get("num_samples") == size,
            expected=f"num_samples {size} of slice {name!r}",
            got=str(found.get("num_samples")),
            likely="a slice without its size: an accuracy of one sample reads like any other",
            look="count the samples of each slice",
        )


def _require_accuracy(job: Job, name: str, got: Any, expected: float) -> None:
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    job.require(
        is_number and math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9),
        expected=f"{name} {expected:.4f}",
        got=str(got)[:40],
        likely="a mean over slices where a mean over samples is asked for, or another slice's samples",
        look="work it out by hand for three samples in two slices",
    )
