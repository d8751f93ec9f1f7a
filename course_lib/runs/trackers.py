"""Experiment trackers beside metrics.jsonl and TensorBoard: MLflow and Weights & Biases, both in the run folder.

Nothing leaves this machine: `mlflow ui --backend-store-uri sqlite:///RUN/mlflow.db` shows the one,
`wandb sync RUN/wandb/offline-run-*` uploads the other when you want it.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from course_lib.base import require, say
from course_lib.runs.checks import tracker_names
from course_lib.runs.folder import RunFolder
from course_lib.runs.record import Tracker, numbers

PROJECT = "course-lib"


def make_trackers(names: str, folder: RunFolder, config: Mapping[str, Any]) -> list[Tracker]:
    """The trackers named in `"mlflow,wandb"`, for the run in `folder`; call it before the records of a resumed
    run are cut. A resumed run goes on under the id it had, and what is in its records is not tracked twice.
    """
    last_steps = {record["kind"]: record["step"] for record in folder.read_metrics()}
    makers = {name: _MAKERS[name] for name in tracker_names(names) if name in _MAKERS}
    return [_Guarded(name, make(folder, config), last_steps) for name, make in makers.items()]


def require_trackers(names: str) -> None:
    """Raises UserError when a package of these trackers is absent: before any time is spent on data."""
    for name in tracker_names(names):
        for package in _PACKAGES[name]:
            require(package, extra="tensorboard" if name == "tensorboard" else "trackers")


class _Guarded:
    """Passes on what is new. A tracker that fails is left out from then on: a run does not die of it."""

    def __init__(self, name: str, tracker: Tracker, last_steps: Mapping[str, int]) -> None:
        self.name, self.last_steps = name, last_steps
        self.tracker: Tracker | None = tracker

    def log(self, record: dict[str, Any]) -> None:
        if record["step"] > self.last_steps.get(record["kind"], 0):
            self._call("log", record)

    def close(self, status: str) -> None:
        self._call("close", status)

    def _call(self, method: str, value: Any) -> None:
        try:
            if self.tracker is not None:
                getattr(self.tracker, method)(value)
        except Exception as error:
            self.tracker = None
            say(f"warning: {self.name} failed and is left out from here on: {type(error).__name__}: {error}")


class _MLflow:
    """A SQLite file: MLflow's plain-file store is no longer maintained."""

    def __init__(self, folder: RunFolder, config: Mapping[str, Any]) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        self.mlflow = require("mlflow", extra="trackers")
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
        store = f"sqlite:///{folder.directory.absolute().as_posix()}/mlflow.db"
        self.client = self.mlflow.MlflowClient(store)
        known = self.client.get_experiment_by_name(PROJECT)
        experiment = known.experiment_id if known else self.client.create_experiment(PROJECT)
        before = self.client.search_runs([experiment])
        run = before[0] if before else self.client.create_run(experiment, run_name=folder.directory.name)
        self.run_id = run.info.run_id
        if not before:
            parameters = [self.mlflow.entities.Param(key, str(value)) for key, value in config.items()]
            self.client.log_batch(self.run_id, params=parameters)
        self.client.update_run(self.run_id, status="RUNNING")

    def log(self, record: dict[str, Any]) -> None:
        now, step = round(time.time() * 1000), record["step"]
        values = numbers(record).items()
        metrics = [self.mlflow.entities.Metric(name, value, now, step) for name, value in values]
        self.client.log_batch(self.run_id, metrics=metrics)

    def close(self, status: str) -> None:
        words = {"finished": "FINISHED", "interrupted": "KILLED"}
        self.client.set_terminated(self.run_id, words.get(status, "FAILED"))


class _WandB:
    """Offline: W&B writes a file that `wandb sync` can upload. Each resumption makes one more, of the same id."""

    def __init__(self, folder: RunFolder, config: Mapping[str, Any]) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        wandb = require("wandb", extra="trackers")
        before = sorted(folder.directory.glob("wandb/offline-run-*"))  # …-run-DATE_TIME-ID
        quiet = {"silent": True, "console": "off", "disable_git": True, "x_disable_meta": True}
        self.run = wandb.init(
            project=PROJECT,
            name=folder.directory.name,
            id=before[0].name.rpartition("-")[2] if before else secrets.token_hex(4),
            resume="allow",
            dir=folder.directory,
            mode="offline",
            config=dict(config),
            settings=wandb.Settings(**quiet, x_disable_stats=True, x_disable_machine_info=True),
        )

    def log(self, record: dict[str, Any]) -> None:
        self.run.log(numbers(record), step=record["step"])

    def close(self, status: str) -> None:
        self.run.finish(exit_code=0 if status == "finished" else 1)


_MAKERS: dict[str, Any] = {"mlflow": _MLflow, "wandb": _WandB}  # RecordWriter itself serves TensorBoard
# MLflow's skinny form comes without the packages of its database.
_PACKAGES = {
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
}
