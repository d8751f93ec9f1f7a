"""Where a hand-in came from, as its system names it: feedback goes back under the same numbers.

    COURSE/.workbook/origins/SLUG/STUDENT.json

Kept behind each hand-in that is taken, or is there already. A kill between the two costs nothing: the same `collect`
again finds the hand-in unchanged, and keeps this.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.grading.handed_in.whose import HandIn
from autograder.grading.units import FOLDER, cannot_write
from course_lib.base import UserError, atomic_write_text


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a system calls a hand-in.

    Attributes:
        system: "moodle" or "canvas".
        name: of the student, as it stands in the names of the files.
        number: Moodle's, of the participant in this assignment; Canvas's, of the user. "" where there was none.
        files: of Canvas: the name of each file, and its number there.
    """

    system: str
    name: str
    number: str
    files: dict[str, str]


def keep_origin(course: Path, slug: str, student: str, handed_in: HandIn) -> None:
    """Keep it, where a system gave the hand-in; what is known of an earlier one stays else."""
    if handed_in.system:
        found = Origin(
            system=handed_in.system,
            name=handed_in.name,
            number=handed_in.number,
            files=handed_in.attachments,
        )
        path = _path(course, slug, student)
        try:
            atomic_write_text(path, json.dumps(asdict(found)))
        except UserError as error:
            raise cannot_write(path.parent, error.__cause__) from None


def origin_of(course: Path, slug: str, student: str) -> Origin | None:
    """What was kept, or None."""
    try:
        return Origin(**json.loads(_path(course, slug, student).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _path(course: Path, slug: str, student: str) -> Path:
    return course / FOLDER / "origins" / slug / f"{student}.json"
