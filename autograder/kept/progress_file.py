"""The SQLite file of the learner's progress: opened, made where there is none, read or written, closed.

Kernels share it. Each use opens it anew and is over within milliseconds, so that a kernel that hangs or is killed
holds nobody up.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from autograder.common import data_directory, locked

FILE_NAME = "progress.sqlite3"
# Enough for a machine under load. SQLite waits a turn at a time, for it does not hear the stop button meanwhile.
BUSY_SECONDS = 10.0
TURN_SECONDS = 0.3
VERSION = 2  # `PRAGMA user_version`
SCHEMA = """CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, learner TEXT NOT NULL, lesson TEXT NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL,
    name TEXT NOT NULL, score REAL, max_score REAL, more TEXT NOT NULL)"""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Event:
    """One row: all that happens is one.

    Attributes:
        at: when, in ISO's form.
        kind: exercise, answer, quiz or visit.
        name: the exercise, the question or the place.
        more: what the kind has besides.
    """

    id: int
    learner: str
    lesson: str
    at: str
    kind: str
    name: str
    score: float | None
    max_score: float | None
    more: dict[str, Any]

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> Event:
        """Of the database."""
        return cls(**{**row, "more": json.loads(row["more"])})

    def to_dict(self) -> dict[str, Any]:
        """For a file of somebody's data."""
        return asdict(self)


def progress_path() -> Path:
    """Where the file is, or will be."""
    return data_directory() / FILE_NAME


def with_database(
    work: Callable[[sqlite3.Connection], T], path: Path, seconds: float = BUSY_SECONDS
) -> tuple[T | None, str]:
    """Open, work, close, within some seconds. Returns what `work` gave, and one line if anything went wrong."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _patiently(work, path, seconds), ""
        except sqlite3.DatabaseError as error:
            _raise_unless_damaged(error)
        with locked(path):  # of two kernels that find it damaged, the second finds the new one
            try:
                return _patiently(work, path, seconds), ""
            except sqlite3.DatabaseError as error:
                _raise_unless_damaged(error)
            aside = path.with_name(f"{path.stem}.damaged-{datetime.now():%Y%m%d-%H%M%S}.sqlite3")
            path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):  # first, for a new file must not find it
                path.with_name(f"{path.name}-wal").rename(aside.with_name(f"{aside.name}-wal"))
            path.rename(aside)
            said = f"Your progress file was damaged; it is kept as {aside.name}, and a new one begins."
            return _patiently(work, path, seconds), said
    except (sqlite3.Error, OSError, ValueError) as error:
        fix = _FIXES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "{error}")
        return None, fix.format(path=path, error=error)


def _patiently(work: Callable[[sqlite3.Connection], T], path: Path, seconds: float) -> T:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _open_and(work, path)
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)  # some locks are refused at once


def _open_and(work: Callable[[sqlite3.Connection], T], path: Path) -> T:
    with contextlib.closing(sqlite3.connect(path, timeout=TURN_SECONDS, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        # A killed process loses nothing by this. Waiting for the disk under the lock made others wait for seconds.
        database.execute("PRAGMA synchronous = NORMAL")
        if _version(database) != VERSION:
            _make(database)
        return work(database)


def _make(database: sqlite3.Connection) -> None:
    """The table of a new file."""
    if _version(database) > VERSION:
        raise ValueError("its file is of a newer version of this workbook; update the workbook")
    # Network folders cannot share memory: the rollback journal does as well, with more waiting.
    with contextlib.suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    database.execute(SCHEMA)  # another process may have been quicker
    database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _raise_unless_damaged(error: sqlite3.DatabaseError) -> None:
    if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        raise error


_LOCKED = "another program keeps {path} locked; close it, or restart other kernels"
_NOT_WRITABLE = (
    "{path} cannot be written; give yourself write access, or set WORKBOOK_DATA to a folder of your own"
)
_FIXES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: "the disk of {path} is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk of {path} is full or failing ({error}); free some space",
    sqlite3.SQLITE_READONLY: _NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _NOT_WRITABLE,
}
