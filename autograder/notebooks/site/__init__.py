"""The lessons as plain pages, to be read before anything is installed: `workbook site`."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.notebooks.site.making import make_site

__getattr__, __dir__, __all__ = attach(__name__, __file__)
