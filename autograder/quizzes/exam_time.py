"""The clock of an exam, where a course sets one.

    SLUG_time.json, beside the notebook    {"minutes": 45}
    SLUG_answers.json                      {"answers": {"exam": {…, "began": {"1": "2027-02-01T…"}, …}, …}}

The learner's machine goes by its own clock, and by what it is told was granted: `exam("09", more_time=1.5)`. The grader
goes by what the course granted, and leaves out what was answered later. Both read the times that this machine wrote
into the answers file. Whoever sets the clock back or edits the file has more time: on a machine that is the learner's
nothing can prevent it, and a good forgery looks like an honest file. What does not fit together is told (`doubts`).
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from autograder.course import load_lesson
from autograder.quizzes import exams
from autograder.quizzes.bank import Bank
from course_lib.base import UserError

GRACE = timedelta(seconds=30)  # an answer given in time may be written, or measured, a little later
MAX_FACTOR = 10.0
Answers = Mapping[str, Any]


def time_name(lesson_id: str) -> str:
    """Name of the file beside the notebook that gives an exam its time."""
    return f"{load_lesson(lesson_id).slug}_time.json"


def minutes_in(folder: Path, lesson_id: str) -> float:
    """How long an attempt may take in a folder; 0 where no clock runs. Raises UserError for a damaged file."""
    path = folder / time_name(lesson_id)
    if not path.is_file():
        return 0.0
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        minutes = float(json.loads(path.read_text(encoding="utf-8"))["minutes"])
        if 0 < minutes < math.inf:
            return minutes
    raise UserError(f"{path.name} cannot be read: put the one there that your course handed out")


def checked_factor(more_time: object) -> float:
    """How many times the usual time somebody has. Raises UserError where that is no such number."""
    if not isinstance(more_time, int | float) or not 1 <= more_time <= MAX_FACTOR:
        raise UserError(
            f"more_time must be a number from 1 to {MAX_FACTOR:g}, such as 1.5 for half as much again; got "
            f"{more_time!r}"
        )
    return float(more_time)


def timed(bank: Bank, minutes: float, answers: Answers) -> Bank:
    """The bank with the time that an attempt has on the learner's machine, by what it was told there."""
    return replace(bank, minutes=minutes * claimed(answers))


def claimed(answers: Answers) -> float:
    """How many times the usual time the learner's machine was told to give."""
    told = _entry(answers).get("more_time", 1.0)
    return float(told) if isinstance(told, int | float) and 1 <= told <= MAX_FACTOR else 1.0


def end_of(bank: Bank, answers: Answers, attempt: int) -> datetime | None:
    """When the time of an attempt is over; None where no clock runs."""
    began = _began(bank, answers, attempt)
    with contextlib.suppress(OverflowError):
        return began + timedelta(minutes=bank.minutes) if began and bank.minutes else None
    return None


def end_text(bank: Bank, answers: Answers, attempt: int) -> str:
    """Until when an open attempt takes answers, on this machine's clock; "" where no clock runs."""
    end = end_of(bank, answers, attempt)
    if end is None:
        return ""
    if is_over(bank, answers, attempt):
        return f"The {bank.minutes:g} minutes of attempt {attempt} are over: it takes no more answers."
    return f"Attempt {attempt} takes answers until {end.astimezone():%H:%M:%S} ({bank.minutes:g} minutes)."


def invitation(bank: Bank, minutes: float) -> str:
    """What is said before a clock runs."""
    return (
        f"{bank.num_questions} questions in {minutes:g} minutes. The time begins with the first attempt and does not "
        "stop when you close the page."
    )


def is_over(bank: Bank, answers: Answers, attempt: int) -> bool:
    """Whether the time of an attempt is over now."""
    end = end_of(bank, answers, attempt)
    return end is not None and datetime.now(UTC) > end


def in_time(bank: Bank, answers: Answers, attempt: int) -> Answers:
    """The answers without those that came after the time of an attempt."""
    late = _late(bank, answers, attempt)
    return {key: entry for key, entry in answers.items() if key not in late}


def late_text(bank: Bank, answers: Answers, attempt: int) -> str:
    """How many answers of an attempt came after its time; "" for none."""
    num_late = len(_late(bank, answers, attempt))
    came = f"{num_late} answer{'s' * (num_late > 1)} came after its {bank.minutes:g} minutes"
    return f"attempt {attempt}: {came}, and count as not given" if num_late else ""


def doubts(bank: Bank, answers: Answers, granted: float = 1.0) -> list[str]:
    """What a person should know of the times in a file of answers.

    Args:
        bank: with the minutes that the course grants this learner.
        granted: how many times the usual time that is.
    """
    place = exams.place_in(answers)
    if not bank.minutes or place is None:
        return []
    lines = []
    if (told := claimed(answers)) > granted:
        lines.append(f"the exam ran with {told:g} × the time, and the course granted {granted:g} ×")
    for attempt in range(1, place.attempt + 1):
        entries = [
            entry for key, entry in answers.items() if _is_of(bank, key, attempt) and isinstance(entry, dict)
        ]
        lines += filter(None, [late_text(bank, answers, attempt)])
        began = _read(_began_of(answers).get(str(attempt)))
        times = [_read(entry.get("at")) for entry in entries]
        if entries and (began is None or None in times or any(time < began for time in times if time)):
            lines.append(f"attempt {attempt}: the times in its answers file do not fit together")
    return lines


def _late(bank: Bank, answers: Answers, attempt: int) -> set[str]:
    end = end_of(bank, answers, attempt)
    if end is None:
        return set()
    given = {key: _read(entry.get("at")) for key, entry in answers.items() if isinstance(entry, dict)}
    return {key for key, time in given.items() if time and _is_of(bank, key, attempt) and time - end > GRACE}


def _is_of(bank: Bank, key: str, attempt: int) -> bool:
    return key.startswith(f"{bank.lesson}.{attempt}.")


def _began(bank: Bank, answers: Answers, attempt: int) -> datetime | None:
    """When an attempt began; where the file does not say it, its first answer."""
    if began := _read(_began_of(answers).get(str(attempt))):
        return began
    given = (answers[key] for key in answers if _is_of(bank, key, attempt))
    times = (_read(entry.get("at")) for entry in given if isinstance(entry, dict))
    return min(filter(None, times), default=None)


def _began_of(answers: Answers) -> Mapping[str, Any]:
    began = _entry(answers).get("began")
    return began if isinstance(began, dict) else {}


def _entry(answers: Answers) -> Mapping[str, Any]:
    entry = answers.get(exams.KEY)
    return entry if isinstance(entry, dict) else {}


def _read(text: object) -> datetime | None:
    """A time of the file, which may hold anything."""
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(text, str):
            time = datetime.fromisoformat(text)
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    return None
