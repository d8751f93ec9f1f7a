"""The verbs of `workbook` for what goes back to a class."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from autograder.cli.of_a_course import Verb, answer, of_a_lesson, whose
from autograder.show import folded


def add_verbs(verb: Callable[[str, Verb, str], argparse.ArgumentParser]) -> None:
    """Add each verb with its options. `verb` makes the parser of one, from its name, its function and its help."""
    give = verb("return", _return, "pack the feedback of a class as Moodle or Canvas takes it")
    give.description = (
        "Make the page of each student anew, and write returned/LESSON-SYSTEM-NUMBER.zip: what no earlier archive of "
        "the course holds as it is, named as the system expects it. Its numbers are those that `workbook collect` "
        "found in the names of what it gave. Delete an archive that you did not upload, and the next one has what it "
        "held."
    )
    of_a_lesson(give)
    system = give.add_mutually_exclusive_group(required=True)
    system.add_argument(
        "--moodle", dest="system", action="store_const", const="moodle", help="pages, as feedback files"
    )
    system.add_argument(
        "--canvas", dest="system", action="store_const", const="canvas", help="notebooks, as re-uploads"
    )

    again = verb("regrade", _regrade, "list what students ask about their grades, each checked anew")
    again.description = (
        'List the questions that students asked with ask("1.3", "…"), and check anew what they are about, on the '
        "evidence of the grade. A PATH is a folder or a zip as `workbook collect` takes them, of which the questions "
        "alone are read: no hand-in and no grade changes. Answer in formgrader, with a comment and points; the "
        "student's page shows question, new check and answer."
    )
    of_a_lesson(again)
    again.add_argument(
        "path", type=Path, nargs="*", metavar="PATH", help="answers files that came after the hand-in"
    )
    whose(again)


def _return(arguments: argparse.Namespace) -> int:
    from autograder.grading import progress_bars, return_feedback, returned_text

    lesson, course = arguments.lesson, arguments.course.resolve()
    with progress_bars() as show:
        found = return_feedback(lesson, course, arguments.system, on_progress=show)
    answer(arguments, asdict(found), folded(returned_text(found)))
    return 1 if found.failed or found.elsewhere or found.ungraded else 0


def _regrade(arguments: argparse.Namespace) -> int:
    from autograder.grading import progress_bars, read_known, regrade, regraded_text

    lesson, course = arguments.lesson, arguments.course.resolve()
    known = read_known(arguments.known, arguments.time_zone)
    with progress_bars() as show:
        found = regrade(lesson, course, arguments.path, known=known, on_progress=show)
    answer(arguments, asdict(found), folded(regraded_text(found)))
    return 1 if found.problems or found.unassigned else 0
