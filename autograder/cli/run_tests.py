"""`workbook test`: the project's tests in two runs, because a timing must not have a neighbour.

First everything that keeps no clock, on three processes, for some tests wait; then, one after the other, what is
marked `measures`. What is marked `further` waits for `workbook test --all`, or for `--rest`, which runs nothing else;
what is marked `exhaustive` for `workbook test -m exhaustive`. Ends with the ten slowest tests and one summary line for
both runs in pytest's own form.
"""

from __future__ import annotations

import heapq
import importlib.util
import os
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
CHOSEN = {
    "": "not (further or exhaustive)",
    "--all": "not exhaustive",
    "--rest": "further and not exhaustive",
}
RUNS = (  # options of pytest; {} is one of the chosen
    ("-n", "3", "--dist", "loadscope", "--no-loadscope-reorder", "-m", "not measures and ({})"),
    ("-m", "measures and ({})"),
)
NOTHING_COLLECTED = 5
KINDS = ("failed", "errors", "passed", "skipped")
NUM_SLOWEST = 10


def run_tests(arguments: Sequence[str] = ()) -> int:
    """Run the tests and return 0 if all of them passed, else 1.

    Args:
        arguments: none, `--all` or `--rest`; anything else goes to one plain pytest instead.

    Raises UserError outside a checkout, or where the test tools are missing.
    """
    if not (ROOT / "tests").is_dir():
        raise UserError("the tests are in the project's checkout, not in the installed package; run it there")
    if not all(map(importlib.util.find_spec, ("hypothesis", "xdist", "pytest_timeout"))):
        raise UserError("the test tools are not installed; run: python3 workbook.py test")
    chosen = CHOSEN.get(" ".join(arguments))
    if chosen is None:
        return min(1, subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT))
    began = time.monotonic()
    totals: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    failed = False
    # The tests start Python many hundred times: what it has compiled is kept, whatever the shell says.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for options in RUNS:
        with tempfile.TemporaryDirectory(prefix="workbook-test-") as folder:
            record = Path(folder) / "record.xml"
            command = [sys.executable, "-m", "pytest", f"--junitxml={record}"]
            command += [option.format(chosen) for option in options]
            failed |= subprocess.call(command, cwd=ROOT, env=environment) not in (0, NOTHING_COLLECTED)
            totals += count(record)
            seconds |= durations(record)
    failed |= not totals["passed"]
    print(
        *slowest(seconds), summary_line(totals, time.monotonic() - began, failed=failed), sep="\n", flush=True
    )
    return 1 if failed else 0


def count(record: Path) -> Counter[str]:
    """Outcomes in a JUnit file that pytest wrote; empty if it died before writing one."""
    totals: Counter[str] = Counter()
    if record.exists():
        for suite in ElementTree.parse(record).getroot().iter("testsuite"):
            tests, *bad = (int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped"))
            totals.update(failed=bad[0], errors=bad[1], skipped=bad[2], passed=tests - sum(bad))
    return totals


def durations(record: Path) -> dict[str, float]:
    """Test → seconds with its fixtures, from a JUnit file that pytest wrote; empty if it died before writing one."""
    if not record.exists():
        return {}
    cases = ElementTree.parse(record).getroot().iter("testcase")
    return {
        f"{case.attrib['classname']}::{case.attrib['name']}": float(case.attrib["time"]) for case in cases
    }


def slowest(seconds: dict[str, float]) -> list[str]:
    """A heading and a line for each of the tests that took longest, with what their fixtures took."""
    longest = heapq.nlargest(NUM_SLOWEST, seconds.items(), key=lambda item: item[1])
    return [" slowest tests ".center(78, "="), *(f"{spent:7.2f} s  {test}" for test, spent in longest)]


def summary_line(totals: Counter[str], seconds: float, *, failed: bool) -> str:
    """What happened, as pytest's own last line says it."""
    told = ", ".join(f"{totals[kind]} {kind}" for kind in KINDS if totals[kind]) or "no tests ran"
    if failed and not (totals["failed"] or totals["errors"]):
        told += ", pytest stopped early"
    return f" {told} in {seconds:.2f}s ".center(78, "=")
