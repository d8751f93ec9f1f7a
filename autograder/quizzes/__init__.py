"""Questions: compiled, asked, judged, graded."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.quizzes.bank import PASS_MARK, Bank
    from autograder.quizzes.card import BY_INSTRUCTOR, grade_html, headline
    from autograder.quizzes.compiler import compile_bank
    from autograder.quizzes.exam_time import MAX_FACTOR, doubts, minutes_in, time_name
    from autograder.quizzes.grade import QuizGrade
    from autograder.quizzes.grading import bank_in, grade_quiz, has_quiz, is_exam, keyless_name, load_bank
    from autograder.quizzes.question import Question

__getattr__, __dir__, __all__ = attach(__name__, __file__)
