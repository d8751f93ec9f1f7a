"""A worker as checks use it: load a cell, call the harness, and a kind reason for whatever goes wrong."""

from __future__ import annotations

import contextlib
import errno
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from autograder.common import Reason, quoted
from autograder.engine.ends import Outlet, Pump
from autograder.engine.sandbox import KILLED, Stopped
from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox.inside import wire
from autograder.engine.sandbox.storage import Storage
from autograder.engine.timing import core_seconds
from autograder.engine.told import Told, ToldCounts

_LEAST_GRACE, _MOST_GRACE = 0.1, 3.0  # of the seconds that a call has


class CheckFailed(Exception):
    """The learner's code is wrong, and the reason says how."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class WorkerFailed(Exception):
    """The process could not finish: time, memory, a crash. The text is for the learner."""


class OutOfTime(WorkerFailed):
    """It had `seconds` for a step, and was not done."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"Your code had {seconds:.0f} s for this step and did not finish. Look for a loop that never ends, "
            "or work that grows with the whole data set at every step."
        )
        self.seconds = seconds


def failure(*, expected: str, got: str, likely: str, look: str) -> CheckFailed:
    """The one form in which every check says no."""
    return CheckFailed(Reason(expected=expected, got=got, likely=likely, next=look))


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What calls of different workers give, which work at the same time: nothing of it may be timed.

    Raises the first one's error, once all have ended.
    """
    with ThreadPoolExecutor(len(calls)) as threads:
        return [begun.result() for begun in [threads.submit(call) for call in calls]]


class Worker:
    """One sandboxed process that holds one solution and the harness around it."""

    def __init__(
        self, *, threads: int = 1, talks: bool = False, serves: bool = False, modules: Sequence[str] = ()
    ) -> None:
        try:
            self.process, self.served_by, self._canary = sandbox.start_worker(
                threads=threads, talks=talks, serves=serves, modules=modules
            )
        except sandbox.SandboxBroken as error:
            raise WorkerFailed(f"The process that runs your code could not be started: {error}.") from None
        self.threads = threads
        self.level: sandbox.Level | None = None
        self.replaced: set[str] = set()  # functions of the libraries that the cell put others in the place of
        key = secrets.token_bytes(wire.KEY_BYTES)
        self._asks, self._answers = wire.sealer(key, "request"), wire.sealer(key, "answer")
        self.told = Told(self.process.pipes.told, key)
        self._pump = Pump(self.process.pipes.answers)
        self._outlet = Outlet(self.process.pipes.requests)
        with contextlib.suppress(OSError):  # one that has ended already is found out by the first request
            self._outlet.write(key)

    def load(self, harness: str, source: str, entry: str) -> None:
        """Run the cell in the worker. Raises `CheckFailed` when it does not run."""
        if self.level is None:
            reached = self._receive(60.0)["reached"]
            self.pid = self.process.family()[
                -1
            ].pid  # of the process that runs the code: there is no other yet
            self.level = sandbox.settle(self._canary, reached)
        request = {"do": "load", "harness": harness, "source": source, "entry": entry}
        self._exchange(request, 30.0, "run this cell alone in a new kernel, until it ends without an error")
        if self.served_by:
            self.call("use_storage", place=self.served_by.place, token=self.served_by.token)

    def call(self, function: str, *, seconds: float = 30.0, **arguments: Any) -> Any:
        """Call one function of the harness. Raises `CheckFailed` when the learner's code raises."""
        request = {"do": "call", "function": function, "arguments": arguments}
        look = "call it on a small input in a cell of your own, and look at the line that is named above"
        return self._exchange(request, seconds, look)

    def counts(self, num: int = 1) -> list[ToldCounts]:
        """What was told, as it happened, of so many stretches of counting in the last call, in their order."""
        found = self.told.call.counts
        if len(found) != num:
            self.told.is_whole = False
            raise WorkerFailed(
                f"What your code does is counted as it happens, and of {num} counts {len(found)} were begun. Run the "
                "check again; if it stays, look for what your cell does beside its task."
            )
        return found

    def timed_call(self, function: str, *, seconds: float = 60.0, **arguments: Any) -> tuple[float, Any]:
        """The same, with the seconds from the request to the whole answer by this process's clock.

        They hold none in which the answer was there and this process had no core to take it. An answer that is a dict
        gets under "told" what was counted or seen meanwhile, if anything was: it outlives the next call.
        """
        start, waited = time.perf_counter(), self._pump.waited
        value = self.call(function, seconds=seconds, **arguments)
        if isinstance(value, dict):
            value.pop("told", None)
            told = self.told.call
            value |= {"told": told} if told.counts or told.seen else {}
        return self._pump.arrived - start - (self._pump.waited - waited), value

    @property
    def storage(self) -> Storage:
        """What serves samples to this worker, of a job that `serves`."""
        assert self.served_by, "set `job.serves` before the first worker is made"
        return self.served_by

    @property
    def unread_seconds(self) -> float:
        """For how long in all answers lay there and this process had no core to take them."""
        return self._pump.waited

    def cpu_seconds(self) -> float:
        """CPU time of the worker and all that it started, in seconds, as the kernel counts it."""
        return self.process.cpu_seconds()

    def pin(self) -> dict[str, int]:
        """Collect garbage, then hold collection off, and set torch's threads; returns how the two were found."""
        request = {"do": "pin", "threads": self.threads}
        found: dict[str, int] = self._exchange(request, 30.0, "A pause between two timings.")
        return found

    def kill(self) -> None:
        """End the worker and everything it started."""
        self._pump.is_wanted = False
        self._canary.listener.close()
        self.process.close()
        if self.served_by:
            self.served_by.close()

    def _exchange(self, request: Mapping[str, object], seconds: float, look: str) -> Any:
        if self.process.pipes.log.closed:
            raise WorkerFailed("The process that runs your code has ended.")
        self._outlet.deadline = time.monotonic() + seconds
        number = secrets.token_hex(16)
        self.told.begin()
        try:
            wire.send(self._outlet, {**request, "number": number}, self._asks)
        except TimeoutError:
            raise self._out_of_time(seconds) from None
        except OSError:
            raise self._died() from None
        answer = self._receive(seconds)
        if answer.get("number") != number:
            self.kill()
            raise WorkerFailed(
                "The process that runs your code sent what no check asked for: an answer of its own."
            )
        self.told.take(answer.get("told", ()))
        self.told.wait_for(number, seconds)
        self.replaced.update(map(str, answer.get("replaced", ())))
        if "error" in answer:
            if exhausted := _exhausted(answer["error"]):
                self.kill()
                raise WorkerFailed(exhausted)
            raise _code_error(answer["error"], look)
        return answer.get("value")

    def _grace(self, seconds: float) -> Callable[[], float]:
        """The time for which the worker has had no core since now: others had it. Up to some times `seconds`."""
        left, counted = _MOST_GRACE * seconds, core_seconds(self.pid)[1]

        def grace() -> float:
            nonlocal left, counted
            waited = core_seconds(self.pid)[1]
            more = min(waited - counted, left) if waited - counted > _LEAST_GRACE * seconds else 0.0
            left, counted = left - more, waited
            return more

        return grace

    def _receive(self, seconds: float) -> dict[str, Any]:
        self._pump.deadline = time.monotonic() + seconds
        if self.level is not None:
            self._pump.grace = self._grace(seconds)
        try:
            answer = wire.receive(self._pump, self._answers)
        except TimeoutError:
            raise self._out_of_time(seconds) from None
        except wire.WireError as error:
            if "hung up" in str(error):
                raise self._died() from None
            answer = error
        if isinstance(answer, dict):
            return answer
        self.kill()
        why = f": {answer}" if isinstance(answer, wire.WireError) else ""
        raise WorkerFailed(f"The process that runs your code sent what no check asked for{why}.")

    def _out_of_time(self, seconds: float) -> OutOfTime:
        self.kill()
        return OutOfTime(seconds)

    def _died(self) -> WorkerFailed | Stopped:
        if self.process.why_ended == KILLED:
            return Stopped()
        self.process.wait(1.0)  # its keeper writes down how it ended
        self.process.kill()
        status, words = self.process.last_words()
        self.kill()
        if self.process.why_ended:
            return WorkerFailed(self.process.why_ended)
        was_killed = status is None or status < 0
        hint = "memory or CPU time ran out, or native code crashed" if was_killed else "it ended itself"
        known = "" if status is None else f" (status {status})"
        tail = f" Its last line was: {quoted(words[-1], 200)}" if words else ""
        return WorkerFailed(f"The process that runs your code ended early{known}: {hint}.{tail}")


def _exhausted(error: Mapping[str, object]) -> str:
    """A sentence for code that met a limit of the sandbox; else nothing."""
    kind, text, number = str(error.get("type")), str(error.get("message")), error.get("errno")
    said = quoted(f"{kind}: {text}", 200)
    if kind in ("MemoryError", "OutOfMemoryError") or "allocate memory" in text or number == errno.ENOMEM:
        return (
            f"Your code asked for more memory than it may have here ({said}). Look for something that grows at every "
            "step, or for a shape that is far larger than the batch."
        )
    if number in (errno.EFBIG, errno.ENOSPC):
        return (
            f"Your code wrote or printed more than the sandbox holds ({said}). Look for a print or a file in a loop "
            "that never ends."
        )
    if number == errno.EAGAIN or "can't start new thread" in text:
        return f"Your code started more processes or threads than it may ({said})."
    return ""


def _code_error(error: Mapping[str, object], look: str) -> CheckFailed:
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
        likely = "a value or a shape there that the code does not expect"
    where = f" at line {line} of the cell: `{error.get('code')}`" if line else ""
    return failure(expected="code that runs", got=f"{kind}: {message}{where}", likely=likely, look=look)
