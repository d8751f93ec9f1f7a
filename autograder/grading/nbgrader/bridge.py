"""Grades an nbgrader submission by the workbook's checks; all else of nbgrader stays as it is.

nbgrader executes a submission in a kernel and reads the outputs of the graded cells. Code in that kernel can
rewrite any of them, so here nothing of the learner's runs in it: `MeasuredGrades` hands the notebook to the
engine (separate, sandboxed processes) and writes the engine's answer into each graded cell in the form that
nbgrader's own `SaveAutoGrades` scores: a number, with the reason beside it for the feedback.

What nbgrader 0.9 makes of outputs, and hence the form: anything on stderr scores 0; no output, a word, NaN or
a negative number scores full; a number above the maximum stops the grading. So a graded cell always gets one
result, a number between 0 and the cell's points shown as a card, and nothing else.

`RestoreCells` goes before nbgrader's own clean-up, because one learner's copied exercise cell otherwise stops
the grading of the whole class ("old version of the nbgrader metadata format"). `PlainTexts` keeps a learner's HTML
out of the pages that show a submission, and `PlainCode` what would keep nbgrader busy. `Page` is what goes back.
"""

from __future__ import annotations

import functools
import math
import os
import re
import shutil
import sysconfig
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.api import Notebook as GradebookNotebook
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets import Enum

from autograder.engine.sandbox import LEVELS, Level
from autograder.grading.nbgrader.pages import Page
from course_lib.base import UserError

CODE_STUB = '# Your turn: replace the next line with your code.\nraise NotImplementedError("not written yet")'

SANITIZE_PREPROCESSORS = [
    "nbgrader.preprocessors.ClearOutput",
    "autograder.grading.nbgrader.bridge.RestoreCells",
    "autograder.grading.nbgrader.learner_text.PlainTexts",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
AUTOGRADE_PREPROCESSORS = [
    "autograder.grading.nbgrader.bridge.MeasuredGrades",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "autograder.grading.nbgrader.learner_text.PlainCode",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
FEEDBACK_PREPROCESSORS = [
    "autograder.grading.nbgrader.flags.Flags",
    # Once more, behind the points by hand and the extensions that came since.
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.GetGrades",
    "autograder.grading.nbgrader.asked.Questions",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
FEEDBACK = {"exporter_class": Page, "preprocessors": FEEDBACK_PREPROCESSORS}

_SCHEMA_VERSION = 3
_OURS = re.compile(r"(check|quiz)-([0-9A-Za-z]+(?:-[0-9A-Za-z]+)*)")


class RestoreCells(NbGraderPreprocessor):
    """Gives each cell of the assignment its own metadata again, and puts back graded cells that were deleted.

    A submission may hold copies of cells (JupyterLab copies the metadata too), metadata changed by hand, a text that
    became code, or lack a graded cell although the work above it is there. Of several cells with one id the last keeps
    it, as in `DeduplicateIds`. `OverwriteCells.add_missing_cells` is no substitute: it stops with a KeyError when the
    cell before the missing one is missing as well.
    """

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            assigned = gradebook.find_notebook(names["notebook"], names["assignment"])
            wanted = {cell.name: cell for cell in assigned.source_cells}
            metadata = _metadata(assigned)
            last = {_grade_id(cell): index for index, cell in enumerate(nb.cells)}
            for index, cell in enumerate(nb.cells):
                name = _grade_id(cell)
                if name in wanted and last[name] == index:
                    cell.metadata.nbgrader = metadata[name]
                    _make(cell, wanted[name].cell_type)
                else:
                    cell.metadata.pop("nbgrader", None)
            for name in sorted(wanted.keys() - last.keys()):
                if metadata[name].grade:
                    self.log.warning("Graded cell %s was deleted from the submission: put back", name)
                    _insert(nb, wanted[name].cell_type, wanted[name].source, metadata[name])
        return nb, resources


def _make(cell: NotebookNode, kind: str) -> None:
    """Give a cell its kind again, as `OverwriteCells` would later: what shows texts must know which are texts."""
    if cell.cell_type != kind:
        cell.cell_type = kind
        for key in ("attachments", "outputs", "execution_count"):
            cell.pop(key, None)
        if kind == "code":
            cell.outputs, cell.execution_count = [], None


class MeasuredGrades(Execute):
    """Stands where nbgrader's `Execute` stands in `c.Autograde.autograde_preprocessors`.

    A notebook without any of the workbook's graded cells (an assignment of the instructor's own in the same
    course) is executed as nbgrader always does.
    """

    require_sandbox = Enum(
        LEVELS,
        default_value=None,
        allow_none=True,
        help="The weakest sandbox level that a grade may be given at; None takes what the machine has. A submission "
        "that was measured at a weaker one is not graded, and nbgrader says so.",
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict | None = None, km: Any = None
    ) -> tuple[NotebookNode, ResourcesDict]:
        assert resources is not None, "nbgrader always passes resources"
        graded = {_grade_id(cell): cell for cell in nb.cells if _is_autograded(cell)}
        if not any(_OURS.fullmatch(grade_id) for grade_id in graded):
            return super().preprocess(nb, resources, km)
        # nbgrader works in the course's root; the submission with its answers file lies elsewhere.
        path = Path(resources["metadata"]["path"]).resolve() / f"{resources['metadata']['name']}.ipynb"
        for line in _told(path):
            self.log.warning("For a person to look at: %s", line)
        points = {grade_id: float(cell.metadata.nbgrader["points"]) for grade_id, cell in graded.items()}
        answers = _answers(path, points, self.require_sandbox, resources["nbgrader"]["student"])
        for grade_id, cell in graded.items():
            if grade_id not in answers:
                raise ValueError(
                    f"graded cell {grade_id!r} is no check of lesson {path.stem}: give a cell of your own a "
                    "notebook of its own, or generate the assignment again with the installed workbook"
                )
            answer = answers[grade_id]
            write_answer(cell, score=answer.score, max_score=answer.max_score, html=answer.html)
        return nb, resources


def write_answer(cell: NotebookNode, *, score: float, max_score: float, html: str) -> None:
    """Make the engine's answer the only output of a graded cell, in place.

    Args:
        cell: a graded code cell; its points may differ from `max_score` if the instructor weighted it anew.
        score, max_score: points of the engine, 0 ≤ score ≤ max_score.
        html: the reason, as a card.

    Raises:
        ValueError: the score is no number within its range; nothing is written.
    """
    points = float(cell.metadata.nbgrader["points"])
    if not (math.isfinite(score) and 0 <= score <= max_score):
        raise ValueError(
            f"{_grade_id(cell)}: score {score} is not between 0 and {max_score}: no grade was given; "
            "this is a fault of the workbook, please report it"
        )
    number = repr(points * score / max_score if max_score else 0.0)
    shown = {"text/plain": number, "text/html": html}
    cell.outputs = [new_output("execute_result", shown, execution_count=None)]
    cell.execution_count = None


def prepare_environment() -> None:
    """What nbgrader needs to run well when its virtual environment is not activated."""
    # nbgrader starts `alembic` by its bare name.
    scripts = sysconfig.get_path("scripts")
    if shutil.which("alembic") is None:
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    # nbgrader 0.9 builds a submission before adding it to the session; SQLAlchemy 2 warns on each one.
    warnings.filterwarnings("ignore", message="Object of type <Submitted", module="nbgrader")


def answers_files(course_root: Path) -> dict[str, list[str]]:
    """For `c.Autograde.exclude_overwriting`: each assignment's answers file, which is the learner's own."""
    folders = [path for step in ("source", "release") for path in sorted((course_root / step).glob("*"))]
    return {path.name: [f"{path.name}_answers.json"] for path in folders if path.is_dir()}


def withhold_answers(release: Path = Path("release"), **_: Any) -> None:
    """For `c.GenerateAssignment.post_convert_hook`: keep answers files out of the release.

    An instructor's own run leaves one in `source`, and nbgrader copies what lies there. It cannot stand on
    nbgrader's ignore list, for that would drop the learners' answers as well. nbgrader runs in the course root.
    """
    for path in sorted(release.glob("*/*_answers*")):
        path.unlink()


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What the engine says for one graded cell: see `write_answer`."""

    score: float
    max_score: float
    html: str


def _told(notebook: Path) -> list[str]:
    """What a person should know of the cells that are judged; `workbook grade` says so itself."""
    from autograder.engine import told_in
    from autograder.grading.submissions import sources_at_hand

    return told_in(notebook) if sources_at_hand() is None else []


def _answers(
    notebook: Path, points: Mapping[str, float], required: Level | None, student: str
) -> dict[str, _Answer]:
    """What the engine says about a student's notebook, by grade id. On a card stand the `points` of the course."""
    from autograder.common import Result
    from autograder.course import lesson_ids, load_lesson
    from autograder.engine import check as engine
    from autograder.grading.submissions import sources_at_hand
    from autograder.grading.terms import grading_bank
    from autograder.grading.units import Unit, results_of
    from autograder.notebooks import check as notebook_check
    from autograder.quizzes import grade_html
    from autograder.show import card

    # nbgrader runs in the course's root: what `workbook grade` has measured there need not be measured again.
    results, sources = results_of(Path.cwd()), sources_at_hand()

    def check(exercise_id: str, source: str, **how: Any) -> Result:
        kept = results.get(Unit(exercise_id, source))
        if sources is not None and kept is None:
            raise ValueError(f"exercise {exercise_id} has no result: grade it again")
        is_weaker = required and kept and LEVELS.index(kept.sandbox or required) > LEVELS.index(required)
        return kept if kept and not is_weaker else engine.check_source(exercise_id, source, **how)

    report = notebook_check.check_notebook(
        notebook,
        require_sandbox=required,
        check=check,
        sources=sources,
        bank_for=functools.partial(grading_bank, Path.cwd(), student=student),
        # Of the assignment: an exercise of another lesson that was pasted into it changes nothing.
        lesson=next((each for each in map(load_lesson, lesson_ids()) if each.slug == notebook.stem), None),
    )
    answers = {}
    for result in report.exercises:
        if required and result.sandbox and LEVELS.index(result.sandbox) > LEVELS.index(required):
            raise UserError(f"{notebook.name}, {result.id}: {result.reason}")
        grade_id = f"check-{result.id.replace('.', '-')}"
        most = points.get(grade_id, result.max_score)
        earned = most * result.score / result.max_score if result.max_score else 0.0
        answers[grade_id] = _Answer(
            score=float(result.score),
            max_score=float(result.max_score),
            html=card.result_html(replace(result, score=earned, max_score=most)),
        )
    if quiz := report.quiz:
        file = notebook.with_name(f"{load_lesson(report.lesson).slug}_answers.json")
        if not file.exists():
            quiz = replace(quiz, problem=f"The submission came without its answers file, {file.name}.")
        assert quiz.score is not None, "the course's own questions have keys"
        answers[f"quiz-{report.lesson}"] = _Answer(
            score=float(quiz.score),
            max_score=float(quiz.max_score),
            html=grade_html(quiz),
        )
    return answers


def _metadata(assigned: GradebookNotebook) -> dict[str, NotebookNode]:
    """The nbgrader metadata of each cell of an assignment, as the gradebook knows it."""
    kinds = {"grade": assigned.grade_cells, "solution": assigned.solution_cells, "task": assigned.task_cells}
    names = {kind: {cell.name for cell in cells} for kind, cells in kinds.items()}
    points = {cell.name: cell.max_score for cell in (*assigned.grade_cells, *assigned.task_cells)}
    metadata = {}
    for cell in assigned.source_cells:
        mark = {
            "grade_id": cell.name,
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
            "locked": cell.locked,
        }
        mark |= {kind: cell.name in names[kind] for kind in kinds}
        mark |= {"points": points[cell.name]} if cell.name in points else {}
        metadata[cell.name] = nbformat.from_dict(mark | {"schema_version": _SCHEMA_VERSION})
    return metadata


def _insert(nb: NotebookNode, cell_type: str, source: str, metadata: NotebookNode) -> None:
    """Put a cell behind the exercise that it checks, or at the end if that is gone too."""
    new_cell = new_code_cell if cell_type == "code" else new_markdown_cell
    exercise = metadata.grade_id.replace("check-", "exercise-", 1)
    places = [index for index, cell in enumerate(nb.cells) if _grade_id(cell) == exercise]
    place = places[-1] + 1 if places else len(nb.cells)
    nb.cells.insert(place, new_cell(source, metadata={"nbgrader": metadata}))


def _is_autograded(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def _grade_id(cell: NotebookNode) -> str:
    mark = cell.metadata.get("nbgrader")
    return str(mark.get("grade_id", "")) if isinstance(mark, dict) else ""
