"""What a person sees while a run goes on: one live line on stderr."""

from __future__ import annotations

import sys
from typing import Any

from course_lib.callbacks import Callback, TrainState


def say(message: str, *, enabled: bool = True) -> None:
    """One line on stderr: stdout belongs to the answer."""
    if enabled:
        print(message, file=sys.stderr, flush=True)


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

    def close(self) -> None:
        self.bar.close()
