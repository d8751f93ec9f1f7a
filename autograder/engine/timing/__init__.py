"""The clock: what a machine does while it runs, and a verdict with known error rates."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.engine.timing.blocks import KeptBlock, decide_on
    from autograder.engine.timing.conditions import core_seconds, num_cores, what_is_in_the_way
    from autograder.engine.timing.verdict import ALPHA_PASS, decide, successes_needed

__getattr__, __dir__, __all__ = attach(__name__, __file__)
