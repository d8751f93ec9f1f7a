"""What a course asks of its students, and grants them: questions with their keys, due dates, time."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.grading.terms.drawn import for_others
    from autograder.grading.terms.extensions import (
        TABLE,
        Granted,
        checked,
        extend,
        grant,
        granted_in,
        granted_to,
        notes_on,
        settle_lateness,
    )
    from autograder.grading.terms.keys import (
        bank_of_hand_in,
        exam_doubts,
        grading_bank,
        keep,
        keys_path,
        own_bank,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
