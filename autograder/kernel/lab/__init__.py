"""What the lessons' experiments are made of, where a cell would be the wrong place for it."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.kernel.lab.samples import OwnNoise, SlowSamples

__getattr__, __dir__, __all__ = attach(__name__, __file__)
