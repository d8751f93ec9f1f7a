"""Notebooks run in a kernel of their own."""

from __future__ import annotations

from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode

_STARTS = 3


def run_all_cells(
    notebook: NotebookNode, folder: Path, *, seconds: int = 60, allow_errors: bool = False
) -> None:
    """Run every cell in `folder`, `seconds` at most for each; its outputs stand in `notebook` afterwards.

    A kernel's port is chosen first and bound later. Where another process takes it between the two, the kernel dies
    before any cell has run, and is started once more.
    """
    for start in range(1, _STARTS + 1):
        client = NotebookClient(
            notebook,
            timeout=seconds,
            allow_errors=allow_errors,
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            client.execute()
        except RuntimeError as error:
            if "Kernel died before replying" not in str(error) or start == _STARTS:
                raise
        else:
            return
