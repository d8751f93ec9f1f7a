"""Traces for exercise 7.1, made up with all that a real one holds, and how right and mistaken readers read them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

STAGES = ("data", "transfer", "forward", "backward", "optimizer")
BACKLOG = 20_000.0
"""Microseconds of the GPU's queue after the warm-up, more than a first step's `data` and `transfer` take: whatever is
drawn, not all kernels run in their own stage."""
MAIN, AUTOGRAD = 4321, 4388
"""Threads of the host: the loop's, with all ranges, and the one from which autograd queues the backward pass."""
Event = dict[str, Any]
Breakdown = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Kind:
    """What a trace is like. Rounds, of forward and backward, are several where gradients are accumulated."""

    num_warmup_steps: int
    num_steps: int
    """That count."""
    has_gpu: bool
    num_rounds: int = 1
    never: tuple[str, ...] = ()
    """Stages that do not occur, or only in the warm-up."""
    sometimes: str = ""
    """A stage that every other step lacks."""
    begins: float = 50_000.0
    """Microseconds: the start of the first step, at 0, below it, or so large that float32 holds no microseconds."""
    is_begun_anew: bool = False
    """The numbers of the steps start over after the first few."""


def kinds(rng: np.random.Generator) -> list[Kind]:
    """Of every sort one: as many steps as will do, or few; no warm-up, or one; some stages there, or all."""
    few, many = (int(n) for n in rng.integers((1, 9), (4, 13)))
    rare = [str(name) for name in rng.permutation(STAGES)]
    return [
        Kind(2, many, has_gpu=False, begins=4e12, is_begun_anew=True),
        Kind(0, few, has_gpu=False, never=(rare[0],), begins=0.0),
        Kind(3, few + 1, has_gpu=False, num_rounds=3, sometimes=rare[1]),
        Kind(1, many, has_gpu=True, sometimes=rare[2], begins=4e12),
        Kind(0, few + 1, has_gpu=True, num_rounds=2, never=(rare[3],), begins=-9e8),
        Kind(int(rng.integers(3, 6)), 1, has_gpu=True),
        Kind(0, few, has_gpu=True, never=STAGES),
        Kind(few, 0, has_gpu=True),
    ]


def trace(rng: np.random.Generator, kind: Kind) -> list[Event]:
    """Events in random order. A kernel begins when it was queued and the one before has ended: often steps later."""
    # Past 9 and 99: they do not sort as text.
    first_number = int(rng.choice([3, 9, 97])) - kind.num_warmup_steps
    if kind.is_begun_anew:
        first_number = int(rng.choice([8, 98]))
    clock, gpu_free = kind.begins, -math.inf
    correlation = -1  # the first one is 0
    events: list[Event] = []
    if kind.has_gpu:  # queued before the first step
        events += _kernels(clock - 30.0, clock, 0.125 * float(rng.integers(4000, 9000)), 10**5)

    def queue(moment: float, work: float, thread: int = MAIN) -> None:
        nonlocal gpu_free, correlation
        correlation += 1
        begin = max(moment + 5.0, gpu_free)
        gpu_free = begin + work
        events.extend(_kernels(moment, begin, work, correlation, thread))

    for index in range(kind.num_warmup_steps + kind.num_steps):
        is_warmup = index < kind.num_warmup_steps
        slow = 25.0 if is_warmup else 1.0  # compilation, allocator, caches
        start = clock
        if kind.has_gpu:  # before the first stage
            queue(clock + 10.0, float(rng.integers(300, 900)))
        is_tight = (
            not kind.has_gpu and index % 2 == 1
        )  # ends with its last stage; and there the next step begins
        if kind.has_gpu or is_tight:  # the time between the stages; a first one may begin with its step
            clock += float(rng.integers(20, 90))
        ended = clock
        for name in ("data", "transfer", *["forward", "backward"] * kind.num_rounds, "optimizer"):
            if (name in kind.never and not is_warmup) or (name == kind.sometimes and index % 2):
                continue
            length = 0.125 * float(rng.integers(1600, 24_000)) * slow
            events.append(_range(f"stage: {name}", clock, length))
            for number in range(int(rng.integers(1, 4)) if kind.has_gpu else 0):
                moment, work = clock + float(rng.uniform(0.05, 0.9)) * length, float(rng.integers(500, 9000))
                if not number and index % 2 == 0:  # as soon as the stage begins
                    moment = clock
                queue(moment, work * slow, AUTOGRAD if name == "backward" else MAIN)
            ended = clock + length
            clock = ended + float(rng.integers(20, 90))
            if kind.has_gpu and rng.random() < 0.5:  # after the stage, and before the next
                queue(clock - 15.0, float(rng.integers(300, 900)))
        if kind.has_gpu:  # the callbacks of the loop launch something too, in no stage
            queue(clock - 9.0, BACKLOG if is_warmup else float(rng.integers(300, 900)))
        clock = ended if is_tight else clock
        number = index % (kind.num_warmup_steps + 3) if kind.is_begun_anew else index
        events.append(_range(f"ProfilerStep#{max(0, first_number) + number}", start, clock - start))
        if kind.has_gpu:  # between the steps something else is done, and queued in no step
            queue(clock + 20.0, float(rng.integers(500, 9000)))
        clock += 0.0 if is_tight else float(rng.integers(100, 400))
    events += _clutter(events, has_gpu=kind.has_gpu)
    while True:
        listed = [events[i] for i in rng.permutation(len(events))]
        steps = [
            e for e in listed if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")
        ]
        first, by_number = (s[: kind.num_warmup_steps] for s in (steps, sorted(steps, key=_number_of)))
        # Where numbers start anew, who goes by them is another one than who goes by the list.
        if not kind.is_begun_anew or any(step not in first for step in by_number):
            return listed


def _number_of(step: Event) -> int:
    return int(step["name"].partition("#")[2])


def _range(name: str, start: float, length: float) -> Event:
    found = {"ph": "X", "cat": "user_annotation", "name": name, "ts": start, "dur": length}
    return found | {"pid": 4321, "tid": MAIN}


def _kernels(launch: float, begin: float, work: float, correlation: int, thread: int = MAIN) -> list[Event]:
    """A launch and what it queues: one kernel, or the several ones of a graph, on streams of their own, at once."""
    args = {"correlation": correlation}
    call = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaGraphLaunch")[correlation % 3]
    called = {"ph": "X", "cat": "cuda_runtime", "name": call, "ts": launch, "dur": 4.0}
    events = [called | {"pid": 4321, "tid": thread, "args": args}]
    for number, share in enumerate((0.3, 0.4, 0.3) if call == "cudaGraphLaunch" else (1.0,)):
        name = f"kernel_{(correlation + number) % 7}"
        ran = {"ph": "X", "cat": "kernel", "name": name, "ts": begin, "dur": share * work}
        events.append(ran | {"pid": 0, "tid": 7, "args": args | {"stream": 7 + number}})
        begin += 0.5 * share * work
    return events


def _clutter(events: list[Event], *, has_gpu: bool) -> list[Event]:
    """What real traces also hold: operators, ranges of other names, what has no length, copies of and on the GPU."""
    ranges = [event for event in events if event["cat"] == "user_annotation"]
    steps = [event for event in ranges if event["name"].startswith("Profiler")]
    found = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "ts": r["ts"] + 1.0, "dur": 0.4 * r["dur"]}
        for r in ranges
    ]
    found += [_range("Optimizer.step#AdamW.step", s["ts"] + 2.0, 0.7 * s["dur"]) for s in steps]
    found += [_range(f"within {r['name']}", r["ts"] + 1.0, 0.3 * r["dur"]) for r in ranges]
    found += [_range("ProfilerStep overhead", s["ts"] + 3.0, 0.2 * s["dur"]) for s in steps]
    found += [_range("stages: forward", s["ts"] + 4.0, 0.1 * s["dur"]) for s in steps]
    found += [r | {"cat": "python_function", "dur": 0.9 * r["dur"]} for r in ranges]
    found += [{"ph": "M", "name": "process_name", "ts": 0, "args": {"name": "python"}}]
    found += [{"ph": "i", "name": "Iteration Start: PyTorch Profiler", "ts": steps[0]["ts"]}]
    if has_gpu:
        found += [r | {"cat": "gpu_user_annotation", "ts": r["ts"] + 900.0} for r in ranges]
        # The profiler's own work on a launch, in another stage.
        launches = [event for event in events if event["cat"] == "cuda_runtime"]
        found += [e | {"cat": "overhead", "name": "Resource", "ts": e["ts"] + 25_000.0} for e in launches]
        for number, step in enumerate(steps, start=10**6):
            args = {"correlation": number}
            waits = {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaStreamSynchronize",
                "ts": step["ts"] + 9.0,
            }
            found.append(waits | {"dur": 2.0, "args": {"correlation": number + 10**6}})  # queues nothing
            queued = {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "ts": step["ts"] + 3.0}
            copied = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": step["ts"] + 950.0}
            found += [queued | {"dur": 2.0, "args": args}, copied | {"dur": 4000.0, "args": args}]
            args = {"correlation": number + 2 * 10**6}
            queued = {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemsetAsync", "ts": step["ts"] + 6.0}
            filled = {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "ts": step["ts"] + 5000.0}
            found += [queued | {"dur": 2.0, "args": args}, filled | {"dur": 700.0, "args": args}]
    return found


def read(events: list[Event], num_warmup_steps: int, mistake: str = "") -> Breakdown:
    """Seconds a step, as 7.1 asks for them, or as one who makes this mistake finds them."""
    copies = {"copies": ["gpu_user_annotation"], "functions": ["python_function"]}
    named = ["user_annotation", *copies.get(mistake, [])]
    ranges = [e for e in events if e.get("cat") in named and "dur" in e]
    steps = [e for e in ranges if e["name"].startswith("ProfilerStep#")]
    if mistake == "copies":
        steps = [e for e in steps if e["cat"] == named[0]]
    if mistake == "anywhere in a name":
        steps = [e for e in ranges if "ProfilerStep#" in e["name"]]
    if mistake == "kept by name":
        steps = [*{e["name"]: e for e in sorted(steps, key=lambda e: e["ts"])}.values()]
    keys: dict[str, Callable[[Event], Any]] = {
        "sorted as text": lambda e: e["name"],
        "sorted by number": _number_of,
        "order of the list": lambda e: 0,
    }
    steps.sort(key=keys.get(mistake, lambda e: e["ts"]))
    left_out = 0 if mistake == "warm-up" else num_warmup_steps
    counted = steps[:-left_out] if mistake == "last steps" and left_out else steps[left_out:]
    if mistake == "a longer name":
        steps = [e for e in ranges if e["name"].startswith("ProfilerStep")]
        steps.sort(key=lambda e: e["ts"])
        counted = steps[left_out:]
    stages = [e for e in ranges if e["name"].startswith("stage: ")]
    if mistake == "anywhere in a name":
        stages += [e | {"name": e["name"][len("within ") :]} for e in ranges if " stage: " in e["name"]]
    others = {"memory copies": ["gpu_memcpy"], "memory filled": ["gpu_memset"]}
    others["memory"] = [cat for cats in others.values() for cat in cats]
    worked = ("kernel", *others.get(mistake, []))
    kernels: dict[int, list[Event]] = {}
    for event in events:
        if event.get("cat") in worked:
            kernels.setdefault(event["args"]["correlation"], []).append(event)
    if mistake in ("at once", "the same twice"):
        kernels = {correlation: _condensed(several, mistake) for correlation, several in kernels.items()}
    if mistake in ("last kernel", "first kernel"):
        only = slice(1) if mistake == "first kernel" else slice(-1, None)
        kernels = {correlation: several[only] for correlation, several in kernels.items()}
    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "dur" in e]
    if mistake == "launches by name":
        launches = [e for e in launches if e["name"] == "cudaLaunchKernel"]
    queued = [(e, kernel) for e in launches for kernel in kernels.get(e["args"]["correlation"], [])]
    host, device = dict.fromkeys(STAGES, 0.0), dict.fromkeys((*STAGES, "other"), 0.0)
    host_has, device_has = Counter[str](), Counter[str]()
    for step in counted:
        own = sorted((e for e in stages if _is_stage_of(e, step, mistake)), key=lambda e: e["ts"])
        for stage in own:
            name = stage["name"][len("stage: ") :]
            is_known = any(e["name"] == stage["name"] and e["ts"] < stage["ts"] for e in own)
            if not (mistake == "first range" and is_known):
                host[name] = stage["dur"] + (0.0 if mistake == "last range" else host[name])
        host_has.update({stage["name"][len("stage: ") :] for stage in own})
        on_device: set[str] = set()
        for launch, kernel in queued:
            moment = kernel["ts"] if mistake == "when it runs" else launch["ts"]
            # By the moment when it runs alone it belongs to that step; else to the one that launched it.
            is_own = _lies_in(moment, step)
            if mistake == "the last step that began":
                is_own = step is max(
                    (s for s in steps if s["ts"] <= moment), key=lambda s: s["ts"], default=None
                )
            if mistake == "threads":
                is_own &= launch.get("tid") == step["tid"]
            if is_own:
                inside = [
                    e["name"][len("stage: ") :]
                    for e in own
                    if _lies_in(moment, e) and not (mistake == "launched as it begins" and moment == e["ts"])
                ]
                if mistake == "the last stage that began":
                    inside = [e["name"][len("stage: ") :] for e in own if e["ts"] <= moment][-1:]
                name = inside[0] if inside else "other"
                device[name] += kernel["dur"]
                on_device.add(name)
        device_has.update(on_device)
    length = sum(step["dur"] for step in counted)
    if mistake == "timing without a sync" and kernels:
        device |= host
    if mistake == "no other":
        device["other"] = 0.0
    unit = {"microseconds": 1.0, "milliseconds": 1e3}.get(mistake, 1e6)
    scale = 1.0 / (unit * max(1, len(counted)))
    host["other"] = length - sum(host.values())
    if mistake == "steps that have it":
        for times, has in ((host, host_has), (device, device_has)):
            times |= {name: times[name] * len(counted) / number for name, number in has.items()}
    if mistake == "sums":
        scale = 1.0 / unit
    return {
        "flat": {"num_steps": len(counted), "step_time": length * scale},
        "host": {name: value * scale for name, value in host.items()},
        "device": {name: value * scale for name, value in device.items()},
    }


def _lies_in(moment: float, outer: Event) -> bool:
    return bool(outer["ts"] <= moment < outer["ts"] + outer["dur"])


def _is_stage_of(stage: Event, step: Event, mistake: str) -> bool:
    ends, end = stage["ts"] + stage["dur"], step["ts"] + step["dur"]
    if mistake == "begins where another ends":
        return bool(step["ts"] <= stage["ts"] <= end)
    if mistake == "ends before its step":
        return bool(step["ts"] <= stage["ts"] and ends < end)
    return _lies_in(stage["ts"], step)


def _condensed(kernels: list[Event], mistake: str) -> list[Event]:
    """Kernels of one launch as a mistaken reader takes them: one from the first to the last, or equal ones once."""
    if mistake == "the same twice":
        return [*{kernel["dur"]: kernel for kernel in kernels}.values()]
    begin = min(kernel["ts"] for kernel in kernels)
    return [kernels[0] | {"dur": max(kernel["ts"] + kernel["dur"] for kernel in kernels) - begin}]
