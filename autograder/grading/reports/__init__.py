"""What a class did in a lesson, as a page and as JSON."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.grading.reports.reporting import report, write_page

__getattr__, __dir__, __all__ = attach(__name__, __file__)
