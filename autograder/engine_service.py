"""The engine as a process apart from the learner's kernel: a line of JSON asks, lines of JSON answer.

One process serves a kernel from its first exercise on, so that what is slow (imports, the sandbox) is done before the
first check. It ends with the kernel, also in the middle of a check, or after `IDLE_SECONDS` without one.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any, NoReturn

IDLE_SECONDS = 15 * 60.0
STOP_SECONDS = 10.0


class EngineDied(Exception):
    """The engine's process ended without a result; the text is the last line it printed."""


class EngineService:
    """The kernel's end. One at a time: a check is asked for when the one before has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """The process, started in the background unless it runs."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe, which would fill
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", "autograder.engine_service"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # the stop button signals the kernel's group; `stop` is the engine's way
            )
        return self._process

    def check(
        self, exercise_id: str, source: str, on_progress: Callable[[str, float], None]
    ) -> dict[str, Any]:
        """The engine's result for the source of a cell. Raises `EngineDied`. An interrupt ends the process too."""
        process = self.start()
        assert process.stdin and process.stdout
        try:
            with contextlib.suppress(BrokenPipeError):  # an engine that died at once says why below
                print(json.dumps([exercise_id, source]), file=process.stdin, flush=True)
            for line in process.stdout:
                said = json.loads(line)
                if "result" in said:
                    return dict(said["result"])
                on_progress(*said["progress"])
        except BaseException:
            self.stop()
            raise
        self.stop()
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip().splitlines()
        raise EngineDied(words[-1] if words else "no message")

    def stop(self) -> None:
        """End the process with all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin and process.stdout
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main() -> None:
    """Serve checks from stdin until it ends."""
    # Whatever a library prints must not come between the lines of the protocol.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _end)
    requests: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()

    def say(kind: str, what: Any) -> None:
        print(json.dumps({kind: what}), file=lines, flush=True)

    from autograder import sandbox
    from autograder.engine import check_source

    sandbox.warm()
    with contextlib.suppress(queue.Empty):
        while True:
            exercise_id, source = requests.get(timeout=IDLE_SECONDS)
            result = check_source(exercise_id, source, on_progress=lambda *said: say("progress", said))
            say("result", result)


def _read(requests: queue.SimpleQueue[list[str]]) -> None:
    """Take requests from stdin in a thread of its own, so that a kernel's end is seen during a check too."""
    rest = b""
    while piece := os.read(0, 2**16):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            requests.put(json.loads(line))
    os.kill(os.getpid(), signal.SIGTERM)


def _end(_signal: int, _frame: object) -> NoReturn:
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # nothing cuts short the `finally` blocks that end the workers
    raise SystemExit(1)


if __name__ == "__main__":
    main()
