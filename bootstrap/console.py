"""How the set-up talks: one line per step, and one line that moves while a step takes its time."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType


class SetupError(RuntimeError):
    """The set-up cannot go on. The message is one line and names the fix."""


def say(text: str) -> None:
    """Print a step on stderr: stdout belongs to the verb that runs afterwards (`--json` prints JSON alone)."""
    print(text, file=sys.stderr, flush=True)


def human_size(num_bytes: float) -> str:
    """`191794682` → `192 MB` (decimal units, as pip prints them)."""
    for unit in ("B", "kB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} GB"


class LiveLine:
    """One line that is rewritten in a terminal, and repeated every 15 seconds where there is none.

    `text` is called from a thread of its own; it must be quick and must not raise.
    """

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._is_terminal = sys.stderr.isatty()
        self._done = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self) -> None:
        while not self._done.wait(0.5 if self._is_terminal else 15):
            seconds = time.monotonic() - self._started
            line = f"  {self._text()} ({seconds:.0f} s)"
            if self._is_terminal:
                sys.stderr.write("\r\x1b[K" + line[:100])
                sys.stderr.flush()
            else:
                say(line)

    def __enter__(self) -> "LiveLine":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
