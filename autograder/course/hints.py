"""`hint("3.1")`: the hints that stand folded above an exercise, one more each time it is asked."""

from __future__ import annotations

from collections import Counter

from autograder.course.lessons import find_exercise
from autograder.course.written import written
from autograder.show import BLUE, plain, render, rich_html, show_html, told
from course_lib.base import UserError

_given: Counter[str] = Counter()


@told()
def hint(exercise_id: str) -> None:
    """Show the next hint of an exercise; after the last one, begin again with the first."""
    found = hints(exercise_id)
    step = _given[exercise_id] % len(found)
    _given[exercise_id] += 1
    title, text = found[step]
    more = f"Hint {step + 1} of {len(found)}"
    more += f'; hint("{exercise_id}") again shows the next.' if step + 1 < len(found) else ", the last."
    words = plain(f"{title}\n{text}\n{more}")
    show_html(
        render("hint.html", title=title, text=rich_html(text), more=more, label=title, colour=BLUE), words
    )


def hints(exercise_id: str) -> list[tuple[str, str]]:
    """Title and text of each hint of an exercise, in order.

    Raises:
        UserError: there is no such exercise, or it has no hints.
    """
    try:
        lesson, _ = find_exercise(exercise_id)
    except (KeyError, ValueError) as error:
        raise UserError(str(error.args[0])) from None
    said = written().get(lesson.id, {"exercises": {}})["exercises"].get(exercise_id, {"hints": []})
    if not said["hints"]:
        raise UserError(f"exercise {exercise_id} has no hints; its check says what to look at")
    return [(title, text) for title, text in said["hints"]]
