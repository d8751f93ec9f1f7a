"""Looks at the folders that the course writes to, and at what is in the learner's own."""

from __future__ import annotations

import getpass
import importlib.metadata
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from autograder.cli.doctor.findings import Found, make_folder, move, set_variable

#: Room for the data cache, a run folder with checkpoints and the evidence of a lesson.
NEEDED_DISK_BYTES = 1_000_000_000
_SYNCED = re.compile(
    r"OneDrive.*|Dropbox.*|Google ?Drive.*|GoogleDrive-.*|iCloud ?Drive|Mobile Documents|CloudStorage|Nextcloud"
)
_NETWORK_KINDS = ("9p", "afs", "ceph", "cifs", "davfs", "fuse.sshfs", "lustre", "nfs", "smb")
_HOLD_SECONDS = 1.0


def _folders() -> dict[str, tuple[Path, str]]:
    """Every folder that is written to, with the variable that moves it."""
    from jupyter_core.paths import jupyter_config_dir, jupyter_data_dir, jupyter_runtime_dir

    from autograder.common import data_directory, default_folder
    from course_lib.base import cache_dir

    ipython = os.environ.get("IPYTHONDIR") or Path.home() / ".ipython"
    return {
        "your notebooks": (default_folder(), "WORKBOOK_DIR"),
        "progress": (data_directory(), "WORKBOOK_DATA"),
        "data cache": (cache_dir(), "COURSE_LIB_CACHE"),
        "temporary": (Path(tempfile.gettempdir()), "TMPDIR"),
        "Jupyter's data": (Path(jupyter_data_dir()), "JUPYTER_DATA_DIR"),
        "Jupyter's connections": (Path(jupyter_runtime_dir()), "JUPYTER_RUNTIME_DIR"),
        "Jupyter's settings": (Path(jupyter_config_dir()), "JUPYTER_CONFIG_DIR"),
        "IPython's history": (Path(ipython), "IPYTHONDIR"),
    }


def _nearest_existing(path: Path) -> Path:
    """Looking makes no folders: where there is room and right now, there will be later."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def disk() -> Found:
    """Room in each folder."""
    scarce = []
    for name, (path, variable) in _folders().items():
        place = _nearest_existing(path)
        if (free := shutil.disk_usage(place).free) < NEEDED_DISK_BYTES:
            scarce.append((f"{free / 1e9:.1f} GB for {name}", path, variable))
    needed = f"{NEEDED_DISK_BYTES / 1e9:.0f} GB"
    if not scarce:
        return "ok", f"at least {needed} free in every folder that is used", ""
    found = "only " + ", ".join(text for text, _, _ in scarce)
    if roomy := _with_room():
        fixes = [make_folder(roomy / "workbook-files")]
        for _, path, variable in scarce:
            target = roomy / "workbook-files" / path.name
            is_yours = path.exists() and variable != "TMPDIR"
            fixes += [move(path, target) if is_yours else make_folder(target)]
            fixes += [set_variable(variable, str(target))]
        return "fail", found, " && ".join(fixes)
    return "fail", found, f"free {needed} on the disk of {scarce[0][1]}"


def _with_room() -> Path | None:
    """A folder of the user's with room, where there is one."""
    import psutil

    places = [Path.home(), Path(tempfile.gettempdir())]
    places += [Path(part.mountpoint) for part in psutil.disk_partitions()]
    for place in places:
        has_room = place.is_dir() and shutil.disk_usage(place).free >= NEEDED_DISK_BYTES
        if has_room and os.access(place, os.W_OK):
            return place
    return None


def write_access() -> Found:
    """Write a file into each folder, as itself and as Jupyter does, which insists that nobody else can read it."""
    refused, fixes = [], []
    for name, (path, variable) in _folders().items():
        place = _nearest_existing(path)
        try:
            with tempfile.NamedTemporaryFile(dir=place, prefix=".workbook-doctor-"):
                pass
        except OSError as error:
            refused.append(f"{name}: cannot write to {path} ({error.strerror})")
            fixes.append(_take(place, variable))
    if refused:
        return "fail", "; ".join(refused), " && ".join(dict.fromkeys(fixes))
    return "ok", "every folder that is used can be written", ""


def _take(place: Path, variable: str) -> str:
    """Write access to a folder that is the user's own or was made by `sudo`; another folder where it is neither."""
    elsewhere = set_variable(variable, str(Path.home() / "workbook-files"))
    if os.name == "nt" or not place.is_dir() or not place.is_relative_to(Path.home()):
        return elsewhere
    if place.stat().st_uid == os.geteuid():
        return f'chmod -R u+rwX "{place}"'
    return f'sudo chown -R {getpass.getuser()} "{place}"'


def folder() -> Found:
    """Whether another program writes in the learner's folders too."""
    import psutil

    from autograder.common import data_directory, default_folder

    kinds = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    for path, variable in ((default_folder(), "WORKBOOK_DIR"), (data_directory(), "WORKBOOK_DATA")):
        path = path.resolve()
        kind = next((kinds[place] for place in (path, *path.parents) if place in kinds), "")
        if is_synced(path):
            found = f"{path} is kept in step with a cloud, which can hold or double a file in use"
        elif kind.startswith(_NETWORK_KINDS):
            found = f"{path} is on a network ({kind}), where saving can be slow or refused"
        else:
            continue
        root = Path.home() if not is_synced(Path.home()) else Path(Path.home().anchor)
        target = root / {"WORKBOOK_DIR": "training-workbook", "WORKBOOK_DATA": "workbook-data"}[variable]
        fixes = [move(path, target)] if path.exists() else []
        return "note", found, " && ".join([*fixes, set_variable(variable, str(target))])
    return "ok", f"{default_folder()} is on this machine", ""


def is_synced(path: Path) -> bool:
    """By its name: the programs that keep such a folder say so in the path, on all three systems."""
    return any(_SYNCED.fullmatch(part) for part in path.parts)


def file_names() -> Found:
    """Whether a file beside a notebook stands for a module of its name: Python takes the file."""
    from autograder.common import default_folder

    notebooks = default_folder()
    places = [notebooks, *(path for path in notebooks.glob("*") if path.is_dir())]
    found = [path for place in places for path in shadowing(place)]
    if not found:
        return "ok", "none of yours hides a module", ""
    path = found[0]
    text = f"{path} hides Python's module {path.stem}" + (
        f", and {len(found) - 1} more do" if found[1:] else ""
    )
    fixes = [move(path, path.with_name(f"my_{path.name}")) for path in found]
    return "fail", text, " && ".join(fixes)


def shadowing(place: Path) -> list[Path]:
    """Files and packages in a folder that have the name of a module which the course, or Python itself, imports."""
    taken = set(sys.stdlib_module_names) | set(importlib.metadata.packages_distributions())
    files = (*place.glob("*.py"), *(path.parent for path in place.glob("*/__init__.py")))
    return sorted(path for path in files if path.stem in taken)


def progress() -> Found:
    """Whether what you have reached can be read and added to."""
    from autograder.kept import progress_path

    path = progress_path()
    if not path.exists():
        return "ok", "nothing is recorded yet", ""
    try:
        with closing(sqlite3.connect(path, timeout=_HOLD_SECONDS, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("PRAGMA quick_check").fetchall()
            database.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return "fail", f"another program holds {path}", _end_holder(path)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return (
                "fail",
                f"{path} is damaged; the fix keeps it aside and begins a new one",
                "workbook progress",
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return "fail", f"{path} cannot be written", f'chmod u+rw "{path}"'
        raise
    return "ok", str(path), ""


def _end_holder(path: Path) -> str:
    import psutil

    for process in psutil.process_iter(["pid"]):
        try:
            if process.pid != os.getpid() and any(Path(file.path) == path for file in process.open_files()):
                return f"{'kill' if os.name != 'nt' else 'taskkill /PID'} {process.pid}"
        except psutil.Error:  # another user's, or just ended
            continue
    return "restart the machine: the program that holds it cannot be seen from here"
