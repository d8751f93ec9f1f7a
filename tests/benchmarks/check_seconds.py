"""Seconds of each check with the reference, the clock aside, in this checkout and in another one, in turns.

    python -m tests.benchmarks.check_seconds --other CHECKOUT [--runs 5] [5.3 …]

Both are set up, each with a `.venv` of its own, and check in a process that has checked before. The median of each, and
their ratio; last, the sums over a lesson and over all.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm.auto import tqdm

from autograder.course import lesson_ids, load_lesson

HERE = Path(__file__).resolve().parents[2]
_CHECKER = """
import sys, time
from autograder.engine import calibration
from autograder.engine.check import check_source
from tests.autograder.solutions import out_of_reach, reference_sources
found = out_of_reach()
calibration.load = lambda: found
for line in sys.stdin:
    exercise_id = line.strip()
    source = reference_sources(exercise_id.partition(".")[0].zfill(2))[exercise_id]
    begun = time.perf_counter()
    verdict = check_source(exercise_id, source, again=True).verdict
    print(time.perf_counter() - begun, verdict, flush=True)
"""


class Checker:
    """A process that checks references of the course in a checkout."""

    def __init__(self, root: Path) -> None:
        environment = {"WORKBOOK_DATA": tempfile.mkdtemp(), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [str(root / ".venv" / "bin" / "python"), "-c", _CHECKER],
            cwd=root,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, exercise_id: str) -> float:
        assert self.process.stdin and self.process.stdout
        print(exercise_id, file=self.process.stdin, flush=True)
        seconds, verdict = self.process.stdout.readline().split()
        if verdict != "pass":
            print(f"{exercise_id}: {verdict}", file=sys.stderr)
        return float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("which", nargs="*", metavar="EXERCISE", help="such as 5.3, or a lesson, such as 05")
    parser.add_argument("--other", type=Path, required=True, help="the checkout to compare with")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    checkers = [Checker(arguments.other.resolve()), Checker(HERE)]
    exercises = {
        exercise.id: lesson_id
        for lesson_id in lesson_ids()
        for exercise in load_lesson(lesson_id).exercises
        if not arguments.which or {exercise.id, lesson_id} & set(arguments.which)
    }
    medians: dict[str, tuple[float, float]] = {}
    for exercise_id in tqdm(exercises, unit="exercise", disable=None):
        for checker in checkers:  # what is read or compiled once
            checker.seconds(exercise_id)
        runs = [[checker.seconds(exercise_id) for checker in checkers] for _ in range(arguments.runs)]
        other, here = (statistics.median(some) for some in zip(*runs, strict=True))
        medians[exercise_id] = (other, here)
    sums = {
        f"lesson {lesson}": [medians[e] for e in exercises if exercises[e] == lesson]
        for lesson in dict.fromkeys(exercises.values())
    }
    rows = {e: [pair] for e, pair in medians.items()} | sums | {"all": [*medians.values()]}
    print("| | other, s | here, s | ratio |\n|---|---|---|---|")
    for name, pairs in rows.items():
        other, here = (sum(pair[i] for pair in pairs) for i in (0, 1))
        print(f"| {name} | {other:.2f} | {here:.2f} | {here / other:.2f} |")


if __name__ == "__main__":
    main()
