"""Tells the grader what happens in this process at the moment it happens.

An event is one message over a socket that this process can write to and not read, so nothing that was told can be
changed or taken back. Each carries the process's number and a number of its own, one more than the message before:
what is kept back or slipped in leaves a gap. A forked child goes on over the same socket with a series of its own. And
each is sealed with the key of `wire`, so that whoever writes to the socket by its number tells nothing.

Where no socket can be handed to a worker (elsewhere than on Linux) messages wait here for the next answer. Then they
can be changed until it is sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

Tell = Callable[..., int]
SEAL_BYTES = 16
_MAX_KEPT = 100_000


def sealed(message: bytes, key: bytes) -> bytes:
    """The message behind its seal, of `SEAL_BYTES`."""
    return hashlib.blake2b(message, key=key, person=b"told", digest_size=SEAL_BYTES).digest() + message


def teller(descriptor: int | None, key: bytes) -> tuple[Tell, Callable[[], list[str]]]:
    """`tell(kind, *what)`, which gives the number of its message, and `kept()`, the messages that wait for an answer.

    All state is in the closure: an attribute could be set.
    """
    connection = None if descriptor is None else socket.socket(fileno=descriptor)
    number, process, lock, waiting = 0, os.getpid(), threading.RLock(), list[str]()

    def tell(kind: str, *what: Any) -> int:
        nonlocal number
        with lock:
            number += 1
            message = json.dumps([process, number, kind, *what])
            if connection is not None:
                connection.send(sealed(message.encode(), key))
            elif len(waiting) < _MAX_KEPT:
                waiting.append(message)
            return number

    def kept() -> list[str]:
        with lock:
            found = waiting.copy()
            waiting.clear()
            return found

    def begin_anew() -> None:
        nonlocal number, process, lock
        number, process, lock = 0, os.getpid(), threading.RLock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=begin_anew)
    return tell, kept
