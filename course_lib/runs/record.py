"""The records of a run as JSON lines, as TensorBoard events and for trackers."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

from course_lib.base.files import atomic_write_text, to_json
from course_lib.runs.folder import RunFolder
from course_lib.training.callbacks import Callback, TrainState


class Tracker(Protocol):
    """A place that records go to. `course_lib.runs.trackers` makes them."""

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
        with contextlib.suppress(ImportError):  # metrics.jsonl holds the same numbers
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


def numbers(record: dict[str, Any]) -> dict[str, float]:
    """What a tracker can plot: `{"train/loss": 0.7}`."""
    return {
        f"{record['kind']}/{name}": value
        for name, value in record.items()
        if name not in ("kind", "step") and isinstance(value, int | float)
    }
