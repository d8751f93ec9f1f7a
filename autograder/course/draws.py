"""Values that each student has of their own: drawn by their id from the lists that an exercise gives.

The same id always draws the same, on every machine and with every version of Python, so the grader knows whose values a
solution is for. Anybody can draw for anybody: what is drawn is no secret, it makes another's answer stand out.
"""

from __future__ import annotations

import hashlib
from typing import Any

from autograder.course.lessons import Exercise, find_exercise
from course_lib.base import UserError


def drawn(exercise_id: str, student: str) -> dict[str, Any]:
    """The values that a student has in an exercise.

    Args:
        student: the id, as the course has it; upper and lower case are the same.

    Raises:
        UserError: there is no such exercise, it draws nothing, or there is no id.

    Example:
        `drawn("1.8", "ada")["multiple"]`
    """
    try:
        exercise = find_exercise(exercise_id)[1]
    except (KeyError, ValueError) as error:
        raise UserError(str(error.args[0])) from None
    if not exercise.draws:
        raise UserError(f"exercise {exercise_id} is the same for everybody: it draws nothing")
    if not isinstance(student, str) or not student.strip():
        raise UserError(f'write your id: drawn("{exercise_id}", "ada")')
    return values_of(exercise, student)


def values_of(exercise: Exercise, student: str) -> dict[str, Any]:
    """The same of an exercise at hand; empty where it draws nothing, or nobody is named."""
    name = same_id(student)
    return (
        {
            key: options[_chance(exercise.id, key, name) % len(options)]
            for key, options in exercise.draws.items()
        }
        if name
        else {}
    )


def same_id(student: str) -> str:
    """An id as it is compared."""
    return student.strip().casefold()


def _chance(*what: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(what).encode("utf-8", "surrogatepass")).digest())
