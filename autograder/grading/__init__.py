"""A class: collected, graded, reported, released."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.grading.executors import cluster
    from autograder.grading.extending import extended, extended_text
    from autograder.grading.handed_in.collected import collected_text
    from autograder.grading.handed_in.collecting import collect
    from autograder.grading.handed_in.known import read_known
    from autograder.grading.handed_in.regrading import regrade, regraded_text
    from autograder.grading.handed_in.returned import returned_text
    from autograder.grading.handed_in.returning import return_feedback
    from autograder.grading.marking import grade
    from autograder.grading.releasing import release, released_text
    from autograder.grading.reports import report, write_page
    from autograder.grading.summary import graded_text, progress_bars
    from autograder.grading.terms import bank_of_hand_in

__getattr__, __dir__, __all__ = attach(__name__, __file__)
