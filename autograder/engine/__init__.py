"""The source of a cell in, a result out."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from autograder.engine.calibration import calibrate
    from autograder.engine.check import blank_result, check_source
    from autograder.engine.job import CheckFailed, Job, Progress, Worker, failure
    from autograder.engine.measure import APPLIES_FROM, Inconclusive, TooSlow, measure_speedup
    from autograder.engine.rules import key_of
    from autograder.engine.service import EngineDied, EngineService, EngineStuck
    from autograder.engine.source.choosing import Chosen
    from autograder.engine.source.drawn import student_in
    from autograder.engine.source.marks import bound_names, exercise_ids, is_stub, marked_ids
    from autograder.engine.source.notebook import (
        apart_or_by_text,
        choose_cells,
        exercise_cells,
        exercise_sources,
        sources_in,
        text_of,
        told_in,
    )
    from autograder.engine.source.python import MAX_CELL, is_python
    from autograder.engine.workers import at_once

__getattr__, __dir__, __all__ = attach(__name__, __file__)
