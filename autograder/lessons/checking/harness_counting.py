"""How a harness counts: each event is told to the grader at once, in the process that holds the clock.

What a check is given in an answer was in the solution's process until the answer was sent, and could be changed there.
`tell` is the worker's (`engine/sandbox/inside/telling.py`); a process that was started anew tells nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from course_lib.measuring import Counts, count_events, peak_bytes
from course_lib.measuring.threads import unfollowed

tell: Any = globals().get("tell") or (lambda *_: 0)


@contextlib.contextmanager
def counted(model: Any = None, *, operators: bool = True, of: str = "") -> Iterator[Counts]:
    """`count_events`, told to the grader: `Worker.counts`. It yields them for the answers of twins.

    Threads that were there before are not counted, and told of.

    `of`: what is counted, where the grader is told of several at a time, such as "rank 1".
    """
    with _stretch(of) as on_event, count_events(model, operators=operators, on_event=on_event) as counts:
        _flag_threads(operators)
        yield counts
        _flag_threads(operators)


def _flag_threads(operators: bool) -> None:
    if operators and unfollowed():
        tell("flag", "while it is counted what is read, threads run whose reads are not seen")


def counted_peak(step: Callable[[], Any]) -> int:
    """`peak_bytes` on a CPU, told to the grader in the same way."""
    with _stretch("") as on_event:
        return peak_bytes(step, torch.device("cpu"), on_event=on_event)


def see(name: str, *numbers: float) -> None:
    """Something else that is counted, told as it happens: `Worker.told.seen`."""
    tell("seen", name, *numbers)


@contextlib.contextmanager
def _stretch(of: str) -> Iterator[Callable[[str, int], None]]:
    number = tell("open", of)
    try:
        yield lambda name, amount: tell("count", number, name, amount)
    finally:
        tell("close", number)
