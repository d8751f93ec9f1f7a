"""The learner's progress: attempts, answers, quiz scores and time, in one SQLite file per user.

The file lies in the user's data folder and holds rows of several learners: each is keyed by the JupyterHub user,
else by `WORKBOOK_PROFILE`, else by "learner". A disk that is full, read-only or locked costs one printed line, never
a check or an answer: what could not be written waits in this process, and goes in with what is recorded next.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.kept.progress_file import BUSY_SECONDS, TURN_SECONDS, progress_path, with_database

# Longer pauses are not counted as time spent: the learner was away.
PAUSE_SECONDS = 300
INSERT = "INSERT INTO events (learner, lesson, at, kind, name, score, max_score, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
Row = tuple[Any, ...]
_waiting: dict[Path, list[Row]] = {}  # by the file they are for
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
    path = progress_path()
    rows, problem = with_database(lambda database: database.execute(question, (name,)).fetchall(), path)
    if rows is None:
        problem = f"Progress could not be read: {problem}."
    return {"learner": name, **_summed_up(rows or []), "problem": problem}


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
