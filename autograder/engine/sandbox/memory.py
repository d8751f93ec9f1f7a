"""Whom others may have taken the memory from: a class is checked side by side, and one cell may take all there is.

An innocent's grade is the same as without the neighbour: whoever was ended or failed for want of memory while the
machine was short of it is checked again at the end, alone.
"""

from __future__ import annotations

import re
import threading
from types import TracebackType
from typing import Self

from autograder.common import Result
from autograder.engine.sandbox.view import memory_limit
from autograder.engine.sandbox.watch import MACHINE_IS_FULL

_SECONDS = 0.2  # between looks
#: What a check says where memory ran out: our own words, Python's, torch's, and those for an end by the system.
_LACKED = re.compile(
    r"of memory, and was ended|more memory than it may have|not enough memory|MemoryError"
    r"|[Cc]an(?:'|no)?t allocate memory|ended early|The check itself stopped"
)


class LeastMemory:
    """The least room that a check had while the block ran.

    Attributes:
        least: bytes that one process of a worker might take at the worst moment.
    """

    def __init__(self) -> None:
        self.least = memory_limit()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(_SECONDS):
            self.least = min(self.least, memory_limit())

    def was_lacking_to(self, result: Result | None) -> bool:
        """Whether a check came to this for want of memory, and has more of it now."""
        if result is None or result.verdict not in ("fail", "error"):
            return False
        return is_machines(result) or (
            bool(_LACKED.search(str(result.reason))) and memory_limit() > self.least
        )


def is_machines(result: Result) -> bool:
    """Whether it was ended because the machine was full, and not by what it took itself. A learner's own words may
    stand in a note, but never first."""
    return result.reason.note.startswith(MACHINE_IS_FULL)
