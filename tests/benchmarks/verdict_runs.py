"""Verdicts of speed checks, again and again: references must not fail, slow solutions must not pass.

    python -m tests.benchmarks.verdict_runs [--runs 20] [--exercises 1.1 1.2 1.6] [--out FILE.jsonl]

Half of the runs have every core kept busy by another process. A slow solution is right in every respect but time
(`slow` of its clock, in the lesson's declaration). Prints a table; `--out` keeps each result.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.common.result import Result
from autograder.course import find_exercise
from autograder.engine.check import check_source
from autograder.engine.evidence import hardware, path_of
from tests.autograder.solutions import reference_sources


def burn() -> None:
    """Keep one core busy, for as long as the process that started this one lives."""
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100_000))


@contextmanager
def busy_cores(is_busy: bool) -> Iterator[None]:
    """Every core occupied by a process of ours while the block runs."""
    processes = [multiprocessing.Process(target=burn, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in processes if is_busy else []:
        process.start()
    try:
        yield
    finally:
        for process in processes if is_busy else []:
            process.kill()
            process.join()


def run(exercise_id: str, source: str) -> Result:
    """One check from a fresh start: no blocks of an earlier inconclusive run are carried on."""
    path_of(exercise_id, source).unlink(missing_ok=True)
    return check_source(exercise_id, source)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=20, help="of each reference; slow solutions get half as many"
    )
    parser.add_argument("--exercises", nargs="+", default=["1.1", "1.2", "1.6"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    print(json.dumps(hardware()))
    print(
        "| exercise | solution | cores | pass | fail | inconclusive | error | speedup | seconds, median (max) |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for exercise_id in arguments.exercises:
        lesson, exercise = find_exercise(exercise_id)
        if exercise.clock is None:
            parser.error(f"exercise {exercise_id} asks nothing of the clock: name one that does, such as 1.1")
        for name, source, runs in (
            ("reference", reference_sources(lesson.id)[exercise_id], arguments.runs),
            ("slow", exercise.part(exercise.clock.slow), arguments.runs // 2),
        ):
            for is_busy in (False, True):
                with busy_cores(is_busy):
                    results = [run(exercise_id, source) for _ in range(runs // 2)]
                report(exercise_id, name, is_busy, results, arguments.out)


def report(exercise_id: str, name: str, is_busy: bool, results: list[Result], out: Path | None) -> None:
    cores = "busy" if is_busy else "idle"
    counts = {v: sum(r.verdict == v for r in results) for v in ("pass", "fail", "inconclusive", "error")}
    speedups = [r.speedup.estimate for r in results if r.speedup]
    span = f"{min(speedups):.2f} to {max(speedups):.2f}" if speedups else "-"
    seconds = [r.seconds for r in results]
    print(
        f"| {exercise_id} | {name} | {cores} | {' | '.join(str(c) for c in counts.values())} | {span} "
        f"| {statistics.median(seconds):.0f} ({max(seconds):.0f}) |",
        flush=True,
    )
    if out:
        with out.open("a", encoding="utf-8") as file:
            for result in results:
                file.write(json.dumps({"solution": name, "cores": cores} | result.to_dict()) + "\n")


if __name__ == "__main__":
    main()
