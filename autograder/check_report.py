"""`workbook check` for people: a bar while it measures, then one table."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "≈", "error": "!", "not_attempted": "○"}
BAR_WIDTH = 24


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A bar on stderr (stdout stays clean for `--json`); without a terminal, one line per exercise.

    Yields the function to call with what is being done and how far it is, from 0 to 1.
    """
    is_terminal = sys.stderr.isatty()
    last = ""

    def show(text: str, fraction: float) -> None:
        nonlocal last
        if is_terminal:
            full = round(BAR_WIDTH * min(1.0, max(0.0, fraction)))
            line = f"{'█' * full}{'·' * (BAR_WIDTH - full)} {text}"
            sys.stderr.write("\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
        elif (exercise_id := text.split(" ", 1)[0]) != last:
            last = exercise_id
            print(f"checking {exercise_id} …", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def table(report: dict[str, Any]) -> str:
    """The report of `check_notebook` as text: exercise, verdict, points and the reason under each."""
    width = min(100, shutil.get_terminal_size().columns)
    lines = [f"Lesson {report['lesson']}", ""]
    for result in report["exercises"]:
        mark = MARKS[result["verdict"]]
        verdict = result["verdict"].replace("_", " ")
        points = f"{result['score']:g}/{result['max_score']:g}"
        title = result.get("title", "")
        lines.append(f"{mark} {result['id']:<5} {title:<44.44} {verdict:<14} {points:>7}")
        for reason in result["reason"].splitlines():
            lines += textwrap.wrap(reason, width, initial_indent="    ", subsequent_indent="      ")
    lines += ["", f"  Exercises: {report['score']:g} of {report['max_score']:g} points"]
    if quiz := report.get("quiz"):
        passed = "passed" if quiz["passed"] else "not passed yet"
        lines.append(f"  Quiz: {quiz['score']:g} of {quiz['max_score']:g}, {passed}")
    if any(result.get("sandbox") == "limits" for result in report["exercises"]):
        lines.append("  Checked at sandbox level `limits`; `workbook doctor` says how to raise it.")
    return "\n".join(lines)


def full_marks(report: dict[str, Any]) -> bool:
    """Whether every exercise that was asked for got all of its points. The quiz stands apart."""
    return all(result["score"] >= result["max_score"] for result in report["exercises"])
