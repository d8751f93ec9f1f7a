"""Two workers, one clock: blocks of interleaved segments until the verdict's question is decided."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograder.job import CheckFailed, Job, Worker, failure
from autograder.verdict import ALPHA_PASS, MAX_BLOCKS, MAX_SPREAD, Decision, decide
from course_lib.bench import Block, bootstrap_interval, choose_num_steps, hodges_lehmann, measure_block

Compare = Callable[[Any, Any], None]
MIN_SECONDS = 0.12  # of the faster side's segment; the slower one's is longer by the speedup
MAX_CORES = 1.4  # of CPU time per second of the clock, for a solution that was given one thread
MAX_IDLE_SHARE = 0.2  # CPU time while the clock stood still, as a share of the time under the clock


class Inconclusive(Exception):
    """The clock could not decide. Never scored zero; the text says why and what to do."""


class _Side:
    """One of the two workers, its outputs, and the CPU time that it took on and off the clock."""

    def __init__(self, worker: Worker, function: str, job: Job) -> None:
        self.worker, self.function, self.job = worker, function, job
        self.outputs: dict[int, Any] = {}
        self.cores: list[float] = []
        self.idle_share: list[float] = []
        self._cpu_when_left: float | None = None

    def run(self, seed: int, num_steps: int) -> float:
        cpu_at_start = self.worker.process.cpu_seconds()
        # Washout: caches, allocator and CPU frequency forget the other side. On inputs of its own, so that nothing
        # of the timed inputs is known before the clock runs.
        self.worker.call(self.function, seed=self.job.seed(), num_steps=1)
        cpu_before = self.worker.process.cpu_seconds()
        seconds, output = self.worker.timed_call(self.function, seed=seed, num_steps=num_steps)
        cpu_after = self.worker.process.cpu_seconds()
        self.cores.append((cpu_after - cpu_before) / seconds)
        if self._cpu_when_left is not None:
            self.idle_share.append(max(0.0, cpu_at_start - self._cpu_when_left) / seconds)
        self._cpu_when_left = cpu_after
        self.outputs[seed] = output
        return seconds


def measure_speedup(
    job: Job,
    *,
    baseline: str,
    bar: float,
    compare: Compare,
    function: str,
    max_cores: float = MAX_CORES,
    likely: str,
    look: str,
) -> None:
    """Decide whether the learner's speedup over `baseline` reaches `bar`.

    Args:
        baseline: source of the frozen baseline, under the same name as the learner's solution.
        bar: the speedup asked for, baseline time / candidate time.
        compare: gets the outputs of baseline and learner on equal inputs; raises `CheckFailed` when they differ.
        function: the harness function of one segment: `function(seed, num_steps) -> outputs`.
        max_cores: CPU seconds per second that the learner's side may take.
        likely: why the speedup falls short, as far as counts have shown it.
        look: where to look next then.

    Returns on a pass. Raises `CheckFailed` or `Inconclusive`.
    """
    job.prepare(2)
    sides = {
        "A": _Side(job.worker("baseline", baseline), function, job),
        "B": _Side(job.learner(), function, job),
    }
    seeds = (job.seed() for _ in itertools.count())
    job.progress("Warming up both sides", 0.0)
    num_steps = choose_num_steps(sides["A"].run, sides["B"].run, seeds, min_seconds=MIN_SECONDS)
    blocks, decision = _run_blocks(job, sides, bar, num_steps, seeds, compare)
    _check_cpu(sides["B"], max_cores)
    _report(job, blocks, bar)
    assert job.speed is not None
    if decision.outcome == "fail":
        raise CheckFailed(_too_slow(job.speed, likely, look))
    if decision.outcome == "inconclusive":
        raise Inconclusive(_undecided(job.speed, job.speed["spread"]))


def _run_blocks(
    job: Job, sides: dict[str, _Side], bar: float, num_steps: int, seeds: Iterator[int], compare: Compare
) -> tuple[list[Block], Decision]:
    prior = [float(block["y"]) for block in job.prior_blocks]
    limit = len(prior) + MAX_BLOCKS
    blocks: list[Block] = []
    start = time.monotonic()
    while True:
        block = measure_block(sides["A"].run, sides["B"].run, job.rng, seeds, num_steps=num_steps)
        _compare_outputs(sides, compare)
        blocks.append(block)
        job.raw_blocks.append({key: value for key, value in block.to_dict().items() if key != "seeds"})
        y = prior + [b.y for b in blocks]
        decision = decide(y, bar, seconds=time.monotonic() - start, max_blocks=limit)
        so_far = math.exp(hodges_lehmann(y))
        share = max(math.log(decision.wealth_pass) / math.log(1 / ALPHA_PASS), len(y) / limit, 0.0)
        job.progress(f"Block {len(y)}: speedup so far {so_far:.2f}×, asked for {bar:g}×", min(1.0, share))
        if decision.outcome:
            return blocks, decision


def _compare_outputs(sides: dict[str, _Side], compare: Compare) -> None:
    baseline, learner = sides["A"].outputs, sides["B"].outputs
    for seed in baseline.keys() & learner.keys():
        compare(baseline.pop(seed), learner.pop(seed))


def _check_cpu(side: _Side, max_cores: float) -> None:
    cores = statistics.median(side.cores)
    if cores > max_cores:
        raise failure(
            expected=f"one thread of work: at most {max_cores:g} CPU seconds per second",
            got=f"{cores:.1f} CPU seconds per second",
            likely="threads or processes that compute beside the one that the check gives",
            look="make the work smaller, not wider: the speedup is asked for on equal cores",
        )
    if side.idle_share and statistics.median(side.idle_share) > MAX_IDLE_SHARE:
        raise failure(
            expected="no work while the clock stands still",
            got=f"{statistics.median(side.idle_share):.0%} of a segment's time in CPU work between the segments",
            likely="a background thread or process that goes on after your function has returned",
            look="finish all work before you return",
        )


def _report(job: Job, blocks: list[Block], bar: float) -> None:
    values = np.array([float(b["y"]) for b in job.prior_blocks] + [b.y for b in blocks])
    # A block's y is ½(a₁ + a₂ − b₁ − b₂) of four log times, so its spread is that of one segment against itself.
    spread = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    low, high = bootstrap_interval(values)  # over the blocks of an earlier check too, as the estimate
    job.speed = {
        "estimate": math.exp(hodges_lehmann(values)),
        "low": math.exp(low),
        "high": math.exp(high),
        "bar": bar,
        "blocks": len(values),
        "spread": spread,
        "ratios": [math.exp(v) for v in values],
    }


def _too_slow(speed: dict[str, Any], likely: str, look: str) -> str:
    return (
        f"Expected: a speedup of {speed['bar']:g}× over the baseline\n"
        f"Got: {speed['estimate']:.2f}× ({speed['low']:.2f} to {speed['high']:.2f}, {speed['blocks']} blocks)\n"
        f"Likely: {likely}\nNext: {look}"
    )


def _undecided(speed: dict[str, Any], spread: float) -> str:
    if spread > MAX_SPREAD:
        why = (
            f"equal work differed by {spread:.0%} from one moment to the next, and above {MAX_SPREAD:.0%} this "
            "machine is unfit to time on"
        )
        what = "Close what else is running, plug the laptop in, and run the check again"
    else:
        why = f"{speed['estimate']:.2f}× is too close to the {speed['bar']:g}× asked for"
        what = "Run the check again: it goes on from the blocks it has. Or make the solution a little faster"
    return (
        f"The clock could not decide after {speed['blocks']} blocks: {why}. {what}. The points that need no clock "
        "are yours."
    )
