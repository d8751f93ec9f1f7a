"""Where the time of a step goes: data, transfer, forward, backward, optimizer; from a trace of torch.profiler.

The loop names its stations with `stage`, which does nothing until a profiler asks for marks (`mark_stages`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from torch.profiler import record_function

from course_lib.measuring.bench import synchronize

STAGES = ("data", "transfer", "forward", "backward", "optimizer")
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


def mark_stages(is_on: bool) -> None:
    """Whether `stage` marks from now on, for a profiler that runs."""
    global _is_profiling
    _is_profiling = is_on


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
