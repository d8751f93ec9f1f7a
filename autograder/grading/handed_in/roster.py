"""The students of a class, and who of them handed in what."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from autograder.common import named
from autograder.course import lesson_ids, load_lesson
from autograder.grading.gradebook import nbgrader_api
from autograder.grading.handed_in.known import Known
from autograder.grading.handed_in.whose import HandIn, folded_name, letters
from course_lib.base import UserError

_ID = re.compile(r"[^\W_.+*][^+*/\\\0]{0,99}")


class Roster:
    """The students of the gradebook, and what `known` says besides.

    Args:
        takes_new: whether a folder of a name that nobody has is a new student's.

    Raises UserError where `known` speaks of somebody who is none of them.
    """

    def __init__(self, course: Path, known: Sequence[Known] = (), *, takes_new: bool = False) -> None:
        from nbgrader.api import Gradebook

        coursedir = nbgrader_api(course).coursedir
        self.takes_new = takes_new
        self.by_name: dict[str, set[str]] = defaultdict(set)
        self.by_number: dict[str, str] = {}
        self.by_address: dict[str, str] = {}
        self.ids: set[str] = set()
        self.spelt: dict[str, set[str]] = {}
        self.slugs = {load_lesson(lesson_id).slug for lesson_id in lesson_ids()}
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            for student in gradebook.students:
                self.ids.add(student.id)
                if student.lms_user_id:
                    self.by_number[str(student.lms_user_id)] = student.id
                if student.email:
                    self.by_address[student.email.casefold()] = student.id
                names = [student.first_name or "", student.last_name or ""]
                self.spelt[student.id] = {student.id, " ".join(names), " ".join(reversed(names))}
                for name in {letters("".join(names)), letters("".join(reversed(names)))} - {""}:
                    self.by_name[name].add(student.id)
        self.known = {(each.number, each.name if not each.number else ""): each for each in known}
        for each in known:
            if each.student and each.student not in self.ids and not self._is_new(each.student):
                raise UserError(
                    f"{named(each.student)}, whose {named(each.name)} is said to be, is no student of the gradebook: "
                    "correct the id, or add --new-students"
                )

    def __contains__(self, name: object) -> bool:
        """Whether a student has this id or is called so."""
        return isinstance(name, str) and (name in self.ids or bool(self.by_name.get(letters(name))))

    def known_of(self, handed_in: HandIn) -> Known | None:
        """What a table says of it."""
        number = handed_in.number if handed_in.system == "moodle" else ""
        return self.known.get(("", handed_in.name)) or (self.known.get((number, "")) if number else None)

    def is_(self, handed_in: HandIn, groups: Iterable[str] = ()) -> str:
        """The id of who handed it in.

        Args:
            groups: what Moodle may have put before a name: see `groups_of`.

        Raises UserError with the reason, where that is not known.
        """
        name, known = handed_in.name, self.known_of(handed_in)
        if known and known.student:
            return known.student
        if name in self.slugs:
            raise UserError(
                "this is a lesson's name and no student's: put it into a folder with the student's id"
            )
        if not handed_in.is_clear:
            raise UserError("its name can be read in more than one way, as that of one student or of another")
        if handed_in.system == "canvas" and handed_in.number in self.by_number:
            return self.by_number[handed_in.number]
        if known and (sure := self._called(known.called)):
            return sure
        if name in self.ids:
            return name
        called = self.by_name.get(letters(name), set())
        if not called and handed_in.system == "moodle":
            own = [name.removeprefix(group) for group in groups if name.startswith(group)]
            called = {student for each in own for student in self.by_name.get(letters(each), ())}
        if len(called) == 1:
            return next(iter(called))
        if called:
            raise UserError(f"{len(called)} students are called so: {', '.join(sorted(called))}")
        if alike := [each for each in self.ids if folded_name(each) == folded_name(name)]:
            raise UserError(f"this is {alike[0]} in other letters: rename it if it is theirs")
        if handed_in.is_plain and self._is_new(name):
            return name
        number = f", or {handed_in.number} as Canvas's number" if handed_in.system == "canvas" else ""
        raise UserError(
            f"no student of the gradebook has this name or id{number if handed_in.number else ''}"
        )

    def _is_new(self, name: str) -> bool:
        return self.takes_new and bool(_ID.fullmatch(name)) and name.isprintable()

    def _called(self, called: Iterable[str]) -> str:
        """Who has one of these as id or address, else as name; "" where it is nobody, or more than one."""
        found = {name for name in called if name in self.ids}
        found |= {self.by_address[name.casefold()] for name in called if name.casefold() in self.by_address}
        found = found or {student for name in called for student in self.by_name.get(letters(name), ())}
        return found.pop() if len(found) == 1 else ""


def groups_of(handed_in: Iterable[HandIn]) -> list[str]:
    """What several names of Moodle begin with, up to a hyphen: it may be a group's name."""
    number = Counter(
        each.name[: place + 1]
        for each in handed_in
        if each.system == "moodle"
        for place, sign in enumerate(each.name)
        if sign == "-"
    )
    return [begin for begin, times in number.items() if times > 1]
