"""The program of a lesson with the learner's parts in it, and the picture of how far it has come.

A part takes the place of ours once its check has passed; what the program gained is measured there and kept beside
the notebook, so that the picture is there again tomorrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from autograder.kept import answers_file
from autograder.kernel.exercises import passed_definition
from autograder.show import BLUE, GREEN, GREY, bars, figure, plain, show, told
from course_lib.base import UserError

T = TypeVar("T")
_START = "naive program"


def yours(exercise_id: str, ours: T) -> T:
    """The learner's solution of an exercise if this kernel has run it and its check has passed, else `ours`.

    One whose clock was undecided is right, and counts.
    """
    definition = passed_definition(exercise_id)
    if definition is not None:
        print(f"{exercise_id}: your solution is in the program now.")
        return definition
    print(
        f"{exercise_id}: no solution of yours has passed in this kernel yet, so the program keeps its part. "
        "Run your cell and its check, then this cell again."
    )
    return ours


@told()
def so_far(
    exercise_id: str,
    name: str,
    measure: Callable[[], Any],
    *,
    unit: str = "×",
    start: float = 1.0,
    digits: int = 1,
) -> None:
    """Measure the program with the learner's part in it, keep that, and draw all that was kept in this lesson.

    Without a solution that has passed nothing is measured and no bar is added.

    Args:
        exercise_id: the exercise whose solution was put in.
        name: what the bar is called.
        measure: returns the number, or a `SpeedupEstimate`, which is printed with its interval.
        unit: of the number; "×" means "times as fast as the naive program".
        start: the number of the naive program.

    Raises:
        UserError: the number is none; said in one line.
    """
    lesson_id = exercise_id.partition(".")[0].zfill(2)
    file, key = answers_file(lesson_id), f"so_far:{lesson_id}"
    if passed_definition(exercise_id) is not None:
        measured = measure()
        value = _number(measured, exercise_id)
        print(
            f"{exercise_id} {name}: {f'{value:,.{digits}f} {unit}' if isinstance(measured, int | float) else measured}"
        )
        file.save(key, lambda old: {"bars": _bars(old) | {f"{exercise_id} {name}": value}})
    file.print_notices()
    kept = dict(sorted(_bars(file.entries().get(key, {})).items()))
    _draw({_START: start, **kept}, unit, digits)


def _number(measured: Any, exercise_id: str) -> float:
    value = getattr(measured, "estimate", measured)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f'so_far("{exercise_id}", …): measure must return one number, got {measured!r:.80}')
    return float(value)


def _bars(entry: Any) -> dict[str, float]:
    """Of the file, which may hold anything."""
    bars = entry.get("bars") if isinstance(entry, dict) else None
    return {
        plain(str(name)): float(value)
        for name, value in (bars.items() if isinstance(bars, dict) else ())
        if isinstance(value, int | float) and abs(value) < 1e300
    }


def _draw(kept: dict[str, float], unit: str, digits: int) -> None:
    fig, ax = figure(height=0.8 + 0.42 * len(kept))
    colors = [GREY, *[BLUE] * (len(kept) - 2), GREEN][: len(kept)]
    bars(ax, list(kept), kept.values(), unit=unit, digits=digits, colors=colors)
    title = "Your program so far"
    ax.set_title(f"{title}: times as fast as the naive one" if unit == "×" else f"{title}, in {unit}")
    told = (f"{name} {value:,.{digits}f} {unit}" for name, value in kept.items())
    show(fig, alt=f"{title}: {', '.join(told)}.")
