"""Speed by paired timing, costs by counting, and the stages of a step."""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.measuring.bench import (
        SHORT_ORDERS,
        Block,
        RunSegment,
        bootstrap_interval,
        choose_num_steps,
        hodges_lehmann,
        measure_block,
        paired_segments,
        paired_speedup,
        synchronize,
    )
    from course_lib.measuring.counters import count_events, peak_bytes
    from course_lib.measuring.counts import Counts
    from course_lib.measuring.naive import naive_epoch
    from course_lib.measuring.stages import mark_stages, stage, step_breakdown

__getattr__, __dir__, __all__ = attach(__name__, __file__)
