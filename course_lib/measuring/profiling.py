"""Where the time of a step goes: data, transfer, forward, backward, optimizer; from a trace of torch.profiler.

The loop names its stations with `stage`, which does nothing until a `StepProfiler` is among the callbacks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.profiler import profile, record_function, schedule

from course_lib.base.files import atomic_file, atomic_write_text
from course_lib.measuring.bench import synchronize
from course_lib.training.callbacks import Callback, TrainState

STAGES = ("data", "transfer", "forward", "backward", "optimizer")
WARMUP_STEPS = 3
NUM_OPERATORS = 15
_PREFIX, _STEP = "stage: ", "ProfilerStep#"
_NOTHING = nullcontext()
_is_profiling = False


def stage(name: str) -> AbstractContextManager[Any]:
    """Marks one of `STAGES`. 0.2 µs while nothing profiles, where `record_function` would cost 5."""
    return _marked(name) if _is_profiling else _NOTHING


@contextmanager
def _marked(name: str) -> Iterator[None]:
    with record_function(_PREFIX + name):
        yield
        synchronize()  # what a stage has queued is its own time; only here, for it empties the queue


class StepProfiler(Callback):
    """Profiles `num_steps` updates after `WARMUP_STEPS`; then `trace.json` (for Perfetto or chrome://tracing),
    `profile.json` (`breakdown`) and `profile.txt` (the same, and the operators that took longest) are in
    `directory`, and the run goes on as if without.

    Call `close` when the run ends: it may end before. Steps are slower while they are profiled, those of many
    small operations most: read the shares, and take speeds from the log.
    """

    def __init__(self, num_steps: int, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.breakdown: dict[str, Any] | None = None
        # The profiler is switched on after the first step, which is thus the first one of the warm-up.
        steps = schedule(wait=0, warmup=WARMUP_STEPS - 1, active=num_steps, repeat=1)
        # Else Kineto writes its start and stop to stderr, into the progress bar.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        self._profile = profile(schedule=steps, on_trace_ready=self._write, acc_events=True)
        self._is_on: bool | None = None

    def on_step(self, state: TrainState) -> None:
        if self._is_on:
            self._profile.step()
            if self.breakdown is not None:
                self.close()
        elif self._is_on is None:
            self._switch(True)
            self._profile.start()

    def close(self) -> None:
        """Stop profiling, and write what was seen unless it is written."""
        if self._is_on:
            self._switch(False)
            self._profile.stop()

    def _switch(self, is_on: bool) -> None:
        global _is_profiling
        _is_profiling = self._is_on = is_on

    def _write(self, profiled: profile) -> None:
        trace = self.directory / "trace.json"
        with atomic_file(trace) as temporary:
            profiled.export_chrome_trace(str(temporary))
        self.breakdown = step_breakdown(trace)
        sort_by = "self_device_time_total" if torch.cuda.is_initialized() else "self_cpu_time_total"
        operators = profiled.key_averages().table(sort_by=sort_by, row_limit=NUM_OPERATORS)
        lines = [
            f"{row['seconds'] * 1e3:>12.3f} ms {row['share']:>6.1%}  {row['stage']}"
            for row in self.breakdown["stages"]
        ]
        atomic_write_text(self.directory / "profile.txt", "\n".join([*lines, "", operators]))
        atomic_write_text(self.directory / "profile.json", json.dumps(self.breakdown, indent=2) + "\n")


def step_breakdown(trace: str | Path) -> dict[str, Any]:
    """`num_steps`, `step_time` (seconds) and, for each of `STAGES` and `other`, mean `seconds` and `share` of
    the step, from the `trace.json` that `StepProfiler` wrote.

    A step begins when the loop asks for its data and ends when the callbacks have heard of it; validating and
    saving between two steps belong to neither.
    """
    events = json.loads(Path(trace).read_text(encoding="utf-8"))["traceEvents"]
    # A GPU's trace holds each range a second time, as "gpu_user_annotation".
    ranges = [event for event in events if event.get("cat") == "user_annotation"]
    steps: list[tuple[float, list[Any]]] = []
    for event in sorted(ranges, key=lambda event: event["ts"]):
        if event["name"].startswith(_STEP):
            steps.append((event["ts"] + event["dur"], []))
        elif event["name"].startswith(_PREFIX) and steps:
            steps[-1][1].append((event["name"].removeprefix(_PREFIX), event["ts"], event["dur"]))
    seconds, total, num_steps = dict.fromkeys((*STAGES, "other"), 0.0), 0.0, 0
    for end, stages in steps:
        if "optimizer" not in [name for name, _, _ in stages]:
            continue  # cut off by the end of the run
        # The last one: an epoch's end asks once more, and validates, before the next epoch gives data.
        begin = max([stages[0][1], *(start for name, start, _ in stages if name == "data")])
        stages = [(name, duration / 1e6) for name, start, duration in stages if start >= begin]
        for name, duration in [*stages, ("other", (end - begin) / 1e6 - sum(d for _, d in stages))]:
            seconds[name] += duration
        num_steps, total = num_steps + 1, total + (end - begin) / 1e6
    rows = [
        {"stage": name, "seconds": value / max(1, num_steps), "share": value / total if total else 0.0}
        for name, value in seconds.items()
    ]
    return {"num_steps": num_steps, "step_time": total / max(1, num_steps), "stages": rows}
