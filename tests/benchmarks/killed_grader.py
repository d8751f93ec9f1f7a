"""Kill the grader at random moments and look at what it leaves: verdicts, processes, folders, locks.

    python -m tests.benchmarks.killed_grader --kills 50

Each run is `workbook check` on the reference notebook of lesson 1, on exercises without a clock and every fourth time
on one with it too, with folders of its own for temporary files and data. Three of five are ended by SIGKILL, the others
by SIGTERM or by SIGINT as Ctrl-C sends it. An exercise has finished once the grader names the next or itself ends.
Linux: this process adopts every orphan of the grader, so that none can hide.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import filelock
import nbformat
import psutil

from autograder.engine import evidence
from course_lib.base.cache import cache_dir
from tests.autograder.solutions import reference_sources

GRACE_SECONDS = 2.0
SIGNALS = ("SIGKILL", "SIGTERM", "SIGKILL", "SIGINT", "SIGKILL")
KINDS = {"no clock": ["1.3", "1.4"], "speed": ["1.3", "1.4", "1.5"]}
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Left:
    """What one kill left behind."""

    finished: list[str]
    lost: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    locks: list[str] = field(default_factory=list)
    traceback: bool = False
    seconds_until_gone: float = 0.0


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no subreaper here")


def write_notebook(folder: Path) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in reference_sources("01").values()]
    path = folder / "01_efficient_training_loops.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def start(notebook: Path, exercise_ids: list[str], folder: Path) -> subprocess.Popen[str]:
    """The grader on some exercises, its files below `folder`."""
    (folder / "tmp").mkdir(parents=True)
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "autograder.cli.main",
            "check",
            str(notebook),
            *(f"--only={each}" for each in exercise_ids),
        ],
        env=os.environ | {"TMPDIR": str(folder / "tmp"), "WORKBOOK_DATA": str(folder / "data")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(notebook: Path, exercise_ids: list[str], folder: Path, *, name: str, after_seconds: float) -> Left:
    """Start a grader, end it after some seconds, and look."""
    cached = _names(cache_dir())
    grader = start(notebook, exercise_ids, folder)
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(grader.stderr or ()), daemon=True)
    reader.start()
    with contextlib.suppress(subprocess.TimeoutExpired):
        grader.wait(after_seconds)
    ended_by_itself = grader.poll() is not None
    if not ended_by_itself:
        # A terminal's Ctrl-C reaches the whole group.
        (os.killpg if name == "SIGINT" else os.kill)(grader.pid, getattr(signal, name))
    begun = time.monotonic()
    with contextlib.suppress(subprocess.TimeoutExpired):
        grader.wait(GRACE_SECONDS)
    left = survivors(begun + GRACE_SECONDS)
    gone = time.monotonic() - begun
    shown = [" ".join([str(process.pid), *_command(process)])[:120] for process in left]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    grader.wait()
    reader.join()
    if any("Traceback" in line for line in said):
        print(*said, sep="", file=sys.stderr)
    started = [line.split()[1] for line in said if line.startswith("checking ")]
    finished = started if ended_by_itself else started[:-1]
    return Left(
        finished=finished,
        lost=[exercise_id for exercise_id in finished if not _has_verdict(folder / "data", exercise_id)],
        processes=shown,
        files=[*_unfinished(folder), *(_names(cache_dir()) - cached)],
        locks=[str(path) for path in folder.rglob("*.lock") if is_held(path)],
        traceback=any("Traceback" in line for line in said),
        seconds_until_gone=gone,
    )


def survivors(deadline: float) -> list[psutil.Process]:
    """Descendants of this process that still run at the deadline; those that have ended are taken leave of."""
    while True:
        alive = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() == psutil.STATUS_ZOMBIE:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(process.pid, os.WNOHANG)
                else:
                    alive.append(process)
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.02)


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def _has_verdict(data: Path, exercise_id: str) -> bool:
    files = list((data / "evidence").glob(f"{exercise_id}-*.json"))
    return bool(files) and all(evidence.read(path)["result"]["verdict"] for path in files)


def _unfinished(folder: Path) -> list[str]:
    """Files that are no evidence, blocks, lock or canary (at its fixed place), and evidence that cannot be read."""
    found = []
    for path in sorted(folder.rglob("*")):
        if (
            path.suffix
            in (".lock", ".open")  # the blocks of a check that was stopped: they are meant to stay
            or path.name == "sandbox_canary"
            or (path.is_dir() and path.parent != folder / "tmp")
        ):
            continue
        try:
            if path.suffix == ".json":
                evidence.read(path)
            elif path.suffix == ".html" and path.with_suffix(".json").exists() and path.read_text().strip():
                pass
            else:
                found.append(str(path.relative_to(folder)))
        except Exception as error:
            found.append(f"{path.relative_to(folder)}: {error}")
    return found


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock file."""
    try:
        with filelock.FileLock(path, timeout=0):
            return False
    except filelock.Timeout:
        return True


def _names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")} if folder.exists() else set()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--signals", nargs="+", default=SIGNALS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell would ignore it
    adopt_orphans()
    rng = random.Random(arguments.seed)
    rows: dict[str, Counter[str]] = {}
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        notebook = write_notebook(folder)
        seconds = {}
        for kind, exercise_ids in KINDS.items():  # whole runs: how long there is to kill in
            begun = time.monotonic()
            whole = start(notebook, exercise_ids, folder / f"whole {kind}")
            _, said = whole.communicate()
            if whole.returncode not in (0, 1):
                raise SystemExit(f"the grader does not run: {said}")
            seconds[kind] = time.monotonic() - begun
        number = 0
        while sum(row["kills"] for row in rows.values()) < arguments.kills:
            name = arguments.signals[number % len(arguments.signals)]
            kind = "speed" if number % 4 == 3 else "no clock"  # timings take longer
            own = folder / str(number)
            after = rng.uniform(0.2, 1.1) * seconds[kind]
            left = kill(notebook, KINDS[kind], own, name=name, after_seconds=after)
            number += 1
            row = rows.setdefault(f"{name}, {kind}", Counter())
            row.update(
                kills=1,
                finished=len(left.finished),
                lost=len(left.lost),
                processes=len(left.processes),
                files=len(left.files),
                locks=len(left.locks),
                tracebacks=int(left.traceback),
            )
            row["slowest_ms"] = max(row["slowest_ms"], round(1000 * left.seconds_until_gone))
            if left.lost or left.processes or left.files or left.locks or left.traceback:
                bad += 1
                print(f"{name} after {after:.2f} s ({kind}): {left}", file=sys.stderr, flush=True)
        again = start(notebook, ["1.3"], folder / "again")
        again.communicate()
    print(
        "| signal, exercises | kills | verdicts finished | lost | processes left | files left | locks held | "
        "tracebacks | all gone within, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for label, row in sorted(rows.items()):
        keys = ("kills", "finished", "lost", "processes", "files", "locks", "tracebacks")
        print(f"| {label} | {' | '.join(str(row[key]) for key in keys)} | {row['slowest_ms'] / 1000:.2f} |")
    print(json.dumps({"kills": arguments.kills, "bad": bad, "next_check": again.returncode}))
    return int(bool(bad or again.returncode))


if __name__ == "__main__":
    raise SystemExit(main())
