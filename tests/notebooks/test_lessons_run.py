"""Every lesson runs from top to bottom with the reference solutions: no error, no warning, nothing on stderr.

Every day one lesson runs whole. `workbook test --all` runs the others without their checks, for the same solutions are
checked one by one in test_lesson_checks; and lesson 04 in a browser, with its checks. The longest, which train in
earnest or start many processes, are a step of `.ci/run`. Whole all of them run with `-m exhaustive`. Beside another
test a check may be undecided. Alone, as `pytest tests/notebooks -rP` runs them, the seconds that it prints are those
of a learner.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import jupytext
import pytest
from nbformat import NotebookNode

from tests.kernels import run_all_cells

LESSONS = sorted((Path(__file__).resolve().parents[2] / "notebooks" / "lessons").glob("[0-9][0-9]_*.py"))


EVERYDAY, IN_A_BROWSER = "00_start_here", "04_checkpointing_and_early_stopping"
LONG = (
    "01_efficient_training_loops",
    "05_hyperparameter_tuning",
    "06_distributed_training",
    "10_mini_project",
)


def _lessons(mark: pytest.MarkDecorator) -> list[Any]:
    """The lessons; all but one have the mark."""
    return [
        pytest.param(path, id=path.stem, marks=pytest.mark.everyday if path.stem == EVERYDAY else mark)
        for path in LESSONS
    ]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", _lessons(pytest.mark.exhaustive))
def test_a_lesson_runs(path: Path, tmp_path: Path) -> None:
    """With its checks, which judge the same solutions as test_lesson_checks."""
    notebook = jupytext.read(path)
    run(notebook, tmp_path)
    for cell in notebook.cells:
        if is_check(cell):
            (score,) = [o.data for o in cell.outputs if o.output_type == "execute_result"]
            assert float(score["text/plain"]) > 0, score["text/html"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] if path.stem in LONG else [])
        for path in LESSONS
        if path.stem not in (EVERYDAY, IN_A_BROWSER)
    ],
)
def test_a_lesson_runs_between_its_checks(path: Path, tmp_path: Path) -> None:
    notebook = jupytext.read(path)
    notebook.cells = [cell for cell in notebook.cells if not is_check(cell)]
    run(notebook, tmp_path)


def is_check(cell: NotebookNode) -> bool:
    return bool(cell.cell_type == "code" and cell.source.strip().startswith('check("'))


def run(notebook: NotebookNode, folder: Path) -> None:
    """Run all cells in this folder; nothing may go to stderr. Prints where the time went."""
    started = time.monotonic()
    run_all_cells(notebook, folder, seconds=600)
    seconds = time.monotonic() - started
    print(f"all cells in {seconds:.0f} s; slowest: {slowest(notebook)}")
    on_stderr = [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert not on_stderr


def slowest(notebook: NotebookNode, number: int = 6) -> str:
    """The cells that took longest, by nbclient's own times."""
    spans = []
    for cell in notebook.cells:
        times = cell.metadata.get("execution", {})
        if "iopub.execute_input" in times and "shell.execute_reply" in times:
            start, end = (
                datetime.fromisoformat(times[k]) for k in ("iopub.execute_input", "shell.execute_reply")
            )
            first_line = next((line for line in cell.source.splitlines() if "(" in line), cell.source[:40])
            spans.append(((end - start).total_seconds(), first_line[:50]))
    return ", ".join(f"{seconds:.0f} s {line}" for seconds, line in sorted(spans, reverse=True)[:number])
