"""Blocks of a program against itself on machines that are busy in several ways, judged with and without their waits.

    python -m tests.benchmarks.waiting [--record FILE.jsonl.gz [--blocks 100]] [--verdicts 100000]

`--record` measures anew in the engine's own workers: a line per block, with the order of its segments, and for each
side the seconds of its two segments and how long it waited for a core besides. Without it, the blocks kept in
`tests/benchmarks/results/waiting.jsonl.gz` are judged.

Both sides do equal work, so a block says as much with the sides exchanged. A verdict is drawn from the blocks of one
load in stretches, each as it was or exchanged, as chance will, and moved to the true speedup that is asked about.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from autograder.engine.job import Job
from autograder.engine.measure.sides import Segment, Sides, settled
from autograder.engine.timing.verdict import MARGIN, MAX_BLOCKS
from course_lib.measuring import Block
from tests.benchmarks.simulate_verdicts import STRETCH, rates
from tests.benchmarks.verdict_runs import burn

KEPT = Path(__file__).parent / "results" / "waiting.jsonl.gz"
MIN_SECONDS = 0.05
_HARNESS = (
    "def segment(seed, num_steps):\n    for _ in range(num_steps):\n        learner(seed)\n    return {}\n"
)
_WORK = "def work(seed):\n    total = 0\n    for number in range(300_000):\n        total += number\n    return total\n"


def _bursts() -> None:
    """A core kept busy for a third of a second, then left for as long, on average."""
    parent = os.getppid()
    while os.getppid() == parent:
        end = time.monotonic() + random.expovariate(3)
        while time.monotonic() < end:
            sum(range(10_000))
        time.sleep(random.expovariate(3))


LOADS: dict[str, tuple[Callable[[], None], float]] = {
    "nothing else": (burn, 0),
    "one core in two busy": (burn, 0.5),
    "each core busy": (burn, 1),
    "each core twice as busy": (burn, 2),
    "each core busy now and then": (_bursts, 1),
}
"""What runs beside the blocks, and how many of it for each core."""


def record(num_blocks: int) -> Iterator[dict[str, Any]]:
    """Measured blocks of each load."""
    for load, (program, per_core) in LOADS.items():
        number = round(per_core * (os.cpu_count() or 1))
        others = [multiprocessing.Process(target=program, daemon=True) for _ in range(number)]
        for other in others:
            other.start()
        with contextlib.closing(Job("known", "work", _WORK, _HARNESS, np.random.default_rng(0))) as job:
            job.baseline, job.bar = _WORK, 1.0
            sides = Sides(job, "segment", lambda worker, seed, num_steps: None)
            num_steps = sides.warm_up(MIN_SECONDS)
            for _ in range(num_blocks):
                order = sides.block(num_steps).order
                of_sides = [[[s.seconds, s.waited] for s in side.segments[-2:]] for side in sides.both]
                yield {"load": load, "order": order, "baseline": of_sides[0], "learner": of_sides[1]}
        for other in others:
            other.kill()
            other.join()


def read(path: Path = KEPT) -> dict[str, list[dict[str, Any]]]:
    """Blocks by load."""
    found: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            found.setdefault((row := json.loads(line))["load"], []).append(row)
    return found


def log_speedup(row: dict[str, Any], clock: str) -> float:
    """Of a block by one of three clocks: the wall's, less all "waits", or less those that both sides had, "alike"."""
    baseline, learner = ([Segment(*segment) for segment in row[name]] for name in ("baseline", "learner"))
    if clock == "wall":
        baseline, learner = ([Segment(s.seconds + s.waited, 0) for s in side] for side in (baseline, learner))
    in_turn = {"A": iter(baseline), "B": iter(learner)}
    seconds = tuple(next(in_turn[name]).seconds for name in row["order"])
    block = Block(order=row["order"], seconds=seconds, num_steps=1, seeds=(0, 1))
    return settled(block, baseline, learner).y if clock == "alike" else block.y


def judged(y: np.ndarray, truth: float, verdicts: int) -> dict[str, float]:
    """Rates of verdicts on log speedups of measured blocks, moved to `truth`, a share of the bar."""
    rng = np.random.default_rng(0)
    starts = rng.integers(len(y) - STRETCH + 1, size=(verdicts, math.ceil(MAX_BLOCKS / STRETCH)))
    exchanged = rng.choice([-1.0, 1.0], size=(*starts.shape, 1))
    drawn = y[starts[..., None] + np.arange(STRETCH)] * exchanged
    return rates(drawn.reshape(verdicts, -1)[:, :MAX_BLOCKS] + math.log(truth))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--blocks", type=int, default=100, help="of each load, to be recorded")
    parser.add_argument("--verdicts", type=int, default=100_000)
    arguments = parser.parse_args()
    if arguments.record:
        with gzip.open(arguments.record, "wt", encoding="utf-8") as file:
            for row in record(arguments.blocks):
                file.write(json.dumps(row) + "\n")
    print(
        "| beside it | clock | spread of a block | passes at 0.95 × bar | fails at the bar | passes at 1.2 × bar |"
    )
    print("|---|---|---|---|---|---|")
    for load, rows in read(arguments.record or KEPT).items():
        for clock in ("wall", "waits", "alike"):
            y = np.array([log_speedup(row, clock) for row in rows])
            passes, fails, right = (judged(y, truth, arguments.verdicts) for truth in (MARGIN, 1.0, 1.2))
            spread = 1.4826 * float(np.median(np.abs(y - np.median(y))))
            shares = " | ".join(f"{share:.2%}" for share in (passes["pass"], fails["fail"], right["pass"]))
            print(f"| {load} | {clock} | {spread:.1%} | {shares} |")


if __name__ == "__main__":
    main()
