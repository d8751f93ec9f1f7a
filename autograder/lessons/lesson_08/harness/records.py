"""Harness of 8.2 and 8.3: configs as text, and the record of a run in a repository."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner

FIELDS = ("name", "learning_rate", "micro_batch_size", "max_epochs", "is_deterministic", "class_weights")


def read_configs(texts: list[str]) -> list[dict[str, Any]]:
    """What each text is read as: its values, its fingerprint and its text again, or the error that it raised."""
    found = []
    for text in texts:
        try:
            config = learner.from_text(text)
        except Exception as error:
            kind = {"type": type(error).__name__, "is_value_error": isinstance(error, ValueError)}
            found.append({"error": str(error)} | kind)
            continue
        found.append(
            {"values": _values(config), "fingerprint": _fingerprint(config), "text": str(config.to_text())}
        )
    return found


def _values(config: Any) -> dict[str, Any]:
    """Each field with its type, since JSON does not tell 1 from 1.0 nor a tensor from a number."""
    values = {name: getattr(config, name) for name in FIELDS}
    return {
        name: [type(value).__name__, dict(value) if isinstance(value, dict) else value]
        for name, value in values.items()
    }


def _fingerprint(config: Any) -> str:
    found = config.fingerprint
    return str(found() if callable(found) else found)


# Another interpreter that hashes texts in another order; it loads the cell alone, and so is quick.
_ELSEWHERE = """
import json, sys, types
source, entry, text = json.load(sys.stdin)
marker, module = types.ModuleType("autograder"), types.ModuleType("__learner__")
marker.exercise = module.exercise = lambda _: lambda definition: definition
marker.__getattr__ = lambda name: lambda *_, **__: None
sys.modules |= {"autograder": marker, "__learner__": module}
exec(compile(source, "<your cell>", "exec"), module.__dict__)
found = getattr(module, entry).from_text(text).fingerprint
print(found() if callable(found) else found)
"""


def fingerprints_elsewhere(source: str, entry: str, text: str, hash_seeds: list[int]) -> list[str]:
    """The fingerprint of a config in fresh interpreters, one for each seed of Python's own hash."""
    request = json.dumps([source, entry, text])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _ELSEWHERE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )
        for hash_seed in hash_seeds
    ]
    found = []
    for process in started:
        words, trouble = process.communicate(request)
        if process.returncode:
            raise RuntimeError(f"in a fresh interpreter the cell ended with: {trouble.strip()[-200:]}")
        found.append(words.strip().splitlines()[-1])
    return found


def record_runs(
    runs: list[dict[str, Any]],
    data: np.ndarray,
    labels: np.ndarray,
    predictions: np.ndarray,
    slices: list[str],
    artifacts: dict[str, np.ndarray],
    is_dirty: bool,
) -> dict[str, Any]:
    """The learner's record of each run, all in one repository that is dirty or not; and the commit they began at.

    A run has `config`, `failure` (the text of the error that training ends with; "" for none) and may have `spoils`:
    then training changes its config, and commits what was dirty.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        git = _repository(folder / "project", is_dirty)
        (folder / "data.csv").write_bytes(data.tobytes())
        answers, commit = [], git("rev-parse", "HEAD")
        for number, run in enumerate(runs):
            out = folder / f"run-{number}"
            out.mkdir()

            def train(config: dict[str, Any], where: Path, run: dict[str, Any] = run) -> Any:
                for name, content in artifacts.items():
                    (Path(where) / name).parent.mkdir(parents=True, exist_ok=True)
                    (Path(where) / name).write_bytes(content.tobytes())
                if run.get("spoils"):
                    config["learning_rate"] = -1.0
                    config["model"]["num_layers"] = -1
                    git("commit", "--all", "--allow-empty", "--quiet", "--message", "while it trained")
                if run["failure"]:
                    raise ArithmeticError(run["failure"])
                return labels.copy(), predictions.copy(), list(slices)

            answers.append(_record_once(train, run, folder / "data.csv", out, git))
    return {"commit": commit, "records": answers}


def _record_once(
    train: Any, run: dict[str, Any], data: Path, out: Path, git: Callable[..., str]
) -> dict[str, Any]:
    returned, raised = None, ""
    try:
        returned = learner(train, copy.deepcopy(run["config"]), data, out, git)
    except ArithmeticError as error:
        raised = str(error)
    path = out / "run.json"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return {"returned": json.dumps(returned, default=str), "raised": raised, "text": text}


def _repository(project: Path, is_dirty: bool) -> Callable[..., str]:
    """A repository with a commit, and a changed file if it is to be dirty; returns what runs git in it."""
    project.mkdir()
    if not shutil.which("git"):
        return _pretended(is_dirty)
    settings = "user.name=A", "user.email=a@example.org", "commit.gpgsign=false", "safe.directory=*"
    command = ["git", *(part for setting in settings for part in ("-c", setting))]
    variables = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *map(str, arguments)],
            cwd=project,
            env=variables,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    (project / "train.py").write_text("print(1)\n")
    git("init", "--quiet")
    git("add", "train.py")
    git("commit", "--quiet", "--message", "first")
    if is_dirty:
        (project / "train.py").write_text("print(2)\n")
    return git


def _pretended(is_dirty: bool) -> Callable[..., str]:
    """The few commands that matter, where there is no git."""
    state = {"commit": os.urandom(20).hex(), "change": "M train.py" if is_dirty else ""}

    def git(*arguments: str) -> str:
        if arguments[0] == "commit":
            state.update(commit=os.urandom(20).hex(), change="")
        if arguments[0] in ("rev-parse", "log", "show"):
            return state["commit"]
        if arguments[0] == "describe":
            return state["commit"][:7] + ("-dirty" if state["change"] else "")
        return state["change"]

    return git
