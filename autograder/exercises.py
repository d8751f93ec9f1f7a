"""The kernel's side of a check: `@exercise` keeps a cell's source, `check` sends it to the engine."""

from __future__ import annotations

import contextlib
import json
import linecache
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from autograder.rich import in_kernel

T = TypeVar("T")
_SOURCES: dict[str, str] = {}


class Score(float):
    """Points, as a number that knows why.

    Its `repr` is the number, so that nbgrader reads it from a cell's output; notebooks show the card instead.
    """

    result: dict[str, Any]

    def __new__(cls, points: float, result: dict[str, Any] | None = None) -> Score:
        score = super().__new__(cls, points)
        score.result = result or {}
        return score

    def __repr__(self) -> str:
        return f"{float(self):g}"

    def _repr_html_(self) -> str:
        from autograder.card import result_html

        return result_html(self.result)


def exercise(exercise_id: str) -> Callable[[T], T]:
    """Mark the function or class that solves an exercise. The source of its whole cell is kept for `check`."""
    # Of the cell, not of the definition: what is checked is all that stands in the cell, imports included.
    filename = sys._getframe(1).f_code.co_filename
    source = "".join(linecache.getlines(filename))

    def keep(definition: T) -> T:
        _SOURCES[exercise_id] = source
        return definition

    return keep


def check(exercise_id: str) -> Score:
    """Check one exercise by running its cell in a process of its own, and show the verdict.

    The number that comes back is what the exercise earned. Nothing in this notebook can change how it is found:
    the engine reads the text of your cell, not the function in memory.
    """
    from autograder import progress

    if exercise_id not in _SOURCES:
        result = _not_run(exercise_id)
    else:
        result = {}
        for event in _run_engine(exercise_id, _SOURCES[exercise_id]):
            if event["event"] == "result":
                result = event["result"]
            else:
                _show_progress(event["text"], event["fraction"])
        _clear_progress()
    progress.record_check(result)
    if not in_kernel():  # a notebook shows the card
        from autograder.card import result_text

        print(result_text(result))
    return Score(result["score"], result)


def _run_engine(exercise_id: str, source: str) -> Iterator[dict[str, Any]]:
    """Run the engine as a process apart from this kernel, and yield what it says."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "autograder.engine_service"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdin and process.stdout and process.stderr
    try:
        with contextlib.suppress(BrokenPipeError):  # an engine that died at once says why below
            json.dump({"exercise_id": exercise_id, "source": source}, process.stdin)
            process.stdin.close()
        finished = False
        for line in process.stdout:
            event = json.loads(line)
            finished = finished or event["event"] == "result"
            yield event
        if not finished:
            words = process.stderr.read().strip().splitlines() or ["no message"]
            yield {"event": "result", "result": _engine_died(exercise_id, words[-1])}
    finally:  # the stop button ends up here: the engine takes its workers down with it
        process.terminate()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _not_run(exercise_id: str) -> dict[str, Any]:
    from autograder.engine import blank_result

    return blank_result(
        exercise_id,
        "not_attempted",
        f'This kernel has not run the cell that starts with @exercise("{exercise_id}"). Run it, then check again.',
    )


def _engine_died(exercise_id: str, last_line: str) -> dict[str, Any]:
    from autograder.engine import blank_result

    return blank_result(
        exercise_id,
        "error",
        f"The check itself stopped ({last_line[:200]}). This is not your mistake: run `workbook doctor`, "
        "then this cell again.",
    )


def _show_progress(text: str, fraction: float) -> None:
    display = sys.modules.get("IPython.display")
    if display is None or not in_kernel():
        return
    bar = (
        f'<div role="status">{text} '
        f'<progress max="1" value="{fraction:.3f}" style="width:16em;vertical-align:middle"></progress></div>'
    )
    display.clear_output(wait=True)
    display.display({"text/html": bar, "text/plain": f"{text} {fraction:.0%}"}, raw=True)


def _clear_progress() -> None:
    display = sys.modules.get("IPython.display")
    if display is not None and in_kernel():
        display.clear_output(wait=True)
