"""How a harness asks for samples that another process keeps, behind a latency: `engine/sandbox/storage_server.py`.

Nothing is known here of what is stored, and no wait is made here: an answer comes when it comes, and the other process
counts. Threads, forked processes and spawned ones each have a connection of their own.
"""

from __future__ import annotations

import os
import socket
import struct
import threading

_REQUEST, _ANSWER = struct.Struct("<II"), struct.Struct("<BI")  # as the other process has them
_HERE, _UNREADABLE = 0, 1
_connections = threading.local()
_place = _token = ""


def use_storage(place: str, token: str) -> None:
    """The path or port at which this worker is served, and the first thing to say there. Told before anything else."""
    global _place, _token
    _place, _token = place, token


class Lost(OSError):
    """A sample that cannot be read this time."""


class Served:
    """The samples that are stored under a number, as bytes."""

    def __init__(self, number: int) -> None:
        # For a process that is started afresh: there nobody has said it.
        self.number, self.place, self.token = number, _place, _token

    def fetch(self, index: int) -> bytes:
        """The sample of this index, after its latency. Raises `Lost` where it cannot be read."""
        request = _REQUEST.pack(self.number, index)
        connection = self._connection()
        try:
            connection.sendall(request)
            received = b""
            while (
                len(received) < _ANSWER.size
                or len(received) < _ANSWER.size + _ANSWER.unpack_from(received)[1]
            ):
                piece = connection.recv(2**16)
                if not piece:
                    raise ConnectionError("the storage has hung up")
                received += piece
        except BaseException:  # the answer that is still to come is nobody's
            del _connections.kept
            raise
        if received[0] == _UNREADABLE:
            raise Lost(f"sample {index} cannot be read")
        if received[0] != _HERE:
            raise ConnectionError(f"nothing is stored under {self.number}, {index}")
        return received[_ANSWER.size :]

    def _connection(self) -> socket.socket:
        key, connection = getattr(_connections, "kept", (None, None))
        if connection is None or key != (os.getpid(), self.place):  # of another process, before it forked
            connection = _connected_to(self.place)
            connection.sendall(bytes.fromhex(self.token))
            _connections.kept = (os.getpid(), self.place), connection
        return connection


def _connected_to(place: str) -> socket.socket:
    if place.startswith("/"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(place)
        return connection
    host, _, port = place.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
