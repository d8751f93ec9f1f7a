"""Ends workers that take more processes, sockets or memory than they may, or than the machine has."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

import psutil

from autograder.engine.sandbox.view import MAX_PROCESSES, MAX_SOCKETS

MIN_FREE_MEMORY = 0.05  # of the machine's; with less, the largest worker is ended
MACHINE_IS_FULL = "The machine ran out of memory while your code was running, and the code was ended."
_WATCH_SECONDS = 0.05
# So long a worker that takes next to nothing may go on while memory is short: others of other graders are larger.
_PATIENCE_SECONDS = 2.0
_owners: set[int] = set()  # processes


class Watched(Protocol):
    """A worker.

    Attributes:
        memory_limit: bytes, of all its processes together.
        tasks, free: of the machine as the worker began: processes and threads, and bytes of free memory.
    """

    memory_limit: int
    tasks: int
    free: int

    def family(self, most: int = ...) -> list[psutil.Process]: ...
    def memory(self, family: list[psutil.Process]) -> int: ...
    def num_threads(self) -> int: ...
    def num_sockets(self) -> int: ...
    def kill(self, why: str = ...) -> None: ...


Workers = Collection[Watched]


def start_watch(live: Workers) -> None:
    """Watch those that live, from now on, in this process."""
    if os.getpid() not in _owners:  # a forked child has no thread of its parent's
        _owners.add(os.getpid())
        threading.Thread(target=_watch_for_ever, args=(live,), daemon=True).start()


def _watch_for_ever(live: Workers) -> None:
    """For root there is no limit on processes but this, and for nobody one on the memory of many together."""
    with contextlib.suppress(OSError, AttributeError):  # for root: a fork bomb leaves no time to others
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    short_since: float | None = None
    while True:
        time.sleep(_WATCH_SECONDS)
        if live:
            short_since = _watch(live, short_since)


def _watch(live: Workers, short_since: float | None) -> float | None:
    """End workers that take more processes or memory than they may. Cheap as long as nothing is wrong.

    Returns since when memory is short, by the monotonic clock; None where there is enough.
    """
    tasks, memory = num_tasks(), psutil.virtual_memory()
    for worker in list(live):
        # In this order: to ask for the memory of a process that forks without end takes long.
        if tasks - worker.tasks > MAX_PROCESSES // 2 and worker.num_threads() > MAX_PROCESSES:
            worker.kill(f"Your code started more than {MAX_PROCESSES} processes and threads, and was ended.")
        elif worker.num_sockets() > MAX_SOCKETS:  # what waits in them is no process's memory
            worker.kill(f"Your code opened more than {MAX_SOCKETS} sockets, and was ended.")
        elif (
            worker.free - memory.available > (most := worker.memory_limit)  # cheap; the next is not
            and worker.memory(worker.family(MAX_PROCESSES)) > most
        ):
            worker.kill(f"Your code took more than {most / 2**30:.1f} GiB of memory, and was ended.")
    if memory.available >= MIN_FREE_MEMORY * memory.total:
        return None
    now = time.monotonic()
    short_since = short_since or now
    taken = {worker: worker.memory(worker.family()) / worker.memory_limit for worker in list(live)}
    if not taken:
        return None
    largest = max(taken, key=lambda worker: taken[worker])
    if now - short_since >= _PATIENCE_SECONDS * (1 - taken[largest]):
        largest.kill(MACHINE_IS_FULL)
    return short_since


def num_tasks() -> int:
    """Processes and threads on this machine; 0 where the kernel does not say."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return 0
