"""Where somebody stands, and their folder."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.learner.certificate import FILE_NAME, make
    from autograder.learner.handout import hand_out
    from autograder.learner.progress_view import summary_text
    from autograder.learner.resetting import reset

__getattr__, __dir__, __all__ = attach(__name__, __file__)
