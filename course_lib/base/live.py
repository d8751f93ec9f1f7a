"""What a person sees while something goes on: a line on stderr, or one output of a notebook cell."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MAX_PAUSE = 10.0  # seconds between two pictures of a `LiveOutput`


def say(message: str, *, enabled: bool = True) -> None:
    """One line on stderr: stdout belongs to the answer."""
    if enabled:
        print(message, file=sys.stderr, flush=True)


def in_kernel() -> bool:
    """Whether this process is a Jupyter kernel. Says so without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


class NoBar:
    """What is used of a bar of `tqdm`, and draws nothing."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def update(self, num: int = 1) -> None: ...

    def set_description(self, text: str, refresh: bool = True) -> None: ...

    def set_postfix(self, values: dict[str, str], refresh: bool = True) -> None: ...

    def close(self) -> None: ...


def progress_bar(rows: Iterable[Any] = (), description: str = "", **options: Any) -> Any:
    """A bar of `tqdm`, which takes the `options`; a `NoBar` where that is not installed, for nothing hangs on it."""
    try:
        from tqdm import tqdm
    except ImportError:
        return NoBar(rows)
    return tqdm(rows, description, **options)


class LiveOutput:
    """One output of a notebook cell, replaced in place. Outside a notebook it shows nothing.

    What was shown last is what the saved notebook holds.
    """

    def __init__(self, seconds: float) -> None:
        """seconds: between two pictures at least. Twenty times what the last one took to draw, if that is longer, but
        `MAX_PAUSE` at most: the first one may have to load what draws."""
        self.seconds = seconds
        self._due = 0.0
        self._handle: Any = None

    def offer(self, draw: Callable[[], tuple[str, str]], *, at_once: bool = False) -> None:
        """Show what `draw` returns, HTML and plain text, unless it is too early for the next picture."""
        start = time.monotonic()
        if not in_kernel() or (start < self._due and not at_once):
            return
        from IPython.display import display

        html, text = draw()
        data = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
        now = time.monotonic()
        self._due = now + max(self.seconds, min(20 * (now - start), MAX_PAUSE))
