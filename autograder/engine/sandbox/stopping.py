"""How a check is stopped from outside: by the stop button, by Ctrl-C, or because its kernel has ended.

What the clock has said until then is kept, whoever stops, and as often as they like. The decision rule holds at every
stop (`verdict.py`), as long as no block is thrown away: a stop that dropped its blocks would be a way to begin anew,
without an attempt, whenever the first blocks look unlucky.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

KILLED = "The check was stopped."
WAITING = "Stopping after the step at hand. Ctrl-C again stops at once."
_PATIENCE_SECONDS = 1.0  # until whoever pressed Ctrl-C is told what it waits for


class Stopped(Exception):
    """The check was stopped; no verdict. Raised within the engine."""


class CheckStopped(KeyboardInterrupt):
    """The same for whoever asked for the check: what comes after it does not run either. The text is for people."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return ["Stopped: the cells below were not run."]


class Stop:
    """A switch for one check. It may be pressed in any thread, before the check begins and after it has ended too."""

    def __init__(self) -> None:
        self.is_pressed = False

    def press(self) -> None:
        """End the workers of this process: whoever waits for one of them, or for the first, gets an error at once."""
        from autograder.engine.sandbox.process import living
        from autograder.engine.sandbox.start import stop_loading

        self.is_pressed = True
        stop_loading()
        for worker in living():
            worker.kill(KILLED)

    def raise_if_pressed(self) -> None:
        """Raise `Stopped`, once pressed."""
        if self.is_pressed:
            raise Stopped


@contextlib.contextmanager
def on_interrupt() -> Iterator[Stop]:
    """A switch that Ctrl-C presses. A second Ctrl-C interrupts at once."""
    stop, is_over = Stop(), threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def end() -> None:
        stop.press()
        if not is_over.wait(_PATIENCE_SECONDS):
            print(f"\n{WAITING}", file=sys.stderr)

    def press(_signal: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        # In a thread: what is interrupted may hold the lock that ending a worker takes.
        threading.Thread(target=end).start()

    signal.signal(signal.SIGINT, press)
    try:
        yield stop
    finally:
        is_over.set()
        signal.signal(signal.SIGINT, before)
