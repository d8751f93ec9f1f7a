"""The run folder: what is where, and the records of a run as JSON lines and TensorBoard events."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from course_lib.callbacks import Callback, TrainState
from course_lib.config_io import read_config
from course_lib.errors import UserError
from course_lib.files import atomic_write_text, remove_leftovers

MAX_MATRIX_LABELS = 20  # a wider heat map cannot be read


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
                f"{self.directory} already holds a run: --resume continues it, or choose another --out"
            )
        try:
            self.last.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {self.directory}: {error.strerror}") from None

    def read_config(self) -> dict[str, Any]:
        """The values of the run that is here. Raises UserError when none is."""
        if not self.config.exists():
            raise UserError(f"{self.directory} holds no run: give the --out folder of `course-lib train`")
        return read_config(self.config)

    def remove_leftovers(self) -> None:
        """Remove what a kill in the middle of a save has left beside the whole files."""
        for folder in (self.directory, self.last.parent):
            remove_leftovers(folder)

    def write_record(self, record: dict[str, Any]) -> None:
        atomic_write_text(self.record, to_json(record) + "\n")

    def artifacts(self) -> dict[str, dict[str, Any]]:
        """Size and SHA-256 of every file in the folder but `run.json`, which holds this, and the files of W&B,
        whose own process may still be writing them."""
        found = {}
        for path in sorted(self.directory.rglob("*")):
            name = path.relative_to(self.directory).as_posix()
            if path.is_file() and path != self.record and not name.startswith("wandb/"):
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                found[name] = {"num_bytes": path.stat().st_size, "sha256": sha256}
        return found

    def read_record(self) -> dict[str, Any]:
        """`run.json`, or {} when there is none that can be read."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole lines of `metrics.jsonl`; a last line cut off by a kill is left out."""
        text = self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]


class Tracker(Protocol):
    """A place that records go to. `course_lib.trackers` makes them."""

    def log(self, record: dict[str, Any]) -> None: ...

    def close(self, status: str) -> None:
        """`status`: `"finished"`, `"failed"` or `"interrupted"`."""


class RecordWriter(Callback):
    """Appends each record to `metrics.jsonl`, to TensorBoard and to the trackers, which are closed by their
    maker: they are told how the run ended.

    `num_records` goes into the checkpoint: on resume, what was logged after the checkpoint is cut off, and
    the steps that are run again log it again.
    """

    def __init__(
        self, folder: RunFolder, *, num_records: int = 0, purge_step: int | None = None, trackers: Any = ()
    ) -> None:
        """`purge_step`: TensorBoard forgets what it has from this step on. `trackers`: any number of `Tracker`s."""
        self.num_records, self.trackers = num_records, trackers
        kept = folder.read_metrics()[:num_records]
        atomic_write_text(folder.metrics, "".join(to_json(record, indent=None) + "\n" for record in kept))
        self._file = folder.metrics.open("a", encoding="utf-8")
        self._tensorboard: Any = None
        with contextlib.suppress(ImportError):  # not installed: metrics.jsonl holds the same numbers
            from torch.utils.tensorboard import SummaryWriter

            self._tensorboard = SummaryWriter(str(folder.tensorboard), purge_step=purge_step)

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        self._file.write(to_json(record, indent=None) + "\n")
        self._file.flush()
        self.num_records += 1
        if self._tensorboard:
            for name, value in numbers(record).items():
                self._tensorboard.add_scalar(name, value, record["step"])
        for tracker in self.trackers:
            tracker.log(record)

    def close(self) -> None:
        self._file.close()
        if self._tensorboard:
            self._tensorboard.close()


def evaluation_summary(
    task: str, labels: np.ndarray, predictions: np.ndarray, lengths: np.ndarray, label_names: Sequence[str]
) -> dict[str, Any]:
    """What a record says of an evaluation, in JSON values.

    `labels` and `predictions`: int [N], one per item (a text, or a token that has a label); `lengths`: int
    [N], tokens of the text that the item is or stands in. `slices["length"]`, and for classification of texts
    and tokens `per_class` (a slice per label) and `confusion` (None for more labels than a table can show).
    """
    names = [] if task == "language-modelling" else list(label_names)  # a table over a vocabulary is not made
    counts = confusion_matrix(labels, predictions, names) if names else None
    return {
        "per_class": [] if counts is None else classification_table(counts, names),
        "slices": {"length": length_slices(lengths, labels, predictions, names)},
        "confusion": None if counts is None or len(names) > MAX_MATRIX_LABELS else counts.tolist(),
    }


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str]) -> np.ndarray:
    """Counts int64 [C, C]: rows are labels, columns predictions, from int arrays [N]."""
    num_classes = len(label_names)
    return np.bincount(labels * num_classes + predictions, minlength=num_classes**2).reshape(num_classes, -1)


def classification_table(confusion: np.ndarray, label_names: Sequence[str]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of each class, from counts [label, prediction]. 0 where a class was never
    predicted (precision) or never occurs (recall). `mistaken_for` names its most frequent wrong answer, if any."""
    hits, actual, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    errors = confusion - np.diag(hits)
    columns = {
        "label": label_names,
        "precision": (hits / np.maximum(predicted, 1)).tolist(),
        "recall": (hits / np.maximum(actual, 1)).tolist(),
        "f1": (2 * hits / np.maximum(actual + predicted, 1)).tolist(),
        "num_samples": actual.tolist(),
        "mistaken_for": [label_names[row.argmax()] if row.any() else None for row in errors],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def macro_f1(confusion: np.ndarray) -> float:
    """Mean F1 over the classes that occur, however rare each is, from counts [label, prediction]; 0 for none."""
    actual, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    f1 = 2 * np.diag(confusion) / np.maximum(actual + predicted, 1)
    return float(f1[actual > 0].mean()) if actual.any() else 0.0


def perplexity(loss: float) -> float:
    """exp of the mean cross-entropy in nats; infinite where that is past all floats."""
    return math.exp(loss) if loss < 709 else math.inf


def length_slices(
    lengths: np.ndarray, labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Accuracy of the quarters from short to long texts, and macro F1 when there are `label_names`; int [N]."""
    edges = np.unique(np.quantile(lengths, (0.25, 0.5, 0.75), method="lower")) if len(lengths) else ()
    quarter, rows = np.searchsorted(edges, lengths), []  # quarter 0: up to and with the first edge
    for k in np.unique(quarter):
        sizes, actual, predicted = (values[quarter == k] for values in (lengths, labels, predictions))
        row = {"slice": f"{sizes.min():,}–{sizes.max():,}", "num_samples": len(sizes)}
        row["accuracy"] = float((actual == predicted).mean())
        if len(label_names):
            row["macro_f1"] = macro_f1(confusion_matrix(actual, predicted, label_names))
        rows.append(row)
    return rows


def numbers(record: dict[str, Any]) -> dict[str, float]:
    """What a tracker can plot: `{"train/loss": 0.7}`."""
    return {
        f"{record['kind']}/{name}": value
        for name, value in record.items()
        if name not in ("kind", "step") and isinstance(value, int | float)
    }


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
