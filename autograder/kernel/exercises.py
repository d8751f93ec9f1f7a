"""The kernel's side of a check: `@exercise` keeps a cell's source, `check` sends it to the engine."""

from __future__ import annotations

import contextlib
import linecache
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from autograder.common import Reason, Result
from autograder.engine import EngineDied, EngineService
from autograder.engine.sandbox import CheckStopped
from autograder.kernel.cells import cells_run, remember_cells, told_apart
from autograder.show import Score, in_kernel, render, show_html
from course_lib.base import LiveOutput

T = TypeVar("T")
_SOURCES: dict[str, str] = {}
_DEFINED: dict[str, object] = {}
_ENGINE = EngineService()
_DID_NOT_STOP = (
    "Nothing is lost, and no points are given or taken. The process that checks was ended: the next check starts "
    "another, which takes some seconds."
)


def exercise(exercise_id: str) -> Callable[[T], T]:
    """Mark the function or class that solves an exercise. The source of its whole cell is kept for `check`."""
    # Of the cell, not of the definition: what is checked is all that stands in the cell, imports included.
    filename = sys._getframe(1).f_code.co_filename
    source = "".join(linecache.getlines(filename)) or _running_cell()

    remember_cells()

    def keep(definition: T) -> T:
        _SOURCES[exercise_id], _DEFINED[exercise_id] = source, definition
        if in_kernel():
            _ENGINE.start()  # warm before the learner asks
        return definition

    return keep


def _running_cell() -> str:
    """The text of the cell that runs now: `%%time` and its like run theirs under a name that cannot be looked up."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return str(shell.history_manager.input_hist_raw[-1]) if shell else ""


def _cell_of(exercise_id: str) -> tuple[str, list[str]]:
    """The cell that a check judges, chosen as in a notebook that is handed in, and lines about it; "" without one."""
    from autograder.course import find_exercise
    from autograder.engine import choose_cells, is_python, marked_ids

    cells, is_known = cells_run(), told_apart()
    if not any(is_known[-1:]):  # then one that was run before is taken for what it was before this one
        last = next((cell for cell in reversed(cells) if exercise_id in marked_ids(cell)), "")
        if last and not is_python(last):  # nothing of it ran, so that the solution in memory is an older one
            return last, []
    try:
        lesson, wanted = find_exercise(exercise_id)
    except KeyError:
        return _SOURCES.get(exercise_id, ""), []
    chosen = choose_cells([(True, cell) for cell in cells], lesson).get(exercise_id)
    if chosen is None:  # no cell, such as a file that was run
        return _SOURCES.get(exercise_id, ""), []
    others = tuple(place for place in chosen.others if is_known[place])
    return chosen.source, replace(chosen, others=others).told_in_kernel(exercise_id, wanted.entry)


def check(exercise_id: str) -> Score:
    """Check one exercise by running its cell in a process of its own, and show the verdict.

    The number that comes back is what the exercise earned. Nothing in this notebook can change how it is found:
    the engine reads the text of your cell, not the function in memory.
    """
    from autograder.kept import progress
    from autograder.show import result_text

    remember_cells()
    source, lines = _cell_of(exercise_id)
    try:
        result = _result(exercise_id, source) or _stopped(exercise_id)
    except KeyboardInterrupt:
        result = _stopped(exercise_id)
    busy = _busy_programs(result)
    _clear_progress()
    if result.verdict == "stopped":
        show_html(Score(0, result)._repr_html_(), result_text(result))
        raise CheckStopped from None  # so that the cells below do not run either
    progress.record_check(result.to_dict(), source)
    for line in filter(None, [busy, *lines]):
        print(line)  # beside the card: what a person runs is no part of a result
    if not in_kernel():  # a notebook shows the card
        print(result_text(result))
    return Score(result.score, result)


def passed_definition(exercise_id: str) -> Any:
    """What this kernel's cell of an exercise defined, if this text of the cell has passed its check; else None."""
    from autograder.kept import progress

    source = _SOURCES.get(exercise_id, "")
    return _DEFINED.get(exercise_id) if source and progress.has_passed(exercise_id, source) else None


def _busy_programs(result: Result) -> str:
    """What kept this machine restless, for the eyes of a person who sits at it; "" where nobody does."""
    from autograder.engine.timing import what_is_in_the_way

    if _somebody_is_here():
        with contextlib.suppress(KeyboardInterrupt):  # the result is there already
            return what_is_in_the_way(result)
    return ""


def _somebody_is_here() -> bool:
    """A kernel in which nobody can be asked runs a notebook for its file, such as nbgrader's."""
    if in_kernel():
        return bool(getattr(sys.modules["IPython"].get_ipython().kernel, "_allow_stdin", False))
    return sys.stdout.isatty()


def _stopped(exercise_id: str) -> Result:
    from autograder.engine import blank_result

    return blank_result(exercise_id, "stopped", Reason(note=_DID_NOT_STOP, next="run the check again"))


def _result(exercise_id: str, source: str) -> Result | None:
    from autograder.engine import blank_result

    if not source:
        cell = f'the cell that starts with @exercise("{exercise_id}")'
        reason = f"This kernel has not run {cell}. Run it, then check again."
        return blank_result(exercise_id, "not_attempted", reason)
    try:
        return _ENGINE.check(exercise_id, source, _progress_shown(exercise_id))
    except EngineDied as error:
        reason = (
            f"The check itself stopped ({str(error)[:200]}). This is not your mistake: run `workbook doctor`, "
            "then this cell again."
        )
        return blank_result(exercise_id, "error", reason)


def _progress_shown(exercise_id: str) -> Callable[[str, float], None]:
    output, start = LiveOutput(seconds=0.25), time.monotonic()

    def show(text: str, fraction: float) -> None:
        said = {"id": exercise_id, "text": text, "fraction": fraction, "seconds": time.monotonic() - start}
        output.offer(lambda: (render("measuring.html", **said), f"{text} ({said['seconds']:.0f} s)"))

    return show


def _clear_progress() -> None:
    display = sys.modules.get("IPython.display")
    if display is not None and in_kernel():
        display.clear_output(wait=True)
