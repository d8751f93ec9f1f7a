"""The run folder: what is where, and the records of a run as JSON lines and TensorBoard events."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.callbacks import Callback, TrainState
from course_lib.config_io import read_config
from course_lib.errors import UserError
from course_lib.files import atomic_write_text, remove_leftovers


class RunFolder:
    """Names of the files of one run. Nothing is created until it is written."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.config = self.directory / "config.yaml"
        self.record = self.directory / "run.json"
        self.metrics = self.directory / "metrics.jsonl"
        self.tensorboard = self.directory / "tensorboard"
        self.last = self.directory / "checkpoints" / "last.pt"
        self.best = self.directory / "checkpoints" / "best.pt"
        self.tokenizer = self.directory / "tokenizer.json"
        self.report = self.directory / "report.html"

    @property
    def holds_run(self) -> bool:
        return self.config.exists() or self.record.exists() or self.last.exists()

    def create(self) -> None:
        """Make the folder. Raises UserError when that is impossible or another run is in it."""
        if self.holds_run:
            raise UserError(
                f"{self.directory} already holds a run: continue it with --resume, or choose another --out"
            )
        try:
            self.last.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {self.directory}: {error.strerror}") from None

    def read_config(self) -> dict[str, Any]:
        """The values of the run that is here. Raises UserError when none is."""
        if not self.config.exists():
            raise UserError(f"{self.directory} holds no run to resume: leave out --resume to start one")
        return read_config(self.config)

    def remove_leftovers(self) -> None:
        """Remove what a kill in the middle of a save has left beside the whole files."""
        for folder in (self.directory, self.last.parent):
            remove_leftovers(folder)

    def write_record(self, record: dict[str, Any]) -> None:
        atomic_write_text(self.record, to_json(record) + "\n")

    def read_record(self) -> dict[str, Any]:
        """`run.json`, or {} when there is none that can be read."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole lines of `metrics.jsonl`; a last line cut off by a kill is left out."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1]]


class RecordWriter(Callback):
    """Appends each record to `metrics.jsonl` and to TensorBoard.

    `num_records` goes into the checkpoint: on resume, what was logged after the checkpoint is cut off, and
    the steps that are run again log it again.
    """

    def __init__(self, folder: RunFolder, *, num_records: int = 0, purge_step: int | None = None) -> None:
        self.num_records = num_records
        kept = folder.read_metrics()[:num_records]
        atomic_write_text(folder.metrics, "".join(to_json(record, indent=None) + "\n" for record in kept))
        self._file = folder.metrics.open("a", encoding="utf-8")
        self._tensorboard = _summary_writer(folder.tensorboard, purge_step)

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        self._file.write(to_json(record, indent=None) + "\n")
        self._file.flush()
        self.num_records += 1
        if self._tensorboard is not None:
            for name, value in record.items():
                if name not in ("kind", "step"):
                    self._tensorboard.add_scalar(f"{record['kind']}/{name}", value, record["step"])

    def close(self) -> None:
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def classification_table(
    labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str]
) -> list[dict[str, Any]]:
    """Precision, recall and F1 of each class, from int arrays [N]. 0 where a class was never predicted
    (precision) or never occurs (recall); the columns are `label`, `precision`, `recall`, `f1`, `num_samples`."""
    num_classes = len(label_names)
    confusion = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(confusion, (labels, predictions), 1)
    hits, actual, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    return [
        {
            "label": name,
            "precision": float(hits[k] / max(predicted[k], 1)),
            "recall": float(hits[k] / max(actual[k], 1)),
            "f1": float(2 * hits[k] / max(actual[k] + predicted[k], 1)),
            "num_samples": int(actual[k]),
        }
        for k, name in enumerate(label_names)
    ]


def macro_f1(table: Sequence[dict[str, Any]]) -> float:
    """Mean F1 over the classes that occur: each class counts the same, however rare."""
    scores = [row["f1"] for row in table if row["num_samples"]]
    return sum(scores) / len(scores) if scores else 0.0


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Strict JSON: NaN and infinity, which JSON does not have, become null."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _summary_writer(directory: Path, purge_step: int | None) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # metrics.jsonl holds the same numbers
        return None
    return SummaryWriter(str(directory), purge_step=purge_step)
