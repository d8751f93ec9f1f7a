"""Harness of 8.3: the record of one run after another, while the project changes."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_08.harness.projects import project_in


class Diverged(Exception):
    """An error that no library knows."""


_KINDS = (Diverged, KeyboardInterrupt, ArithmeticError, RuntimeError, ValueError, KeyError, FileNotFoundError)


def record_runs(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's record of each run, one after the other in one project, and what else there was to see.

    A run has `config`; `data`, the bytes of its data file; `state`, of the project when it begins; `artifacts`, the
    files that training writes by name; `failure`, the type and the text of the error that it ends with, or None;
    `labels`, `predictions` and `slices`; and `spoils`: then training changes its config and the project.
    """
    with tempfile.TemporaryDirectory() as place:
        project = project_in(Path(place))
        data = Path(place) / "data.csv"
        answers = []
        for number, run in enumerate(runs):
            project.be(run["state"])
            data.write_bytes(run["data"].tobytes())
            out = Path(place) / f"run-{number}"
            out.mkdir()
            answers.append(_record_once(run, data, out, project))
    return answers


def _record_once(run: dict[str, Any], data: Path, out: Path, project: Any) -> dict[str, Any]:
    given: list[list[Any]] = []
    kind, text = run["failure"] or ("Diverged", "")
    failure = next(one for one in _KINDS if one.__name__ == kind)(text)

    def train(config: dict[str, Any], where: Path) -> Any:
        given.append([copy.deepcopy(config), Path(where).resolve() == out.resolve()])
        if run["artifacts"]:
            (Path(where) / "nothing in it").mkdir(exist_ok=True)
        for name, content in run["artifacts"].items():
            (Path(where) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(where) / name).write_bytes(content.tobytes())
        if run["spoils"]:
            config["learning_rate"] = -1.0
            config["model"]["num_layers"] = -1
            project.move_on()
        if run["failure"]:
            raise failure
        return run["labels"].copy(), run["predictions"].copy(), list(run["slices"])

    began_at = project.git("rev-parse", "HEAD")
    returned, raised = None, None
    try:
        returned = learner(train, copy.deepcopy(run["config"]), data, out, project.git)
    except BaseException as error:
        if not given or not _comes_of(error, failure):
            raise  # a mistake of the solution's own
        raised = [type(error).__name__, str(error.args[0]) if error.args else ""]
    path = out / "run.json"
    return {
        "began_at": began_at,
        "ended_at": project.git("rev-parse", "HEAD"),
        "given": given,
        "returned": json.dumps(returned, default=lambda value: f"<{type(value).__name__}>"),
        "raised": raised,
        "text": path.read_text(encoding="utf-8") if path.is_file() else None,
    }


def _comes_of(error: BaseException | None, cause: BaseException) -> bool:
    """Whether an error is this one, or was raised because of it."""
    while error is not None and error is not cause:
        error = error.__cause__ or error.__context__
    return error is not None
