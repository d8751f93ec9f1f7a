"""What a learner was told is saved outlives the kernel, the server and the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted by a call of Linux")
def test_kills_lose_nothing_that_was_told_saved() -> None:
    # A process of its own: it adopts orphans, and those of other tests are not its.
    ran = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.learner_kills", "--kills", "4", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {"kills": 4, "bad": 0, "works_after_all": True}
