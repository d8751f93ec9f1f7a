"""Two sides, one clock: blocks of interleaved segments until the verdict's question is decided.

A solution far below the baseline is measured in short blocks: of long ones there would be too few to decide it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.common import Reason, Speed
from autograder.engine.job import CheckFailed, Job
from autograder.engine.measure.sides import FAR_BELOW, Prepare, Side, Sides
from autograder.engine.sandbox import Stopped
from autograder.engine.timing.blocks import KeptBlock, are_surely_below, decide_on
from autograder.engine.timing.conditions import Conditions, disturbance
from autograder.engine.timing.verdict import ALPHA_PASS, MAX_BLOCKS, MAX_SECONDS, Decision
from autograder.show import NOT_SHOWN, RIGHT_BUT_SLOW, too_slow, undecided
from course_lib.measuring import bootstrap_interval, hodges_lehmann

Compare = Callable[[Any, Any], None]
MIN_SECONDS = 0.05  # of the faster side's segment; the slower one's is longer by the speedup
MAX_CORES = 1.2  # of CPU time per second of the clock, for a solution that was given one thread
APPLIES_FROM = 1.2  # times the bar: the clock is asked only where our own reference reaches that here
REVIEW_FROM = 1.5  # times our reference: faster is not wrong, but a person should look


class Inconclusive(Exception):
    """The clock could not decide. Never scored zero; the reason says why and what to do."""

    def __init__(self, reason: Reason | str) -> None:
        super().__init__(str(reason))
        self.reason = Reason(note=reason) if isinstance(reason, str) else reason


class TooSlow(CheckFailed):
    """Right, and surely below the bar.

    Attributes:
        earns: whether the points that need no clock are earned: counts show that the idea was used, and it is not
            surely slower than what it was to improve on.
    """

    def __init__(self, reason: Reason, *, earns: bool) -> None:
        super().__init__(reason)
        self.earns = earns


def measure_speedup(
    job: Job,
    *,
    compare: Compare,
    function: str,
    prepare: Prepare = lambda worker, seed, num_steps: None,
    max_cores: float = MAX_CORES,
    likely: str,
    look: str,
    part: str = "",
    review_from: float = REVIEW_FROM,
    shows_idea: bool = True,
) -> None:
    """Decide whether the learner's speedup over the job's `baseline` reaches its `bar`.

    Where our own reference does not reach 1.2 × the bar on this machine, outputs are compared and the
    clock is not asked.

    Args:
        compare: gets the outputs of baseline and learner on equal inputs; raises `CheckFailed` when they differ.
        function: the harness function of one segment: `function(seed, num_steps) -> outputs`.
        prepare: stores what the segment that comes next waits for: `prepare(worker, seed, num_steps)`, off the clock.
        max_cores: CPU seconds per second that the learner's side may take.
        likely: why the speedup falls short, as far as counts have shown it.
        look: where to look next then.
        part: of an exercise with several measurements, the name of this one. Its blocks are its own; all parts have
            one bar, and the reference speedup is that of the slowest part.
        review_from: from how many times our reference's speedup on a person should look.
        shows_idea: whether counts before the clock have shown that the idea was used. Where they have not, a solution
            that is surely too slow earns nothing.

    Returns on a pass. Raises `TooSlow`, `CheckFailed` or `Inconclusive`, and `Stopped` with `job.speed` of the blocks
    until then.
    """
    sides, conditions = Sides(job, function, prepare), Conditions()
    job.progress("Warming up both sides", 0.0)
    if job.reference_speedup is not None and job.reference_speedup < APPLIES_FROM * job.bar:
        sides.warm_up(MIN_SECONDS)
        _compare_outputs(sides, compare)
        job.counts["speed_bar_moved_to_counts"] = job.bar
        return
    sides.begin(MIN_SECONDS)
    _compare_outputs(sides, compare)
    blocks, decision = _run_blocks(job, sides, compare, part)
    with contextlib.suppress(Stopped):
        for side in sides.both:
            side.check_pins()
    if not blocks:
        raise Stopped
    meanwhile = conditions.since()
    job.conditions |= meanwhile.to_dict() | _of_sides(sides)
    sides.learner.check_cpu(max_cores)
    job.speed = speed = _speed([*_prior(job, part), *blocks], job.bar)
    if job.reference_speedup and not part and speed.estimate > review_from * job.reference_speedup:
        job.flag(
            f"{speed.estimate:.2f}× is faster than {review_from:g} × our reference "
            f"({job.reference_speedup:.2f}× on this machine)"
        )
    if (found := sides.learner.unpinned) and found["threads"] != job.threads:
        job.flag(f"it sets torch's threads to {found['threads']}, where the check gives {job.threads}")
    job.stop.raise_if_pressed()
    if decision.outcome == "fail":
        is_slower = are_surely_below([*_prior(job, part), *blocks], slowest_that_earns(job.bar))
        earns = shows_idea and not is_slower
        note = RIGHT_BUT_SLOW if earns else "" if is_slower else NOT_SHOWN
        raise TooSlow(too_slow(speed, likely, look, note), earns=earns)
    if decision.outcome == "inconclusive" and sides.has_dawdled:
        raise sides.late()
    if decision.outcome == "inconclusive":
        ours = sum(side.cores for side in sides.both) / 2  # they take turns
        raise Inconclusive(undecided(speed, disturbance(meanwhile, ours)))


def slowest_that_earns(bar: float) -> float:
    """The speedup from which a solution that fails by the clock still earns the points that need none: the baseline's.

    A bar below 1× is the price of an idea, which the baseline does not pay: there it is half of the bar.
    """
    return 1.0 if bar >= 1.0 else bar / FAR_BELOW


def goes_on(decision: Decision, blocks: list[KeptBlock], bar: float, seconds: float, limit: int) -> bool:
    """Whether more blocks are to be measured: the question is open; or it is decided that the solution is too slow, and
    not yet whether it is slower than what still earns, as it seems to be."""
    if decision.outcome != "fail":
        return decision.outcome is None
    floor = slowest_that_earns(bar)
    seems_slower = math.exp(hodges_lehmann(_log_speedups(blocks))) < floor
    is_over = len(blocks) >= limit or seconds >= MAX_SECONDS
    return seems_slower and not is_over and not are_surely_below(blocks, floor)


def _run_blocks(job: Job, sides: Sides, compare: Compare, part: str) -> tuple[list[KeptBlock], Decision]:
    kept = _prior(job, part)
    where = f"Part {part}, block" if part else "Block"
    limit = len(kept) + MAX_BLOCKS
    blocks: list[KeptBlock] = []
    decision = decide_on(kept, job.bar, max_blocks=limit)
    num_steps = 0
    with contextlib.suppress(Stopped):  # what was measured until then is kept, less the block in hand
        while not blocks or goes_on(decision, [*kept, *blocks], job.bar, sides.seconds, limit):
            if sides.is_far_below:
                block = sides.short_block(MIN_SECONDS)
            else:
                num_steps = num_steps or sides.warm_up(MIN_SECONDS)
                block = sides.block(num_steps)
            _compare_outputs(sides, compare)
            blocks.append(KeptBlock.of(block, part))
            job.raw_blocks.append(blocks[-1])
            so_far = [*kept, *blocks]
            decision = decide_on(so_far, job.bar, seconds=sides.seconds, max_blocks=limit)
            share = max(math.log(decision.wealth_pass) / math.log(1 / ALPHA_PASS), len(so_far) / limit, 0.0)
            speedup = math.exp(hodges_lehmann(_log_speedups(so_far)))
            # No seconds left: when the question will be decided cannot be known.
            text = f"{where} {len(so_far)} of at most {limit}: {speedup:.2f}× so far, {job.bar:g}× asked for"
            job.progress(text, min(1.0, share))
    return blocks, decision


def _log_speedups(blocks: list[KeptBlock]) -> list[float]:
    """Of the blocks that tell how fast it is: short ones say it roughly, and count where they are most of all."""
    are_short = 2 * sum(block.is_short for block in blocks) > len(blocks)
    return [block.y for block in blocks if block.is_short == are_short]


def _prior(job: Job, part: str) -> list[KeptBlock]:
    """The blocks of earlier checks that this measurement goes on from."""
    return [block for block in job.prior_blocks if block.part == part]


def _compare_outputs(sides: Sides, compare: Compare) -> None:
    baseline, learner = sides.baseline.outputs, sides.learner.outputs
    for seed in baseline.keys() & learner.keys():
        compare(baseline.pop(seed), learner.pop(seed))


def _of_sides(sides: Sides) -> dict[str, Mapping[str, object]]:
    named: dict[str, Side] = {"baseline": sides.baseline, "learner": sides.learner}
    return {
        "cores_used": {name: side.cores for name, side in named.items()},
        "waited_for_core_share": {
            name: side.waited / (side.clock + side.waited) for name, side in named.items()
        },
        # Imports, allocator, compilation: what the first segment took over the median one.
        "first_segment_seconds": {name: side.segments[0].seconds for name, side in named.items()},
        "pins_found_changed": {name: side.unpinned for name, side in named.items() if side.unpinned},
    }


def _speed(blocks: list[KeptBlock], bar: float) -> Speed:
    values = np.array(_log_speedups(blocks))
    # A block's y is ½(a₁ + a₂ − b₁ − b₂) of four log times, so its spread is that of one segment against itself.
    spread = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    low, high = bootstrap_interval(values)  # over the blocks of an earlier check too, as the estimate
    return Speed(
        estimate=math.exp(hodges_lehmann(values)),
        low=math.exp(low),
        high=math.exp(high),
        bar=bar,
        blocks=len(values),
        spread=spread,
        ratios=tuple(math.exp(v) for v in values),
    )
