"""Make, recognise and repair the checkout's `.venv`.

A set-up may be killed at any moment: its marker is removed first and written last, and each start compares what is
installed with its RECORD, file by file (a quarter of a second). What is damaged is installed again.
"""

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from bootstrap.packages import PYTHON, SetupError, install, say

VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
SITE_PACKAGES = Path(".venv", "Lib/site-packages" if os.name == "nt" else f"lib/{VERSION}/site-packages")
MARKER = Path(".venv", ".workbook-setup.json")


def ensure_environment(root: Path, extra: str) -> Path:
    """Return the Python of a complete `.venv` in `root`, making or repairing it first where needed.

    `extra` is "course" or "dev", which includes it. Raises SetupError with one line that names the fix.
    """
    if is_ready(root, extra):
        return root / PYTHON
    with (root / "workbook.py").open("rb") as lock:
        wait_for_turn(lock.fileno())
        if is_ready(root, extra):  # another set-up finished meanwhile
            return root / PYTHON
        if read_marker(root).get("extra") == "dev":  # a `start` after a `test` keeps the test tools
            extra = "dev"
        (root / MARKER).unlink(missing_ok=True)
        make_venv(root)
        for path in (root / SITE_PACKAGES).glob("*.dist-info"):
            if not is_whole(path):
                say(f"  {path.stem} is not complete: installing it again")
                shutil.rmtree(path)  # pip then takes it for absent
        install(root, extra)
        installed = [path.name for path in (root / SITE_PACKAGES).glob("*.dist-info")]
        marker = {"basis": basis(root), "extra": extra, "installed": installed}
        (root / MARKER).write_text(json.dumps(marker), encoding="utf-8")
    say("Set-up finished.")
    return root / PYTHON


def basis(root: Path) -> list[str]:
    """All that decides what must be installed. A moved checkout counts: its `.venv` has old paths."""
    texts = [(root / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "constraints.txt")]
    return [sys.version, str(root), *texts]


def read_marker(root: Path) -> dict:
    try:
        return json.loads((root / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def is_ready(root: Path, extra: str) -> bool:
    """Whether a finished set-up, by this version, fits what is wanted now and is there, whatever was added."""
    marker = read_marker(root)
    fits = bool(marker) and marker.get("basis") == basis(root) and marker.get("extra") in (extra, "dev")
    is_there = (root / PYTHON).exists() and (root / ".venv/pyvenv.cfg").exists()
    return fits and is_there and all(is_whole(root / SITE_PACKAGES / name) for name in marker["installed"])


def is_whole(dist_info: Path) -> bool:
    """Whether each file of a distribution has the size that its RECORD says; what an installation made itself has
    none there. Not by importlib.metadata: from Python 3.12 on it leaves out the files that are missing."""
    try:
        with (dist_info / "RECORD").open(encoding="utf-8", newline="") as file:
            sizes = [(dist_info.parent / name, int(size)) for name, _, size in csv.reader(file) if size]
        return (dist_info / "METADATA").exists() and all(path.stat().st_size == size for path, size in sizes)
    except (OSError, ValueError):
        return False


def make_venv(root: Path) -> None:
    """Make `.venv`, or keep the one that is there if it is of this Python and its pip runs."""
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError(f"this Python has no ensurepip; on Debian and Ubuntu: apt install {VERSION}-venv")
    same = f"import sys, pip._internal.cli.main; assert sys.version_info[:2] == {sys.version_info[:2]}"
    # Without pyvenv.cfg the link in `.venv` is the Python of the system.
    is_made = (root / ".venv/pyvenv.cfg").exists() and (root / PYTHON).exists()
    if is_made and subprocess.run([root / PYTHON, "-c", same], capture_output=True).returncode == 0:
        return
    say(f"Making {root / '.venv'} with Python {sys.version.split()[0]} …")
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=os.name != "nt").create(root / ".venv")
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"no .venv could be made ({error}); get room, or the right to write, here"
        ) from error


def wait_for_turn(lock: int) -> None:
    """Let one set-up at a time work in this checkout. pip inherits the lock: it may outlive a killed set-up."""
    if os.name == "nt":  # two set-ups at once are not guarded against there
        return
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("Another set-up is at work in this folder; waiting for it …")
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
