"""What `workbook collect` came to, as `--json` and its text have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from autograder.common import named, one_line

Outcome = Literal["collected", "replaced", "unchanged", "kept"]


@dataclass(frozen=True)
class Unassigned:
    """What belongs to nobody known: its name in the folder or zip, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Collected:
    """What `collect` came to.

    Attributes:
        collected, replaced, unchanged, kept: names of students; where one is kept, what was there is newer.
        failed: student → why nothing of it could be taken; what was there stays.
        files: student → names of the files of the replaced hand-in that are others now, or gone.
        stayed: student → what stays of the hand-in before, for the later one has no such file.
        named: student → the name in the folder or zip, where it is another.
        new: students that the gradebook does not have.
        without_answers: students in whose folder there is no answers file, though the lesson asks questions.
        late: students whom Canvas calls late, and of whom nothing says how late.
        problems: a line for each file that was left out, and for what a person should know.
    """

    lesson: str
    collected: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    stayed: dict[str, list[str]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    without_answers: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    unassigned: list[Unassigned] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def of(self, outcome: Outcome) -> list[str]:
        """The names of those whose hand-ins came to this."""
        names: list[str] = getattr(self, outcome)
        return names


def collected_text(found: Collected) -> str:
    """What `collect` did, in lines."""
    told: tuple[Outcome, ...] = ("collected", "replaced", "unchanged")
    counts = [f"{len(names)} {outcome}" for outcome in told if (names := found.of(outcome))]
    lines = [f"Lesson {found.lesson}: {', '.join(counts) or 'nothing collected'}"]
    lines += [f"  {named(name)} → {named(student)}" for student, name in found.named.items()]
    for student in found.replaced:
        lines.append(
            f"  {named(student)}: newer than what was there, and in its place: {_listed(found.files[student])}"
        )
        if stayed := found.stayed.get(student):
            lines.append(f"  {named(student)}: not in it, and stays as it was: {_listed(stayed)}")
    lines += [f"  {named(student)}: what is there is newer, and stays" for student in found.kept]
    if found.failed:
        lines += ["Not collected; what was there before stays:"]
        lines += [f"  {named(student)}: {one_line(why)}" for student, why in found.failed.items()]
    if found.new:
        lines += [f"New students: {_listed(found.new)}"]
    if found.unassigned:
        lines += ["Whose these are is not known, and they are not collected:"]
        lines += [f"  {named(each.name)}: {one_line(each.why)}" for each in found.unassigned]
        lines += [
            "  Write whose they are into a table with the columns name and student, and run this again with "
            "--as FILE; Moodle's grading worksheet is one, too. Whom the gradebook lacks: nbgrader db student add ID "
            "--first-name FIRST --last-name LAST, with --lms-user-id for Canvas's number; or, of folders that are "
            "named by the id, --new-students"
        ]
    if found.late:
        lines += [
            f"Late, says Canvas, and not how late: {_listed(found.late)}",
            "  Write when they came into a table with the columns name, student and time, and run this again with "
            "--as FILE. Without it they count as in time",
        ]
    if found.without_answers:
        lines += [f"Without an answers file, which has the quiz: {_listed(found.without_answers)}"]
    if found.problems:
        lines += ["For a person to look at:", *(f"  {one_line(line)}" for line in found.problems)]
    return "\n".join(lines)


def _listed(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(
        [*map(named, names[:most]), *([f"and {len(names) - most} more"] if names[most:] else [])]
    )
