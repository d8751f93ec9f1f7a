"""All that is kept about a learner outside their own folder: written into one file, or deleted.

Evidence files do not say whose they are. Where several learners share the user's data folder, those count as one's own
that the own progress names and nobody else's does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.common import data_directory
from autograder.kept import Event, events, learner_name, progress_path, read_answers, with_database
from course_lib.base import UserError, atomic_write_text

_WORDS = {"exercise": "checks", "answer": "quiz answers", "quiz": "quiz grades", "visit": "visits"}


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What there is about one learner.

    Attributes:
        events: the rows of the progress file, oldest first.
        evidence: evidence files that are theirs; a page of the same name lies beside each.
        damaged: progress files that could not be read and were set aside.
        unclear: number of evidence and damaged files that may be theirs or another learner's.
    """

    learner: str
    events: tuple[Event, ...]
    evidence: tuple[Path, ...]
    damaged: tuple[Path, ...]
    unclear: int


def stored() -> Stored:
    """Look. Raises UserError when the progress file cannot be read."""
    learner = learner_name()
    found, problem = events()
    if found is None:
        raise UserError(problem)
    mine = tuple(event for event in found if event.learner == learner)
    others = [event for event in found if event.learner != learner]
    evidence = sorted((data_directory() / "evidence").glob("*.json"))
    damaged = sorted(data_directory().glob(f"{progress_path().stem}.damaged-*"))
    if not others:
        return Stored(learner=learner, events=mine, evidence=(*evidence,), damaged=(*damaged,), unclear=0)
    names = _evidence_names(mine) - _evidence_names(others)
    own = tuple(path for path in evidence if path.name in names)
    unclear = [path for path in evidence if path.name not in names | _evidence_names(others)]
    return Stored(learner=learner, events=mine, evidence=own, damaged=(), unclear=len(unclear) + len(damaged))


def export(path: Path, folder: Path) -> str:
    """Write all of it as JSON, with the answers files in the learner's folder; return what there is to say.

    Raises UserError when there is such a file already, or it cannot be written.
    """
    if path.exists():
        raise UserError(f"{path} exists; name another file")
    found = stored()
    document = {
        "learner": found.learner,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "progress": {"file": str(progress_path()), "events": [event.to_dict() for event in found.events]},
        "answers": [
            {"file": str(p), "answers": read_answers(p)} for p in sorted(folder.glob("*/*_answers.json"))
        ],
        "evidence": [{"file": str(p), "record": _record(p)} for p in found.evidence],
        "damaged": [str(p) for p in found.damaged],
    }
    try:
        atomic_write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    except UserError as error:
        assert isinstance(error.__cause__, OSError)
        raise UserError(f"cannot write {path}: {error.__cause__.strerror}; name another file") from None
    counts = f"{len(found.events)} progress rows, {len(document['answers'])} answers files"
    return f"{path} holds {counts} and {len(found.evidence)} evidence files.{_about_unclear(found)}"


def described(found: Stored, folder: Path) -> str:
    """What `delete` would delete, and what stays, a line each; "" when there is nothing."""
    if not (found.events or found.evidence or found.damaged):
        return ""
    kinds = Counter(event.kind for event in found.events)
    rows = ", ".join(f"{kinds[kind]} {word}" for kind, word in _WORDS.items() if kinds[kind])
    lines = [
        f'Stored about "{found.learner}" in {data_directory()}, and deleted for good:',
        f"  {len(found.events)} progress rows{rows and f': {rows}'}",
        f"  {len(found.evidence)} evidence files, each with its page",
        *([f"  {len(found.damaged)} damaged progress files"] if found.damaged else []),
        f"These stay: your notebooks and the answers files beside them, with quiz answers and predictions ({folder}); "
        f"what `workbook calibrate` measured on this machine.{_about_unclear(found)}",
        "A copy first: workbook progress --export FILE",
    ]
    return "\n".join(lines)


def delete(found: Stored) -> None:
    """Delete the rows and files. Raises UserError when one of them cannot be."""

    def work(database: Any) -> None:
        database.execute("PRAGMA secure_delete = ON")  # not a trace is left in the file
        numbers = [(event.id,) for event in found.events]
        database.execute("BEGIN IMMEDIATE")
        database.executemany("DELETE FROM events WHERE id = ?", numbers)
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    try:
        for path in found.evidence:
            path.with_suffix(".html").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        for path in found.damaged:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot delete {error.filename}: {error.strerror}; then delete again") from error
    _, problem = with_database(work, progress_path())
    if problem:
        raise UserError(problem)


def _evidence_names(found: Iterable[Event]) -> set[str]:
    return {event.more["evidence"] for event in found if event.more.get("evidence")}


def _record(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"could not be read: {error}"


def _about_unclear(found: Stored) -> str:
    if not found.unclear:
        return ""
    return (
        f" Other learners share this folder, and {found.unclear} files do not say whose they are: "
        f"look into {data_directory() / 'evidence'}."
    )
