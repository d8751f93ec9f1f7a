"""CPU seconds of what must be light: the commands that people wait for, and what a kernel loads first.

    python -m tests.benchmarks.light_commands [--runs 5]

The least of some runs, beside that of Python's own start; the progress is that of a learner with every exercise solved.
Then the seconds of a first check, whose worker has loaded what its exercise needs, or all that any exercise does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder.common import Reason, Result
from autograder.course import lesson_ids, load_lesson

START = "python's own start"
_CHECK = (
    "import re; from autograder.engine import job; from autograder.engine.check import check_source; {}"
    "assert check_source('0.1', 'def speedup(a, b):\\n    return a / b').verdict != 'error'"
)
_WORKBOOK = "import sys; from autograder.cli.main import main; sys.argv = ['workbook', *{}]; main()"
COMMANDS = {
    START: "pass",
    "import autograder": "import autograder",
    **{
        f"workbook {arguments}": _WORKBOOK.format(arguments.split())
        for arguments in (
            *("--help", "release --help", "grade --help", "check --help"),
            *("progress", "progress --json"),
        )
    },
    "the start page's card": "from autograder.progress import progress_html; progress_html()._repr_html_()",
    "hint": "import autograder; autograder.hint('1.1')",
    "what a lesson's first cell loads": "from autograder import answer, check, exercise, hint, predict, quiz",
}
"""Code by what it is called."""
FIRST_CHECKS = {
    "what 0.1 needs": _CHECK.format(""),
    "all that is slow to import": _CHECK.format(
        "job._SLOW_IMPORTS = dict.fromkeys(job._SLOW_IMPORTS, re.compile('')); "
    ),
}
"""Code of a first check, by what its worker has loaded."""


def solve_everything() -> None:
    """Record full points for every exercise, in the folder that `WORKBOOK_DATA` names."""
    from autograder.kept import progress

    for lesson_id in lesson_ids():
        for exercise in load_lesson(lesson_id).exercises:
            points = exercise.max_score
            solved = Result(
                id=exercise.id, score=points, max_score=points, verdict="pass", reason=Reason(note="Right.")
            )
            progress.record_check(solved.to_dict())


def cpu_seconds(code: str) -> float:
    """User and system time of a Python process that runs `code`."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def wall_seconds(code: str) -> float:
    """From the start to the end of a Python process that runs `code`: a worker's CPU time is not its parent's."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"WORKBOOK_DATA": folder, "WORKBOOK_DIR": str(Path(folder, "notebooks"))}
        solve_everything()
        seconds = {name: min(cpu_seconds(code) for _ in range(runs)) for name, code in COMMANDS.items()}
        rounds = [[wall_seconds(code) for code in FIRST_CHECKS.values()] for _ in range(runs)]
    print("| | CPU, s | beyond Python's own start, s |\n|---|---|---|")
    for name, spent in seconds.items():
        print(f"| {name} | {spent:.2f} | {spent - seconds[START]:.2f} |")
    print("\n| a first check, its worker having loaded | s |\n|---|---|")
    for name, spent in zip(FIRST_CHECKS, map(min, zip(*rounds, strict=True)), strict=True):
        print(f"| {name} | {spent:.1f} |")


if __name__ == "__main__":
    main()
