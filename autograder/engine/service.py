"""The engine as a process apart from the learner's kernel: a line of JSON asks, lines of JSON answer.

One process serves a kernel from its first exercise on, so that what is slow (imports, the sandbox) is done before the
first check. The line "stop" ends a check and leaves the process ready for the next. The process ends with the kernel,
also in the middle of a check, or after `IDLE_SECONDS` without one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any, NoReturn

from autograder.common import Result
from autograder.engine.sandbox import Stop

IDLE_SECONDS = 15 * 60.0
STOP_SECONDS = 5.0  # for a check to stop, and for the process to end
TICK_SECONDS = 1.0

OnProgress = Callable[[str, float], None]
Requests = queue.SimpleQueue[tuple[str, str, Stop] | None]


class EngineDied(Exception):
    """The engine's process ended without a result; the text is the last line it printed."""


class EngineStuck(EngineDied):
    """It came to no result in the time that it had, and was ended."""


class EngineService:
    """The kernel's end. One at a time: a check is asked for when the one before has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def start(self) -> subprocess.Popen[str]:
        """The process, started in the background unless it runs."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe, which would fill
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", "autograder.engine.service"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # the stop button signals the kernel's group, and the engine is told below
            )
            assert self._process.stdout
            self._lines = queue.SimpleQueue()
            threading.Thread(target=_pass_on, args=(self._process.stdout, self._lines), daemon=True).start()
        return self._process

    def check(
        self, exercise_id: str, source: str, on_progress: OnProgress, patience: float = math.inf
    ) -> Result | None:
        """The engine's result for the source of a cell. An interrupt stops the check, and its result says so; None
        from an engine that could not stop in time, and was ended. Raises `EngineDied`, and `EngineStuck` of one that
        came to no result within `patience` seconds.

        on_progress: told of each step, and of the last one again every `TICK_SECONDS`.
        """
        try:
            self._say([exercise_id, source])
            try:
                return self._result(on_progress, patience)
            except TimeoutError:
                raise EngineStuck(f"no result within {patience:.0f} s") from None
            except KeyboardInterrupt:
                with contextlib.suppress(KeyboardInterrupt, EngineDied, TimeoutError):
                    self._say("stop")
                    return self._result(lambda text, fraction: None, patience=STOP_SECONDS)
                self.stop()
                return None
        except BaseException:
            self.stop()
            raise

    def _say(self, what: object) -> None:
        process = self.start()
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):  # an engine that died says why when it is listened to
            print(json.dumps(what), file=process.stdin, flush=True)

    def _result(self, on_progress: OnProgress, patience: float = math.inf) -> Result:
        """Raises `EngineDied`, and `TimeoutError` after `patience` seconds."""
        deadline, progress = time.monotonic() + patience, ("Starting", 0.0)
        while time.monotonic() < deadline:
            on_progress(*progress)
            try:
                line = self._lines.get(timeout=TICK_SECONDS)
            except queue.Empty:
                continue
            if not line:
                self._log.seek(0)
                words = self._log.read().decode(errors="replace").strip().splitlines()
                raise EngineDied(words[-1] if words else "no message")
            said = json.loads(line)
            if "result" in said:
                return Result.of_message(said["result"])
            progress = said["progress"]
        raise TimeoutError

    def stop(self) -> None:
        """End the process with all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pass_on(lines: IO[str], to: queue.SimpleQueue[str]) -> None:
    """In a thread, so that an interrupt finds the kernel between two lines, on any system. "" is the end."""
    with lines:
        for line in lines:
            to.put(line)
    to.put("")


def main() -> None:
    """Serve checks from stdin until it ends."""
    # Whatever a library prints must not come between the lines of the protocol.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _end)
    requests: Requests = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()

    def say(kind: str, what: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # the kernel has ended, and `_read` sees to it
            print(json.dumps({kind: what}), file=lines, flush=True)

    from autograder.engine.check import check_source
    from autograder.engine.sandbox import start as sandbox

    sandbox.warm()
    with contextlib.suppress(queue.Empty):
        while request := requests.get(timeout=IDLE_SECONDS):
            exercise_id, source, stop = request
            result = check_source(
                exercise_id, source, on_progress=lambda *said: say("progress", said), stop=stop
            )
            say("result", result.to_message())


def _read(requests: Requests) -> None:
    """Take requests from stdin in a thread of its own: a stop and the kernel's end are heard during a check too."""
    rest, stop = b"", Stop()
    while piece := os.read(0, 2**16):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            request = json.loads(line)
            if request == "stop":
                stop.press()
            else:
                stop = Stop()
                requests.put((*request, stop))
    requests.put(None)
    stop.press()
    time.sleep(STOP_SECONDS / 2)  # what a check does outside its workers cannot be stopped
    os.kill(os.getpid(), signal.SIGTERM)


def _end(_signal: int, _frame: object) -> NoReturn:
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # nothing cuts short the `finally` blocks that end the workers
    raise SystemExit(1)


if __name__ == "__main__":
    main()
