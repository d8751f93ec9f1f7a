"""What a worker tells as it happens: counts, and what the cell does beside its task."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.engine.told.deeds import reasons
    from autograder.engine.told.messages import Deed, Told, ToldCounts, ToldOfCall

__getattr__, __dir__, __all__ = attach(__name__, __file__)
