"""`workbook test`: the project's tests in two runs, because a timing must not have a neighbour.

First everything that keeps no clock, on two processes; then, one after the other, what is marked `measures` or
`browser`. What is marked `exhaustive` waits for `workbook test -m exhaustive`. Ends with one summary line for both in
pytest's own form.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from course_lib.base import UserError

ROOT = Path(__file__).resolve().parents[2]
RUNS = (  # options of pytest
    ("-n", "2", "--dist", "worksteal", "-m", "not (measures or browser or exhaustive)"),
    ("-m", "(measures or browser) and not exhaustive"),
)
NOTHING_COLLECTED = 5
KINDS = ("failed", "errors", "passed", "skipped")


def run_tests(arguments: Sequence[str] = ()) -> int:
    """Run the tests and return 0 if all of them passed, else 1. `arguments` go to one plain pytest instead.

    Raises UserError outside a checkout, or where the test tools are missing.
    """
    if not (ROOT / "tests").is_dir():
        raise UserError("the tests are in the project's checkout, not in the installed package; run it there")
    if not all(map(importlib.util.find_spec, ("hypothesis", "xdist", "pytest_timeout"))):
        raise UserError("the test tools are not installed; run: python3 workbook.py test")
    if arguments:
        return min(1, subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT))
    began = time.monotonic()
    totals: Counter[str] = Counter()
    failed = False
    for options in RUNS:
        with tempfile.TemporaryDirectory(prefix="workbook-test-") as folder:
            record = Path(folder) / "record.xml"
            command = [sys.executable, "-m", "pytest", f"--junitxml={record}", *options]
            failed |= subprocess.call(command, cwd=ROOT) not in (0, NOTHING_COLLECTED)
            totals += count(record)
    failed |= not totals["passed"]
    print(summary_line(totals, time.monotonic() - began, failed=failed), flush=True)
    return 1 if failed else 0


def count(record: Path) -> Counter[str]:
    """Outcomes in a JUnit file that pytest wrote; empty if it died before writing one."""
    totals: Counter[str] = Counter()
    if record.exists():
        for suite in ElementTree.parse(record).getroot().iter("testsuite"):
            tests, *bad = (int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped"))
            totals.update(failed=bad[0], errors=bad[1], skipped=bad[2], passed=tests - sum(bad))
    return totals


def summary_line(totals: Counter[str], seconds: float, *, failed: bool) -> str:
    told = ", ".join(f"{totals[kind]} {kind}" for kind in KINDS if totals[kind]) or "no tests ran"
    if failed and not (totals["failed"] or totals["errors"]):
        told += ", pytest stopped early"
    return f" {told} in {seconds:.2f}s ".center(78, "=")
