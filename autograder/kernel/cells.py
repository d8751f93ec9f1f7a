"""The cells that a kernel has run: what a check chooses from, by the same rule as `workbook check` and a class."""

from __future__ import annotations

import contextlib
import itertools
import sys
from typing import Any

_CELLS: dict[str, str] = {}  # the last text of each, in the order in which they ran last
_numbers = itertools.count()
_watched: list[object] = []  # the one shell


def remember_cells() -> None:
    """From now on note each cell that runs, also one that is no Python. Those before it are taken from the history.

    Where the page says which cell it is, a later text of it takes the place of the one before.
    """
    shell = _shell()
    if shell is None or shell in _watched:
        return
    _watched.append(shell)
    history = [str(source) for source in shell.history_manager.input_hist_raw if source]
    for source in history[:-1]:
        _note("", source)
    if history:  # the one that asks, which began before it could be noted
        _note(_running_id(shell), history[-1])
    shell.events.register("pre_run_cell", _on_run)


def cells_run() -> list[str]:
    """The texts, the last one at the end."""
    return [*_CELLS.values()]


def told_apart() -> list[bool]:
    """Of each of them, whether the page said which cell it is: else an older text of a cell looks like another cell."""
    return [key.startswith("id ") for key in _CELLS]


def _on_run(info: Any) -> None:
    if info.store_history and not info.silent:
        _note(str(info.cell_id or ""), str(info.raw_cell))


def _note(cell_id: str, source: str) -> None:
    key = f"id {cell_id}" if cell_id else f"number {next(_numbers)}"
    _CELLS.pop(key, None)
    _CELLS[key] = source


def _running_id(shell: Any) -> str:
    with contextlib.suppress(AttributeError, LookupError, TypeError):
        return str(shell.get_parent()["metadata"].get("cellId") or "")
    return ""


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
