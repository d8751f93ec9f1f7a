"""One system in a process of its own, that stays alive: a request per line on stdin, an answer per line on stdout.

    python -m tests.benchmarks.peers_worker SYSTEM THREADS

Idle while another system runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    system, threads = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not come between the answers
    import torch

    torch.set_num_threads(threads)
    from tests.benchmarks.peers_systems import SYSTEMS

    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = REQUESTS[request.pop("do")](SYSTEMS[system], **request)
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def time_steps(system: Any, *, case: dict[str, Any], order: list[list[int]], warmup: int) -> dict[str, Any]:
    """Seconds per step over the batches of `order` after the first `warmup` of them."""
    from tests.benchmarks.peers_case import Case, Job

    moments = {}

    def on_step(job: Job) -> bool:
        moments[job.step] = time.perf_counter()
        return False

    job = Job(Case(**case) if case.get("max_steps") else Case(**case, max_steps=len(order)), on_step, order)
    system(job)
    assert job.step == len(order), (job.step, len(order))
    return {"step_time": (moments[len(order)] - moments[warmup]) / (len(order) - warmup), **job.details}


def race(
    system: Any, *, case: dict[str, Any], target: float, every: int, order: list[list[int]] | None = None
) -> dict[str, Any]:
    """Seconds until the validation F1 is `target`, evaluation off the clock; None when the steps run out first.

    `order`: the batches that all systems take; None: each batches as its documentation advises.

    The clock starts when the system is told to train: what it prepares is in it, imports and data are not.
    """
    from tests.benchmarks.peers_case import Case, Clock, Job

    curve: list[tuple[int, float, float]] = []

    def on_step(job: Job) -> bool:
        if job.step % every and job.step != job.case.max_steps:
            return False
        seconds, own = clock.seconds()
        curve.append((job.step, seconds, clock.pause(job.macro_f1)))
        cpu_seconds.append(own)
        return curve[-1][2] >= target

    cpu_seconds: list[float] = []
    job = Job(Case(**case), on_step, order)
    clock = Clock()
    system(job)
    step, seconds, f1 = curve[-1]
    reached = f1 >= target
    return {
        "seconds": seconds if reached else None,
        "cpu_seconds": cpu_seconds[-1] if reached else None,
        "steps": step,
        "curve": curve,
        **job.details,
    }


def memory(system: Any, *, case: dict[str, Any], order: list[list[int]]) -> dict[str, Any]:
    """Bytes that training adds at its peak to what the process holds with libraries, data and model in place."""
    from tests.benchmarks.peers_case import Case, Job

    small = Case(**case, max_steps=1)
    system(Job(small, lambda job: False, order[:1]))  # imports what the system imports late
    job = Job(Case(**case, max_steps=len(order)), lambda job: False, order)
    before = memory_line("VmRSS")
    Path("/proc/self/clear_refs").write_text(
        "5"
    )  # the high-water mark starts again from here (Linux, man 5 proc)
    system(job)
    return {"peak_bytes": memory_line("VmHWM") - before, "baseline_bytes": before}


def memory_line(name: str) -> int:
    """Bytes of one line of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


REQUESTS = {"time_steps": time_steps, "race": race, "memory": memory}

if __name__ == "__main__":
    main()
