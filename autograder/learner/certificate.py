"""The certificate: one sheet that says what was passed and what was measured, what that is worth, and how to check it.

`standing` says whether the course is passed. Points and grades are those of the progress, measurements those of the
evidence files that it names.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from autograder.common import data_directory
from autograder.course import lesson_href, load_lesson
from autograder.engine import evidence
from autograder.kept import progress
from autograder.learner.standing import Standing, required, standings
from autograder.quizzes import PASS_MARK
from autograder.show import BLUE, GREEN, render, told
from course_lib.base import UserError, atomic_write_text

FILE_NAME = "certificate.html"
# Tells our own page, which may be replaced, from anybody else's file.
_MARK = '<meta name="generator" content="training-workbook certificate">'
_MAX_NAME = 80  # characters; longer ones leave the sheet


@dataclass(frozen=True, kw_only=True)
class Result:
    """What `make` came to.

    Attributes:
        missing: by part ("03 · Batch size …") what is missing to pass it; empty when the course is passed.
        path: the page; None when the course is not passed.
    """

    missing: dict[str, str]
    path: Path | None

    def __repr__(self) -> str:
        if self.path:
            return f"Your certificate: {self.path}\nOpen it in a browser to print it, or to save it as PDF there."
        return "\n".join([self._verdict(), *(f"  {part}: {what}" for part, what in self.missing.items())])

    def _repr_html_(self) -> str:
        return render(
            "certificate_card.html",
            verdict=self._verdict(),
            missing=[(part, lesson_href(part[:2]), what) for part, what in self.missing.items()],
            name=self.path and self.path.name,
            colour=GREEN if self.path else BLUE,
            label="Your certificate",
            max_width="60em",
        )

    def _verdict(self) -> str:
        parts = "1 part is" if len(self.missing) == 1 else f"{len(self.missing)} parts are"
        return f"No certificate yet: {parts} not passed. Nothing was written."


def certificate(name: str = "") -> Result | None:
    """Make the certificate in the current folder, or say what is missing: make it the last line of a cell."""
    with told():
        return make(name)
    return None


def make(name: str | None = None, path: Path = Path(FILE_NAME)) -> Result:
    """Write the certificate, if the course is passed.

    Args:
        name: to stand on it; by default the learner's, as progress knows it.
        path: of the page. A certificate that is there is replaced.

    Raises:
        UserError: there is no name, or another file is in the way, or the page cannot be written.
    """
    summary = progress.summary()
    if summary.problem:
        raise UserError(summary.problem)
    found = required(standings(summary))
    missing = {
        f"{s.part.id} · {s.part.title}": "; ".join(s.missing) if s.is_started else "not started"
        for s in found
        if not s.is_passed
    }
    if missing:
        return Result(missing=missing, path=None)
    if not (name := (name or "").strip() or _known_name(summary.learner)):
        raise UserError(
            'you have passed. Say whose certificate it is: certificate("Your Name") in a notebook, '
            'workbook certificate --name "Your Name" in a terminal'
        )
    if len(name) > _MAX_NAME:
        raise UserError(f"the name has {len(name)} characters; {_MAX_NAME} fit on the sheet")
    if path.exists() and not _is_ours(path):
        raise UserError(f"{path} is there already and is no certificate; choose another name with --out FILE")
    atomic_write_text(path, page(name, found, date.today()))
    return Result(missing={}, path=path)


def page(name: str, found: list[Standing], today: date) -> str:
    """The sheet as HTML that needs no other file, no network and no script."""
    from markupsafe import Markup

    records = dict(_records(found))
    return render(
        "certificate.html",
        mark=Markup(_MARK),
        name=name,
        today=f"{today.day} {today:%B %Y}",
        found=found,
        pass_mark=f"{PASS_MARK:.0%}".replace("%", " %"),
        num_exercises=sum(len(load_lesson(s.part.id).exercises) for s in found),
        hours=sum(s.seconds for s in found) / 3600,
        measured=[_measurement(number, title, records.get(number)) for number, title in _timed(found)],
        machines=_ordered(_machine(record) for record in records.values()),
        levels=_ordered(record["result"]["sandbox"] for record in records.values()),
        num_records=len(records),
    )


def _known_name(learner: str) -> str:
    return "" if learner == "learner" else learner


def _is_ours(path: Path) -> bool:
    try:
        return _MARK in path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _records(found: list[Standing]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The evidence of the best result of each exercise, where its file is on this machine."""
    for standing in found:
        for exercise_id, best in standing.exercises.items():
            with contextlib.suppress(UserError):
                record = evidence.read(data_directory() / "evidence" / (best.evidence or "none"))
                if record["result"]["id"] == exercise_id:
                    yield exercise_id, record


def _timed(found: list[Standing]) -> list[tuple[str, str]]:
    exercises = (exercise for standing in found for exercise in load_lesson(standing.part.id).exercises)
    return [(exercise.id, exercise.title) for exercise in exercises if exercise.clock]


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    """A row of the table of speedups; `words` say why there is no number."""

    id: str
    title: str
    words: str = ""
    sandbox: str | None = ""
    code: str = ""
    speedup: str = ""
    interval: str = ""
    bar: str = ""


def _measurement(exercise_id: str, title: str, record: dict[str, Any] | None) -> _Measurement:
    row = _Measurement(id=exercise_id, title=title)
    if record is None:
        return replace(row, words="no evidence file here")
    result, speed = record["result"], record["result"]["speedup"]
    row = replace(row, sandbox=result["sandbox"], code=record["source_sha256"][:8])
    if result["verdict"] != "pass":
        return replace(row, words="not passed")
    if not speed:
        return replace(row, words="passed by counts, not by the clock")
    interval = f"{speed['low']:.2f} to {speed['high']:.2f}" if speed["low"] and speed["high"] else ""
    return replace(row, speedup=f"{speed['estimate']:.2f}×", interval=interval, bar=f"{speed['bar']:g}×")


def _machine(record: dict[str, Any]) -> str:
    on, torch = record["hardware"], record["versions"].get("torch")
    words = [on.get("processor"), f"{on.get('cores')} cores", on.get("system"), f"torch {torch}"]
    return ", ".join(str(word) for word in words if word)


def _ordered(words: Iterable[str | None]) -> list[tuple[str, int]]:
    """Each word and how often it came, the most frequent first."""
    return Counter(word for word in words if word).most_common()
