"""Harness of 8.3: the record of one run after another, while the project changes."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_08.harness.projects import project_in


class Diverged(Exception):
    """An error that no library knows, and whose message is no argument of it."""

    def __init__(self, text: str = "") -> None:
        super().__init__(len(text))
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Diverged({self.text!r})"


class Stopped(BaseException):
    """What somebody raises who wants no `except Exception` to hold it up."""


_KINDS = (
    *(Diverged, Stopped, KeyboardInterrupt, SystemExit, StopIteration),
    *(ArithmeticError, RuntimeError, ValueError, KeyError, FileNotFoundError),
)


def record_runs(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's record of each run, one after the other in one project, and what else there was to see.

    A run has `config`; `data`, the bytes of its data file; `state`, of the project when it begins; `artifacts`, the
    files that training writes by name; `failure`, the type and the text of the error that it ends with, or None;
    `labels`, `predictions` and `slices`; `spoils`: then training changes its config and the project; and `sleeps`, the
    seconds that it rests.
    """
    # More than there are cores: neither is taken for the other.
    torch.set_num_threads((os.cpu_count() or 1) + 2)
    with tempfile.TemporaryDirectory() as place:
        project = project_in(Path(place))
        data = Path(place) / "data.csv"
        answers: list[dict[str, Any]] = []
        kept: list[list[Any]] = []
        for number, run in enumerate(runs):
            project.be(run["state"])
            data.write_bytes(run["data"].tobytes())
            out = Path(place) / f"run-{number}"
            out.mkdir()
            kept.append([])
            answers.append(_record_once(run, data, out, project, kept[-1]))
    for answer, returned in zip(answers, kept, strict=True):
        answer["later"] = [_as_json(record) for record in returned]
    return answers


def _as_json(record: Any) -> str:
    return json.dumps(record, default=lambda value: f"<{type(value).__name__}>")


def _record_once(run: dict[str, Any], data: Path, out: Path, project: Any, kept: list[Any]) -> dict[str, Any]:
    """`kept` gets what is returned, to be looked at once more after later runs."""
    process = os.getpid() + 1  # each run believes itself in a process of its own
    os.getpid = lambda: process
    given: list[list[Any]] = []
    kind, text = run["failure"] or ("Diverged", "")
    # Some errors have a number before their text.
    arguments = [2, text] if kind == "FileNotFoundError" else [text] if text else []
    failure = next(one for one in _KINDS if one.__name__ == kind)(*arguments)

    def train(config: dict[str, Any], where: Path) -> Any:
        given.append([copy.deepcopy(config), Path(where).resolve() == out.resolve()])
        if run["artifacts"]:
            (Path(where) / "nothing in it").mkdir(exist_ok=True)
        for name, content in run["artifacts"].items():
            (Path(where) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(where) / name).write_bytes(content.tobytes())
        time.sleep(run.get("sleeps", 0.0))
        if run["spoils"]:
            config["learning_rate"] = -1.0
            config["model"]["num_layers"] = -1
            config["model"]["sizes"][0] = -1
            project.move_on()
        if run["failure"]:
            raise failure
        return run["labels"].copy(), run["predictions"].copy(), list(run["slices"])

    began_at = project.git("rev-parse", "HEAD").strip()
    returned, raised = None, None
    try:
        returned = learner(train, copy.deepcopy(run["config"]), data, out, project.git)
        kept.append(returned)
    except BaseException as error:
        if not given or not _comes_of(error, failure):
            raise  # a mistake of the solution's own
        raised = [type(error).__name__, error is failure]
    path = out / "run.json"
    return {
        "num_threads": torch.get_num_threads(),
        "began_at": began_at,
        "ended_at": project.git("rev-parse", "HEAD").strip(),
        "given": given,
        "returned": _as_json(returned),
        "raised": raised,
        "text": path.read_text(encoding="utf-8") if path.is_file() else None,
    }


def _comes_of(error: BaseException | None, cause: BaseException) -> bool:
    """Whether an error is this one, or was raised because of it."""
    while error is not None and error is not cause:
        error = error.__cause__ or error.__context__
    return error is not None
