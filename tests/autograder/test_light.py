"""What people wait for loads nothing heavy. How many seconds that takes, `tests.benchmarks.light_commands` measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.light_commands import COMMANDS, solve_everything

HEAVY = (
    "torch",
    "scipy",
    "numpy",
    "nbgrader",
    "transformers",
    "tokenizers",
    "matplotlib",
    "nbformat",
    "jupytext",
)
LOADED = f"""
import atexit, sys
atexit.register(lambda: print("heavy:", *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr))
"""


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))


def _heavy(code: str) -> list[str]:
    """What of `HEAVY` a process that ran the code has loaded."""
    command = [sys.executable, "-c", LOADED + code]
    ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_heavy_is_loaded(name: str) -> None:
    assert _heavy(COMMANDS[name]) == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if "progress" in COMMANDS[name]])
def test_nor_by_what_reads_the_progress_of_a_learner_with_much_of_it(name: str) -> None:
    solve_everything()
    assert _heavy(COMMANDS[name]) == []


def test_what_is_heavy_is_seen() -> None:
    assert _heavy("import scipy") == ["scipy", "numpy"]
