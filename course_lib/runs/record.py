"""Where the records of a run go as they come: on disk, to TensorBoard and trackers, and before a person's eyes."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any, Protocol

from course_lib.base import LiveOutput, atomic_write_text, in_kernel, progress_bar, say, to_json
from course_lib.runs.folder import RunFolder
from course_lib.training import Callback, TrainState


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


def numbers(record: dict[str, Any]) -> dict[str, float]:
    """What a tracker can plot: `{"train/loss": 0.7}`."""
    return {
        f"{record['kind']}/{name}": value
        for name, value in record.items()
        if name not in ("kind", "step") and isinstance(value, int | float)
    }


MAX_POINTS = 200  # of a curve


class ProgressBar(Callback):
    """Steps done, time left, latest losses and throughput."""

    def __init__(self, max_steps: int, max_epochs: int, *, start: int = 0, enabled: bool = True) -> None:
        self.max_epochs = max_epochs
        self.shown: dict[str, str] = {}
        # In a log file a line that redraws itself is noise: there, one line every 10 s.
        interval = 0.1 if sys.stderr.isatty() else 10.0
        self.bar = progress_bar(
            total=max_steps,
            initial=start,
            description="Training",
            unit="step",
            file=sys.stderr,
            dynamic_ncols=True,
            mininterval=interval,
            maxinterval=max(interval, 10.0),
            disable=not enabled,
        )

    def on_step(self, state: TrainState) -> None:
        self.bar.update()

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        if record["kind"] == "train":
            self.shown["loss"] = f"{record['loss']:.3f}"
            self.shown["samples/s"] = f"{record['samples_per_sec']:,.0f}"
        elif record["kind"] == "validation":
            self.shown["val loss"] = f"{record['loss']:.3f}"
            if "accuracy" in record:
                self.shown["val acc"] = f"{record['accuracy']:.1%}"
            elif "r2" in record:
                self.shown["val R²"] = f"{record['r2']:.3f}"
        self.bar.set_description(
            f"Epoch {min(state.epoch + 1, self.max_epochs)}/{self.max_epochs}", refresh=False
        )
        self.bar.set_postfix(self.shown, refresh=False)

    def on_end(self, state: TrainState) -> None:
        self.bar.close()


class LivePlot(Callback):
    """The curves of a run in a notebook while `fit` trains: loss, validation loss, learning rate.

    One output, drawn anew about once a second, and for the last time when the run is over: that picture is what the
    saved notebook shows. Drawing takes a twentieth of the time at most, and none of it is counted as step time. In a
    terminal there is one line on stderr, at the end.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.records: list[dict[str, Any]] = []
        self.output = LiveOutput(seconds=1.0)
        self.start = time.monotonic()

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self.enabled and record["kind"] != "epoch":
            self.output.offer(lambda: self._drawn(state))

    def on_end(self, state: TrainState) -> None:
        if self.enabled and self.records:
            self.output.offer(lambda: self._drawn(state), at_once=True)
            say(self._told(state), enabled=not in_kernel())

    def _told(self, state: TrainState) -> str:
        said = [f"{state.step:,} steps in {time.monotonic() - self.start:.0f} s"]
        for kind, name in (("train", "loss"), ("validation", "validation loss")):
            if losses := [record["loss"] for record in self.records if record["kind"] == kind]:
                said.append(f"{name} {losses[0]:.3f} → {losses[-1]:.3f}, lowest {min(losses):.3f}")
        return "; ".join(said)

    def _drawn(self, state: TrainState) -> tuple[str, str]:
        from course_lib.runs.report import curves_image

        shown = []
        for kind in ("train", "validation"):
            rows = [record for record in self.records if record["kind"] == kind]
            # The first, the last, and some between: the picture of a long run must not weigh a megabyte.
            shown += rows[:1] + rows[: 0 : -(1 + len(rows) // MAX_POINTS)][::-1]
        images = [curves_image(title, shown) for title in ("Loss", "Learning rate")]
        told = self._told(state)
        return f'<div style="display:flex;gap:1%">{"".join(images)}</div><div>{told}</div>', told
