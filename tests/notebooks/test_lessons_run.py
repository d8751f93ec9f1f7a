"""Every lesson runs from top to bottom with the reference solutions: no error, no warning, nothing on stderr.

Two lessons run side by side in CI, so a check may be undecided there. Alone, as `pytest tests/notebooks -rP` runs them,
the seconds that it prints are those of a learner.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

LESSONS = sorted((Path(__file__).resolve().parents[2] / "notebooks" / "lessons").glob("[0-9][0-9]_*.py"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs(path: Path, tmp_path: Path) -> None:
    notebook = jupytext.read(path)
    started = time.monotonic()
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    seconds = time.monotonic() - started
    print(f"{path.stem}: all cells in {seconds:.0f} s; slowest: {slowest(notebook)}")
    on_stderr = [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert not on_stderr
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip().startswith('check("'):
            (score,) = [o.data for o in cell.outputs if o.output_type == "execute_result"]
            assert float(score["text/plain"]) > 0, score["text/html"]


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
