"""The verbs of `workbook` for those who teach: they make, grade and look through a course."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.common import as_json
from autograder.show import folded, say

# `sandbox.LEVELS`, which takes longer to load than --help
SANDBOX_LEVELS = ("bubblewrap", "landlock", "limits")
WEAKER = "give no grade when the sandbox is weaker than this"
Verb = Callable[[argparse.Namespace], int]


def add_verbs(verb: Callable[[str, Verb, str], argparse.ArgumentParser]) -> None:
    """Add each verb with its options. `verb` makes the parser of one, from its name, its function and its help."""
    grade = verb("grade", _grade, "grade what a class handed in for a lesson, into nbgrader's gradebook")
    of_a_lesson(grade)
    grade.add_argument(
        "--students", default="", metavar="A,B", help="these alone; default: all who handed in"
    )
    where = grade.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, metavar="N", help="checks at a time; default: one per core")
    where.add_argument(
        "--cluster", metavar="ADDRESS", help="check on the workers of this Dask scheduler (docs/scale.md)"
    )
    grade.add_argument("--require-sandbox", choices=SANDBOX_LEVELS, help=WEAKER)
    class_page = verb(
        "report", _report, "write a page on what a class did in a lesson, after `workbook grade`"
    )
    of_a_lesson(class_page)
    class_page.add_argument(
        "--out", type=Path, metavar="FILE", help="default: report-LESSON.html in the course"
    )
    verb("calibrate", _calibrate, "measure which speed bars this machine can ask for, once per machine")
    out = verb(
        "release", _release, "make what students get of a lesson, and put it into nbgrader's gradebook"
    )
    out.description = (
        "Make release/LESSON, what students get, and put the lesson into nbgrader's gradebook. For practice, its quiz "
        "asks the course's own questions; their keys come with them, only lightly hidden. With --graded it asks yours: "
        "students get the questions alone, the keys stay in .workbook/keys, and the release is searched for anything "
        "that gives an answer away. What is found is listed, and nothing is released."
    )
    of_a_lesson(out)
    out.add_argument("--graded", action="store_true", help="with questions of your own, and no key in it")
    out.add_argument(
        "--bank",
        type=Path,
        metavar="FILE",
        help="your questions, written as notebooks/lessons/01_quiz.toml; default: banks/LESSON_quiz.toml",
    )

    out.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="of an exam: how long an attempt may take; default: no clock",
    )

    more = verb("extend", _extend, "give a student more time, in the gradebook and in accommodations.csv")
    more.description = (
        "Give a student more time. It is written into accommodations.csv of the course, whose days go into nbgrader's "
        "gradebook: what late work costs is reckoned anew at once. Without STUDENT the table as it stands is applied "
        "and listed: edit it for many students. --days 0 takes an extension back."
    )
    more.add_argument("student", nargs="?", default="", metavar="STUDENT", help="the id")
    more.add_argument(
        "lesson",
        nargs="?",
        default="",
        metavar="LESSON",
        type=_lesson_id,
        help='its number or name, such as "02"; default: each',
    )
    more.add_argument("--days", type=float, metavar="N", help="after the due date")
    more.add_argument("--exam-time", type=float, metavar="X", help="times the usual time, such as 1.5")
    more.add_argument("--note", default="", metavar="TEXT", help="why; for those who teach")
    more.add_argument(
        "--course", type=Path, default=Path(), metavar="DIR", help="the nbgrader course; default: this folder"
    )

    take = verb("collect", _collect, "put what students handed in where `workbook grade` looks for it")
    take.description = (
        "Put what students handed in into submitted/STUDENT/LESSON. A PATH is a folder or a zip with a folder, a "
        "notebook or a zip per student, named by the student's id; or the zip that Moodle or Canvas gives for "
        "download: its names are looked up among the students of the gradebook (nbgrader db student import). A PATH "
        "that is called like one of them is that student's alone. The files of a newer hand-in replace those of an "
        "older one. What came through nbgrader's exchange, `nbgrader collect` takes from there."
    )
    of_a_lesson(take)
    take.add_argument("path", type=Path, nargs="+", metavar="PATH", help="a folder, a zip or a notebook")
    whose(take)
    take.add_argument(
        "--new-students", action="store_true", help="a folder of a name that nobody has is a new student's"
    )


def whose(take: argparse.ArgumentParser) -> None:
    """The options of each verb that reads what students handed in."""
    take.add_argument(
        "--as",
        dest="known",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="whose hand-ins are and when they came, where names do not say it: a table with the columns name, "
        "student and, if you like, time; or Moodle's grading worksheet",
    )
    take.add_argument(
        "--time-zone", default="", metavar="ZONE", help="of those times; default: this machine's"
    )


def of_a_lesson(parser: argparse.ArgumentParser) -> None:
    """The options of each verb that works on a lesson of a course."""
    parser.add_argument(
        "lesson",
        metavar="LESSON",
        type=_lesson_id,
        help='its number, such as "01", or nbgrader\'s name of it, 01_efficient_training_loops',
    )
    parser.add_argument(
        "--course", type=Path, default=Path(), metavar="DIR", help="the nbgrader course; default: this folder"
    )


def _lesson_id(text: str) -> str:
    """The number of a lesson that is named by it or as nbgrader does; what names none is told when it is looked up."""
    from autograder.course import lesson_ids, load_lesson

    if not text or text.isdecimal():
        return text and text.zfill(2)
    return next((each.id for each in map(load_lesson, lesson_ids()) if each.slug == text), text)


def answer(arguments: argparse.Namespace, value: Any, text: str = "") -> None:
    """Print what a verb found: as JSON if that was asked for, else as text."""
    say(as_json(value) if arguments.json else text)


def _grade(arguments: argparse.Namespace) -> int:
    from autograder.cli.check_report import busy_programs_told
    from autograder.grading import cluster, grade, graded_text, progress_bars

    with contextlib.ExitStack() as stack:
        address, required = arguments.cluster, arguments.require_sandbox
        executor = stack.enter_context(cluster(address, required)) if address else None
        show = stack.enter_context(progress_bars())
        found = grade(
            arguments.lesson,
            arguments.course.resolve(),
            students=[name for name in arguments.students.split(",") if name],
            jobs=arguments.jobs,
            executor=executor,
            require_sandbox=required,
            on_progress=show,
            on_result=(lambda _: None) if address else busy_programs_told(),
        )
    answer(arguments, asdict(found), folded(graded_text(found)))
    return 1 if any(student.error for student in found.students.values()) else 0


def _report(arguments: argparse.Namespace) -> int:
    from autograder.grading import report, write_page

    course, lesson = arguments.course.resolve(), arguments.lesson
    found, path = report(lesson, course), arguments.out or course / f"report-{lesson}.html"
    write_page(found, path)
    answer(arguments, asdict(found), f"Wrote {path}: {len(found.students)} students")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    from autograder.grading import release, released_text

    lesson, course = arguments.lesson, arguments.course.resolve()
    found = release(lesson, course, graded=arguments.graded, bank=arguments.bank, minutes=arguments.minutes)
    answer(arguments, asdict(found), released_text(found))
    return 0 if found.released else 1


def _extend(arguments: argparse.Namespace) -> int:
    from autograder.grading import extended, extended_text

    lesson = arguments.lesson
    found = extended(
        arguments.course.resolve(),
        student=arguments.student,
        lesson_id=lesson,
        days=arguments.days,
        exam_time=arguments.exam_time,
        note=arguments.note,
    )
    answer(arguments, asdict(found), folded(extended_text(found)))
    return 1 if found.unknown else 0


def _collect(arguments: argparse.Namespace) -> int:
    from autograder.grading import collect, collected_text, progress_bars, read_known

    known = read_known(arguments.known, arguments.time_zone)
    with progress_bars() as show:
        found = collect(
            arguments.lesson,
            arguments.course.resolve(),
            arguments.path,
            known=known,
            takes_new=arguments.new_students,
            on_progress=show,
        )
    answer(arguments, asdict(found), folded(collected_text(found)))
    return 1 if found.unassigned or found.failed else 0


def _calibrate(arguments: argparse.Namespace) -> int:
    from autograder.cli.check_report import progress_bar
    from autograder.engine import calibration

    with progress_bar() as show:
        found = calibration.calibrate(show)
    exercises = {exercise_id: reached.to_dict() for exercise_id, reached in found.items()}
    answer(arguments, {"exercises": exercises}, calibration.table(found))
    return 0
