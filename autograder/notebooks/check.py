"""From a notebook to the results of all its exercises and its quiz, and from an evidence file to a new result."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.common import Result, in_points
from autograder.course import Lesson, load_lesson
from autograder.engine import Progress, blank_result, check_source, evidence, sources_in, told_in
from autograder.engine.sandbox import CheckStopped, Level, Stop
from course_lib.base import UserError

if TYPE_CHECKING:
    from autograder.quizzes import Bank, QuizGrade

_CONFIRMED = {
    True: "The new check confirms it.",
    False: "The new check does NOT confirm it: the file was changed, or it came about elsewhere.",
    None: "Neither confirmed nor refuted: one of the two checks came to no verdict.",
}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What an evidence file says beside the check of the same source now: `confirmed` is None where one of the two
    checks came to no verdict."""

    verdict: str
    score: float
    confirmed: bool | None
    says: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of a lesson's exercises and of its quiz.

    Attributes:
        quiz: as `grade_quiz` gives it; None where there is none or none was asked for.
        record: of an evidence file that was checked again; else None.
        cells: which cell was judged, a line for each exercise of which more than one could count. Only people read it.
    """

    lesson: str
    exercises: tuple[Result, ...]
    quiz: QuizGrade | None = None
    record: Record | None = None
    cells: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        return sum(result.score for result in self.exercises)

    @property
    def max_score(self) -> float:
        return sum(result.max_score for result in self.exercises)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`, with the documented keys alone."""
        found = {
            "lesson": self.lesson,
            "score": self.score,
            "max_score": self.max_score,
            "exercises": [result.public() for result in self.exercises],
            "quiz": self.quiz.points() if self.quiz else None,
        }
        return found | ({"record": asdict(self.record)} if self.record else {})


def check_notebook(
    path: Path | str,
    *,
    only: list[str] | None = None,
    on_progress: Progress | None = None,
    require_sandbox: Level | None = None,
    stop: Stop | None = None,
    check: Callable[..., Result] | None = None,
    bank_for: Callable[[Lesson], Bank] | None = None,
    lesson: Lesson | None = None,
    sources: Mapping[str, str] | None = None,
) -> Report:
    """Check every exercise of a lesson's notebook, and its quiz by the answers file beside it.

    `only`: these exercises alone, without the quiz. `lesson`: where it is known; else that of most of its exercises.
    `check` stands for `check_source` where results are at hand already, `sources` for what the notebook was read as.
    `bank_for` gives the questions of the quiz with their keys; without it they are those that the folder asks.

    The evidence of each exercise is on the disk before the next begins, so that a kill loses no finished verdict.
    Raises `UserError` when the file is no notebook of this course, and as `check_source` does; `CheckStopped` when
    `stop` was pressed.
    """
    path = Path(path)
    told = told_in(path) if sources is None else []
    sources = sources_in(path) if sources is None else sources
    lesson = lesson or lesson_of(path, sources)
    results = []
    for exercise in lesson.exercises:
        if only and exercise.id not in only:
            continue
        if exercise.id in sources:
            report = _prefixed(on_progress, exercise.id)
            result = (check or check_source)(
                exercise.id,
                sources[exercise.id],
                on_progress=report,
                require_sandbox=require_sandbox,
                stop=stop,
            )
            results.append(_unless_stopped(result))
        else:
            reason = f'The notebook has no cell with @exercise("{exercise.id}"). Copy it from the release notebook.'
            results.append(blank_result(exercise.id, "not_attempted", reason))
    quiz = None if only else _grade_quiz(lesson, path.parent, bank_for)
    of_these = tuple(f"{result.id}: " for result in results)
    cells = tuple(line for line in told if line.startswith(of_these))
    return Report(lesson=lesson.id, exercises=tuple(results), quiz=quiz, cells=cells)


def check_evidence(
    path: Path | str,
    *,
    on_progress: Progress | None = None,
    require_sandbox: Level | None = None,
    stop: Stop | None = None,
) -> Report:
    """Check the source in an evidence file anew, and report it as a notebook of that one exercise.

    `record` of the report compares the two. Earlier measurements do not weigh on the new one.
    Raises `UserError` when the file is no evidence, and as `check_notebook` does.
    """
    record = evidence.read(Path(path))
    then, show = record["result"], _prefixed(on_progress, record["result"]["id"])
    now = check_source(
        then["id"], record["source"], on_progress=show, require_sandbox=require_sandbox, again=True, stop=stop
    )
    _unless_stopped(now)
    confirmed: bool | None = (then["verdict"], then["score"]) == (now.verdict, now.score)
    if not confirmed and {then["verdict"], now.verdict} & {"inconclusive", "error"}:
        confirmed = None
    says = f"On record: {then['verdict']}, {in_points(then['score'])} ({record['finished']}). {_CONFIRMED[confirmed]}"
    compared = Record(verdict=then["verdict"], score=then["score"], confirmed=confirmed, says=says)
    return Report(lesson=then["id"].partition(".")[0].zfill(2), exercises=(now,), record=compared)


def _unless_stopped(result: Result) -> Result:
    if result.verdict == "stopped":
        raise CheckStopped(f"{result.id} was stopped. " + str(result.reason).replace("\n", ". "))
    return result


def lesson_of(path: Path, sources: Mapping[str, str]) -> Lesson:
    """The lesson that a notebook belongs to: that of most of its exercises, else by its name."""
    prefixes = Counter(exercise_id.partition(".")[0].zfill(2) for exercise_id in sources)
    for lesson_id in (*(lesson_id for lesson_id, _ in prefixes.most_common()), path.name[:2]):
        with contextlib.suppress(KeyError):
            return load_lesson(lesson_id)
    raise UserError(f"{path}: no lesson of this course; its cells hold no @exercise of a known number")


def _grade_quiz(
    lesson: Lesson, folder: Path, bank_for: Callable[[Lesson], Bank] | None = None
) -> QuizGrade | None:
    from autograder.kept import read_answers
    from autograder.quizzes import bank_in, grade_quiz, has_quiz

    if not has_quiz(lesson.id):
        return None
    bank = bank_for(lesson) if bank_for else bank_in(folder, lesson.id)
    grade = grade_quiz(lesson.id, read_answers(folder / f"{lesson.slug}_answers.json"), bank=bank)
    return replace(grade, handed_in=bank_for is not None)


def _prefixed(on_progress: Progress | None, exercise_id: str) -> Progress | None:
    if on_progress is None:
        return None
    return lambda text, fraction: on_progress(f"{exercise_id}  {text}", fraction)
