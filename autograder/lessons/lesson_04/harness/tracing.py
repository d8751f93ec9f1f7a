"""Children of the worker for 4.2, and how to stop one between any two of its calls to the operating system."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

_TRACE_ME, _GO_ON, _OPTIONS, _KILL_WITH_ME = 0, 24, 0x4200, 0x100000
# Calls to the system are marked; threads and children are followed.
_TRACE_ALL = 1 | 2 | 4 | 8 | _KILL_WITH_ME
_ALL_THREADS = 0x40000000  # __WALL


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """A child that does `work`, given a pipe's end, and ends; and the other end."""
    done, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(tell)
        finally:
            os._exit(0)
    os.close(tell)
    return child, done


def stops(work: Callable[[], None]) -> Iterator[None]:
    """Do `work` in a child, which stands still at each yield."""
    if sys.platform != "linux":
        yield from _moments(work)
        return
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.restype = ctypes.c_long
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def traced(_: int) -> None:
        if ptrace(_TRACE_ME, 0, None, None) < 0:
            os._exit(99)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()

    child, done = forked(traced)
    os.close(done)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status) or ptrace(_OPTIONS, child, None, _TRACE_ALL) < 0:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        yield from _moments(work)
        return
    ptrace(_GO_ON, child, None, None)
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        stopped, status = os.waitpid(-1, _ALL_THREADS)
        if not os.WIFSTOPPED(status):
            if stopped == child:
                return
            continue
        sent = os.WSTOPSIG(status)
        is_ours = sent in (signal.SIGTRAP, signal.SIGTRAP | 0x80, signal.SIGSTOP)
        if sent == signal.SIGTRAP | 0x80:
            yield
        ptrace(_GO_ON, stopped, None, None if is_ours else sent)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, _ALL_THREADS)


def _moments(work: Callable[[], None]) -> Iterator[None]:
    """Do `work` over and over in a child that runs on, for a quarter of a second."""

    def again(_: int) -> None:
        while True:
            work()

    child, done = forked(again)
    os.close(done)
    deadline = time.monotonic() + 0.25
    while time.monotonic() < deadline:
        yield
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
