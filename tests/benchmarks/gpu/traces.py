"""What a profile of torch shows of a device: the operators by name, its kernels and copies with their times."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from course_lib.measuring import synchronize
from tests.benchmarks.gpu.setting import Setting

Interval = tuple[float, float]
"""Begin and end, in microseconds."""


def profiled(setting: Setting, work: Callable[[], object]) -> list[Any]:
    """The events of `work`: torch's `FunctionEvent`s."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else it writes its start and stop to stderr
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if setting.is_cuda else [])]
    with profile(activities=activities, acc_events=True) as found:
        work()
        synchronize()  # what is not done yet would not be seen
    return list(found.events())


def operators(events: Iterable[Any]) -> list[str]:
    return sorted({event.name for event in events if event.device_type == DeviceType.CPU})


def on_device(events: Iterable[Any]) -> list[Any]:
    """Kernels and copies; not the marks that the program set."""
    return [
        event for event in events if event.device_type == DeviceType.CUDA and not event.is_user_annotation
    ]


def interval(event: Any) -> Interval:
    return event.time_range.start, event.time_range.end


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time, in intervals that do not overlap."""
    found: list[Interval] = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def total(intervals: Sequence[Interval]) -> float:
    return sum(end - begin for begin, end in intervals)


def overlap(some: Iterable[Interval], others: Iterable[Interval]) -> float:
    """Microseconds in which both go on."""
    one, other = merged(some), merged(others)
    return total(one) + total(other) - total(merged([*one, *other]))
