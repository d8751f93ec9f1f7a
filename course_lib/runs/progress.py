"""What a person sees while something goes on: one live line on stderr, or one output of a notebook cell."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from course_lib.training.callbacks import Callback, TrainState

MAX_PAUSE = 10.0  # seconds between two pictures of a `LiveOutput`
MAX_POINTS = 200  # of a curve


def say(message: str, *, enabled: bool = True) -> None:
    """One line on stderr: stdout belongs to the answer."""
    if enabled:
        print(message, file=sys.stderr, flush=True)


def in_kernel() -> bool:
    """Whether this process is a Jupyter kernel. Says so without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


class LiveOutput:
    """One output of a notebook cell, replaced in place. Outside a notebook it shows nothing.

    What was shown last is what the saved notebook holds.
    """

    def __init__(self, seconds: float) -> None:
        """seconds: between two pictures at least. Twenty times what the last one took to draw, if that is longer, but
        `MAX_PAUSE` at most: the first one may have to load what draws."""
        self.seconds = seconds
        self._due = 0.0
        self._handle: Any = None

    def offer(self, draw: Callable[[], tuple[str, str]], *, at_once: bool = False) -> None:
        """Show what `draw` returns, HTML and plain text, unless it is too early for the next picture."""
        start = time.monotonic()
        if not in_kernel() or (start < self._due and not at_once):
            return
        from IPython.display import display

        html, text = draw()
        data = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
        now = time.monotonic()
        self._due = now + max(self.seconds, min(20 * (now - start), MAX_PAUSE))


class ProgressBar(Callback):
    """Steps done, time left, latest losses and throughput."""

    def __init__(self, max_steps: int, max_epochs: int, *, start: int = 0, enabled: bool = True) -> None:
        from tqdm import tqdm

        self.max_epochs = max_epochs
        self.shown: dict[str, str] = {}
        # In a log file a line that redraws itself is noise: there, one line every 10 s.
        interval = 0.1 if sys.stderr.isatty() else 10.0
        self.bar = tqdm(
            total=max_steps,
            initial=start,
            desc="Training",
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
            self.shown["val acc"] = f"{record['accuracy']:.1%}"
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
