"""What `workbook return` came to, as `--json` and its text have it."""

from __future__ import annotations

from dataclasses import dataclass, field

from autograder.common import named, one_line

SYSTEMS = {"moodle": "Moodle", "canvas": "Canvas"}
_HOW = {
    "moodle": "In Moodle: the assignment, its submissions, the action “Upload multiple feedback files in a zip”. The "
    "assignment must have the feedback type “Feedback files”.",
    "canvas": "In Canvas: the gradebook, the menu of the assignment, “Re-Upload Submissions”. Once: each upload of the "
    "same archive would be one more comment to each student.",
}


@dataclass(frozen=True)
class Returned:
    """What `return_feedback` came to.

    Attributes:
        archive: the zip for the system; "" where there is nothing new to give back.
        returned: students whose feedback is in it.
        unchanged: student → the earlier archive that holds just this feedback.
        ungraded: who handed in and has no grade yet.
        elsewhere: student → why this system cannot take the feedback.
        failed: student → why there is no feedback.
    """

    lesson: str
    system: str
    archive: str = ""
    returned: list[str] = field(default_factory=list)
    unchanged: dict[str, str] = field(default_factory=dict)
    ungraded: list[str] = field(default_factory=list)
    elsewhere: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def returned_text(found: Returned) -> str:
    """What `return_feedback` did, in lines."""
    lines = [f"Lesson {found.lesson}: nothing new for {SYSTEMS[found.system]}"]
    if found.archive:
        lines = [
            f"Lesson {found.lesson}: wrote {found.archive}, feedback for students: {len(found.returned)}",
            _HOW[found.system],
        ]
    if found.unchanged:
        last = max(found.unchanged.values(), key=lambda name: (len(name), name))
        lines += [
            f"{len(found.unchanged)} have theirs as it is in an earlier archive, the last of them {last}"
        ]
    if found.ungraded:
        lines += [f"Not graded yet: {', '.join(map(named, found.ungraded))}"]
    if found.elsewhere:
        lines += [f"Not in an archive of {SYSTEMS[found.system]}; their page is in feedback/STUDENT:"]
        lines += [f"  {named(student)}: {one_line(why)}" for student, why in found.elsewhere.items()]
    if found.failed:
        lines += ["Without feedback:"]
        lines += [f"  {named(student)}: {one_line(why)}" for student, why in found.failed.items()]
    return "\n".join(lines)
