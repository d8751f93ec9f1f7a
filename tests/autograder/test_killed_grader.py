"""A grader that is killed loses no finished verdict and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.exhaustive
@pytest.mark.measures  # one of the exercises takes timings
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted by a call of Linux")
def test_a_killed_grader_leaves_its_verdicts_and_nothing_else() -> None:
    # A process of its own: it adopts orphans, and those of other tests are not its.
    ran = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.killed_grader", "--kills", "5", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {"kills": 5, "bad": 0, "next_check": 0}
