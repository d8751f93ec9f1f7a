"""Measures, checks and grades the exercises of the Training Workbook.

Light on purpose: torch, NumPy and the widgets are loaded only where they are used.
"""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.course.draws import drawn
    from autograder.course.hints import hint
    from autograder.kernel.asking import ask
    from autograder.kernel.diagnoses import diagnose, reveal
    from autograder.kernel.exercises import check, exercise
    from autograder.kernel.predictions import compare, predict, predicted
    from autograder.kernel.program import so_far, yours
    from autograder.quizzes.acting import answer, check_quiz
    from autograder.quizzes.showing import exam, quiz
    from autograder.show.score import Score

__path__.append(f"{__path__[0]}/old_names")  # what has moved is still found under its old name
__getattr__, __dir__, __all__ = attach(__name__, __file__)
