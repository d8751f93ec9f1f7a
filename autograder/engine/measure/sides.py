"""The two sides under one clock: what a segment took, how long it had no core, and what was computed besides.

The clock is the wall's, less the time in which a worker was ready to run and the kernel gave the core to somebody
else. Without this a busy machine doubles a segment's time or not, as the scheduler's placement falls. Sleep, input and
output, and every wait of the solution's own making count in full:

- While a process waits for its own threads or children, they compute. Their CPU time is no waiting.
- Where nothing but waiting is to be hidden, any other program on the core would hide it. So of each side's waiting in a
  block no more is left out than the other side had as well, as a share of its time, and `WAITED_ALIKE`.

Neither is asked of ranks. They need more cores than a baseline of one process, so that on a busy machine they do not
wait alike, and what carries their messages computes beside them. Their CPU time is limited, and none can give a core
away: priorities and cores are as the sandbox gave them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.engine.job import CheckFailed, Job, Worker, failure
from autograder.engine.timing import core_seconds, num_cores
from autograder.engine.timing.verdict import MAX_SECONDS
from autograder.engine.workers import OutOfTime
from autograder.show import out_of_time
from course_lib.measuring import SHORT_ORDERS, Block, RunSegment, choose_num_steps, measure_block

Prepare = Callable[[Worker, int, int], None]
WAITED_ALIKE = 0.25  # of a side's time in a block; two workers on one busy machine rarely differ by more
FAR_BELOW = 2.0  # times the baseline's time: more is no matter of measuring well
MAX_IDLE_SHARE = 0.2  # CPU time while the clock stood still, as a share of the time under the clock


@dataclass(frozen=True)
class Segment:
    """Seconds of a timed call without the time in which it had no core, and those."""

    seconds: float
    waited: float


class Side:
    """One of the two workers, its outputs, and the time that it took on and off the clock, in seconds."""

    def __init__(
        self, worker: Worker, function: str, job: Job, prepare: Prepare = lambda worker, seed, num_steps: None
    ) -> None:
        self.worker, self.function, self.job, self.prepare = worker, function, job, prepare
        self.outputs: dict[int, Any] = {}
        self.segments: list[Segment] = []
        self.waited = self.cpu_busy = self.cpu_idle = self.washouts = 0.0
        self.spent: list[float] = []  # seconds on the wall's clock of each run, untimed steps included
        self.step_seconds = 0.0  # of the last segment
        self.unpinned: dict[str, int] | None = None
        self._cpu_when_left: float | None = None

    def run(self, seed: int, num_steps: int) -> float:
        """A segment after a washout: caches, allocator and CPU frequency forget the other side. Its seconds."""
        return self._run(seed, num_steps, washes_out=True)

    def run_short(self, seed: int, num_steps: int) -> float:
        """A segment alone."""
        return self._run(seed, num_steps, washes_out=False)

    def _run(self, seed: int, num_steps: int, *, washes_out: bool) -> float:
        began, cpu_at_start = time.monotonic(), self.worker.cpu_seconds()
        if self._cpu_when_left is not None:
            self.cpu_idle += cpu_at_start - self._cpu_when_left
        try:
            if washes_out:
                # On inputs of its own, so that nothing of the timed inputs is known before the clock runs.
                washout, _ = self._timed(self.job.seed(), 1)
                self.washouts += washout.seconds
            self.check_pins()
            segment, self.outputs[seed] = self._timed(seed, num_steps)
        finally:
            self.spent.append(time.monotonic() - began)
        self._cpu_when_left = self.worker.cpu_seconds()
        self.cpu_busy += self._cpu_when_left - cpu_at_start
        self.segments.append(segment)
        self.step_seconds = segment.seconds / num_steps
        return segment.seconds

    def check_pins(self) -> None:
        """Garbage collection off and threads as given, for what is timed next; notes it where they were otherwise."""
        found = self.worker.pin()
        if self.segments and found != {"collects": 0, "threads": self.worker.threads}:
            self.unpinned = found

    def _timed(self, seed: int, num_steps: int) -> tuple[Segment, Any]:
        self.prepare(self.worker, seed, num_steps)
        before, cpu, unread = self._core_seconds(), self.worker.cpu_seconds(), self.worker.unread_seconds
        seconds, output = self.worker.timed_call(self.function, seed=seed, num_steps=num_steps)
        unread = self.worker.unread_seconds - unread
        cpu, after = self.worker.cpu_seconds() - cpu, self._core_seconds()
        spent = [np.subtract(now, before.get(pid, (0.0, 0.0))) for pid, now in after.items()]
        had, waited = [had for had, _ in spent], sum(waited for _, waited in spent)
        if not self.job.talks:  # while another thread or process of it computed
            waited = max(0.0, waited - max(0.0, cpu - sum(had)))
        # Of a wait that began before the call only a part fell into it; what it computed, it did in that time.
        least = max(*had, 1e-6)
        waited = float(min(waited, max(0.0, seconds - least)))
        self.waited += waited
        return Segment(float(max(seconds - waited, least)), waited + unread), output

    def _core_seconds(self) -> dict[int, tuple[float, float]]:
        """`core_seconds` of the worker, and of the ranks that it has started: while one waits for a core, so do the
        others, for it. On a machine of one core they wait for each other, which is no one else's doing."""
        pids = [self.worker.pid]
        if self.job.talks and num_cores() > 1:
            pids += [p.pid for p in self.worker.process.family() if p.ppid() == self.worker.pid]
        return {pid: core_seconds(pid) for pid in pids}

    @property
    def clock(self) -> float:
        """Seconds of all segments and washouts."""
        return sum(segment.seconds for segment in self.segments) + self.washouts

    @property
    def cores(self) -> float:
        """CPU seconds per second under the clock."""
        return self.cpu_busy / self.clock

    def check_cpu(self, max_cores: float) -> None:
        """Raises `CheckFailed` where more was computed than `max_cores` may, or while the clock stood still."""
        if self.cores > max_cores:
            raise failure(
                expected=f"one thread of work: at most {max_cores:g} CPU seconds per second",
                got=f"{self.cores:.1f} CPU seconds per second",
                likely="threads or processes that compute beside the one that the check gives",
                look="make the work smaller, not wider: the speedup is asked for on equal cores",
            )
        idle_share = self.cpu_idle / self.clock
        if idle_share > MAX_IDLE_SHARE:
            raise failure(
                expected="no work while the clock stands still",
                got=f"{idle_share:.0%} of a segment's time in CPU work between the segments",
                likely="a background thread or process that goes on after your function has returned",
                look="finish all work before you return",
            )


class Sides:
    """Baseline and learner in blocks, neither of which may take more time than the question is worth."""

    def __init__(self, job: Job, function: str, prepare: Prepare) -> None:
        self.job = job
        self.baseline = Side(job.worker("baseline", job.baseline), function, job, prepare)
        self.learner = Side(job.learner(), function, job, prepare)
        self.seeds = iter(job.seed, None)  # without an end
        self.is_far_below = False
        """Whether the last block, or a look before it, was so slow that the next may as well be a short one."""

    @property
    def both(self) -> tuple[Side, Side]:
        return self.baseline, self.learner

    @property
    def seconds(self) -> float:
        """That both have taken for the blocks so far, but for the longest run of each.

        Once, this process or the whole machine may have stood still; and a solution that stalls must do it again.
        """
        return sum(_but_the_longest(side.spent) for side in self.both)

    @property
    def has_dawdled(self) -> bool:
        """Whether the learner's side used far more time than the baseline's, untimed steps included."""
        return self._is_far(_but_the_longest(self.learner.spent), sum(self.baseline.spent))

    def _is_far(self, learner: float, baseline: float) -> bool:
        return learner * min(1.0, self.job.bar) > FAR_BELOW * baseline

    def begin(self, min_seconds: float) -> None:
        """One step of each side after another one: a look at how they compare, and one more where it is far."""
        num_steps, runs = 1, self._runs()
        for _ in range(2):
            seed = next(self.seeds)
            baseline, learner = (run(seed, num_steps) for run in runs)
            self.is_far_below = self._is_far(learner, baseline)
            if not self.is_far_below:
                break
            num_steps, runs = self._few_steps(min_seconds), self._short_runs()

    def warm_up(self, min_seconds: float) -> int:
        """The number of steps of a segment, by `choose_num_steps`. What it took is no part of `spent`."""
        num_steps = choose_num_steps(*self._runs(), self.seeds, min_seconds=min_seconds)
        for side in self.both:
            side.spent.clear()
        return num_steps

    def block(self, num_steps: int) -> Block:
        """The next block, in an order drawn by chance."""
        return self._settled(measure_block(*self._runs(), self.job.rng, self.seeds, num_steps=num_steps))

    def short_block(self, min_seconds: float) -> Block:
        """Two segments in which the slower side, the learner's, takes `min_seconds` or one step, and no washouts."""
        runs, num_steps = self._short_runs(), self._few_steps(min_seconds)
        return self._settled(
            measure_block(*runs, self.job.rng, self.seeds, num_steps=num_steps, orders=SHORT_ORDERS)
        )

    def _runs(self) -> tuple[RunSegment, RunSegment]:
        return self.baseline.run, self._in_time(self.learner.run)

    def _short_runs(self) -> tuple[RunSegment, RunSegment]:
        return self.baseline.run_short, self._in_time(self.learner.run_short)

    def _few_steps(self, min_seconds: float) -> int:
        return max(1, math.ceil(min_seconds / self.learner.step_seconds))

    def _settled(self, block: Block) -> Block:
        if not self.job.talks:
            num_each = len(block.order) // 2
            block = settled(block, self.baseline.segments[-num_each:], self.learner.segments[-num_each:])
        self.is_far_below = self._is_far(1.0, math.exp(block.y))
        return block

    def _in_time(self, run: RunSegment) -> RunSegment:
        def timed(seed: int, num_steps: int) -> float:
            try:
                seconds = run(seed, num_steps)
            except OutOfTime as error:
                raise self._late(error.seconds, self.baseline.step_seconds * num_steps) from None
            if sum(self.learner.spent) > MAX_SECONDS and self.has_dawdled:
                raise self.late()
            return seconds

        return timed

    def late(self) -> CheckFailed:
        """The fail of a learner's side that `has_dawdled`."""
        return self._late(sum(self.learner.spent), sum(self.baseline.spent))

    def _late(self, seconds: float, baseline: float) -> CheckFailed:
        return CheckFailed(out_of_time(self.job.bar, seconds, baseline))


def _but_the_longest(seconds: Sequence[float]) -> float:
    return sum(seconds) - max(seconds, default=0.0)


def settled(block: Block, baseline: Sequence[Segment], learner: Sequence[Segment]) -> Block:
    """The block with as much of each side's waiting left in as the other side had not, but for `WAITED_ALIKE`.

    It goes by the block alone and treats both sides alike: where they are equally fast and wait by chance, each is as
    likely as the other to come out ahead, as it was before.
    """
    found = {"A": baseline, "B": learner}
    shares = {name: _waited_share(segments) for name, segments in found.items()}
    most = min(shares.values()) + WAITED_ALIKE
    left_in = {name: max(0.0, 1 - most / share) if share else 0.0 for name, share in shares.items()}
    in_turn = {name: iter(segments) for name, segments in found.items()}
    segments = [(name, next(in_turn[name])) for name in block.order]
    seconds = tuple(segment.seconds + left_in[name] * segment.waited for name, segment in segments)
    return replace(block, seconds=seconds)


def _waited_share(segments: Sequence[Segment]) -> float:
    waited = sum(segment.waited for segment in segments)
    return waited / (waited + sum(segment.seconds for segment in segments))
