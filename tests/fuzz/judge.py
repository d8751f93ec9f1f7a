"""What a class must look like after `workbook grade`, whatever was handed in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.hand_in import HandIn

STEP_SECONDS = (
    12.0  # of CPU; the promise is 10 for a hand-in's parsing, and the rest of its step comes on top
)
STEP_WALL_SECONDS = 100.0  # beside other programs, and with processes of its own whose CPU is not seen here
#: A line that a learner's text must not be able to make: it would stand for another student's grade.
FORGED = "z-sound: "
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CLASS_OF_ERROR = re.compile(
    r"[\w.]*(Error|Exception|Warning)\b|.*(a mistake of ours|itself went wrong)", re.DOTALL
)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Something that must not be. `student`: whose hand-in did it; None where that is not told."""

    kind: str
    student: str | None
    what: str


@dataclass(kw_only=True)
class Outcome:
    """What one run of the command left.

    Attributes:
        status: its exit status; None where it was ended because nothing happened any more.
        log: what it told, line by line.
        printed: its standard output and error.
        strangers: files that are there now and belong to nobody, or that were changed.
        sound: of each sound student, all that makes up the grade.
    """

    status: int | None
    log: list[dict[str, Any]]
    printed: str
    strangers: list[str] = field(default_factory=list)
    sound: dict[str, Any] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether the class was graded to its end."""
        return self.status in (0, 1) and bool(self.students)

    @property
    def students(self) -> dict[str, dict[str, Any]]:
        """What the command found, by student."""
        found = [line["graded"]["students"] for line in self.log if "graded" in line]
        return found[-1] if found else {}

    @property
    def in_hand(self) -> str | None:
        """The student whose step had begun and not ended."""
        begun: list[str] = []
        for line in self.log:
            if "begins" in line:
                begun.append(line["student"])
            elif "ends" in line:
                begun.remove(line["student"])
        return begun[-1] if begun else None

    def steps(self) -> Iterator[tuple[str, str, float, float]]:
        """Each step that ended: what it was, whose, and its seconds, of CPU and on the wall."""
        begun: dict[tuple[str, str], dict[str, Any]] = {}
        for line in self.log:
            if "begins" in line:
                begun[line["begins"], line["student"]] = line
            elif "ends" in line:
                begin = begun[line["ends"], line["student"]]
                yield line["ends"], line["student"], line["cpu"] - begin["cpu"], line["at"] - begin["at"]


def failures(found: Outcome, hand_ins: Mapping[str, HandIn], expected: Mapping[str, Any]) -> list[Failure]:
    """All that is wrong with a class.

    Args:
        hand_ins: the damaged ones, by student.
        expected: what `Outcome.sound` must be.
    """
    return [
        Failure(kind=kind, student=student, what=what[:600])
        for kind, student, what in _all(found, hand_ins, expected)
    ]


def _all(
    found: Outcome, hand_ins: Mapping[str, HandIn], expected: Mapping[str, Any]
) -> Iterator[tuple[str, str | None, str]]:
    if "Traceback (most recent call last)" in found.printed:
        yield "a traceback", found.in_hand, found.printed[found.printed.index("Traceback") :][-600:]
    for step, student, cpu, wall in found.steps():
        if cpu > STEP_SECONDS or wall > STEP_WALL_SECONDS:
            yield "slow", student, f"{step}: {cpu:.1f} s of CPU, {wall:.1f} s"
    if not found.is_over:
        kind = "nothing happened any more" if found.status is None else "the class did not end"
        yield kind, found.in_hand, f"status {found.status}: {_last_line(found.printed)}"
        return
    for name, grade in expected.items():
        if found.sound.get(name) != grade:
            yield "a sound student's grade", None, f"{name}: {found.sound.get(name)} and not {grade}"
    for stranger in found.strangers:
        yield "a file where it must not be", None, stranger
    for student, hand_in in hand_ins.items():
        if grade := found.students.get(student):
            yield from _of_grade(student, hand_in, grade)
        elif student not in found.printed:
            yield "neither graded nor named", student, f"{student!a}/{hand_in.folder!a}"
    yield from _of_text(found)


def _of_grade(
    student: str, hand_in: HandIn, grade: Mapping[str, Any]
) -> Iterator[tuple[str, str | None, str]]:
    if grade["score"] is None and not grade["error"]:
        yield "neither graded nor named", student, "no score and no error"
    if grade["score"] and not hand_in.may_earn:
        yield "points for another's work", student, f"{grade['score']} points"
    if _CLASS_OF_ERROR.match(grade["error"]):
        yield "a reason for programmers", student, grade["error"]
    for line in grade["look"]:
        if _CLASS_OF_ERROR.match(line.partition(": ")[2]):
            yield "a reason for programmers", student, line


def _of_text(found: Outcome) -> Iterator[tuple[str, str | None, str]]:
    """Of a line that is printed: whose it is, is told by who has such signs in what is said of them."""
    if bad := [line for line in found.printed.split("\n") if _CONTROL.search(line)]:
        said = {
            name: "\n".join([name, each["error"], *each["look"]]) for name, each in found.students.items()
        }
        marked = [name for name, text in said.items() if _CONTROL.search(text)]
        if not marked:
            yield "control characters printed", None, repr(bad[0])
        for name in marked:
            yield "control characters printed", name, repr(said[name])
    if forged := [line for line in found.printed.split("\n") if line.strip().startswith(FORGED)]:
        yield "a line that looks like another's", None, repr(forged[0])


def _last_line(printed: str) -> str:
    return (printed.strip().splitlines() or [""])[-1]
