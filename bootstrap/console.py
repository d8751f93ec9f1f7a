"""How the set-up talks: one line per step, and one line that moves while a step takes its time."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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


@contextmanager
def live_line(text: Callable[[], str]) -> Iterator[None]:
    """One line that is rewritten in a terminal, and repeated every 15 seconds where there is none.

    `text` is called from a thread of its own; it must be quick and must not raise.
    """
    is_terminal = sys.stderr.isatty()
    done, began = threading.Event(), time.monotonic()

    def rewrite(line: str) -> None:
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def tick() -> None:
        while not done.wait(0.5 if is_terminal else 15):
            line = f"  {text()} ({time.monotonic() - began:.0f} s)"
            rewrite(line[:100]) if is_terminal else say(line)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if is_terminal:
            rewrite("")
