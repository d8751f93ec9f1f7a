"""What a check is given: the learner's code in a sandbox, secret random numbers, and ways to say what is wrong."""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder import sandbox
from autograder.sandboxed import wire

Progress = Callable[[str, float], None]


class CheckFailed(Exception):
    """The learner's code is wrong, and the text says how: expected, got, likely mistake, what to look at next."""


class WorkerFailed(Exception):
    """The process could not finish: time, memory, a crash. The text is for the learner."""


def failure(*, expected: str, got: str, likely: str, look: str) -> CheckFailed:
    """The one form in which every check says no."""
    return CheckFailed(f"Expected: {expected}\nGot: {got}\nLikely: {likely}\nNext: {look}")


class _Pump:
    """Reads a pipe in a thread, so that half a frame cannot hold the grader past a deadline, on any system."""

    def __init__(self, descriptor: int) -> None:
        self.pieces: queue.Queue[bytes] = queue.Queue(maxsize=64)
        self.rest = b""
        self.deadline = math.inf
        threading.Thread(target=self._run, args=(descriptor,), daemon=True).start()

    def _run(self, descriptor: int) -> None:
        piece = b"start"
        while piece:
            try:
                piece = os.read(descriptor, 2**20)
            except OSError:  # closed by `WorkerProcess.kill`
                piece = b""
            self.pieces.put(piece)

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer at the end of the pipe. Raises `TimeoutError` at the deadline."""
        found = [self.rest]
        while sum(map(len, found)) < size:
            try:
                piece = self.pieces.get(timeout=max(0.0, self.deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if not piece:
                self.pieces.put(b"")  # the end stays the end
                break
            found.append(piece)
        data = b"".join(found)
        self.rest = data[size:]
        return data[:size]


class Worker:
    """One sandboxed process that holds one solution and the harness around it."""

    def __init__(self, process: sandbox.WorkerProcess) -> None:
        self.process = process
        self.level: sandbox.Level | None = None
        assert process.popen.stdout
        self.pump = _Pump(process.popen.stdout.fileno())

    def ready(self, seconds: float = 60.0) -> None:
        """Wait until torch is imported and the reach of the process is proven. Called before each use."""
        if self.level is None:
            hello = self._receive(seconds)
            self.level = sandbox.settle(self.process, hello["reached"])

    def load(self, harness: str, source: str, entry: str) -> None:
        """Run the cell in the worker. Raises `CheckFailed` when it does not run."""
        self.ready()
        answer = self._exchange({"do": "load", "harness": harness, "source": source, "entry": entry}, 30.0)
        if "error" in answer:
            raise _code_error(answer["error"], "The cell itself does not run.")

    def call(self, function: str, *, seconds: float = 30.0, **arguments: Any) -> Any:
        """Call one function of the harness. Raises `CheckFailed` when the learner's code raises."""
        request = {"do": "call", "function": function, "arguments": arguments}
        answer = self._exchange(request, seconds)
        if "error" in answer:
            raise _code_error(answer["error"], "Your code raised an error while it was being checked.")
        return answer.get("value")

    def timed_call(self, function: str, *, seconds: float = 60.0, **arguments: Any) -> tuple[float, Any]:
        """The same, with the seconds between the request and the whole answer by this process's clock."""
        start = time.perf_counter()
        value = self.call(function, seconds=seconds, **arguments)
        return time.perf_counter() - start, value

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            assert self.process.popen.stdin
            wire.send(self.process.popen.stdin, request)
        except OSError:
            raise self._died() from None
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict[str, Any]:
        self.pump.deadline = time.monotonic() + seconds
        try:
            answer = wire.receive(self.pump)
        except TimeoutError:
            self.process.kill()
            raise WorkerFailed(
                f"Your code had {seconds:.0f} s for this step and did not finish. Look for a loop that never ends, "
                "or work that grows with the whole data set at every step."
            ) from None
        except wire.WireError as error:
            if "hung up" in str(error):
                raise self._died() from None
            self.process.kill()
            raise WorkerFailed(
                f"The process that runs your code sent what no check asked for: {error}."
            ) from None
        if not isinstance(answer, dict):
            raise WorkerFailed("The process that runs your code sent what no check asked for.")
        return answer

    def _died(self) -> WorkerFailed:
        words = self.process.last_words().strip().splitlines()
        self.process.kill()
        code = self.process.popen.returncode
        hint = (
            "memory or CPU time ran out, or native code crashed" if code and code < 0 else "it ended itself"
        )
        tail = f" Its last line was: {words[-1][:200]}" if words else ""
        return WorkerFailed(f"The process that runs your code ended early (status {code}): {hint}.{tail}")


@dataclass
class Job:
    """One exercise being checked. Lessons' check functions take one of these and return nothing."""

    exercise_id: str
    entry: str
    source: str
    harness: str
    rng: np.random.Generator
    progress: Progress = lambda text, fraction: None
    threads: int = 1
    counts: dict[str, float] = field(default_factory=dict)
    speed: dict[str, Any] | None = None
    raw_blocks: list[dict[str, Any]] = field(default_factory=list)
    prior_blocks: list[dict[str, Any]] = field(default_factory=list)
    reference_speedup: float | None = None
    """What our reference reaches on this machine, by `workbook calibrate`; None where nothing was calibrated."""
    review: list[str] = field(default_factory=list)
    conditions: dict[str, Any] = field(default_factory=dict)
    """What the machine was like while it measured; kept in the evidence, no part of the verdict."""
    _workers: dict[str, Worker] = field(default_factory=dict)
    _spares: list[Worker] = field(default_factory=list)

    def prepare(self, number: int) -> None:
        """Start `number` processes at once, so that they import torch side by side."""
        for _ in range(number - len(self._spares)):
            process = sandbox.start_worker(threads=self.threads)
            self._spares.append(Worker(process))

    def learner(self) -> Worker:
        """The worker that holds the learner's cell; loaded at first use."""
        return self.worker("learner", self.source)

    def worker(self, name: str, source: str) -> Worker:
        """The worker called `name`, holding `source`: the learner's, a baseline or a reference."""
        if name not in self._workers:
            self.prepare(1)
            worker = self._spares.pop()
            self._workers[name] = worker
            worker.load(self.harness, source, self.entry)
        return self._workers[name]

    def twin(self, source: str) -> Worker:
        """A worker that holds a reference of ours; another source takes the place of the one before."""
        if "twin" in self._workers:
            self._workers["twin"].load(self.harness, source, self.entry)
        return self.worker("twin", source)

    def corpus(self) -> None:
        """Make sure that the built-in data are built before a worker, which may only read, asks for them."""
        from course_lib.data import docstring_store

        self.progress("Looking for the built-in data (built once, in about a minute)", 0.0)
        docstring_store(progress=False)

    def seed(self) -> int:
        """A fresh secret seed."""
        return int(self.rng.integers(2**31))

    def require(self, holds: bool, *, expected: str, got: str, likely: str, look: str) -> None:
        """Fail the check unless `holds`, in the one form of `failure`."""
        if not holds:
            raise failure(expected=expected, got=got, likely=likely, look=look)

    def flag(self, reason: str) -> None:
        """Ask a person to look at this solution, without touching its score."""
        self.review.append(reason)

    def level(self) -> sandbox.Level:
        """The weakest level that any worker of this job proved."""
        levels = {worker.level for worker in self._workers.values()}
        return "limits" if "limits" in levels or not levels - {None} else "bubblewrap"

    def close(self) -> None:
        """End every process of this job."""
        for worker in (*self._workers.values(), *self._spares):
            worker.process.kill()


def _code_error(error: dict[str, Any], opening: str) -> CheckFailed:
    kind, message, line = str(error.get("type")), str(error.get("message")), error.get("line")
    if kind == "NotImplementedError":
        likely = "a part of the exercise is still the stub that came with it"
    elif kind == "NameError":
        likely = "the cell uses a name from another cell; everything it needs, imports too, must be inside this cell"
    elif kind in ("ImportError", "ModuleNotFoundError"):
        likely = "what is installed can be imported; a file of your own beside the notebook, or `autograder`, cannot"
    elif kind in ("SyntaxError", "IndentationError"):
        likely = "Python could not read the cell: look for a missing bracket, colon or indent"
    else:
        likely = "run your function on one small batch in a cell of your own and look at the shapes"
    where = f" at line {line} of the cell: `{error.get('code')}`" if line else ""
    return failure(expected="code that runs", got=f"{kind}: {message}{where}", likely=likely, look=opening)
