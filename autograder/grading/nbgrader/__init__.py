"""Our steps in nbgrader's own commands."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.grading.nbgrader.asked import Asked, asked_by, keep_asked
    from autograder.grading.nbgrader.bridge import FEEDBACK, prepare_environment, withhold_answers
    from autograder.grading.nbgrader.pages import feedback_notebook

__getattr__, __dir__, __all__ = attach(__name__, __file__)
