"""A lesson's cells run on this machine, for the outputs that its page shows.

What is the learner's is not run: exercises, their checks and the quiz.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.base import UserError, atomic_write_text, project_version

LEARNERS = re.compile(r"""^(?:@exercise|(?:check|quiz|check_quiz|exam)\(\s*["'])""", re.MULTILINE)
"""What a cell holds that waits for the learner."""
_CELL_SECONDS = 600


def run_lesson(path: Path, kept: Path, on_cell: Callable[[int, int], None]) -> NotebookNode:
    """The notebook with its outputs; those in `kept` where the notebook and the version are the same.

    Args:
        path: a released notebook.
        kept: a file that takes the outputs, so that the next time costs nothing.
        on_cell: is told how many cells have run, of how many.

    Raises:
        UserError: a cell failed; one line says which.
    """
    key = hashlib.sha256(path.read_bytes() + project_version().encode()).hexdigest()
    if kept.exists():
        before = nbformat.read(kept, as_version=4)
        if before.metadata.get("made_of") == key:
            return before
    notebook = nbformat.read(path, as_version=4)
    _run(notebook, path.stem, on_cell)
    notebook.metadata["made_of"] = key
    atomic_write_text(kept, nbformat.writes(notebook))
    return notebook


def _run(notebook: NotebookNode, name: str, on_cell: Callable[[int, int], None]) -> None:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    code = [
        (number, cell)
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and not LEARNERS.search(cell.source)
    ]
    # A page shows nobody's progress, and predictions that nobody made are kept nowhere.
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=_CELL_SECONDS,
            resources={"metadata": {"path": folder}},
            coalesce_streams=True,
            extra_arguments=["--log-level=ERROR"],
        )
        with client.setup_kernel(env={**os.environ, "WORKBOOK_DATA": folder}):
            for done, (number, cell) in enumerate(code, start=1):
                try:
                    client.execute_cell(cell, number)
                except CellExecutionError as error:
                    what = " ".join(f"{error.ename}: {error.evalue}".split())
                    raise UserError(f"{name}, cell {number}: {what:.200}") from None
                on_cell(done, len(code))
