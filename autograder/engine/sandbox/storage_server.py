"""The process that a solution waits for: samples behind a latency, each request on a timer of its own, and counted.

`storage.py` starts it outside of every sandbox, one for each worker. What is stored comes over its standard input, from
the grader alone; whoever connects to the socket can only ask for one sample after the other. Requests of several
connections overlap, those of one do not: the next is read when the one before is answered.

It imports the standard library alone, to be there at once, and needs no thread per request: one `select`, whose wait
ends at the next timer. (`epoll` and `asyncio` round waits up to a millisecond.)
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import BinaryIO, NoReturn

REQUEST = struct.Struct("<II")  # number of the data set, index
ANSWER = struct.Struct("<BI")  # status, bytes of the sample that follow
HERE, UNREADABLE, NOT_STORED = range(3)
TOKEN_BYTES = 16
MAX_CONNECTIONS = 200  # more than a worker may have threads; others wait until one of them is closed
MAX_ORDER = 100_000  # requests of which the index is kept; all are counted
_LOOK_SECONDS = 1.0  # from one look whether the grader is still there to the next


class DataSet:
    """What is stored under one number, until other data are; and what was asked of it."""

    def __init__(self, samples: Sequence[bytes], seconds: Sequence[float], lost: Sequence[int]) -> None:
        self.samples, self.seconds, self.lost = samples, seconds, set(lost)
        self.order: list[int] = []
        self.num_asked = self.num_answered = self.most_at_once = 0

    def ask(self, index: int) -> bytes:
        """The answer, as things are now: what is stored after a request was made comes too late for it."""
        self.num_asked += 1
        if len(self.order) < MAX_ORDER:
            self.order.append(index)
        self.most_at_once = max(self.most_at_once, self.num_asked - self.num_answered)
        if index in self.lost:
            # Once: who reads it again gets it, and hides the error.
            self.lost.discard(index)
            return ANSWER.pack(UNREADABLE, 0)
        sample = self.samples[index]
        return ANSWER.pack(HERE, len(sample)) + sample

    def counts(self) -> dict[str, object]:
        return {
            "order": list(self.order),
            "num_asked": self.num_asked,
            "num_answered": self.num_answered,
            "most_at_once": self.most_at_once,
        }


class Connection:
    """One thread or process that asks. Its first bytes are the token."""

    def __init__(self, its_socket: socket.socket) -> None:
        self.socket, self.received, self.is_known = its_socket, b"", False
        self.socket.setblocking(False)
        if self.socket.family != getattr(socket, "AF_UNIX", None):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self.socket.fileno()

    def request(self, token: bytes) -> tuple[int, int] | None:
        """The next request, once it is whole. Raises `OSError` for whoever hung up or has another token."""
        while len(self.received) < (needed := REQUEST.size if self.is_known else TOKEN_BYTES):
            try:
                piece = self.socket.recv(needed - len(self.received))
            except BlockingIOError:
                return None
            if not piece:
                raise ConnectionError("hung up")
            self.received += piece
            if not self.is_known and len(self.received) == TOKEN_BYTES:
                self.is_known, is_right = True, hmac.compare_digest(self.received, token)
                self.received = b""
                if not is_right:
                    raise ConnectionError("another token")
        number, index = REQUEST.unpack(self.received)
        self.received = b""
        return number, index


class Server:
    """Answers requests from `stored`, a data set for each number, when their time has come."""

    def __init__(self, listener: socket.socket, token: bytes) -> None:
        self.listener, self.token = listener, token
        self.stored: dict[int, DataSet] = {}
        self.quiet: set[Connection] = set()  # the next request of these is still to come
        self.waiting: list[tuple[float, int, Connection, DataSet | None, bytes]] = []
        self.numbers = count()
        listener.setblocking(False)

    def run(self) -> None:
        """Serve until the process that started this one is gone."""
        parent = os.getppid()
        while os.getppid() == parent:
            wait = self.waiting[0][0] - time.monotonic() if self.waiting else _LOOK_SECONDS
            is_full = len(self.quiet) + len(self.waiting) >= MAX_CONNECTIONS
            readers = [*self.quiet, *(() if is_full else (self.listener,))]
            ready = select.select(readers, (), (), min(max(0.0, wait), _LOOK_SECONDS))[0]
            self._answer_due()
            for reader in ready:
                if reader is self.listener:
                    self._accept()
                else:
                    self._hear(reader)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            self.quiet.add(connection := Connection(self.listener.accept()[0]))
            self._hear(connection)

    def _hear(self, connection: Connection) -> None:
        try:
            request = connection.request(self.token)
        except OSError:
            self._drop(connection)
            return
        if request is None:
            return
        self.quiet.discard(connection)
        number, index = request
        data, answer, seconds = self.stored.get(number), ANSWER.pack(NOT_STORED, 0), 0.0
        if data and index < len(data.samples):
            answer, seconds = data.ask(index), data.seconds[index]
        else:
            data = None
        heappush(self.waiting, (time.monotonic() + seconds, next(self.numbers), connection, data, answer))

    def _answer_due(self) -> None:
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, connection, data, answer = heappop(self.waiting)
            if data:
                data.num_answered += 1
            self.quiet.add(connection)
            try:
                if connection.socket.send(answer) < len(answer):
                    raise BlockingIOError
            except OSError:  # gone, or it asks and never reads
                self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self.quiet.discard(connection)
        connection.socket.close()


def _obey(orders: BinaryIO, answers: BinaryIO, stored: dict[int, DataSet]) -> NoReturn:
    """Do what the grader says, a line of JSON at a time, until it hangs up: then this process ends."""
    for line in orders:
        order = json.loads(line)
        answer: dict[str, object] = {}
        if order["do"] == "put":
            samples = [orders.read(size) for size in order["sizes"]]
            stored[order["number"]] = DataSet(samples, order["seconds"], order["lost"])
        else:
            answer = stored[order["number"]].counts()
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
    os._exit(0)


def main() -> None:
    """`storage_server.py [DESCRIPTOR]`: of the socket to listen at; without one, a port of this machine's own."""
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    token = bytes.fromhex(orders.readline().decode())
    descriptors = sys.argv[1:]
    listener = (
        socket.socket(fileno=int(descriptors[0])) if descriptors else socket.create_server(("127.0.0.1", 0))
    )
    name = listener.getsockname()
    answers.write(json.dumps({"port": None if descriptors else name[1]}).encode() + b"\n")
    answers.flush()
    server = Server(listener, token)
    # A thread, for a pipe is nothing to `select` on Windows. It sleeps while anything is timed.
    threading.Thread(target=_obey, args=(orders, answers, server.stored), daemon=True).start()
    server.run()


if __name__ == "__main__":
    main()
