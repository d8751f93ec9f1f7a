"""The learner's progress: attempts, answers, quiz scores and time, in one SQLite file per user.

The file lies in the user's data folder and holds rows of several learners: each is keyed by the JupyterHub user,
else by `WORKBOOK_PROFILE`, else by "learner". A disk that is full, read-only or locked costs one printed line, never
a check or an answer: what could not be written waits in this process, and goes in with what is recorded next.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.kept.progress_file import BUSY_SECONDS, TURN_SECONDS, Event, progress_path, with_database

# Longer pauses are not counted as time spent: the learner was away.
PAUSE_SECONDS = 300
INSERT = "INSERT INTO events (learner, lesson, at, kind, name, score, max_score, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
Row = tuple[Any, ...]
_waiting: dict[Path, list[Row]] = {}  # by the file they are for
_said: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class BestCheck:
    """The best check of an exercise; of equal ones the last.

    Attributes:
        evidence: name of its file, if there is one.
        attempts: how often the exercise was checked.
    """

    score: float
    max_score: float
    verdict: str
    evidence: str | None
    attempts: int


@dataclass(frozen=True, kw_only=True)
class BestQuiz:
    """The best grade of a quiz or an exam."""

    score: float
    max_score: float
    passed: bool


@dataclass(frozen=True, kw_only=True)
class LessonSummary:
    """What was reached in a lesson.

    Attributes:
        exercises: by id.
        answered: how many questions.
        seconds: time between events, long pauses left out.
        last_visited: in ISO's form.
    """

    exercises: dict[str, BestCheck] = field(default_factory=dict)
    quiz: BestQuiz | None = None
    answered: int = 0
    seconds: float = 0.0
    last_visited: str | None = None


@dataclass(frozen=True, kw_only=True)
class LastPlace:
    """Where a learner was last: "exercise 1.3", "quiz", a heading, …"""

    lesson: str
    place: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a learner has reached.

    Attributes:
        last: None before anything happened.
        lessons: those that were visited, by id.
        problem: one line when the file could not be read, else "".
    """

    learner: str
    last: LastPlace | None
    lessons: dict[str, LessonSummary]
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """For templates and other programs."""
        return asdict(self)


def learner_name() -> str:
    """Whose progress this is."""
    return os.environ.get("JUPYTERHUB_USER") or os.environ.get("WORKBOOK_PROFILE") or "learner"


def record_check(result: Mapping[str, Any], source: str = "") -> None:
    """Keep the result of one exercise's check (the dict of the engine), and which text of a cell it is of."""
    more = {
        "source": _digest(source) if source else None,
        "verdict": result["verdict"],
        "speedup": (result.get("speedup") or {}).get("estimate"),
        "seconds": result.get("seconds"),
        "evidence": Path(result["evidence"]).name if result.get("evidence") else None,
    }
    lesson_id = result["id"].partition(".")[0].zfill(2)
    _record(lesson_id, "exercise", result["id"], result["score"], result["max_score"], **more)


def has_passed(exercise_id: str, source: str) -> bool:
    """Whether this text of an exercise's cell has passed its check; one whose clock was undecided is right."""
    found, _ = events("WHERE learner = ? AND kind = 'exercise' AND name = ?", learner_name(), exercise_id)
    return any(
        event.more.get("source") == _digest(source) and event.more.get("verdict") in ("pass", "inconclusive")
        for event in found or []
    )


def _digest(source: str) -> str:
    """Of a cell's text, as it is compared: without blank lines about it."""
    return hashlib.sha256(source.strip().encode(errors="replace")).hexdigest()[:16]


def record_answer(lesson_id: str, question_id: str, choice: str, is_right: bool | None = None) -> None:
    """Keep one choice in a quiz."""
    _record(lesson_id, "answer", question_id, choice=choice, is_right=is_right)


def record_quiz(lesson_id: str, score: float | None, max_score: float, *, passed: bool | None) -> None:
    """Keep the grade of a quiz."""
    _record(lesson_id, "quiz", "", score, max_score, passed=passed)


def record_visit(lesson_id: str, place: str = "") -> None:
    """Keep that the learner is in a lesson, and where."""
    _record(lesson_id, "visit", place)


def summary(learner: str | None = None) -> Summary:
    """What a learner has reached."""
    name = learner or learner_name()
    found, problem = events("WHERE learner = ?", name)
    if found is None:
        problem = f"Progress could not be read: {problem}."
    last, lessons = _summed_up(found or [])
    return Summary(learner=name, last=last, lessons=lessons, problem=problem)


def events(where: str = "", *values: str) -> tuple[list[Event] | None, str]:
    """What happened, oldest first; None where it cannot be read, and one line if anything went wrong."""
    question = f"SELECT * FROM events {where} ORDER BY id"
    return with_database(
        lambda database: [Event.from_row(row) for row in database.execute(question, values)], progress_path()
    )


def _summed_up(found: Iterable[Event]) -> tuple[LastPlace | None, dict[str, LessonSummary]]:
    lessons: dict[str, LessonSummary] = {}
    answered: dict[str, set[str]] = {}
    places: dict[str, str] = {}
    last: LastPlace | None = None
    for event in found:
        lesson = _with(lessons.get(event.lesson, LessonSummary()), event)
        if event.kind == "answer":
            answered.setdefault(event.lesson, set()).add(event.name)
            lesson = replace(lesson, answered=len(answered[event.lesson]))
        if last:
            gap = (datetime.fromisoformat(event.at) - datetime.fromisoformat(last.at)).total_seconds()
            lesson = replace(lesson, seconds=lesson.seconds + (gap if 0 <= gap <= PAUSE_SECONDS else 0.0))
        lessons[event.lesson] = replace(lesson, last_visited=event.at)
        kinds = {"exercise": f"exercise {event.name}", "visit": event.name or places.get(event.lesson, "")}
        places[event.lesson] = kinds.get(event.kind, "quiz")
        last = LastPlace(lesson=event.lesson, place=places[event.lesson], at=event.at)
    return last, dict(sorted(lessons.items()))


def _with(lesson: LessonSummary, event: Event) -> LessonSummary:
    """With the points of an event, where they are the best so far."""
    score, max_score = event.score or 0.0, event.max_score or 0.0
    if event.kind == "quiz" and (lesson.quiz is None or score > lesson.quiz.score):
        quiz = BestQuiz(score=score, max_score=max_score, passed=event.more["passed"])
        return replace(lesson, quiz=quiz)
    if event.kind != "exercise":
        return lesson
    before = lesson.exercises.get(event.name)
    best = BestCheck(
        score=score,
        max_score=max_score,
        verdict=event.more["verdict"],
        evidence=event.more.get("evidence"),  # the file of an earlier one may have been written anew since
        attempts=before.attempts + 1 if before else 1,
    )
    if before and before.score > score:
        best = replace(before, attempts=best.attempts)
    return replace(lesson, exercises=lesson.exercises | {event.name: best})


def _record(
    lesson: str, kind: str, name: str, score: float | None = None, max_score: float | None = None, **more: Any
) -> None:
    path = progress_path()
    rows = _waiting.setdefault(path, [])
    has_waited = bool(rows)
    # One answer has waited for the lock in vain: the next ones do not hang as long.
    seconds = TURN_SECONDS if has_waited else BUSY_SECONDS
    rows.append((learner_name(), lesson, _now(), kind, name, score, max_score, json.dumps(more)))
    _, problem = with_database(lambda database: _write(database, rows), path, seconds)
    if rows:
        problem = f"Progress is not recorded: {problem}. It is tried again at your next answer or check."
        problem += " Answers and scores are not affected."
    elif has_waited:
        _said.clear()
        print("Progress is recorded again.")
    if problem and problem not in _said:
        _said.add(problem)
        print(problem)


def _write(database: sqlite3.Connection, rows: list[Row]) -> None:
    database.execute("BEGIN IMMEDIATE")
    num_rows = database.executemany(INSERT, list(rows)).rowcount
    database.execute("COMMIT")
    del rows[:num_rows]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
