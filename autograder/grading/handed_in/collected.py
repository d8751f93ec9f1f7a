"""What `workbook collect` came to, as `--json` and its text have it."""

from __future__ import annotations

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
        named: student → the name in the folder or zip, where it is another.
        problems: a line for each file that was left out, and for what a person should know.
    """

    lesson: str
    collected: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
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
            f"  {named(student)}: newer than what was there, and in its place: {_listed(found, student)}"
        )
    lines += [f"  {named(student)}: what is there is newer, and stays" for student in found.kept]
    if found.failed:
        lines += ["Not collected; what was there before stays:"]
        lines += [f"  {named(student)}: {one_line(why)}" for student, why in found.failed.items()]
    if found.unassigned:
        lines += ["Whose these are is not known:"]
        lines += [f"  {named(each.name)}: {one_line(each.why)}" for each in found.unassigned]
    if found.problems:
        lines += ["For a person to look at:", *(f"  {one_line(line)}" for line in found.problems)]
    return "\n".join(lines)


def _listed(found: Collected, student: str) -> str:
    names, most = found.files.get(student, []), 10
    return ", ".join(
        [*map(named, names[:most]), *([f"and {len(names) - most} more"] if names[most:] else [])]
    )
