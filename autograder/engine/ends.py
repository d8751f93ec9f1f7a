"""The grader's ends of a worker's two pipes. Neither can be held past a deadline by whatever is at the other end."""

from __future__ import annotations

import math
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable

from autograder.engine.timing import core_seconds


class Pump:
    """Reads a pipe in a thread, so that half a frame cannot hold the grader past a deadline, on any system."""

    def __init__(self, descriptor: int) -> None:
        self.pieces: queue.Queue[bytes] = queue.Queue(maxsize=64)
        self.rest = b""
        self.deadline = math.inf
        self.grace: Callable[[], float] = lambda: 0.0  # seconds beyond the deadline, asked for when it comes
        self.is_wanted = True
        # When the last piece was read, and the seconds for which pieces lay there while this thread had no core.
        self.arrived = self.waited = 0.0
        threading.Thread(target=self._run, args=(descriptor,), daemon=True).start()

    def _run(self, descriptor: int) -> None:
        piece = b"start"
        while piece and self.is_wanted:
            _, waited = core_seconds("thread-self")
            try:
                piece = os.read(descriptor, 2**20)
            except OSError:
                piece = b""
            self.arrived = time.perf_counter()
            self.waited += core_seconds("thread-self")[1] - waited
            self._put(piece)
        os.close(descriptor)

    def _put(self, piece: bytes) -> None:
        while self.is_wanted:
            try:
                return self.pieces.put(piece, timeout=1.0)
            except queue.Full:
                continue

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer at the end of the pipe. Raises `TimeoutError` at the deadline."""
        found = [self.rest]
        missing = size - len(self.rest)
        while missing > 0:
            try:
                piece = self.pieces.get(timeout=max(0.0, self.deadline - time.monotonic()))
            except queue.Empty:
                if (more := self.grace()) <= 0:
                    raise TimeoutError from None
                self.deadline += more
                continue
            if not piece:
                self.pieces.put(b"")  # the end stays the end
                break
            found.append(piece)
            missing -= len(piece)
        data = b"".join(found)
        self.rest = data[size:]
        return data[:size]


class Outlet:
    """Writes to a pipe; a worker that has stopped reading cannot hold the grader past a deadline."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.deadline = math.inf
        if sys.platform != "win32":
            os.set_blocking(descriptor, False)

    def write(self, data: bytes) -> None:
        """All of `data`. Raises `TimeoutError` at the deadline."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:
                left = self.deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                poll = select.poll()
                poll.register(self.descriptor, select.POLLOUT)
                poll.poll(1000 * left)

    def flush(self) -> None:
        """Nothing is held back."""
