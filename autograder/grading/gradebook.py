"""A class's way into nbgrader's gradebook: its own autograde, student by student, with the results at hand.

COURSE/.workbook/staged/STUDENT/LESSON     the clean copies that nbgrader grades (`submissions`)
COURSE/.workbook/graded/LESSON/STUDENT     what the grade in the gradebook was made of
COURSE/.workbook/locks                     graders at work at once take turns
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from autograder.common import Result, one_line
from autograder.course import Lesson
from autograder.grading.submissions import Submission, as_read, stage, unfit_name
from autograder.grading.terms import (
    exam_doubts,
    extend,
    for_others,
    grading_bank,
    granted_in,
    granted_to,
    keys_path,
)
from autograder.grading.units import FOLDER, Results, cannot_write, units_of
from autograder.quizzes import has_quiz, is_exam, time_name
from course_lib.base import UserError, atomic_write_text

if TYPE_CHECKING:
    from nbgrader.api import Gradebook
    from nbgrader.apps.api import NbGraderAPI


#: Of the course's disk, and so no student's fault.
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What there is to say of one student's grade.

    Attributes:
        look: lines that a person should read.
        error: why there is no grade; "" where there is one.
        score, max_score: as the gradebook has them, with points by hand and penalties; None without a grade.
    """

    look: tuple[str, ...]
    error: str = ""
    score: float | None = None
    max_score: float | None = None


def nbgrader_api(course: Path, require_sandbox: str | None = None) -> NbGraderAPI:
    """nbgrader in a course, with the course's own settings. Raises UserError where there is no course."""
    from nbgrader.apps.api import NbGraderAPI
    from traitlets.config.loader import PyFileConfigLoader

    from autograder.grading.nbgrader import FEEDBACK, prepare_environment

    prepare_environment()
    if not (course / "nbgrader_config.py").is_file():
        raise UserError(
            f"{course} is no nbgrader course: it has no nbgrader_config.py; name yours with --course DIR"
        )
    if str(course) not in sys.path:
        # A plugin of the course's own is found, as by nbgrader; it hides no module.
        sys.path.append(str(course))
    try:
        config = PyFileConfigLoader("nbgrader_config.py", path=str(course)).load_config()
    except OSError:
        raise
    except Exception as error:  # it is Python, and may raise anything
        what = one_line(f"{type(error).__name__}: {error}")
        raise UserError(f"{course / 'nbgrader_config.py'} cannot be read: {what}; mend it") from None
    config.CourseDirectory.submitted_directory = f"{FOLDER}/staged"
    for name, value in FEEDBACK.items():  # of a course that was made before they were
        config.GenerateFeedback.setdefault(name, value)
    if require_sandbox:
        config.MeasuredGrades.require_sandbox = require_sandbox
    api = NbGraderAPI(config=config)
    api.log.handlers.clear()  # what it says is told in a line, not poured over the progress bar
    _require_database(api.coursedir.db_url)
    return api


def _require_database(url: str) -> None:
    """Raises UserError where the file of SQLite's gradebook holds another thing; a new course has none yet."""
    path = Path(url.removeprefix("sqlite:///"))
    if not url.startswith("sqlite:///") or not path.exists():
        return
    if path.is_file():
        with path.open("rb") as file:
            if file.read(16) in (b"", b"SQLite format 3\0"):
                return
    raise UserError(f"{path} is no gradebook: put your copy of it back")


def turn_of(course: Path, api: NbGraderAPI, student: str) -> FileLock:
    """Graders at work at once in one course take turns with a student, and with a database for one writer."""
    name = "gradebook" if api.coursedir.db_url.startswith("sqlite") else student
    folder = course / FOLDER / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{name}.lock")


class Entries:
    """nbgrader's autograde, for one submission after the other. This process is the one that writes the database.

    Raises UserError where the course does not have the lesson yet.
    """

    def __init__(self, course: Path, lesson: Lesson, require_sandbox: str | None) -> None:
        from nbgrader.api import MissingEntry

        self.api = nbgrader_api(course, require_sandbox)
        if has_quiz(lesson.id):
            grading_bank(course, lesson)  # nobody's quiz can be graded where the keys are gone
        self.course, self.lesson, self.require_sandbox = course, lesson, require_sandbox
        self.granted = granted_in(course)
        with self._open() as gradebook:
            try:
                due = gradebook.find_assignment(lesson.slug).duedate
                extend(gradebook, lesson.slug, self.granted)
                # With the extension that somebody was granted: it moves what is late.
                self.entered = {
                    each.student_id: str(each.extension or "")
                    for each in gradebook.assignment_submissions(lesson.slug)
                }
            except MissingEntry:
                raise UserError(
                    f"{course} does not have {lesson.slug} yet; there, run: nbgrader generate_assignment {lesson.slug}"
                ) from None
        # Points, penalties and the sandbox level are the course's own: a change of them grades everybody again.
        release = course / "release" / lesson.slug / f"{lesson.slug}.ipynb"
        rules = [release, keys_path(course, lesson.id), *sorted(course.glob("*.py"))]
        rules += [release.with_name(time_name(lesson.id))]
        self.settings = [
            str(due),
            *(hashlib.sha256(path.read_bytes()).hexdigest() for path in rules if path.is_file()),
        ]

    def enter(self, submission: Submission, results: Results) -> Grade:
        """Grade one submission unless its grade is of just this work; returns what there is to say about it.

        What goes wrong with one is told in its grade. Raises UserError where nobody's grade could be written.
        """
        if why := unfit_name(submission.student):
            return Grade(look=submission.problems, error=why)
        try:
            with turn_of(self.course, self.api, submission.student):
                return self._enter(submission, results)
        except UserError:
            raise
        except OSError as error:
            if error.errno in _OF_THE_DISK:
                raise cannot_write(self.course, error) from None
            why = one_line(f"{type(error).__name__}: {error}")
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}")
        return Grade(look=submission.problems, error=f"it could not be entered in the gradebook ({why})")

    def _enter(self, submission: Submission, results: Results) -> Grade:
        found = [result for unit in units_of(submission, self.lesson) if (result := results.get(unit))]
        mark = self.course / FOLDER / "graded" / self.lesson.slug / f"{submission.student}.json"
        key = self._key(submission, found)
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(mark.read_text(encoding="utf-8"))
            if kept["key"] == key and self._is_there(submission.student):
                return self._grade(submission.student, kept["told"]["look"])
        # Killed from here on, there is no mark that could be taken for that of an earlier grade.
        mark.unlink(missing_ok=True)
        release = self.course / "release" / self.lesson.slug / f"{self.lesson.slug}.ipynb"
        stage(submission, release, self.course / FOLDER / "staged", self.lesson)
        self._introduce(submission.student)
        with as_read(submission.sources):
            outcome = self.api.autograde(self.lesson.slug, submission.student)
        error = last_error(outcome)
        if error == KeyboardInterrupt.__name__:  # nbgrader takes a Ctrl-C for one student's bad luck
            raise KeyboardInterrupt
        if full := re.search(
            r"No space left on device|disk is full|disk I/O error", error.replace(submission.student, "")
        ):
            raise cannot_write(self.course, full[0])
        look = (
            *submission.problems,
            *exam_doubts(self.course, self.lesson, submission),
            *for_others(submission, self.lesson),
            *_to_look_at(found),
        )
        if not outcome["success"]:
            return Grade(look=look, error=error)
        atomic_write_text(mark, json.dumps({"key": key, "told": {"look": look, "error": ""}}))
        return self._grade(submission.student, look)

    def _is_there(self, student: str) -> bool:
        """Whether the gradebook and the graded notebook are still what a run before left."""
        place = self.api.coursedir.autograded_directory
        graded = self.course / self.api.coursedir.format_path(place, student, self.lesson.slug)
        return student in self.entered and graded.is_dir()

    def _key(self, submission: Submission, found: list[Result]) -> str:
        # A check that was corrected ran again; where it says what it said, a grade has nothing to change.
        said = [
            {k: v for k, v in result.to_dict().items() if k not in ("seconds", "evidence")}
            for result in found
        ]
        made_of = [
            submission.cells,
            submission.stamp,
            said,
            submission.problems,
            self.require_sandbox,
            self.settings,
        ]
        granted = granted_to(self.granted, submission.student, self.lesson.id)
        if extension := self.entered.get(submission.student, _extension(granted.days)):
            made_of.append(extension)
        if granted.exam_time and has_quiz(self.lesson.id) and is_exam(self.lesson.id):
            made_of.append(f"{granted.exam_time:g} × the time")
        key = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode())
        key.update(submission.answers.read_bytes() if submission.answers else b"-")
        return key.hexdigest()

    def _introduce(self, student: str) -> None:
        """Enter a student, with the extension that the table gives.

        nbgrader looks for a student and then makes one, and fails where another grader has made it in between."""
        from nbgrader.api import MissingEntry, Student
        from sqlalchemy.exc import IntegrityError

        with self._open() as gradebook, contextlib.suppress(IntegrityError):
            try:
                gradebook.find_student(student)
            except MissingEntry:
                gradebook.db.add(Student(id=student))
                gradebook.db.commit()
            days = granted_to(self.granted, student, self.lesson.id).days
            if days and student not in self.entered:  # nbgrader asks what is late before there is a grade
                gradebook.update_or_create_submission(
                    self.lesson.slug, student, extension=timedelta(days=days)
                )

    def _grade(self, student: str, look: Iterable[str]) -> Grade:
        """With the points as they are now: some by hand may have come since."""
        with self._open() as gradebook:
            entered = gradebook.find_submission(self.lesson.slug, student)
            score = max(0.0, entered.score - entered.late_submission_penalty)
            return Grade(look=tuple(look), score=score, max_score=entered.max_score)

    def _open(self) -> Gradebook:
        from nbgrader.api import Gradebook

        return Gradebook(self.api.coursedir.db_url, self.api.coursedir.course_id)


def _extension(days: float | None) -> str:
    """As `Entries.entered` has it."""
    return str(timedelta(days=days)) if days else ""


def _to_look_at(results: list[Result]) -> list[str]:
    lines = []
    for result in results:
        lines += [f"{result.id}: {why}" for why in result.review]
        if result.verdict in ("inconclusive", "error"):
            lines.append(f"{result.id}: {result.verdict}: {str(result.reason).splitlines()[0]}")
    return lines


def last_error(outcome: dict[str, Any]) -> str:
    """Why nbgrader gave no grade, in a line: the last error that it logged before its own general one."""
    if outcome["success"]:
        return ""
    lines = [line.strip() for line in outcome.get("log", "").splitlines()]
    errors = [line for line in lines if re.match(r"\w+(\.\w+)*(Error|Exception)\b", line)]
    return (errors or outcome["error"].strip().splitlines())[-1]
