"""Two workers, one clock: blocks of interleaved segments until the verdict's question is decided.

The clock is the wall's, less the time in which a worker was ready to run and the kernel gave the core to another
process (`core_seconds`). Sleep, input and output, and every wait of the solution's own making count in full. Without
this a busy machine doubles a segment's time or not, as the scheduler's placement falls.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from autograder.common import Reason, Speed
from autograder.engine.job import CheckFailed, Job, Worker, failure
from autograder.engine.sandbox import Stopped
from autograder.engine.timing.blocks import KeptBlock
from autograder.engine.timing.conditions import Conditions, core_seconds, disturbance, num_cores
from autograder.engine.timing.verdict import ALPHA_PASS, MAX_BLOCKS, Decision, decide
from autograder.show import too_slow, undecided
from course_lib.measuring import Block, bootstrap_interval, choose_num_steps, hodges_lehmann, measure_block

Compare = Callable[[Any, Any], None]
MIN_SECONDS = 0.05  # of the faster side's segment; the slower one's is longer by the speedup
MAX_CORES = 1.2  # of CPU time per second of the clock, for a solution that was given one thread
MAX_IDLE_SHARE = 0.2  # CPU time while the clock stood still, as a share of the time under the clock
APPLIES_FROM = 1.2  # times the bar: the clock is asked only where our own reference reaches that here
REVIEW_FROM = 1.5  # times our reference: faster is not wrong, but a person should look


class Inconclusive(Exception):
    """The clock could not decide. Never scored zero; the reason says why and what to do."""

    def __init__(self, reason: Reason | str) -> None:
        super().__init__(str(reason))
        self.reason = Reason(note=reason) if isinstance(reason, str) else reason


class _Side:
    """One of the two workers, its outputs, and the CPU time that it took on and off the clock."""

    def __init__(self, worker: Worker, function: str, job: Job) -> None:
        self.worker, self.function, self.job = worker, function, job
        self.outputs: dict[int, Any] = {}
        self.seconds: list[float] = []
        self.waited = self.cpu_busy = self.cpu_idle = self.washouts = 0.0
        self.unpinned: dict[str, int] | None = None
        self._cpu_when_left: float | None = None

    def run(self, seed: int, num_steps: int) -> float:
        cpu_at_start = self.worker.cpu_seconds()
        if self._cpu_when_left is not None:
            self.cpu_idle += cpu_at_start - self._cpu_when_left
        # Washout: caches, allocator and CPU frequency forget the other side. On inputs of its own, so that nothing
        # of the timed inputs is known before the clock runs.
        washout, _ = self._timed(self.job.seed(), 1)
        self.check_pins()
        seconds, self.outputs[seed] = self._timed(seed, num_steps)
        self._cpu_when_left = self.worker.cpu_seconds()
        self.cpu_busy += self._cpu_when_left - cpu_at_start
        self.washouts += washout
        self.seconds.append(seconds)
        return seconds

    def check_pins(self) -> None:
        """Garbage collection off and threads as given, for what is timed next; notes it where they were otherwise."""
        found = self.worker.pin()
        if self.seconds and found != {"collects": 0, "threads": self.worker.threads}:
            self.unpinned = found

    def _timed(self, seed: int, num_steps: int) -> tuple[float, Any]:
        before = self._core_seconds()
        seconds, output = self.worker.timed_call(self.function, seed=seed, num_steps=num_steps)
        after = self._core_seconds()
        spent = [np.subtract(now, before.get(pid, (0.0, 0.0))) for pid, now in after.items()]
        had, waited = max(had for had, _ in spent), sum(waited for _, waited in spent)
        self.waited += waited
        # Of a wait that began before the call only a part fell into it; what it computed, it did in that time.
        return max(seconds - waited, had, 1e-6), output

    def _core_seconds(self) -> dict[int, tuple[float, float]]:
        """`core_seconds` of the worker, and of the ranks that it has started: while one waits for a core, so do the
        others, for it. On a machine of one core they wait for each other, which is no one else's doing."""
        pids = [self.worker.pid]
        if self.job.talks and num_cores() > 1:
            pids += [p.pid for p in self.worker.process.family() if p.ppid() == self.worker.pid]
        return {pid: core_seconds(pid) for pid in pids}

    @property
    def clock(self) -> float:
        return sum(self.seconds) + self.washouts

    @property
    def cores(self) -> float:
        """CPU seconds per second under the clock."""
        return self.cpu_busy / self.clock


def measure_speedup(
    job: Job,
    *,
    compare: Compare,
    function: str,
    max_cores: float = MAX_CORES,
    likely: str,
    look: str,
    part: str = "",
) -> None:
    """Decide whether the learner's speedup over the job's `baseline` reaches its `bar`.

    Where our own reference does not reach 1.2 × the bar on this machine, outputs are compared and the
    clock is not asked.

    Args:
        compare: gets the outputs of baseline and learner on equal inputs; raises `CheckFailed` when they differ.
        function: the harness function of one segment: `function(seed, num_steps) -> outputs`.
        max_cores: CPU seconds per second that the learner's side may take.
        likely: why the speedup falls short, as far as counts have shown it.
        look: where to look next then.
        part: of an exercise with several measurements, the name of this one. Its blocks are its own; all parts have
            one bar, and the reference speedup is that of the slowest part.

    Returns on a pass. Raises `CheckFailed` or `Inconclusive`, and `Stopped` with `job.speed` of the blocks until then.
    """
    bar = job.bar
    sides = [_Side(worker, function, job) for worker in (job.worker("baseline", job.baseline), job.learner())]
    seeds = (job.seed() for _ in itertools.count())
    conditions = Conditions()
    job.progress("Warming up both sides", 0.0)
    num_steps = choose_num_steps(sides[0].run, sides[1].run, seeds, min_seconds=MIN_SECONDS)
    _compare_outputs(sides, compare)
    if job.reference_speedup is not None and job.reference_speedup < APPLIES_FROM * bar:
        job.counts["speed_bar_moved_to_counts"] = bar
        return
    blocks, decision = _run_blocks(job, sides, bar, num_steps, seeds, compare, part)
    with contextlib.suppress(Stopped):
        for side in sides:
            side.check_pins()
    if not blocks:
        raise Stopped
    meanwhile = conditions.since()
    job.conditions |= meanwhile.to_dict() | _of_sides(*sides)
    _check_cpu(sides[1], max_cores)
    job.speed = speed = _speed(_prior(job, part), blocks, bar)
    if job.reference_speedup and not part and speed.estimate > REVIEW_FROM * job.reference_speedup:
        job.flag(
            f"{speed.estimate:.2f}× is faster than {REVIEW_FROM:g} × our reference "
            f"({job.reference_speedup:.2f}× on this machine)"
        )
    if (found := sides[1].unpinned) and found["threads"] != job.threads:
        job.flag(f"it sets torch's threads to {found['threads']}, where the check gives {job.threads}")
    job.stop.raise_if_pressed()
    if decision.outcome == "fail":
        raise CheckFailed(too_slow(speed, likely, look))
    if decision.outcome == "inconclusive":
        ours = sum(side.cores for side in sides) / len(sides)  # they take turns
        raise Inconclusive(undecided(speed, disturbance(meanwhile, ours)))


def _run_blocks(
    job: Job,
    sides: list[_Side],
    bar: float,
    num_steps: int,
    seeds: Iterator[int],
    compare: Compare,
    part: str,
) -> tuple[list[Block], Decision]:
    prior = _prior(job, part)
    where = f"Part {part}, block" if part else "Block"
    limit = len(prior) + MAX_BLOCKS
    blocks: list[Block] = []
    decision = decide(prior, bar, max_blocks=limit)
    start = time.monotonic()
    with contextlib.suppress(Stopped):  # what was measured until then is kept, less the block in hand
        while not blocks or decision.outcome is None:
            block = measure_block(sides[0].run, sides[1].run, job.rng, seeds, num_steps=num_steps)
            _compare_outputs(sides, compare)
            blocks.append(block)
            job.raw_blocks.append(KeptBlock.of(block, part))
            y = prior + [b.y for b in blocks]
            decision = decide(y, bar, seconds=time.monotonic() - start, max_blocks=limit)
            so_far = math.exp(hodges_lehmann(y))
            share = max(math.log(decision.wealth_pass) / math.log(1 / ALPHA_PASS), len(y) / limit, 0.0)
            # No seconds left: when the question will be decided cannot be known.
            text = f"{where} {len(y)} of at most {limit}: {so_far:.2f}× so far, {bar:g}× asked for"
            job.progress(text, min(1.0, share))
    return blocks, decision


def _prior(job: Job, part: str) -> list[float]:
    """Log speedups of the blocks of earlier checks that this measurement goes on from."""
    return [block.y for block in job.prior_blocks if block.part == part]


def _compare_outputs(sides: list[_Side], compare: Compare) -> None:
    baseline, learner = (side.outputs for side in sides)
    for seed in baseline.keys() & learner.keys():
        compare(baseline.pop(seed), learner.pop(seed))


def _of_sides(baseline: _Side, learner: _Side) -> dict[str, Mapping[str, object]]:
    named = {"baseline": baseline, "learner": learner}
    return {
        "cores_used": {name: side.cores for name, side in named.items()},
        "waited_for_core_share": {
            name: side.waited / (side.clock + side.waited) for name, side in named.items()
        },
        # Imports, allocator, compilation: what the first segment took over the median one.
        "first_segment_seconds": {name: side.seconds[0] for name, side in named.items()},
        "pins_found_changed": {name: side.unpinned for name, side in named.items() if side.unpinned},
    }


def _check_cpu(side: _Side, max_cores: float) -> None:
    cores, idle_share = side.cores, side.cpu_idle / side.clock
    if cores > max_cores:
        raise failure(
            expected=f"one thread of work: at most {max_cores:g} CPU seconds per second",
            got=f"{cores:.1f} CPU seconds per second",
            likely="threads or processes that compute beside the one that the check gives",
            look="make the work smaller, not wider: the speedup is asked for on equal cores",
        )
    if idle_share > MAX_IDLE_SHARE:
        raise failure(
            expected="no work while the clock stands still",
            got=f"{idle_share:.0%} of a segment's time in CPU work between the segments",
            likely="a background thread or process that goes on after your function has returned",
            look="finish all work before you return",
        )


def _speed(prior: list[float], blocks: list[Block], bar: float) -> Speed:
    values = np.array(prior + [b.y for b in blocks])
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
