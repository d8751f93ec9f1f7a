"""`workbook grade` on one class, in a process of its own, with a log of what it is at. Run it in the course's folder:

    python -m tests.fuzz.one_class LESSON LOG [--verdicts FILE] [--json]

This is the command itself, but for two things: it writes down when the reading and the entering of each hand-in begin
and end, and, with `--verdicts`, what a cell is worth comes from that file, and 0 for a cell that is not in it. To run
5,000 damaged cells would take days; a part of the classes goes without, and asks the engine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from autograder import grading
from autograder.cli.main import main as workbook
from autograder.common import Result
from autograder.grading import gradebook, marking
from autograder.grading.units import Unit

MEMORY_BYTES = 12_000_000_000


class Verdicts(Executor):
    """What is known of some cells, at once; of any other, that it is wrong."""

    def __init__(self, known: list[dict[str, Any]]) -> None:
        self.known = {(each["exercise"], each["source"]): Result.of_message(each["result"]) for each in known}

    def submit(self, check_unit: Callable[..., Any], /, *units: Any, **_: Any) -> Future[Any]:
        from autograder.engine.check import blank_result

        unit: Unit = units[0]
        found = self.known.get((unit.exercise_id, unit.source))
        future: Future[Any] = Future()
        future.set_result(found or blank_result(unit.exercise_id, "fail", "not checked: this is a stand-in"))
        return future


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson")
    parser.add_argument("log", type=Path)
    parser.add_argument("--verdicts", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    command = ["grade", arguments.lesson, *["--json"] * arguments.json]
    with arguments.log.open("w", buffering=1, encoding="ascii") as file:

        def tell(**said: Any) -> None:
            print(json.dumps(said | {"at": time.monotonic(), "cpu": _cpu_seconds()}), file=file)

        watch(tell)
        if arguments.verdicts:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            verdicts = Verdicts(json.loads(arguments.verdicts.read_text(encoding="utf-8")))
            _put(grading, "cluster", lambda *_: contextlib.nullcontext(verdicts))
            command += ["--cluster", "these verdicts"]
        status = workbook(command)
        tell(ended=status)
    return status


def watch(tell: Callable[..., None]) -> None:
    """Have each step told as it begins and ends, and what the class came to."""
    _put(marking, "read_submission", _told(tell, "read", marking.read_submission))
    _put(gradebook.Entries, "enter", _told(tell, "enter", gradebook.Entries.enter))
    grade = grading.grade

    def graded(*arguments: Any, **named: Any) -> Any:
        found = grade(*arguments, **named)
        tell(graded=asdict(found))
        return found

    @contextlib.contextmanager
    def progress() -> Iterator[Callable[[str, int, int], None]]:
        yield lambda phase, done, total: tell(phase=phase, done=done, total=total)

    _put(grading, "grade", graded)
    _put(grading, "progress_bars", progress)


def _told(tell: Callable[..., None], step: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def told(*arguments: Any, **named: Any) -> Any:
        names = (getattr(each, "student", each) for each in arguments)
        student = next(name for name in names if isinstance(name, str))
        tell(begins=step, student=student)
        found = function(*arguments, **named)
        tell(ends=step, student=student)  # not told of one that raises: it is the one in hand
        return found

    return told


def _put(place: Any, name: str, value: Any) -> None:
    assert hasattr(place, name), f"{place}: nothing is called {name} here any more"
    setattr(place, name, value)


def _cpu_seconds() -> float:
    """Of this process and of all its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
