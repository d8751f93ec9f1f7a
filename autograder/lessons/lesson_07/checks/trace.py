"""The check of exercise 7.1: where the time of a step goes, read from traces with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_close, require_keys

STAGES = ("data", "transfer", "forward", "backward", "optimizer")
NUM_WARMUP_STEPS = 2
BACKLOG = 20_000.0
"""Microseconds of the GPU's queue after the warm-up, more than a first step's `data` and `transfer` take: whatever is
drawn, no transfer runs in its own stage."""
Event = dict[str, Any]


def check_step_breakdown(job: Job) -> None:
    """7.1: shares of host and device on secret traces: of a CPU, of a GPU, with accumulation, out of order."""
    for has_gpu, num_micro_steps in ((False, 1), (False, 3), (True, 1), (True, 2)):
        events, expected, wrong = _trace(job.rng, has_gpu=has_gpu, num_micro_steps=num_micro_steps)
        answer = job.learner().call("breakdown_of", events=events, num_warmup_steps=NUM_WARMUP_STEPS)
        _require_breakdown(job, answer, expected, wrong, has_gpu=has_gpu)
    job.counts["traces"] = 4


def _trace(
    rng: np.random.Generator, *, has_gpu: bool, num_micro_steps: int
) -> tuple[list[Event], dict[str, Any], dict[str, Any]]:
    """Events in random order, the right answer, and what known mistakes would find, all in seconds a step."""
    num_steps = int(rng.integers(9, 13)) + NUM_WARMUP_STEPS  # past 9: names do not sort as numbers do
    first_number = 3
    clock, gpu_free, correlation = float(rng.integers(10_000, 90_000)), 0.0, int(rng.integers(1000))
    events: list[Event] = []
    kernels: list[tuple[float, float]] = []  # when each begins, and its length
    steps: list[dict[str, Any]] = []
    for index in range(num_steps):
        slow = 25.0 if index < NUM_WARMUP_STEPS else 1.0  # warm-up: compilation, allocator, caches
        start = clock
        step: dict[str, Any] = {"host": dict.fromkeys(STAGES, 0.0), "device": dict.fromkeys(STAGES, 0.0)}
        step["late"] = dict.fromkeys(STAGES, 0.0)
        step["device"]["other"] = 0.0
        step["ranges"] = []
        names = ["data", "transfer", *["forward", "backward"] * num_micro_steps, "optimizer"]
        for name in names:
            clock += float(rng.integers(20, 90))  # the time between the stages
            length = float(rng.integers(200, 3000)) * slow
            events.append(_range(f"stage: {name}", clock, length))
            step["ranges"].append((name, clock, clock + length))
            step["host"][name] += length
            if has_gpu and name != "data":
                for _ in range(int(rng.integers(1, 4))):
                    correlation += 1
                    launch = clock + float(rng.uniform(0.05, 0.9)) * length
                    work = float(rng.integers(500, 9000)) * slow
                    begin = max(launch + 5.0, gpu_free)  # a queue: it begins when the one before has ended
                    gpu_free = begin + work
                    kernels.append((begin, work))
                    step["device"][name] += work
                    events += _kernel(launch, begin, work, correlation)
            clock += length
        if has_gpu:  # the callbacks of the loop launch something too, in no stage
            correlation += 1
            begin = max(clock + 8.0, gpu_free)
            work = 300.0 if slow == 1.0 else BACKLOG
            gpu_free = begin + work
            kernels.append((begin, work))
            step["device"]["other"] += work
            events += _kernel(clock + 3.0, begin, work, correlation)
        clock += float(rng.integers(50, 200))
        events.append(_range(f"ProfilerStep#{first_number + index}", start, clock - start))
        step["length"] = clock - start
        steps.append(step)
        clock += 1.0
    for step in steps:
        # The mistake: by the host's ranges at the moment when a kernel runs, whichever step launched it.
        for name, low, high in step["ranges"]:
            step["late"][name] += sum(work for begin, work in kernels if low <= begin < high)
    events += _clutter(rng, events, has_gpu=has_gpu)
    order = rng.permutation(len(events))
    return [events[i] for i in order], _mean(steps[NUM_WARMUP_STEPS:]), _mean(steps)


def _range(name: str, start: float, length: float) -> Event:
    return {"ph": "X", "cat": "user_annotation", "name": name, "ts": start, "dur": length}


def _kernel(launch: float, begin: float, work: float, correlation: int) -> list[Event]:
    args = {"correlation": correlation}
    called = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch, "dur": 4.0}
    ran = {"ph": "X", "cat": "kernel", "name": f"kernel_{correlation % 7}", "ts": begin, "dur": work}
    return [called | {"args": args}, ran | {"args": dict(args)}]


def _clutter(rng: np.random.Generator, events: list[Event], *, has_gpu: bool) -> list[Event]:
    """What real traces also hold: operators, a copy of each range on the GPU's side, marks without a length."""
    ranges = [event for event in events if event["cat"] == "user_annotation"]
    found = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "ts": r["ts"] + 1.0, "dur": 0.4 * r["dur"]}
        for r in ranges
    ]
    if has_gpu:
        found += [r | {"cat": "gpu_user_annotation", "ts": r["ts"] + 900.0} for r in ranges]
    first = min(r["ts"] for r in ranges)
    found += [{"ph": "M", "name": "process_name", "ts": 0, "args": {"name": "python"}}]
    found += [{"ph": "i", "cat": "user_annotation", "name": "Iteration Start", "ts": first}]
    before = float(rng.integers(100, 900))  # of a range that the profiler saw in no step
    return [*found, _range("stage: data", first - 2 * before, before)]


def _mean(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds a step."""
    number = len(steps)

    def per_step(part: str) -> dict[str, float]:
        return {name: sum(s[part][name] for s in steps) / number / 1e6 for name in steps[0][part]}

    found: dict[str, Any] = {part: per_step(part) for part in ("host", "device", "late")}
    found |= {"num_steps": number, "step_time": sum(s["length"] for s in steps) / number / 1e6}
    found["host"]["other"] = found["step_time"] - sum(found["host"].values())
    return found


def _require_breakdown(
    job: Job, answer: dict[str, Any], expected: dict[str, Any], with_warmup: dict[str, Any], *, has_gpu: bool
) -> None:
    require_keys(job, answer["flat"], ("num_steps", "step_time"))
    for part in ("host", "device"):
        require_keys(job, answer[part], (*STAGES, "other"))
    flat = answer["flat"]
    job.require(
        flat["num_steps"] == expected["num_steps"],
        expected=f"{expected['num_steps']} steps: {with_warmup['num_steps']} in the trace, "
        f"{NUM_WARMUP_STEPS} of them warm-up",
        got=f"{flat['num_steps']:g}",
        likely="averaging over the warm-up steps, which compile, allocate and fill caches"
        if flat["num_steps"] == with_warmup["num_steps"]
        else "steps found by something else than the `ProfilerStep#` ranges",
        look="drop the first `num_warmup_steps` steps in the order of time, then average",
    )
    _require_number(job, "step_time", flat["step_time"], expected["step_time"], with_warmup["step_time"])
    for name in (*STAGES, "other"):
        got, right = answer["host"][name], expected["host"][name]
        _require_number(job, f"host[{name!r}]", got, right, with_warmup["host"][name])
    for name in (*STAGES, "other"):
        got, right = answer["device"][name], expected["device"][name]
        _require_device(job, name, got, right, expected, answer, has_gpu=has_gpu)
    job.require(
        answer["is_unchanged"],
        expected="the events as they were",
        got="changed ones",
        likely="the list is sorted in place, or its events are edited",
        look="`sorted(events, key=...)` makes a new list",
    )


def _require_number(job: Job, what: str, got: float, right: float, with_warmup: float) -> None:
    close = {"rel_tol": 1e-6}
    likely = "a range that belongs to no step, or one that a step has several times, or a name sorted as text"
    if np.isclose(got, with_warmup, rtol=1e-6):
        likely = "averaging over the warm-up steps, which compile, allocate and fill caches"
    elif np.isclose(got, 1e6 * right, rtol=1e-6) or np.isclose(got, 1e3 * right, rtol=1e-6):
        likely = "a time without its unit: traces are in microseconds, the answer is in seconds"
    elif what.startswith("host") and got > 1.5 * right:
        likely = "a range counted twice: a GPU's trace repeats each as `gpu_user_annotation`"
    require_close(job, what, got, right, likely=likely, look="`cat`, `ts` and `dur` of the events", **close)


def _require_device(
    job: Job,
    name: str,
    got: float,
    right: float,
    expected: dict[str, Any],
    answer: dict[str, Any],
    *,
    has_gpu: bool,
) -> None:
    likely = "kernels of a step whose launch lies in another one, or launches counted instead of kernels"
    if has_gpu and name in STAGES:
        if np.isclose(got, expected["host"][name], rtol=1e-6):
            likely = "timing CUDA without a sync: the host's range ends when the work is queued, not when it is done"
        elif np.isclose(got, expected["late"][name], rtol=1e-6):
            likely = (
                "timing CUDA without a sync: a kernel counts for the stage that the host is in when it runs; "
                "it belongs to the stage that launched it"
            )
    elif not has_gpu and got != 0:
        likely = "a trace without a GPU has no kernels: the device's times are 0"
    require_close(
        job,
        f"device[{name!r}]",
        got,
        right,
        likely=likely,
        look="`args['correlation']` joins a kernel with its launch, which lies inside a stage",
        rel_tol=1e-6,
    )
