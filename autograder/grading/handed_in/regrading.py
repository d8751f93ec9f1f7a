"""`workbook regrade`: what students ask about their grades, each checked anew on its evidence.

A question stands in an answers file (`kept.questions`), that of the hand-in or another one that came later: it changes
no hand-in and no grade. Points are the instructor's to change, as any others.
"""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from autograder.common import Result, named, one_line, quoted
from autograder.course import Lesson
from autograder.engine import check_source
from autograder.engine.sandbox import CheckStopped, Stop
from autograder.grading.gradebook import nbgrader_api
from autograder.grading.handed_in.collected import Collected, Unassigned
from autograder.grading.handed_in.collecting import hand_ins
from autograder.grading.handed_in.known import Known
from autograder.grading.handed_in.placing import is_of_answers, paths_in
from autograder.grading.handed_in.roster import Roster
from autograder.grading.handed_in.taking import write_hand_in
from autograder.grading.marking import OnProgress, known_lesson
from autograder.grading.nbgrader import Asked, asked_by, keep_asked
from autograder.grading.submissions import read_submission, students_of
from autograder.grading.units import MAX_SECONDS, Unit, lane, results_of
from autograder.kept import questions_in, read_answers
from autograder.notebooks import check_evidence
from course_lib.base import UserError


@dataclass(frozen=True, kw_only=True)
class Question:
    """A student's question, as it is listed."""

    student: str
    asked: Asked
    is_answered: bool


@dataclass(frozen=True)
class Regraded:
    """What `regrade` came to.

    Attributes:
        questions: all that were asked so far.
        checked: how many checks ran.
        problems: a line for what could not be checked or read.
        unassigned: what belongs to nobody known.
    """

    lesson: str
    questions: list[Question] = field(default_factory=list)
    checked: int = 0
    problems: list[str] = field(default_factory=list)
    unassigned: list[Unassigned] = field(default_factory=list)


def regrade(
    lesson_id: str,
    course: Path,
    paths: Sequence[Path] = (),
    *,
    known: Sequence[Known] = (),
    on_progress: OnProgress = lambda *_: None,
) -> Regraded:
    """Find the questions, check anew what they are about, and keep both for the pages.

    A question is checked once for each code and each version of the check.

    Args:
        paths: folders and zips with answers files that came after the hand-in, as `collect` takes them.
        known: whose they are, where names do not say it.

    Raises UserError where a path cannot be read, or nothing can be kept.
    """
    lesson, taken = known_lesson(lesson_id), Collected(known_lesson(lesson_id).id)
    later = _questions_of(paths, lesson, Roster(course, known) if paths else None, taken)
    names = students_of(course, lesson.slug)
    problems = [*taken.problems, *(f"{named(name)}: handed in nothing" for name in later.keys() - {*names})]
    checked, points = 0, _Gradebook(course, lesson)
    questions: list[Question] = []
    for done, student in enumerate(names, start=1):
        submission, before = read_submission(course, student, lesson), asked_by(course, lesson.slug, student)
        texts = {each.exercise: each.text for each in before}
        texts |= questions_in(read_answers(submission.answers)) if submission.answers else {}
        texts |= later.get(student, {})
        kept: list[Asked] = []
        for exercise in lesson.exercises:
            if exercise.id in texts:
                try:
                    unit = Unit(exercise.id, submission.sources.get(exercise.id, ""))
                    asked, is_new = _asked(unit, texts[exercise.id], before, course, points, student)
                    checked += is_new
                    kept.append(asked)
                except UserError as error:
                    problems.append(f"{named(student)}, {exercise.id}: {error}: {quoted(texts[exercise.id])}")
        if kept != before:
            keep_asked(course, lesson.slug, student, kept)
        for each in kept:
            answered = each.is_answered(*points.at(student, each.exercise))
            questions.append(Question(student=student, asked=each, is_answered=answered))
        on_progress("questions", done, len(names))
    return Regraded(lesson.id, questions, checked, list(map(one_line, problems)), taken.unassigned)


def _questions_of(
    paths: Sequence[Path], lesson: Lesson, roster: Roster | None, taken: Collected
) -> dict[str, dict[str, str]]:
    """Student → exercise id → question, of all answers files in these."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in paths:
        assert roster
        for student, handed_in in hand_ins(path, lesson, roster, taken).items():
            with tempfile.TemporaryDirectory(prefix="workbook-") as folder, suppress(UserError):
                write_hand_in(handed_in, Path(folder))
                for file in filter(lambda each: is_of_answers(each.name), paths_in(Path(folder))):
                    found[student] |= questions_in(read_answers(file))
    return found


def _asked(
    unit: Unit, text: str, before: Sequence[Asked], course: Path, points: _Gradebook, student: str
) -> tuple[Asked, bool]:
    """The question with its check, and whether that ran now. Raises UserError where there is nothing to check."""
    for each in before:
        if (each.exercise, each.text, each.key) == (unit.exercise_id, text, unit.key):
            return each, False
    then = results_of(course).get(unit)
    if then is None:
        raise UserError("there is no grade of it by the installed checks: `workbook grade` first")
    now, confirmed = _checked_anew(unit, then)
    comment, score = points.at(student, unit.exercise_id)
    return Asked(
        exercise=unit.exercise_id,
        text=text,
        key=unit.key,
        then=then.verdict,
        then_score=then.score,
        now=now.verdict,
        now_score=now.score,
        max_score=now.max_score,
        confirmed=confirmed,
        reason=str(now.reason),
        checked=f"{datetime.now(UTC):%Y-%m-%d}",
        evidence=now.evidence or "",
        comment=comment,
        points=score,
    ), True


def _checked_anew(unit: Unit, then: Result) -> tuple[Result, bool | None]:
    """The same code on new inputs, from its record where that is here; and whether it is as before, if both say so."""
    stop = Stop()
    patience = threading.Timer(MAX_SECONDS, stop.press)
    patience.start()
    try:
        with lane() if unit.is_timed else nullcontext():
            if then.evidence and Path(then.evidence).is_file():
                now = check_evidence(then.evidence, stop=stop).exercises[0]
            else:  # it was graded on another machine
                now = check_source(unit.exercise_id, unit.source, again=True, stop=stop)
    except CheckStopped:
        raise UserError(f"no result within {MAX_SECONDS:.0f} s") from None
    finally:
        patience.cancel()
    is_same = (then.verdict, then.score) == (now.verdict, now.score)
    return now, None if not is_same and {then.verdict, now.verdict} & {"inconclusive", "error"} else is_same


class _Gradebook:
    """Comment and points at an exercise."""

    def __init__(self, course: Path, lesson: Lesson) -> None:
        self.slug, self.api = lesson.slug, nbgrader_api(course)

    def at(self, student: str, exercise_id: str) -> tuple[str, float]:
        """Raises nothing where there is no grade: then nothing was said, and there are no points."""
        from nbgrader.api import Gradebook, MissingEntry

        place, coursedir = exercise_id.replace(".", "-"), self.api.coursedir
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            names = (self.slug, self.slug, student)
            comment, score = "", 0.0
            with suppress(MissingEntry):
                comment = gradebook.find_comment(f"exercise-{place}", *names).comment or ""
            with suppress(MissingEntry):
                score = float(gradebook.find_grade(f"check-{place}", *names).score or 0.0)
        return comment, score


def regraded_text(found: Regraded) -> str:
    """The questions in lines, those without an answer first."""
    is_open = [each for each in found.questions if not each.is_answered]
    lines = [
        f"Lesson {found.lesson}: questions: {len(found.questions)}, without an answer: {len(is_open)}, checked anew "
        f"now: {found.checked}"
    ]
    for each in sorted(found.questions, key=lambda each: (each.is_answered, each.student)):
        asked = each.asked
        says = {True: "confirmed", False: "NOT confirmed", None: "no verdict in one of the two"}[
            asked.confirmed
        ]
        lines += [
            f"{named(each.student)}, {asked.exercise}{' (answered)' if each.is_answered else ''}: {quoted(asked.text)}",
            f"  {asked.then} {asked.then_score:g} of {asked.max_score:g} → {asked.now} {asked.now_score:g}: {says}",
        ]
        lines += [f"  {Path(asked.evidence).with_suffix('.html')}"] if asked.evidence else []
    if is_open:
        lines += [
            "To answer: a comment at the exercise in formgrader, and other points where they are due. Then `workbook "
            "return`, or nbgrader's feedback."
        ]
    lines += [f"! {line}" for line in found.problems]
    lines += [f"! {named(each.name)}: {one_line(each.why)}" for each in found.unassigned]
    return "\n".join(lines)
