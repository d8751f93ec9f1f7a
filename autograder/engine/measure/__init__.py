"""A solution and its baseline under one clock: segments in turn, blocks of them, and what is decided by those."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.engine.measure.speedup import APPLIES_FROM, Inconclusive, TooSlow, measure_speedup

__getattr__, __dir__, __all__ = attach(__name__, __file__)
