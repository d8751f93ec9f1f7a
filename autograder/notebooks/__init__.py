"""Texts become notebooks and what a class installs, and notebooks become reports."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.notebooks.building import build
    from autograder.notebooks.check import Report, check_evidence, check_notebook
    from autograder.notebooks.packaging import package, packaged_text
    from autograder.notebooks.site import make_site

__getattr__, __dir__, __all__ = attach(__name__, __file__)
