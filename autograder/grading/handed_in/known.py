"""Whose a hand-in is and when it came, where its name does not say it: a table by a person, or Moodle's worksheet.

name,student[,time]    a person's: the name as `collect` lists it, the student's id, the time
Identifier,Full name,…,Last modified (submission),…
                       Moodle's, "Download grading worksheet": what is of "Participant 20480" is called
                       …_20480_assignsubmission_file (mod/assign/gradingtable.php, col_recordid, col_timesubmitted)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autograder.common import quoted, read_table
from course_lib.base import UserError

_IDENTIFIER = re.compile(r"\D+(\d+)")
_OF_MOODLE = ("%d %B %Y, %I:%M %p", "%d %B %Y, %H:%M", "%B %d, %Y, %I:%M %p")
_SUBMITTED = "last modified (submission)"


@dataclass(frozen=True)
class Known:
    """What a row says of one hand-in.

    Attributes:
        name: as it stands in the folder or zip; "" where `number` says which.
        number: Moodle's, of the participant; "" elsewhere.
        student: the id; "" where `called` is to be looked up.
        called: what else a student is known by: full name, user name, id number, address.
        time: when it was handed in; None where that is not known.
    """

    name: str = ""
    number: str = ""
    student: str = ""
    called: tuple[str, ...] = ()
    time: datetime | None = None


def read_known(paths: Iterable[Path], time_zone: str = "") -> list[Known]:
    """The rows of such tables.

    Args:
        time_zone: of times that name none, such as "Europe/Berlin"; "" for this machine's.

    Raises:
        UserError: a file cannot be read or has no such columns; or a row has no such time.
    """
    try:
        zone = ZoneInfo(time_zone) if time_zone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f"there is no time zone {quoted(time_zone)}: name one such as Europe/Berlin"
        ) from None
    return [known for path in paths for known in _read(path, zone)]


def _read(path: Path, zone: ZoneInfo | None) -> list[Known]:
    header, rows = read_table(path)
    names = [name.strip().casefold() for name in header]
    if {"name", "student"} <= set(names):
        return [_by_a_person(path, number, dict(zip(names, row, strict=True)), zone) for number, row in rows]
    if rows and all(_IDENTIFIER.fullmatch(row[0]) for _, row in rows):
        return [_by_moodle(path, number, names, row, zone) for number, row in rows]
    raise UserError(
        f"{path}: its first row must name the columns name and student; or give Moodle's worksheet"
    )


def _by_a_person(path: Path, number: int, row: dict[str, str], zone: ZoneInfo | None) -> Known:
    text = row.get("time", "")
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise UserError(f"{path}: row {number}: {quoted(text)} is no time such as 2027-02-01 23:59") from None
    if not row["name"] or not row["student"]:
        raise UserError(f"{path}: row {number} lacks the name or the student")
    return Known(name=row["name"], student=row["student"], time=_in_utc(time, zone))


def _by_moodle(path: Path, number: int, names: list[str], row: list[str], zone: ZoneInfo | None) -> Known:
    identifier = _IDENTIFIER.fullmatch(row[0])
    assert identifier
    text = row[names.index(_SUBMITTED)] if _SUBMITTED in names else "-"
    time = None
    if text not in ("", "-"):
        day = text.partition(", ")[2]  # behind the day of the week
        for form in _OF_MOODLE:
            try:
                time = datetime.strptime(day, form)  # its zone is not in it
                break
            except ValueError:
                continue
        else:
            raise UserError(
                f"{path}: row {number}: {quoted(text)} is no time in English: set your language in Moodle to English, "
                "and download the worksheet again"
            )
    # Between the identifier and the status: whatever names a site shows.
    called = row[1 : names.index("status")] if "status" in names else row[1:2]
    return Known(number=identifier[1], called=tuple(filter(None, called)), time=_in_utc(time, zone))


def _in_utc(time: datetime | None, zone: ZoneInfo | None) -> datetime | None:
    if time is None:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(UTC)
