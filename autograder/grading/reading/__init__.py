"""Reads what a student handed in, whatever it is, and chooses what is graded."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.grading.reading.folder import (
        IMAGES,
        MAX_NOTEBOOK_BYTES,
        OURS,
        STAMP,
        images_of,
        read_folder,
        time_in,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
