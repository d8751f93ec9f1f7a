"""What a worker tells as it happens, as the grader keeps it: counts in order, and reasons for a person to look."""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from autograder.engine.sandbox.inside.telling import SEAL_BYTES, sealed
from course_lib.measuring.counts import Counts

# Between two looks: a message that woke this process each time would cost a timed worker.
_REST_SECONDS = 0.005
_MAX_MESSAGE = 2**16
_MAX_EVENTS = 100_000
_MAX_DEEDS = 10_000
_MAX_NAME = 1000  # characters
_MAX_BYTES = 2**24  # of what is told of one call; kept as objects it is some times as much


@dataclass(eq=False)
class ToldCounts(Counts):
    """What one stretch of counting came to, by what was told of it."""

    of: str = ""
    """What it was counted of, where there are several, such as "rank 1"."""
    is_open: bool = True
    events: list[tuple[str, int]] = field(default_factory=list)
    """Name and amount of each, in order; of operators (bytes and FLOPs) none."""

    def take(self, name: str, amount: int) -> None:
        """Add one event. Raises ValueError where it is none, or is told of what has ended."""
        if not self.is_open or amount < 0:
            raise ValueError(f"{name} {amount}")
        self.note(name, amount)
        if not name.startswith(("flops", "peak")) and len(self.events) < _MAX_EVENTS:
            self.events.append((name, amount))


@dataclass(frozen=True)
class Deed:
    """An audit event that the cell caused.

    Attributes:
        event: Python's name for it.
        subject: what it was about, such as the module of an import.
        line: of the cell.
        inner, outer: the functions of libraries in between: the one that did it, and the one that the cell called; ""
            where the cell did it itself.
    """

    event: str
    subject: str
    line: int
    inner: str
    outer: str


@dataclass(eq=False)
class ToldOfCall:
    """What was told of one call of a worker.

    Attributes:
        counts: the stretches of counting, in the order in which they began.
        seen: what else the harness saw, by name: rows of numbers, in order.
    """

    counts: list[ToldCounts] = field(default_factory=list)
    seen: defaultdict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))


class Told:
    """Takes a worker's messages from a socket, in a thread, or from its answers where it has none.

    Attributes:
        call: the call in hand, or the last one.
        deeds: what the cell does, or has a library do, beside its task, in all calls.
        flags: why a person should look, of all calls.
        is_whole: whether every message was one, and none was missing or told twice.
    """

    def __init__(self, connection: socket.socket | None, key: bytes) -> None:
        self.call = ToldOfCall()
        self.deeds: dict[Deed, None] = {}
        self.flags: dict[str, None] = {}
        self.is_whole = True
        self._last: Counter[int] = Counter()  # number, of each process
        self._first = 0  # process
        self._open: dict[tuple[int, int], ToldCounts] = {}  # by process and number
        self._answered = ""
        self._num_bytes = 0  # told of this call
        self._key = key
        self._news, self._hurry = threading.Condition(), threading.Event()
        self._has_ended = connection is None
        if connection is not None:
            threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def begin(self) -> None:
        """A call begins: what was told until now belongs to others."""
        with self._news:
            self.call, self._num_bytes = ToldOfCall(), 0

    def wait_for(self, answer: str, seconds: float) -> None:
        """Return when all is here that was told before this answer."""
        self._hurry.set()
        with self._news:
            if not self._news.wait_for(lambda: self._answered == answer or self._has_ended, seconds):
                self.is_whole = False
            self.is_whole &= self._answered == answer
        self._hurry.clear()

    def take(self, messages: Iterable[Any]) -> None:
        """Take these in order."""
        with self._news:
            for message in messages:
                self._num_bytes += len(message)
                try:
                    self._take(json.loads(message))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
                    self.is_whole = False
            self._news.notify_all()

    def _listen(self, connection: socket.socket) -> None:
        with connection:
            while message := _received(connection):
                messages = [message]
                with contextlib.suppress(BlockingIOError):
                    while len(messages) < 1000 and (message := _received(connection, socket.MSG_DONTWAIT)):
                        messages.append(message)
                own = [told for message in messages if (told := self._unsealed(message))]
                self.take(own)
                if len(own) < len(messages):  # anybody there can write to the socket, as much as they like
                    self.is_whole = False
                    break
                if len(messages) < 1000:
                    self._hurry.wait(_REST_SECONDS)
        with self._news:
            self._has_ended = True
            self._news.notify_all()

    def _unsealed(self, message: bytes) -> bytes:
        """What the worker told; nothing, if it is not the worker's."""
        told = message[SEAL_BYTES:]
        return told if hmac.compare_digest(sealed(told, self._key), message) else b""

    def _take(self, message: list[Any]) -> None:
        process, number, kind, *what = message
        self._first = self._first or process
        if not isinstance(number, int) or number != self._last[process] + 1:
            self.is_whole = False
        self._last[process] = number
        if self._num_bytes > _MAX_BYTES and kind in ("open", "count", "seen"):
            raise ValueError("told too much of one call")
        if kind == "open":
            counts = self._open[process, number] = ToldCounts(of=str(*what))
            self.call.counts.append(counts)
        elif kind == "count":
            stretch, name, amount = what
            if self._is_its_own(process, stretch):
                self._open[process, stretch].take(name, int(amount))
        elif kind == "close":
            if self._is_its_own(process, *what):
                self._open.pop((process, *what)).is_open = False
        elif kind == "seen":
            name, *numbers = what
            if len(rows := self.call.seen[str(name)]) < _MAX_EVENTS:
                rows.append([_number(number) for number in numbers])
        elif kind == "flag" and len(self.flags) < 100:
            self.flags[str(*what)[:300]] = None
        elif kind == "deed" and len(self.deeds) < _MAX_DEEDS:
            event, subject, line, inner, outer = what
            event, subject, inner, outer = (str(name)[:_MAX_NAME] for name in (event, subject, inner, outer))
            deed = Deed(event, subject, int(line), inner, outer)
            self.deeds[deed] = None
        elif kind == "answer":
            self._answered = str(*what)
        elif kind not in ("flag", "deed", "answer"):
            raise ValueError(kind)

    def _is_its_own(self, process: int, stretch: int) -> bool:
        """Whether a process began to count there: one that is forked meanwhile has the counters of its parent."""
        return process == self._first or (process, stretch) in self._open


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _received(connection: socket.socket, flags: int = 0) -> bytes:
    """The next message; empty at the end."""
    try:
        return connection.recv(_MAX_MESSAGE, flags)
    except BlockingIOError:
        raise
    except OSError:
        return b""
