"""What the lessons' experiments are made of, where a cell would be the wrong place for it.

Worker processes import it, or it would give an answer away, or it is longer than what it shows.
"""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.kernel.lab.samples import OwnNoise, SlowSamples, Tokenised
    from autograder.kernel.lab.sick_runs import SickRuns
    from autograder.kernel.lab.stations import time_stations

__getattr__, __dir__, __all__ = attach(__name__, __file__)
