"""From a notebook to the results of all its exercises and its quiz, and from an evidence file to a new result."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.course import Lesson, load_lesson
from autograder.engine import Progress, blank_result, check_source, evidence, exercise_sources, read_notebook
from autograder.engine.sandbox import CheckStopped, Level, Stop
from course_lib.base.errors import UserError

if TYPE_CHECKING:
    from autograder.quizzes import Bank, QuizGrade

NOT_PUBLIC = ("title", "seconds")  # for the card alone
PUBLIC_SPEEDUP_KEYS = ("estimate", "low", "high", "bar", "blocks")
_CONFIRMED = {
    True: "The new check confirms it.",
    False: "The new check does NOT confirm it: the file was changed, or it came about elsewhere.",
    None: "Neither confirmed nor refuted: one of the two checks came to no verdict.",
}


def check_notebook(
    path: Path | str,
    *,
    only: list[str] | None = None,
    on_progress: Progress | None = None,
    require_sandbox: Level | None = None,
    stop: Stop | None = None,
    check: Callable[..., dict[str, Any]] | None = None,
    bank_for: Callable[[Lesson], Bank] | None = None,
) -> dict[str, Any]:
    """Check every exercise of a lesson's notebook, and its quiz by the answers file beside it.

    `only`: these exercises alone, without the quiz.
    `check` stands for `check_source` where results are at hand already. `bank_for` gives the questions of the quiz with
    their keys; without it they are those that the folder asks.

    The evidence of each exercise is on the disk before the next begins, so that a kill loses no finished verdict.
    Raises `UserError` when the file is no notebook of this course, and as `check_source` does; `CheckStopped` when
    `stop` was pressed.
    """
    path = Path(path)
    sources = exercise_sources(read_notebook(path))
    lesson = lesson_of(path, sources)
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
    return _report(lesson.id, results, quiz)


def check_evidence(
    path: Path | str,
    *,
    on_progress: Progress | None = None,
    require_sandbox: Level | None = None,
    stop: Stop | None = None,
) -> dict[str, Any]:
    """Check the source in an evidence file anew, and report it as a notebook of that one exercise.

    `record` of the report compares: `verdict` and `score` in the file, whether the new check `confirmed` them (None
    when it came to no verdict), and `says`, the same in a sentence. Earlier measurements do not weigh on the new one.
    Raises `UserError` when the file is no evidence, and as `check_notebook` does.
    """
    record = evidence.read(Path(path))
    then, show = record["result"], _prefixed(on_progress, record["result"]["id"])
    now = check_source(
        then["id"], record["source"], on_progress=show, require_sandbox=require_sandbox, again=True, stop=stop
    )
    _unless_stopped(now)
    confirmed: bool | None = (then["verdict"], then["score"]) == (now["verdict"], now["score"])
    if not confirmed and {then["verdict"], now["verdict"]} & {"inconclusive", "error"}:
        confirmed = None
    says = f"On record: {then['verdict']}, {then['score']:g} points ({record['finished']}). {_CONFIRMED[confirmed]}"
    compared = {"verdict": then["verdict"], "score": then["score"], "confirmed": confirmed, "says": says}
    return _report(then["id"].partition(".")[0].zfill(2), [now], None) | {"record": compared}


def _unless_stopped(result: dict[str, Any]) -> dict[str, Any]:
    if result["verdict"] == "stopped":
        raise CheckStopped(f"{result['id']} was stopped. " + result["reason"].replace("\n", ". "))
    return result


def _report(lesson_id: str, results: list[dict[str, Any]], quiz: QuizGrade | None) -> dict[str, Any]:
    return {
        "lesson": lesson_id,
        "score": sum(result["score"] for result in results),
        "max_score": sum(result["max_score"] for result in results),
        "exercises": results,
        "quiz": quiz,
    }


def lesson_of(path: Path, sources: dict[str, str]) -> Lesson:
    """The lesson that a notebook belongs to: that of most of its exercises, else by its name."""
    prefixes = Counter(exercise_id.partition(".")[0].zfill(2) for exercise_id in sources)
    for lesson_id in (*(lesson_id for lesson_id, _ in prefixes.most_common()), path.name[:2]):
        with contextlib.suppress(KeyError):
            return load_lesson(lesson_id)
    raise UserError(f"{path}: no lesson of this course; its cells hold no @exercise of a known number")


def public(report: dict[str, Any]) -> dict[str, Any]:
    """The report with the documented keys alone, for `--json`."""
    exercises = []
    for result in report["exercises"]:
        kept = {key: value for key, value in result.items() if key not in NOT_PUBLIC}
        if kept["speedup"]:
            kept["speedup"] = {key: kept["speedup"][key] for key in PUBLIC_SPEEDUP_KEYS}
        exercises.append(kept)
    quiz = report["quiz"].points() if report["quiz"] else None
    return report | {"exercises": exercises, "quiz": quiz}


def _grade_quiz(
    lesson: Lesson, folder: Path, bank_for: Callable[[Lesson], Bank] | None = None
) -> QuizGrade | None:
    from autograder.kept import read_answers
    from autograder.quizzes import bank_in, grade_quiz, has_quiz

    if not has_quiz(lesson.id):
        return None
    bank = bank_for(lesson) if bank_for else bank_in(folder, lesson.id)
    return grade_quiz(lesson.id, read_answers(folder / f"{lesson.slug}_answers.json"), bank=bank)


def _prefixed(on_progress: Progress | None, exercise_id: str) -> Progress | None:
    if on_progress is None:
        return None
    return lambda text, fraction: on_progress(f"{exercise_id}  {text}", fraction)
