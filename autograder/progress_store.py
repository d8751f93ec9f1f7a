"""The SQLite file behind the progress: opened, migrated, and never a reason to stop."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from autograder.paths import data_directory

FILE_NAME = "progress.sqlite3"
BUSY_SECONDS = 1.0
T = TypeVar("T")

# One entry per version; `PRAGMA user_version` says how many have been applied. Only ever append.
MIGRATIONS = (
    """
    CREATE TABLE attempts (
        id INTEGER PRIMARY KEY, learner TEXT NOT NULL, lesson TEXT NOT NULL, exercise TEXT NOT NULL,
        at TEXT NOT NULL, score REAL NOT NULL, max_score REAL NOT NULL, verdict TEXT NOT NULL,
        speedup REAL, seconds REAL);
    CREATE INDEX attempts_of ON attempts (learner, lesson, exercise);
    CREATE TABLE answers (
        id INTEGER PRIMARY KEY, learner TEXT NOT NULL, lesson TEXT NOT NULL, question TEXT NOT NULL,
        at TEXT NOT NULL, choice TEXT NOT NULL, is_right INTEGER);
    CREATE INDEX answers_of ON answers (learner, lesson, question);
    CREATE TABLE quizzes (
        id INTEGER PRIMARY KEY, learner TEXT NOT NULL, lesson TEXT NOT NULL, at TEXT NOT NULL,
        score REAL NOT NULL, max_score REAL NOT NULL, passed INTEGER NOT NULL);
    CREATE TABLE visits (
        learner TEXT NOT NULL, lesson TEXT NOT NULL, first_at TEXT NOT NULL, last_at TEXT NOT NULL,
        seconds REAL NOT NULL DEFAULT 0, place TEXT NOT NULL DEFAULT '', PRIMARY KEY (learner, lesson));
    """,
)


def with_database(work: Callable[[sqlite3.Connection], T]) -> tuple[T | None, str]:
    """Open, migrate, work, close. Returns what `work` gave, and one line if anything went wrong."""
    try:
        path = data_directory() / FILE_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _open_and(work, path), ""
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) not in (
                sqlite3.SQLITE_NOTADB,
                sqlite3.SQLITE_CORRUPT,
            ):
                raise
            aside = _set_aside(path)
            said = f"Your progress file was damaged; it is kept as {aside.name}, and a new one begins."
            return _open_and(work, path), said
    except (sqlite3.Error, OSError, ValueError) as error:
        said = f"Progress could not be recorded or read ({error}). Answers and scores are not affected."
        return None, said


def _open_and(work: Callable[[sqlite3.Connection], T], path: Path) -> T:
    database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        database.row_factory = sqlite3.Row
        _migrate(database)
        return work(database)
    finally:
        database.close()


def _migrate(database: sqlite3.Connection) -> None:
    if _version(database) == len(MIGRATIONS):
        return
    # Network folders cannot share memory: the rollback journal does as well, with more waiting.
    with contextlib.suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    try:
        version = _version(database)  # another process may have been quicker
        if version > len(MIGRATIONS):
            raise ValueError("the progress file is of a newer version of this workbook; update the workbook")
        for migration in MIGRATIONS[version:]:
            for statement in migration.split(";"):
                database.execute(statement)  # not executescript: that would commit half-way
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.stem}.damaged-{datetime.now():%Y%m%d-%H%M%S}.sqlite3")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):  # they belong to the damaged file
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside
