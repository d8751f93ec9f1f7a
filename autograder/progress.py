"""The learner's progress: attempts, answers, quiz scores and time, in one SQLite file per user.

The file lies in the user's data folder and holds rows of several learners: each is keyed by the JupyterHub user,
else by `WORKBOOK_PROFILE`, else by "learner". Progress is a convenience: a disk that is full, read-only or locked
costs one printed line, never a check or an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from autograder.paths import data_directory

if TYPE_CHECKING:
    from autograder.progress_view import ProgressCard

FILE_NAME = "progress.sqlite3"
BUSY_SECONDS = 1.0
# Longer pauses are not counted as time spent: the learner was away.
PAUSE_SECONDS = 300
VERSION = 2  # `PRAGMA user_version`
# One row for all that happened. `kind` is exercise, answer, quiz or visit; `name` the exercise, the question or the
# place; `more` what the kind has besides, as JSON.
SCHEMA = """CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, learner TEXT NOT NULL, lesson TEXT NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL,
    name TEXT NOT NULL, score REAL, max_score REAL, more TEXT NOT NULL)"""
T = TypeVar("T")
_said: set[str] = set()


def learner_name() -> str:
    """Whose progress this is."""
    return os.environ.get("JUPYTERHUB_USER") or os.environ.get("WORKBOOK_PROFILE") or "learner"


def record_check(result: dict[str, Any]) -> None:
    """Keep the result of one exercise's check (the dict of the engine)."""
    more = {
        "verdict": result["verdict"],
        "speedup": (result.get("speedup") or {}).get("estimate"),
        "seconds": result.get("seconds"),
        "evidence": Path(result["evidence"]).name if result.get("evidence") else None,
    }
    lesson_id = result["id"].partition(".")[0].zfill(2)
    _record(lesson_id, "exercise", result["id"], result["score"], result["max_score"], **more)


def record_answer(lesson_id: str, question_id: str, choice: str, is_right: bool | None = None) -> None:
    """Keep one choice in a quiz."""
    _record(lesson_id, "answer", question_id, choice=choice, is_right=is_right)


def record_quiz(result: dict[str, Any]) -> None:
    """Keep the grade of a quiz (the dict of `grade_quiz`)."""
    _record(result["lesson"], "quiz", "", result["score"], result["max_score"], passed=result["passed"])


def record_visit(lesson_id: str, place: str = "") -> None:
    """Keep that the learner is in a lesson, and where."""
    _record(lesson_id, "visit", place)


def summary(learner: str | None = None) -> dict[str, Any]:
    """What a learner has reached, by lesson.

    Returns:
        learner: the name; last: {"lesson", "place", "at"} of the last visit, or None;
        lessons: by lesson id: exercises {id: {score (best), max_score, verdict (of the best), evidence (name of its
        file, or None), attempts}}; of equal ones the last is the best;
        quiz {score (best), max_score, passed} or None, answered (questions), seconds (time between events, long
        pauses left out), last_visited (ISO time);
        problem: one line when the file could not be read, else "".
    """
    name = learner or learner_name()
    question = "SELECT * FROM events WHERE learner = ? ORDER BY id"
    rows, problem = _with_database(lambda database: database.execute(question, (name,)).fetchall())
    return {"learner": name, **_summed_up(rows or []), "problem": problem}


def progress_html() -> ProgressCard:
    """The learner's progress as a card for the start page: make it the last line of a cell."""
    from autograder.progress_view import ProgressCard

    return ProgressCard(summary())


def _summed_up(rows: Iterable[sqlite3.Row]) -> dict[str, Any]:
    lessons: dict[str, dict[str, Any]] = {}
    answered: dict[str, set[str]] = {}
    places: dict[str, str] = {}
    last: dict[str, Any] | None = None
    for row in rows:
        lesson_id, more = row["lesson"], json.loads(row["more"])
        empty: dict[str, Any] = {
            "exercises": {},
            "quiz": None,
            "answered": 0,
            "seconds": 0.0,
            "last_visited": None,
        }
        lesson = lessons.setdefault(lesson_id, empty)
        reached = {"score": row["score"], "max_score": row["max_score"]}
        if row["kind"] == "exercise":
            before = lesson["exercises"].get(row["name"], {"score": -1.0, "attempts": 0})
            # The evidence file of an earlier one may have been written anew since.
            found = reached | {"verdict": more["verdict"], "evidence": more.get("evidence")}
            best = found if row["score"] >= before["score"] else before
            lesson["exercises"][row["name"]] = best | {"attempts": before["attempts"] + 1}
        elif row["kind"] == "quiz" and (lesson["quiz"] is None or row["score"] > lesson["quiz"]["score"]):
            lesson["quiz"] = reached | {"passed": more["passed"]}
        elif row["kind"] == "answer":
            answered.setdefault(lesson_id, set()).add(row["name"])
            lesson["answered"] = len(answered[lesson_id])
        if last:
            gap = (datetime.fromisoformat(row["at"]) - datetime.fromisoformat(last["at"])).total_seconds()
            lesson["seconds"] += gap if 0 <= gap <= PAUSE_SECONDS else 0.0
        lesson["last_visited"] = row["at"]
        kinds = {"exercise": f"exercise {row['name']}", "visit": row["name"] or places.get(lesson_id, "")}
        places[lesson_id] = kinds.get(row["kind"], "quiz")
        last = {"lesson": lesson_id, "place": places[lesson_id], "at": row["at"]}
    return {"last": last, "lessons": dict(sorted(lessons.items()))}


def _record(
    lesson: str, kind: str, name: str, score: float | None = None, max_score: float | None = None, **more: Any
) -> None:
    row = (learner_name(), lesson, _now(), kind, name, score, max_score, json.dumps(more))
    insert = (
        "INSERT INTO events (learner, lesson, at, kind, name, score, max_score, more)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    _, problem = _with_database(lambda database: database.execute(insert, row).rowcount)
    if problem and problem not in _said:
        _said.add(problem)
        print(problem)


def _with_database(work: Callable[[sqlite3.Connection], T]) -> tuple[T | None, str]:
    """Open, work, close. Returns what `work` gave, and one line if anything went wrong."""
    try:
        path = data_directory() / FILE_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _open_and(work, path), ""
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise
            aside = path.with_name(f"{path.stem}.damaged-{datetime.now():%Y%m%d-%H%M%S}.sqlite3")
            path.rename(aside)
            for suffix in ("-wal", "-shm"):  # they belong to the damaged file
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            said = f"Your progress file was damaged; it is kept as {aside.name}, and a new one begins."
            return _open_and(work, path), said
    except (sqlite3.Error, OSError, ValueError) as error:
        said = f"Progress could not be recorded or read ({error}). Answers and scores are not affected."
        return None, said


def _open_and(work: Callable[[sqlite3.Connection], T], path: Path) -> T:
    with contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise ValueError("the progress file is of a newer version of this workbook; update the workbook")
        if version < VERSION:
            # Network folders cannot share memory: the rollback journal does as well, with more waiting.
            with contextlib.suppress(sqlite3.OperationalError):
                database.execute("PRAGMA journal_mode = WAL")
            database.execute(SCHEMA)
            database.execute(f"PRAGMA user_version = {VERSION}")
        return work(database)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
