"""Exercises in which every student has values of their own: whose a solution is written for."""

from __future__ import annotations

from autograder.common import quoted
from autograder.course import Lesson, same_id
from autograder.engine import student_in
from autograder.grading.submissions import Submission


def for_others(submission: Submission, lesson: Lesson) -> list[str]:
    """A line for each solution with values that are not those of the student who handed it in."""
    named = {
        exercise.id: student_in(submission.sources[exercise.id])
        for exercise in lesson.exercises
        if exercise.draws and exercise.id in submission.sources
    }
    return [
        f"{exercise_id}: solved with the values of {quoted(student)}, and handed in by {quoted(submission.student)}"
        for exercise_id, student in named.items()
        if student and same_id(student) != same_id(submission.student)
    ]
