"""`workbook check` for people: a bar while it measures, then the results."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from autograder.common import Result, in_points, one_line
from autograder.quizzes import headline
from autograder.show import folded, result_text

if TYPE_CHECKING:
    from autograder.notebooks import Report

BAR_WIDTH = 24


@contextmanager
def progress_bar(does: str = "checking") -> Iterator[Callable[[str, float], None]]:
    """A bar on stderr (stdout stays clean for `--json`); without a terminal, one line per exercise or lesson.

    Yields the function to call with what is being done and how far it is, from 0 to 1.
    """
    is_terminal = sys.stderr.isatty()
    last = ""

    def rewrite(line: str) -> None:
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def show(text: str, fraction: float) -> None:
        nonlocal last
        if is_terminal:
            bar = ("█" * round(BAR_WIDTH * fraction)).ljust(BAR_WIDTH, "·")
            rewrite(f"{bar} {one_line(text)}"[: shutil.get_terminal_size().columns - 1])
        elif (exercise_id := text.split(" ", 1)[0]) != last:
            last = exercise_id
            print(f"{does} {exercise_id} …", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if is_terminal:
            rewrite("")


def busy_programs_told() -> Callable[[Result], None]:
    """The function to call with each result: where this machine was too restless to time on, it says once which
    programs were busy. In the terminal alone: what a person runs is no part of a result and belongs in no file.
    """
    from autograder.engine.timing import what_is_in_the_way

    is_told = not sys.stderr.isatty()

    def tell(result: Result) -> None:
        nonlocal is_told
        if not is_told and (named := what_is_in_the_way(result)):
            is_told = True
            tqdm.write(one_line(named), file=sys.stderr)  # above the bar of a class

    return tell


def table(report: Report) -> str:
    """The report of `check_notebook` as text."""
    lines = [f"Lesson {report.lesson}", ""]
    if report.cells:
        lines += [*(folded(one_line(line)) for line in report.cells), ""]
    for result in report.exercises:
        lines += [folded(result_text(result)), *_evidence_page(result), ""]
    if report.exercises:
        lines.append(f"Exercises: {in_points(report.score, report.max_score)}")
    if quiz := report.quiz:
        said = headline(quiz)
        if quiz.score is not None and not quiz.handed_in:
            passed = "passed" if quiz.passed else "not passed yet"
            said = f"{quiz.score:g} of {quiz.max_score:g}, {passed}"
        lines.append(f"Quiz: {said}")
    return "\n".join([*lines, one_line(report.record.says)] if report.record else lines)


def _evidence_page(result: Result) -> list[str]:
    """Where to read how it was measured, for what did not pass."""
    if result.evidence is None or result.verdict == "pass":
        return []
    return [f"  How it was measured: {Path(result.evidence).with_suffix('.html')}"]


def full_marks(report: Report) -> bool:
    """Whether every exercise that was asked for got all of its points.

    The quiz stands apart, unless it is all there is, as in the exam: then it must be passed.
    """
    if not report.exercises and report.quiz:
        return bool(report.quiz.passed)
    return all(result.score >= result.max_score for result in report.exercises)
