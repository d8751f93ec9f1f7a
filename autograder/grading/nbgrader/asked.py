"""What students asked about their grades, and what the check that was made again came to: kept, and on their pages.

COURSE/.workbook/questions/SLUG/STUDENT.json    a list of these
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List

from autograder.common import Verdict
from autograder.grading.units import FOLDER, cannot_write
from autograder.show import BLUE, WORDS, render
from course_lib.base import UserError, atomic_write_text


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, and the new check.

    Attributes:
        exercise: its id.
        text: the question, the student's own words.
        key: of the code and of the check that it is about; another one is checked anew.
        then, then_score: verdict and points that it is about.
        now, now_score, max_score: those of the new check.
        confirmed: whether they are the same; None where one of the two checks came to no verdict.
        reason: of the new check.
        checked: its day, UTC.
        evidence: path of the record of the new check; "" where there is none.
        comment, points: at the exercise in the gradebook, when the question was found.
    """

    exercise: str
    text: str
    key: str
    then: str
    then_score: float
    now: str
    now_score: float
    max_score: float
    confirmed: bool | None
    reason: str
    checked: str
    evidence: str = ""
    comment: str = ""
    points: float = 0.0

    def is_answered(self, comment: str | None, points: float) -> bool:
        """Whether the comment or the points at the exercise are others by now."""
        return (comment or "", points) != (self.comment, self.points)


def asked_by(course: Path, slug: str, student: str) -> list[Asked]:
    """What was kept of a student's questions."""
    try:
        kept = json.loads(_path(course, slug, student).read_text(encoding="utf-8"))
        return [Asked(**each) for each in kept]
    except (OSError, ValueError, TypeError):
        return []


def keep_asked(course: Path, slug: str, student: str, asked: Sequence[Asked]) -> None:
    """Keep them in the place of those before. Raises UserError where they cannot be written."""
    path = _path(course, slug, student)
    try:
        atomic_write_text(path, json.dumps([asdict(each) for each in asked], indent=1))
    except UserError as error:
        raise cannot_write(path.parent, error.__cause__) from None


def _path(course: Path, slug: str, student: str) -> Path:
    return course / FOLDER / "questions" / slug / f"{student}.json"


class Questions(NbGraderPreprocessor):
    """Puts each question of a student, with what the new check came to, under the check that it is about. It goes
    behind nbgrader's `GetGrades`, which knows the comments."""

    display_data_priority = List().tag(
        config=True
    )  # nbconvert's page sets it for all steps, and warns where it is not

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        names = resources["nbgrader"]
        root = Path(CourseDirectory(config=self.config).root)
        marks = {cell.metadata.nbgrader.grade_id: cell for cell in nb.cells if "nbgrader" in cell.metadata}
        for each in asked_by(root, names["assignment"], names["student"]):
            place = each.exercise.replace(".", "-")
            if check := marks.get(f"check-{place}"):
                solution = marks.get(f"exercise-{place}")
                comment = solution.metadata.nbgrader.get("comment") if solution else ""
                points = float(check.metadata.nbgrader.get("score") or 0.0)
                html = _card(each, is_answered=each.is_answered(comment, points))
                check.outputs.append(new_output("display_data", {"text/html": html, "text/plain": each.text}))
        return nb, resources


def _card(asked: Asked, *, is_answered: bool) -> str:
    words, _, mark = WORDS[cast(Verdict, asked.now)]
    return render(
        "question.html",
        asked=asked,
        words=words,
        mark=mark,
        colour=BLUE,
        label=f"Your question about {asked.exercise}",
        is_answered=is_answered,
    )
