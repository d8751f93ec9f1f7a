"""A worker as the grader holds it: its pipes, what it takes of the machine, and its end."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from autograder.engine.sandbox.inside import isolate
from autograder.engine.sandbox.view import MAX_PROCESSES
from autograder.engine.sandbox.watch import num_tasks, start_watch

_KEPT_WORDS = 2000  # bytes of what a worker printed last
_live: set[WorkerProcess] = set()
_lock = threading.Lock()


class Pipes:
    """The two pipes between grader and worker, and the file for what the worker prints. It never has a name.

    On Linux also a socket by which the worker tells what happens: in messages that only the grader can read.
    """

    def __init__(self) -> None:
        self.for_worker, self.requests = os.pipe()
        self.answers, self.from_worker = os.pipe()
        if sys.platform == "linux":
            import fcntl

            with contextlib.suppress(OSError):  # a large answer in few pieces: each costs a wait for a core
                fcntl.fcntl(self.answers, fcntl.F_SETPIPE_SZ, 2**20)
        self.told = self.tells = None
        if sys.platform == "linux":
            self.told, self.tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.log: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the worker

    def passed_on(self) -> None:
        """Close the worker's ends here: it has its own."""
        os.close(self.for_worker)
        os.close(self.from_worker)
        if self.tells:
            self.tells.close()

    def close(self) -> None:
        """Close our ends, but for `answers` and `told`, which their readers close."""
        if not self.log.closed:
            os.close(self.requests)
            self.log.close()


@dataclass(eq=False)
class WorkerProcess:
    """A started worker, and how to end it with everything it started."""

    pid: int  # of the first process
    pipes: Pipes
    memory_limit: int  # bytes, of all its processes together
    popen: subprocess.Popen[bytes] | None = None  # None: forked, so not our child
    owns_all: bool = False  # the end of the first process is the end of all
    folder: Path | None = None  # on the disk: where the worker can have no place of its own in memory
    why_ended: str = ""  # by us: a sentence for the learner

    def __post_init__(self) -> None:
        self._handle = -1 if self.popen else os.pidfd_open(self.pid)
        self._is_over = threading.Event()
        self.tasks, self.free = num_tasks(), psutil.virtual_memory().available
        _live.add(self)
        start_watch(_live)

    def family(self, most: int = 10**6) -> list[psutil.Process]:
        """The worker's processes: not many more than `most`, so that the look costs little when there are too many."""
        found = [self.pid]
        for pid in found:  # it grows meanwhile
            if len(found) <= most:
                found += _children(pid)
        family = []
        for pid in found:
            with contextlib.suppress(psutil.Error):
                family.append(psutil.Process(pid))
        return family

    def cpu_seconds(self) -> float:
        """CPU time of the worker and all that it started, ended or not, in seconds, as the kernel counts it."""
        return sum(_cpu_seconds(process) for process in self.family())

    def wait(self, seconds: float) -> None:
        """Return when the first process has ended, or after `seconds`."""
        if self.popen:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(seconds)
        elif self._handle >= 0:
            select.select([self._handle], [], [], seconds)

    def kill(self, why: str = "") -> None:
        """End the worker and all its descendants, and wait until they are gone."""
        with _lock:
            is_first = self in _live
            _live.discard(self)
        if not is_first:  # another thread may be at it, and needs what `close` takes away
            self._is_over.wait(10.0)
            return
        self.why_ended = why
        try:
            self._end()
        finally:
            self._is_over.set()

    def _end(self) -> None:
        if self.popen:
            self._kill_spawned(self.popen)
        else:
            if not self.owns_all:
                isolate.kill_descendants(self.pid)
            with contextlib.suppress(OSError):  # for root: a fork bomb leaves no time to end in
                os.sched_setscheduler(self.pid, os.SCHED_RR, os.sched_param(1))
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            self.wait(10.0)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Kill it, and close what is still open to it."""
        self.kill()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self.pipes.close()

    def _kill_spawned(self, popen: subprocess.Popen[bytes]) -> None:
        family = self.family()
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(popen.pid, signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        popen.wait()

    def last_words(self) -> tuple[int | None, list[str]]:
        """Of a worker that has ended: its exit status, where known, and the last lines that it printed."""
        log = self.pipes.log
        log.seek(max(0, os.fstat(log.fileno()).st_size - _KEPT_WORDS))
        text = log.read().decode(errors="replace")
        status = self.popen.returncode if self.popen else None
        if self.popen is None and (found := re.search(r"\nstatus (-?\d+)$", text)):  # by the worker's keeper
            status, text = int(found[1]), text[: found.start()]
        return status, text.strip().splitlines()

    def num_threads(self) -> int:
        """Threads of all its processes."""
        return sum(_number(process, "num_threads") for process in self.family(MAX_PROCESSES))

    def num_sockets(self) -> int:
        """Sockets of all its processes; 0 where it has no network of its own, in which they could be counted."""
        if not self.owns_all:
            return 0
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{self.pid}/net/sockstat").read_text().split()[2])
        return 0

    def memory(self, family: list[psutil.Process]) -> int:
        """Bytes that the processes take; what they share counts once, when it matters."""
        rough = sum(_number(process, "memory_info") for process in family)
        return rough if rough <= self.memory_limit else sum(_number(p, "memory_full_info") for p in family)


def living() -> list[WorkerProcess]:
    """The workers of this process that run."""
    return list(_live)


def forget() -> None:
    """For a forked child: the workers are its parent's."""
    _live.clear()


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(n) for task in tasks for n in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # ended, or a system without these files
        with contextlib.suppress(psutil.Error):
            return [process.pid for process in psutil.Process(pid).children()]
        return []


def _cpu_seconds(process: psutil.Process) -> float:
    """CPU time of a process, its threads, and those of its children that have ended."""
    own = children = 0.0
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        own = times.user + times.system
        children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    if sys.platform == "linux":
        # To the nanosecond, where those times are in hundredths of a second, by the kernel's number for its clock.
        with contextlib.suppress(OSError):
            own = time.clock_gettime(~process.pid << 3 | 2)
    return own + children


def _number(process: psutil.Process, name: str) -> int:
    with contextlib.suppress(psutil.Error):
        try:
            value = getattr(process, name)()
        except psutil.AccessDenied:  # what it shares with others is for its own user to see, and not always
            value = process.memory_info()
            return int(value.rss - value.shared)
        return int(getattr(value, "pss", getattr(value, "rss", value)))
    return 0
