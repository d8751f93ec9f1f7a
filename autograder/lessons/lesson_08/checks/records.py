"""The check of 8.3: the record of a run."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_keys


def check_record_run(job: Job) -> None:
    """8.3: all that repeats and judges a run, taken when it began, written also when it fails, equal for equal runs."""
    for is_dirty in (True, False):
        facts = _facts(job)
        config = {
            "learning_rate": float(job.rng.integers(1, 99)) / 1000,
            "seed": int(job.rng.integers(99)),
            "model": {"num_layers": int(job.rng.integers(1, 9))},
        }
        failure = f"loss is NaN at step {job.rng.integers(1000)}"
        runs: list[dict[str, Any]] = [
            {"config": config, "failure": ""},
            {"config": config, "failure": ""},
            {"config": config, "failure": failure},
            {"config": config, "failure": "", "spoils": True},
        ]
        answer = job.learner().call("record_runs", runs=runs, is_dirty=is_dirty, **facts)
        records = [_record(job, one, run) for one, run in zip(answer["records"], runs, strict=True)]
        for record, run in zip(records, runs, strict=True):
            _require_surroundings(job, record, run, facts, answer["commit"], is_dirty)
            _require_outcome(job, record, run, facts)
        _require_diffable(job, records[0], records[1])


def _facts(job: Job) -> dict[str, Any]:
    """Two thirds right in all, and very unequal between slices: a mean of slices cannot pass for one of samples."""
    rng = job.rng
    order = rng.permutation(11)
    right = np.array([True] * 6 + [False] + [True, False, False] + [False])[order]
    labels = rng.integers(0, 3, len(order))
    return {
        "data": rng.integers(0, 256, 200).astype(np.uint8),
        "labels": labels,
        "predictions": np.where(right, labels, (labels + 1) % 3),
        "slices": np.array(["short"] * 7 + ["long"] * 3 + ["with code"])[order].tolist(),
        "artifacts": {
            name: rng.integers(0, 256, 90).astype(np.uint8) for name in ("best.pt", "logs/metrics.jsonl")
        },
    }


def _record(job: Job, answer: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    job.require(
        answer["raised"] == run["failure"],
        expected="the error of a run that fails, raised again" if run["failure"] else "no error",
        got=f"{answer['raised'] or 'no error'}",
        likely="the error was swallowed: who started the run believes that it finished",
        look="`raise` without a name, after the record is written",
    )
    text = answer["text"]
    job.require(
        bool(text),
        expected="run.json in the run's folder" + (", also after a failure" if run["failure"] else ""),
        got="no file",
        likely="failures are not recorded: the record is written only where the run ends well"
        if run["failure"]
        else "the record is returned, but never written",
        look="`try … finally` around the training",
    )
    record = json.loads(text)
    keys = "status failure config git data environment hardware metrics artifacts times"
    require_keys(job, record, keys.split(), what="a record", likely="a key is missing or misspelt")
    job.require(
        bool(run["failure"]) or json.loads(answer["returned"]) == record,
        expected="the record returned to be the one in run.json",
        got="two different ones",
        likely="something is added after writing, or is no plain JSON value",
        look="numbers, texts, lists and dicts with text keys only",
    )
    return record if isinstance(record, dict) else {}


def _require_surroundings(
    job: Job, record: dict[str, Any], run: dict[str, Any], facts: dict[str, Any], commit: str, is_dirty: bool
) -> None:
    git = record["git"] if isinstance(record["git"], dict) else {}
    job.require(
        "is_dirty" in git and "commit" in git,
        expected='git with "commit" and "is_dirty"',
        got=f"{', '.join(git) or 'nothing'}",
        likely="a run record without the dirty flag: the commit alone does not say which code ran",
        look="`git status --porcelain` prints a line for each changed file",
    )
    job.require(
        git["commit"] == commit,
        expected=f"the commit that the run began at, {commit[:10]}…",
        got=str(git["commit"])[:12],
        likely="the commit is read after the run, when the project has moved on, or is cut short",
        look="ask git before training starts",
    )
    job.require(
        git["is_dirty"] is is_dirty,
        expected=f"is_dirty {str(is_dirty).lower()}: {'a file was changed since' if is_dirty else 'all is committed'}",
        got=str(git["is_dirty"]),
        likely="the dirty flag does not follow the state of the project when the run begins",
        look="any output of `git status --porcelain` means dirty; ask before training starts",
    )
    job.require(
        record["config"] == run["config"],
        expected=f"config {run['config']}",
        got=str(record["config"])[:200],
        likely="the config is read after the run, which may have changed it, also deep inside",
        look="`copy.deepcopy` before training starts",
    )
    sha256 = hashlib.sha256(facts["data"].tobytes()).hexdigest()
    job.require(
        isinstance(record["data"], dict) and record["data"].get("sha256") == sha256,
        expected=f"data with sha256 {sha256[:12]}…, of the file's bytes",
        got=str(record["data"])[:120],
        likely="the data are named, not fingerprinted: a path stays the same when the content changes",
        look="`hashlib.sha256(path.read_bytes()).hexdigest()`",
    )
    environment, hardware = (
        {} if not isinstance(record[k], dict) else record[k] for k in ("environment", "hardware")
    )
    wanted = {
        "environment": (environment, ("python", "torch", "numpy")),
        "hardware": (hardware, ("num_cores", "num_threads")),
    }
    for part, (found, names) in wanted.items():
        missing = [name for name in names if found.get(name) in (None, "")]
        job.require(
            not missing,
            expected=f"{part} with {', '.join(names)}",
            got=f"no {', '.join(missing)}",
            likely="what the run ran on is missing, so a difference of the last bits cannot be explained",
            look="`platform.python_version()`, `torch.__version__`, `os.cpu_count()`, `torch.get_num_threads()`",
        )


def _require_outcome(job: Job, record: dict[str, Any], run: dict[str, Any], facts: dict[str, Any]) -> None:
    failed = bool(run["failure"])
    job.require(
        record["status"] == ("failed" if failed else "finished")
        and (run["failure"] in str(record["failure"]) if failed else record["failure"] is None),
        expected=f'status "failed" and the error {run["failure"]!r}'
        if failed
        else 'status "finished", failure null',
        got=f"status {record['status']!r}, failure {record['failure']!r}",
        likely="failures are not recorded as such: a run that broke looks like one that was never made",
        look="`except Exception as error:` has what to write",
    )
    artifacts = {
        name: hashlib.sha256(content.tobytes()).hexdigest() for name, content in facts["artifacts"].items()
    }
    job.require(
        record["artifacts"] == artifacts,
        expected=f"artifacts {', '.join(artifacts)}, each with its sha256",
        got=str(record["artifacts"])[:160],
        likely="a file of the run is missing: in a folder inside `out`, or after a failure; or run.json counts itself",
        look="`out.rglob('*')`, files alone, names relative to `out`",
    )
    if failed:
        return
    metrics = record["metrics"] if isinstance(record["metrics"], dict) else {}
    right = facts["labels"] == facts["predictions"]
    where = np.array(facts["slices"])
    _require_accuracy(job, "accuracy", metrics.get("accuracy"), float(right.mean()))
    slices = metrics.get("slices")
    slices = slices if isinstance(slices, dict) else {}
    job.require(
        {*slices} == {*facts["slices"]},
        expected=f"metrics with slices {', '.join(sorted({*facts['slices']}))}",
        got=str(slices)[:120],
        likely="metrics without slices: one number hides what got worse",
        look="one entry for each name in `slices`",
    )
    for name, found in slices.items():
        found = found if isinstance(found, dict) else {}
        _require_accuracy(
            job, f"accuracy of slice {name!r}", found.get("accuracy"), float(right[where == name].mean())
        )
        job.require(
            found.get("num_samples") == int((where == name).sum()),
            expected=f"num_samples {int((where == name).sum())} of slice {name!r}",
            got=str(found.get("num_samples")),
            likely="a slice without its size: an accuracy of one sample reads like any other",
            look="count the samples of each slice",
        )


def _require_accuracy(job: Job, name: str, got: Any, expected: float) -> None:
    job.require(
        isinstance(got, int | float) and math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9),
        expected=f"{name} {expected:.4f}",
        got=str(got)[:40],
        likely="a mean over slices where a mean over samples is asked for, or another slice's samples",
        look="work it out by hand for three samples in two slices",
    )


def _require_diffable(job: Job, one: dict[str, Any], two: dict[str, Any]) -> None:
    first, second = (
        {path: value for path, value in _flat(record) if path[0] != "times"} for record in (one, two)
    )
    differs = sorted(
        {".".join(path) for path in first.keys() | second.keys() if first.get(path) != second.get(path)}
    )
    job.require(
        not differs,
        expected='two runs of the same code, config and data to differ under "times" alone',
        got=f"also {', '.join(differs)[:160]}",
        likely="times, random names or absolute paths stand among what should be compared",
        look='put what is new each time under "times"; leave paths of the run\'s folder out',
    )


def _flat(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if not isinstance(value, dict) or not value:
        return [(path, value)]
    return [found for key in value for found in _flat(value[key], (*path, str(key)))]
