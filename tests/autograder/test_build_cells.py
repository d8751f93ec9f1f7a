"""What a cell of a lesson text becomes, and that the same text always gives the same notebook."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.notebooks.building import source_notebook
from course_lib.base.errors import UserError

HEADER = "# ---\n# jupyter:\n#   jupytext:\n#     formats: ipynb,py:percent\n# ---\n\n"
LESSON = (
    HEADER
    + """# %% [markdown]
# # Speed
# ## What to measure

# %% tags=["wide"] editable=true
from autograder import check, exercise

# %%
x = 1  # a cell to play with

# %%
from math import ceil


@exercise("7.1")
def num_batches(n: int, size: int) -> int:
    ### BEGIN SOLUTION
    return ceil(n / size)
    ### END SOLUTION


# %%
# Is it right?
check("7.1")

# %%
check_quiz("07")
"""
)
POINTS = {"7.1": 4.0, "quiz-07": 7.0}


def build(tmp_path: Path, text: str, points: dict[str, float] | None = None) -> nbformat.NotebookNode:
    path = tmp_path / "07_speed.py"
    path.write_text(text, encoding="utf-8")
    return source_notebook(path, POINTS if points is None else points)


def test_what_a_cell_holds_decides_its_grading(tmp_path: Path) -> None:
    notebook = build(tmp_path, LESSON)
    nbformat.validate(notebook)
    marks = {cell.id: cell.metadata.get("nbgrader") for cell in notebook.cells}
    shared = {"schema_version": 3, "task": False}
    assert marks == {
        "what-to-measure-1": None,
        "what-to-measure-2": None,
        "what-to-measure-3": None,
        "exercise-7-1": shared
        | {"grade": False, "grade_id": "exercise-7-1", "locked": False, "solution": True},
        "check-7-1": shared
        | {"grade": True, "grade_id": "check-7-1", "locked": True, "points": 4.0, "solution": False},
        "quiz-07": shared
        | {"grade": True, "grade_id": "quiz-07", "locked": True, "points": 7.0, "solution": False},
    }


def test_only_what_an_author_says_about_a_cell_is_kept(tmp_path: Path) -> None:
    notebook = build(tmp_path, LESSON)
    assert notebook.cells[1].metadata == {"tags": ["wide"]}
    # A pairing left in the metadata would make JupyterLab write solutions back into a release.
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")


def test_no_source_ends_in_a_newline(tmp_path: Path) -> None:
    notebook = build(tmp_path, LESSON.replace('check("7.1")\n', 'check("7.1")\n\n\n   \n'))
    assert all(cell.source == cell.source.rstrip() for cell in notebook.cells)


def test_ids_stay_when_text_changes_elsewhere(tmp_path: Path) -> None:
    before = [cell.id for cell in build(tmp_path, LESSON).cells]
    longer = LESSON.replace("# # Speed", "# # Speed, and more of it").replace(
        "# %% tags",
        "# %% [markdown]\n# ## Before\n\n# %%\nprint(1)\n\n# %% [markdown]\n# ## What to measure\n\n# %% tags",
    )
    after = [cell.id for cell in build(tmp_path, longer).cells]
    assert {"exercise-7-1", "check-7-1", "quiz-07", "what-to-measure-2"} <= set(before) & set(after)
    assert len(after) == len(set(after))


def test_a_heading_cannot_take_a_grade_id(tmp_path: Path) -> None:
    notebook = build(tmp_path, LESSON.replace("# ## What to measure", "# ## Check 7"))
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids)) and ids[-2] == "check-7-1"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    ### BEGIN SOLUTION\n", "", "exercise 7.1: put its solution between"),
        ("    ### END SOLUTION\n", "", "exercise 7.1: put its solution between"),
        ("x = 1", "### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "outside an @exercise cell"),
        ('check("7.1")\n', "1\n", "no cell 'check-7-1'"),
        ('check_quiz("07")', "1", "no cell 'quiz-07'"),
        ('@exercise("7.1")', '@exercise("7.2")', "no cell 'exercise-7-1'"),
        ('check("7.1")', 'check("7.2")', "exercise 7.2 is graded here but has no points"),
        ("x = 1", 'check("7.1")\n', "2 cells are 'check-7-1'"),
        ("    ### BEGIN", '@exercise("7.3")\n    ### BEGIN', "exercises 7.1, 7.3 share a cell"),
    ],
)
def test_a_text_that_cannot_be_graded_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in LESSON
    with pytest.raises(UserError, match=r"07_speed\.py: ") as caught:
        build(tmp_path, LESSON.replace(old, new))
    assert says in str(caught.value)
