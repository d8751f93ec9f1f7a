"""The learner's progress: attempts, answers, quiz scores and time, in one SQLite file per user.

The file lies in the user's data folder (`autograder.paths.data_directory`) and holds rows of several learners: each
is keyed by the JupyterHub user, else by `WORKBOOK_PROFILE`, else by "learner". Progress is a convenience: a disk
that is full, read-only or locked costs one printed line, never a check or an answer.
"""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from typing import Any

from autograder.progress_store import with_database

# Longer pauses are not counted as time spent: the learner was away.
PAUSE_SECONDS = 300
_said: set[str] = set()


def learner_name() -> str:
    """Whose progress this is."""
    return os.environ.get("JUPYTERHUB_USER") or os.environ.get("WORKBOOK_PROFILE") or "learner"


def lesson_of(exercise_id: str) -> str:
    """The lesson of an exercise or question: "1.2" and "01.2" are of "01"."""
    return exercise_id.partition(".")[0].zfill(2)


def record_check(result: dict[str, Any]) -> None:
    """Keep the result of one exercise's check (the dict of the engine)."""
    lesson = lesson_of(str(result["id"]))
    speedup = (result.get("speedup") or {}).get("estimate")
    row = (lesson, result["id"], _now(), result["score"], result["max_score"], result["verdict"])
    _write(
        "INSERT INTO attempts (learner, lesson, exercise, at, score, max_score, verdict, speedup, seconds)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, speedup, result.get("seconds")),
        lesson,
        f"exercise {result['id']}",
    )


def record_answer(lesson_id: str, question_id: str, choice: str, is_right: bool | None = None) -> None:
    """Keep one choice in a quiz."""
    _write(
        "INSERT INTO answers (learner, lesson, question, at, choice, is_right) VALUES (?, ?, ?, ?, ?, ?)",
        (lesson_id, question_id, _now(), choice, is_right),
        lesson_id,
        "quiz",
    )


def record_quiz(result: dict[str, Any]) -> None:
    """Keep the grade of a quiz (the dict of `grade_quiz`)."""
    _write(
        "INSERT INTO quizzes (learner, lesson, at, score, max_score, passed) VALUES (?, ?, ?, ?, ?, ?)",
        (result["lesson"], _now(), result["score"], result["max_score"], bool(result["passed"])),
        result["lesson"],
        "quiz",
    )


def record_visit(lesson_id: str, place: str = "") -> None:
    """Keep that the learner is in a lesson, and where. Times between visits add up, long pauses left out."""
    _write("", (), lesson_id, place)


def summary(learner: str | None = None) -> dict[str, Any]:
    """What a learner has reached, by lesson.

    Returns:
        learner: the name; last: {"lesson", "place", "at"} of the last visit, or None;
        lessons: by lesson id: exercises {id: {score (best), max_score, verdict (of the best), attempts}},
        quiz {score (best), max_score, passed} or None, answered (questions), seconds (time spent),
        last_visited (ISO time or None);
        problem: one line when the file could not be read, else "".
    """
    name = learner or learner_name()
    found, problem = with_database(lambda database: _summary(database, name))
    return (found or {"learner": name, "last": None, "lessons": {}}) | {"problem": problem}


def _summary(database: sqlite3.Connection, learner: str) -> dict[str, Any]:
    lessons: dict[str, dict[str, Any]] = {}

    def lesson(lesson_id: str) -> dict[str, Any]:
        empty: dict[str, Any] = {
            "exercises": {},
            "quiz": None,
            "answered": 0,
            "seconds": 0.0,
            "last_visited": None,
        }
        return lessons.setdefault(lesson_id, empty)

    # In SQLite the bare columns of a MAX() query come from the row that holds the maximum.
    for row in database.execute(
        "SELECT lesson, exercise, MAX(score) AS score, max_score, verdict, COUNT(*) AS attempts FROM attempts"
        " WHERE learner = ? GROUP BY lesson, exercise ORDER BY lesson, exercise",
        (learner,),
    ):
        keys = ("score", "max_score", "verdict", "attempts")
        lesson(row["lesson"])["exercises"][row["exercise"]] = {key: row[key] for key in keys}
    for row in database.execute(
        "SELECT lesson, MAX(score) AS score, max_score, passed FROM quizzes WHERE learner = ? GROUP BY lesson",
        (learner,),
    ):
        quiz = {"score": row["score"], "max_score": row["max_score"], "passed": bool(row["passed"])}
        lesson(row["lesson"])["quiz"] = quiz
    for row in database.execute(
        "SELECT lesson, COUNT(DISTINCT question) AS answered FROM answers WHERE learner = ? GROUP BY lesson",
        (learner,),
    ):
        lesson(row["lesson"])["answered"] = row["answered"]
    last = None
    for row in database.execute("SELECT * FROM visits WHERE learner = ? ORDER BY last_at", (learner,)):
        lesson(row["lesson"]).update(seconds=row["seconds"], last_visited=row["last_at"])
        last = {"lesson": row["lesson"], "place": row["place"], "at": row["last_at"]}
    return {"learner": learner, "last": last, "lessons": dict(sorted(lessons.items()))}


def _write(statement: str, values: tuple[Any, ...], lesson_id: str, place: str) -> None:
    learner = learner_name()

    def write(database: sqlite3.Connection) -> None:
        database.execute("BEGIN IMMEDIATE")
        if statement:
            database.execute(statement, (learner, *values))
        _touch(database, learner, lesson_id, place)
        database.execute("COMMIT")

    _, problem = with_database(write)
    if problem and problem not in _said:
        _said.add(problem)
        print(problem)


def _touch(database: sqlite3.Connection, learner: str, lesson_id: str, place: str) -> None:
    now = _now()
    before = database.execute(
        "SELECT last_at FROM visits WHERE learner = ? ORDER BY last_at DESC LIMIT 1", (learner,)
    ).fetchone()
    gap = 0.0
    if before:
        gap = (datetime.fromisoformat(now) - datetime.fromisoformat(before["last_at"])).total_seconds()
    spent = gap if 0 <= gap <= PAUSE_SECONDS else 0.0
    database.execute(
        "INSERT INTO visits (learner, lesson, first_at, last_at, seconds, place) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (learner, lesson) DO UPDATE SET last_at = excluded.last_at,"
        " seconds = seconds + excluded.seconds,"
        " place = CASE excluded.place WHEN '' THEN place ELSE excluded.place END",
        (learner, lesson_id, now, now, spent, place),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def __getattr__(name: str) -> Any:
    # How progress looks lives apart from how it is kept.
    if name in ("progress_html", "progress_text", "summary_text"):
        from autograder import progress_view

        return getattr(progress_view, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
