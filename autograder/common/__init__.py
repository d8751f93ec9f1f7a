"""Folders, locks, limits, and what a result is: what every room may use."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.common.apart import CELL_SECONDS, ApartError, run_apart
    from autograder.common.folders import START_PAGE, data_directory, default_folder, release_folder
    from autograder.common.limits import MAX_ATTEMPTS, MAX_SPREAD
    from autograder.common.locks import locked
    from autograder.common.result import CHECKS_WITHOUT_RESULT, Reason, Result, Speed, Verdict
    from autograder.common.tables import read_table
    from autograder.common.texts import (
        MARK,
        as_json,
        in_points,
        named,
        one_line,
        printable,
        quoted,
        shortened,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
