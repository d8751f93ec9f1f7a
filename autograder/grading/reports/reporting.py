"""`workbook report`: a class in one page, from the gradebook, the kept results and the answers files.

Nothing is checked again: what has no grade or no kept result is counted, and the page says so.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path

from autograder.common import Reason, Result, named
from autograder.course import Exercise, Lesson, title_of
from autograder.engine import evidence, is_stub
from autograder.grading.gradebook import nbgrader_api
from autograder.grading.marking import known_lesson
from autograder.grading.reports.class_report import (
    Alike,
    ClassReport,
    Look,
    OfExercise,
    OfQuestion,
    Points,
    Speedups,
)
from autograder.grading.submissions import Submission, read_submission, students_of
from autograder.grading.terms import (
    exam_doubts,
    extend,
    for_others,
    grading_bank,
    granted_in,
    notes_on,
    settle_lateness,
)
from autograder.grading.units import Results, results_of, units_of
from autograder.kept import read_answers
from autograder.quizzes import grade_quiz, has_quiz
from autograder.show import WORDS, plain, render
from course_lib.base import UserError, atomic_write_text

NUM_BINS = 10
WEAK = 0.2
"""Below this discrimination a question hardly tells who knows more (Ebel and Frisbie, Essentials of Educational
Measurement, 5th ed., 1991)."""
_NUMBER = re.compile(r"(?<![\w.-])\d[\d.,]*(?![\w-])")  # differs from one wrong solution to the next
_LINE = re.compile(r" \(line \d+\)$")
_MAX_LOOKS = 20  # lines for a person, of one student
_MAX_MISTAKES = 100  # different ones, of one exercise: the most common
_MAX_MISTAKE = 160  # characters: what an error says is the learner's to choose


def report(lesson_id: str, course: Path) -> ClassReport:
    """What a class did in a lesson. Raises UserError where nothing was handed in, or nothing graded yet."""
    lesson = known_lesson(lesson_id)
    names = students_of(course, lesson.slug)
    if not names:
        raise UserError(
            f"nothing was handed in for {lesson.slug}: {course}/submitted/STUDENT/{lesson.slug} is not there"
        )
    submissions = [read_submission(course, name, lesson) for name in names]
    results, (scores, granted) = results_of(course), _scores(course, lesson)
    found = {each.student: _results(each, lesson, results) for each in submissions}
    num_cells = sum(len(units_of(each, lesson)) for each in submissions)
    return ClassReport(
        lesson=lesson.id,
        title=title_of(lesson.id),
        students=scores,
        ungraded=[name for name in names if name not in scores],
        unchecked=num_cells - sum(map(len, found.values())),
        bins=_bins(scores),
        exercises=[
            _exercise(each, found)
            for each in lesson.exercises
            if any(each.id in submission.sources for submission in submissions)
        ],
        questions=_questions(course, lesson, submissions),
        review=[line for name, each in found.items() for line in _looks(name, each)],
        alike=_alike(submissions, lesson),
        problems={each.student: lines for each in submissions if (lines := _problems(course, lesson, each))},
        granted=granted,
        looks=_grouped(submissions, found),
    )


def write_page(found: ClassReport, path: Path) -> None:
    """The report as one HTML file. Raises UserError where it cannot be written."""
    points = sorted(student.score for student in found.students.values())
    page = render(
        "class.html",
        **asdict(found),
        most=max(found.bins, default=0) or 1,
        mean=statistics.mean(points) if points else None,
        median=statistics.median(points) if points else None,
        max_score=max((student.max_score for student in found.students.values()), default=0),
        words={verdict: words for verdict, (words, _, _) in WORDS.items()},
        weak=WEAK,
        chance=max((question.answers for question in found.questions), default=1) ** -0.5,
    )
    atomic_write_text(path, page)


def _problems(course: Path, lesson: Lesson, submission: Submission) -> list[str]:
    about = [*exam_doubts(course, lesson, submission), *for_others(submission, lesson)]
    return [*submission.problems, *about]


def _scores(course: Path, lesson: Lesson) -> tuple[dict[str, Points], dict[str, str]]:
    """Points by student, as they are with the extensions of now; and what was granted."""
    from nbgrader.api import Gradebook, MissingEntry

    api = nbgrader_api(course)
    with Gradebook(api.coursedir.db_url, api.coursedir.course_id) as gradebook:
        try:
            entered = gradebook.assignment_submissions(lesson.slug)
        except MissingEntry:
            raise UserError(
                f"{lesson.slug} is not in the gradebook yet: `workbook grade {lesson.id}` first"
            ) from None
        rows = granted_in(course)
        extend(gradebook, lesson.slug, rows)
        settle_lateness(gradebook, lesson.slug, api.config)
        granted = notes_on(gradebook, lesson.slug, rows)
        points = {
            submission.student.id: Points(
                score=max(0.0, submission.score - submission.late_submission_penalty),
                max_score=submission.max_score,
            )
            for submission in sorted(entered, key=lambda submission: submission.student.id)
        }
        return points, granted


def _results(submission: Submission, lesson: Lesson, results: Results) -> list[Result]:
    return [result for unit in units_of(submission, lesson) if (result := results.get(unit))]


def _bins(scores: dict[str, Points]) -> list[int]:
    counts = [0] * NUM_BINS
    for each in scores.values():
        share = each.score / each.max_score if each.max_score else 0.0
        counts[min(NUM_BINS - 1, int(share * NUM_BINS))] += 1
    return counts


def _exercise(exercise: Exercise, found: dict[str, list[Result]]) -> OfExercise:
    mine = [result for each in found.values() for result in each if result.id == exercise.id]
    failed = [result for result in mine if result.verdict in ("fail", "error")]
    passed = [r.speedup.estimate for r in mine if r.verdict == "pass" and r.speedup]
    bars = [r.speedup.bar for r in mine if r.speedup]
    speedups = None
    if passed:
        median = statistics.median(passed)
        speedups = Speedups(bar=bars[0], low=min(passed), high=max(passed), median=median)
    return OfExercise(
        id=exercise.id,
        title=exercise.title,
        verdicts=dict(Counter(result.verdict for result in mine).most_common()),
        mistakes=dict(Counter(_mistake(result.reason) for result in failed).most_common(_MAX_MISTAKES)),
        speedups=speedups,
    )


def _looks(student: str, results: list[Result]) -> list[str]:
    """What a person should look at, in a bounded number of lines."""
    lines = [f"{named(student)}, {result.id}: {why}" for result in results for why in result.review]
    more = len(lines) - _MAX_LOOKS
    return [*lines[:_MAX_LOOKS], *([f"{named(student)}: and {more} more like these"] if more > 0 else [])]


def _grouped(submissions: list[Submission], found: dict[str, list[Result]]) -> list[Look]:
    """Reasons for a person to look, each once."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for submission in submissions:
        for result in found[submission.student]:
            for why in dict.fromkeys(_LINE.sub("", why) for why in result.review):
                code = evidence.family(submission.sources[result.id])
                groups[result.id, why][code].append(submission.student)
    looks = [
        Look(id=key[0], why=key[1], alike=sorted(codes.values(), key=lambda names: (-len(names), names)))
        for key, codes in groups.items()
    ]
    return sorted(looks, key=lambda look: (_numbers(look.id), -sum(map(len, look.alike)), look.why))


def _mistake(reason: Reason) -> str:
    """What a check held likely, without the explanation and with its numbers left out, else its first line."""
    first = (str(reason).splitlines() or [""])[0][:_MAX_MISTAKE]
    return _NUMBER.sub("…", re.split(r"[:;.] ", reason.likely)[0] if reason.likely else first)


def _questions(course: Path, lesson: Lesson, submissions: list[Submission]) -> list[OfQuestion]:
    if not has_quiz(lesson.id):
        return []
    bank = grading_bank(course, lesson)
    graded = [
        grade_quiz(
            lesson.id, read_answers(each.answers), bank=grading_bank(course, lesson, each.student)
        ).questions
        for each in submissions
        if each.answers
    ]
    by_id: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    wrong: dict[str, Counter[str]] = defaultdict(Counter)
    for questions in graded:
        num_right = sum(question.is_right for question in questions)
        for question in questions:
            if question.choice:
                name = question.drawn or question.id
                by_id[name].append((question.is_right, num_right - question.is_right))
                wrong[name].update([question.mistake] if question.mistake else [])
    texts = {question.id: plain(question.text) for question in bank.all_questions}
    return [
        OfQuestion(
            id=name,
            text=texts[name],
            answers=len(given),
            difficulty=sum(is_right for is_right, _ in given) / len(given),
            discrimination=_discrimination(given),
            mistakes=dict(wrong[name].most_common()),
        )
        for name, given in sorted(by_id.items(), key=lambda item: _numbers(item[0]))
    ]


def _numbers(question_id: str) -> list[int]:
    """For sorting: "01.10" comes after "01.9"."""
    return [int(number) for number in re.findall(r"\d+", question_id)]


def _discrimination(given: list[tuple[bool, float]]) -> float | None:
    """Correlation of a right answer with the number of other right answers (corrected item-total correlation); None
    where all are equal."""
    right, rest = zip(*given, strict=True)
    if len(set(right)) < 2 or len(set(rest)) < 2:
        return None
    return statistics.correlation([float(value) for value in right], rest)


def _alike(submissions: list[Submission], lesson: Lesson) -> list[Alike]:
    """Students whose code for an exercise says the same, whatever its layout, comments and names of locals.

    Short exercises have few right forms, so this is a reason to look and no more. A cell as it came is nobody's code.
    """
    entries = {exercise.id: exercise.entry for exercise in lesson.exercises}
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for submission in submissions:
        for exercise_id, source in submission.sources.items():
            if exercise_id in entries and not is_stub(source, entries[exercise_id]):
                groups[exercise_id, evidence.family(source)].append(submission.student)
    return sorted(Alike(id=key[0], students=names) for key, names in groups.items() if len(names) > 1)
