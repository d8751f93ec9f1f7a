"""Functions that run apart: what a stranger's text does to them ends one process, which the next call replaces.

A parser, a regular expression or a renderer can be kept busy for hours, or be made to take all memory or to crash, by
a text that was written for it. Here it works in a process of its own, which is kept for the next call and ended past
the limits. Arguments and values cross as JSON: nothing that comes back can run.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from course_lib.base import UserError

SECONDS = 10.0  # of CPU, so that a busy machine costs nobody a grade; where the system cannot count it, of the clock
CELL_SECONDS = 2.0  # the same for one cell of many: a person's own takes some hundredths
CLOCK_SECONDS = 60.0  # for what waits and computes nothing
STARTING_SECONDS = 20.0
MAX_MEMORY = 2 * 2**30  # bytes, on Linux
MAX_ANSWER = 64 * 2**20  # characters

_lock = threading.Lock()
_kept: list[_Helper] = []  # the one process, while it is not at work


class ApartError(Exception):
    """The function did not come to a value; the text says why, as a part of a sentence: "took more than 10 s"."""


def run_apart(function: Callable[..., Any], *arguments: Any, seconds: float = SECONDS) -> Any:
    """What `function(*arguments)` gives, worked out in another process.

    Args:
        function: of a module, so that it can be found by its name there.
        arguments: values of JSON; so is what comes back.
        seconds: of CPU time that it may take.

    Raises:
        ApartError: it took too long or too much memory, crashed, or raised.
        UserError: it raised one.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    with _lock:
        kept = _kept.pop() if _kept else None
    try:
        answer = _asked(kept, name, arguments, seconds) if kept and kept.is_alive else None
    except _Ended as ended:
        if ended.is_over_time:
            raise
        answer = None  # whatever ended it may have done so before: nobody pays for another
    answer = answer or _asked(_Helper(), name, arguments, seconds)
    if "says" in answer:
        raise UserError(answer["says"])
    if "raised" in answer:
        raise ApartError(answer["raised"])
    return answer["value"]


def _asked(helper: _Helper, name: str, arguments: tuple[Any, ...], seconds: float) -> dict[str, Any]:
    try:
        answer = helper.ask(name, arguments, seconds)
    except BaseException:  # an interrupt, too, leaves a process that answers what nobody asks any more
        helper.end()
        raise
    if answer["is_worn"]:
        helper.end()
    else:
        with _lock:
            _kept.append(helper)
    return answer


class _Ended(ApartError):
    """Of a process that gave no answer. `is_over_time`: that alone is surely of this call's own making."""

    def __init__(self, text: str, *, is_over_time: bool = False) -> None:
        super().__init__(text)
        self.is_over_time = is_over_time


class _Helper:
    """The process, seen from here. One call at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "autograder.common.apart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for whoever asked
        )
        self._owner = os.getpid()

    @property
    def is_alive(self) -> bool:
        # That of a parent which forked is the parent's.
        return self._owner == os.getpid() and self._process.poll() is None

    def ask(self, function: str, arguments: tuple[Any, ...], seconds: float) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        line = json.dumps([function, arguments, seconds, _current_folder()]).encode()
        is_late = threading.Event()

        def end_late() -> None:
            is_late.set()
            self._process.kill()

        # Without limits by the system the clock alone counts, and what a process needs to start is no part of it.
        timer = threading.Timer(CLOCK_SECONDS if _resource() else seconds + STARTING_SECONDS, end_late)
        timer.start()
        answer = b""
        try:
            with contextlib.suppress(OSError):
                self._process.stdin.write(line + b"\n")
                self._process.stdin.flush()
                answer = self._process.stdout.readline(MAX_ANSWER)
        finally:
            timer.cancel()
        if answer.endswith(b"\n"):
            found: dict[str, Any] = json.loads(answer)
            return found
        if len(answer) >= MAX_ANSWER:
            raise _Ended(f"gave more than {MAX_ANSWER / 2**20:.0f} MB")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        status = self._process.returncode
        if is_late.is_set() or status == -getattr(signal, "SIGXCPU", math.inf):
            raise _Ended(f"took more than {seconds:g} s", is_over_time=True)
        raise _Ended(f"ended the process that worked on it (status {status})")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            with contextlib.suppress(OSError):
                pipe.close()


@atexit.register
def _end_kept() -> None:
    while _kept:
        if (helper := _kept.pop()).is_alive:
            helper.end()


def _current_folder() -> str:
    """What a relative path among the arguments starts from; empty where the folder is gone."""
    with contextlib.suppress(OSError):
        return str(Path.cwd())
    return ""


def _resource() -> Any:
    """The module that sets limits, where the system has it."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("resource")
    return None


def _set_limits(seconds: float) -> None:
    """For the whole process and this call: CPU time on top of what it has taken, and memory."""
    if not (resource := _resource()):
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    wanted = {
        resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime + seconds),
        resource.RLIMIT_CORE: 0,
    }
    if sys.platform == "linux":
        wanted[resource.RLIMIT_AS] = MAX_MEMORY
    for kind, limit in wanted.items():
        hard = resource.getrlimit(kind)[1]
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit if hard < 0 else min(limit, hard), hard))


def _memory() -> int:
    """Bytes of address space, of which `MAX_MEMORY` is the limit; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _value_of(function: str, arguments: list[Any]) -> dict[str, Any]:
    try:
        module, _, name = function.partition(":")
        return {"value": getattr(importlib.import_module(module), name)(*arguments)}
    except UserError as error:
        return {"says": str(error)}
    except MemoryError:
        return {"raised": f"took more than {MAX_MEMORY / 2**30:.0f} GB of memory"}
    except RecursionError:
        return {"raised": "is nested too deep"}
    except Exception as error:
        return {"raised": f"went wrong ({type(error).__name__}: {' '.join(str(error).split())[:200]})"}


def main() -> NoReturn:
    """Answer each line of stdin with one, until it ends."""
    # What a library prints must not come between the lines.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        function, arguments, seconds, folder = json.loads(line)
        with contextlib.suppress(ImportError):  # then the call meets it
            importlib.import_module(function.partition(":")[0])  # takes seconds that are no text's fault
        _set_limits(seconds)
        with contextlib.suppress(OSError):
            os.chdir(folder)  # whoever asks may have moved since this process began
        found = _value_of(function, arguments)
        _set_limits(STARTING_SECONDS)  # for the next line, which may be long
        # What a large call took stays taken, and would be missing to the next.
        found["is_worn"] = "memory" in found.get("raised", "") or _memory() > MAX_MEMORY / 2
        try:
            text = json.dumps(found)
        except (ValueError, TypeError, RecursionError, MemoryError) as error:
            text = json.dumps(
                {"raised": f"gave what cannot be passed on ({type(error).__name__})", "is_worn": True}
            )
        print(text, file=answers, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
