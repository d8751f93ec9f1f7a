"""The check of 8.3: the record of a run."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_keys
from autograder.lessons.lesson_08.checks.record_parts import (
    require_artifacts,
    require_git,
    require_machine,
    require_metrics,
    sha256,
)

KINDS = ("ArithmeticError", "RuntimeError", "ValueError", "KeyError", "FileNotFoundError")
# What a message may hold: braces, quotes, a backslash, a second line; and many more.
SAID = '{0} %s "C:\\new"\nit\'s NaN' + "\nin a layer" * 300 + " at last"
LARGE = 2_100_000  # bytes: more than is read at once
NAMES = ("short", "Short", "short and long")  # some look like others
ODD_NAMES = ("größer als 9", "1.5", "")
FILES = (
    "best.pt",
    "logs/metrics.jsonl",
    ".state",
    "deep/er/run.json",
    "LICENSE",
    "two words.txt",
    "best.tmp",
    ".cache/words.bin",
    "run.json.bak",
    "größe.txt",
)


def check_record_run(job: Job) -> None:
    """8.3: all that repeats and judges a run, taken when it began, written also when it fails, equal for equal runs."""
    kind = str(job.rng.choice(KINDS))
    first = _run(job, "clean", sizes=[7, 3, 1])
    stopped = _run(job, "clean", failure="Stopped", writes=False, sizes=[1])
    runs = [
        first,
        # The same run again: the same commit, and still clean; it takes a little longer.
        first | {"state": "", "sleeps": 0.06},
        _run(job, "changed", failure="Diverged", sizes=[3, 1]),
        _run(job, "clean", failure="KeyboardInterrupt", spoils=True, sizes=[2]),
        _run(job, "clean", failure="SystemExit", writes=False, sizes=[1]),
        _run(job, "clean", failure="StopIteration", writes=False, sizes=[1]),
        stopped,
        stopped | {"state": "", "sleeps": 0.03},
        # Where a clean project changes, it shows that somebody asks too late; where a new file is committed, it may
        # also be that new files do not count.
        _run(job, "clean", spoils=True, sizes=[4], names=(" short",)),
        _run(job, "new", spoils=True, sizes=[5, 2, 4], names=ODD_NAMES),
        _run(job, "staged", sizes=[1]),
        _run(job, "removed", failure=kind, writes=False, sizes=[2, 2]),
    ]
    answers = job.learner().call("record_runs", runs=runs)
    records = []
    for answer, run in zip(answers, runs, strict=True):
        _require_run(job, answer, run)
        records.append(_record(job, answer, run))
    for record, answer, run in zip(records, answers, runs, strict=True):
        require_git(job, record["git"], run, answer)
        _require_given(job, record, run)
        require_machine(job, record, answer["num_threads"])
        _require_outcome(job, record, run)
    for one, two, run in zip(records, records[1:], runs[1:], strict=False):
        if not run["state"]:
            _require_diffable(job, one, two)


def _run(
    job: Job,
    state: str,
    *,
    sizes: list[int],
    failure: str = "",
    writes: bool = True,
    spoils: bool = False,
    names: tuple[str, ...] = NAMES,
) -> dict[str, Any]:
    """One run; `sizes` are those of its slices. A first slice with more right ones than the others: see `right`."""
    rng = job.rng
    of_slices = rng.permutation(names)[: len(sizes)]
    # Right: all of the first slice but one, and one of each other.
    right = [
        i < max(1, size - 1) if at == 0 else i == 0 for at, size in enumerate(sizes) for i in range(size)
    ]
    order = rng.permutation(len(right))
    labels = rng.integers(0, 3, len(order))
    files = rng.permutation(FILES).tolist() if writes else []
    sizes_of_files = (0, LARGE if state == "changed" else 80, 90)
    return {
        "state": state,
        "spoils": spoils,
        # Who stops a run by hand says nothing.
        "failure": [failure, f"lost at step {rng.integers(1000)} – {SAID}" * (failure != "KeyboardInterrupt")]
        if failure
        else None,
        "config": {
            "learning_rate": float(rng.integers(1, 99)) / 1000,
            "seed": int(rng.integers(99)),
            "model": {"num_layers": int(rng.integers(1, 9)), "sizes": [1, 2.5, None, "größer"]},
        },
        "data": np.frombuffer(
            rng.bytes(LARGE if state == "changed" else int(rng.choice([200, 3, 0]))), np.uint8
        ),
        "labels": labels,
        "predictions": np.where(np.array(right)[order], labels, (labels + 1) % 3),
        "slices": np.repeat(of_slices, sizes)[order].tolist(),
        "artifacts": {
            str(name): np.frombuffer(rng.bytes(sizes_of_files[min(at, 2)]), np.uint8)
            for at, name in enumerate(files)
        },
    }


def _require_run(job: Job, answer: dict[str, Any], run: dict[str, Any]) -> None:
    given = answer["given"]
    job.require(
        len(given) == 1,
        expected="`train` called once",
        got=f"{len(given)} calls",
        likely="training never runs, or is tried again after a failure, which is a result itself",
        look="one line calls `train(config, out)`",
    )
    config, is_out = given[0]
    job.require(
        config == run["config"] and bool(is_out),
        expected="`train` to be given the config and the folder `out`",
        got="another config" if config != run["config"] else "another folder",
        likely="something else is passed on than what came in",
        look="`train(config, out)`",
    )
    raised = tuple(answer["raised"]) if answer["raised"] else None
    wanted = (run["failure"][0], True) if run["failure"] else None
    job.require(
        raised == wanted,
        expected=f"{wanted[0]}: {run['failure'][1][:60]}…, that very error, raised again"
        if wanted
        else "no error",
        got=(
            "no error"
            if not raised
            else "another one of the same type"
            if raised[0] == wanted[0]
            else raised[0]
        )
        if wanted
        else str(raised),
        likely="another error is raised in its place: who started the run does not learn what went wrong"
        if raised
        else "the error was swallowed: who started the run believes that it finished",
        look="`raise` without a name, after the record is written",
    )


def _record(job: Job, answer: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    text = answer["text"]
    job.require(
        text is not None,
        expected="run.json in the run's folder" + (", also after a failure" if run["failure"] else ""),
        got="no file",
        likely="failures are not recorded, or not all: the record is written only where the run ends well, or after an "
        "`Exception` alone, and SystemExit is none"
        if run["failure"]
        else "the record is returned, but never written",
        look="`try … finally` around the training",
    )
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    job.require(
        isinstance(record, dict),
        expected="run.json to hold the record as JSON, a mapping",
        got=repr(text[:80]),
        likely="the record is written with `str` or `repr`, or only a part of it is",
        look="`json.dumps(record)`",
    )
    keys = "status failure config git data environment hardware metrics artifacts times"
    require_keys(job, record, keys.split(), what="a record", likely="a key is missing or misspelt")
    job.require(
        bool(run["failure"]) or json.loads(answer["returned"]) == record,
        expected="the record returned to be the one in run.json",
        got="two different ones",
        likely="something is added after writing, or is no plain JSON value",
        look="numbers, texts, lists and dicts with text keys only",
    )
    job.require(
        all(json.loads(later) == record for later in answer["later"]),
        expected="a record that stays as it was returned",
        got="another one after later runs",
        likely="the records of all runs are one dict: it was made outside the function, or is kept from call to call",
        look="make the dict in the call",
    )
    return dict(record)


def _require_given(job: Job, record: dict[str, Any], run: dict[str, Any]) -> None:
    job.require(
        record["config"] == run["config"],
        expected=f"config {run['config']}",
        got=str(record["config"])[:200],
        likely="the config is read after the run, which may have changed it, also deep inside"
        if run["spoils"]
        else "the config is not recorded as it was given: a part is left out, or its values became texts",
        look="`copy.deepcopy` before training starts",
    )
    data, wanted = record["data"], sha256(run["data"])
    got = data.get("sha256") if isinstance(data, dict) else None
    job.require(
        got == wanted,
        expected=f"data with sha256 {wanted[:12]}…, of the file's {len(run['data'])} bytes",
        got=str(data)[:120],
        likely="another hash, or one of a part of the file, of its text, or of what the file held before"
        if got
        else "the data are named, not fingerprinted: a path stays the same when the content changes",
        look="`hashlib.sha256(path.read_bytes()).hexdigest()`",
    )


def _require_outcome(job: Job, record: dict[str, Any], run: dict[str, Any]) -> None:
    kind, text = run["failure"] or ("", "")
    failure = record["failure"]
    # The message of a KeyError is what `repr` makes of its text.
    said = isinstance(failure, str) and (text in failure or (kind == "KeyError" and repr(text) in failure))
    is_right = (
        record["status"] == "failed" and said if kind else record["status"] == "finished" and failure is None
    )
    job.require(
        is_right,
        expected=f'status "failed", and in failure the whole text {text[:60]!r}…, of {len(text)} signs, after {kind}'
        if kind
        else 'status "finished", failure null',
        got=f"status {record['status']!r}, failure {failure!r}"[:160],
        likely="the message is escaped: `repr` makes one line of two, and other signs of quotes"
        if text and record["status"] == "failed" and repr(text)[1:-1] in str(failure)
        else "only a part of the message is kept: its beginning, or its first line"
        if text and record["status"] == "failed" and text[:9] in str(failure)
        else "a run that is stopped by hand looks like one that finished: KeyboardInterrupt is no Exception"
        if kind == "KeyboardInterrupt"
        else "failures are not recorded as such: a run that broke looks like one that was never made"
        if kind
        else "a run that ended well has no failure: None, and not an empty text",
        look="`except BaseException as error:` has what to write: `str(error)`",
    )
    require_artifacts(job, record["artifacts"], run)
    if not kind:
        require_metrics(job, record["metrics"], run)
        return
    job.require(
        record["metrics"] is None,
        expected="metrics null after a failure",
        got=str(record["metrics"])[:80],
        likely="a run that failed has no metrics: None says so, where an empty dict or a zero looks like a result",
        look="begin with None, and set the metrics when training has returned",
    )


def _require_diffable(job: Job, one: dict[str, Any], two: dict[str, Any]) -> None:
    job.require(
        isinstance(one["times"], dict),
        expected='a dict under "times"',
        got=str(one["times"])[:80],
        likely="a number without its name: nobody knows what it counts",
        look='`{"seconds": …}`',
    )
    # It differs on other days.
    today = f"{datetime.now():%Y-%m-%d}"
    first, second = (
        {path: value for path, value in _flat(record) if path[0] != "times"} for record in (one, two)
    )
    differs = sorted(
        ".".join(path)
        for path in first.keys() | second.keys()
        if first.get(path) != second.get(path) or today in str(first[path])
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
