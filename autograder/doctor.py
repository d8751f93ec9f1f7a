"""`workbook doctor`: what could go wrong on this machine, tried rather than guessed, with one fix for each."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: Room for the data cache, a run folder with checkpoints and the evidence of a lesson.
NEEDED_DISK_BYTES = 1_000_000_000
KERNEL_SECONDS = 60
Level = Literal["ok", "note", "fail"]
Found = tuple[Level, str, str]  # level, what was found, the fix
_REINSTALL = "delete the folder .venv and run: python3 workbook.py start"


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `note` is no failure, but has a consequence that is worth knowing."""

    name: str
    level: Level
    found: str
    fix: str


def examine() -> Iterator[Finding]:
    """Look at everything, one after the other. Takes about ten seconds."""
    for name, look in _LOOKS.items():
        try:
            found = look()
        except Exception as error:  # a doctor that falls ill is a finding too
            found = "fail", " ".join(f"{type(error).__name__}: {error}".split())[:200], _REINSTALL
        yield Finding(name, *found)


def report(finding: Finding) -> str:
    """One line, and a second one with the fix where there is one."""
    mark = {"ok": "✓", "note": "·", "fail": "✗"}[finding.level]
    line = f"{mark} {finding.name:<12} {finding.found}"
    return f"{line}\n{'':<15}fix: {finding.fix}" if finding.fix else line


def _python() -> Found:
    version = sys.version.split()[0]
    if sys.prefix == sys.base_prefix:
        return "note", f"{version}, not in an environment of its own: {sys.executable}", ""
    return "ok", f"{version} in {sys.prefix}", ""


def _kernel() -> Found:
    """Start the kernel that notebooks get, run a line in it, and see whose Python it is."""
    from jupyter_client.manager import run_kernel

    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # as `workbook start` does
    with run_kernel(
        startup_timeout=KERNEL_SECONDS, kernel_name="python3", stderr=subprocess.DEVNULL
    ) as client:
        answer = client.execute_interactive(
            "import sys",
            user_expressions={"python": "sys.executable", "autograder": "__import__('autograder')"},
            timeout=KERNEL_SECONDS,
            store_history=False,
        )
    values = answer["content"].get("user_expressions", {})
    if values.get("autograder", {}).get("status") != "ok":
        return "fail", "the kernel `python3` cannot import autograder", _REINSTALL
    if (python := values["python"]["data"]["text/plain"].strip("'")) != sys.executable:
        fix = "open the course with `workbook start`, which brings its own kernel"
        return "fail", f"the kernel `python3` is another Python: {python}", fix
    return "ok", "starts and runs a cell", ""


def _widgets() -> Found:
    names = ("ipywidgets", "jupyterlab")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    manager = "share/jupyter/labextensions/@jupyter-widgets/jupyterlab-manager/package.json"
    if Path(sys.prefix, manager).exists():
        return "ok", versions, ""
    fix = f"{sys.executable} -m pip install --force-reinstall --no-deps jupyterlab_widgets"
    return "fail", f"{versions}, but JupyterLab's side of the widgets is missing", fix


_TRAIN_A_LITTLE = """
import torch
layer = torch.nn.Linear(8, 8)
layer(torch.randn(4, 8)).sum().backward()
assert torch.isfinite(layer.weight.grad).all()
gpu = ""
if torch.cuda.is_available():
    gpu = torch.cuda.get_device_name(0)
elif torch.backends.mps.is_available():
    gpu = "Apple GPU (mps)"
print(torch.__version__, torch.get_num_threads(), torch.version.cuda or "", gpu, sep="|")
"""


@functools.cache
def _ask_torch() -> tuple[str, str, str, str]:
    """Version, threads, CUDA version and accelerator ("" for none), from a process of its own: a broken build may
    end it. Raises RuntimeError with its last line."""
    done = subprocess.run(
        [sys.executable, "-c", _TRAIN_A_LITTLE], capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    version, threads, cuda, gpu = done.stdout.strip().splitlines()[-1].split("|")
    return version, threads, cuda, gpu


def _torch() -> Found:
    version, threads, _, _ = _ask_torch()
    return "ok", f"{version} computes a gradient on {threads} threads", ""


def _accelerator() -> Found:
    _, _, cuda, gpu = _ask_torch()
    if gpu:
        return "ok", gpu, ""
    if not (shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists()):
        return "ok", "none; every lesson works on the processor alone", ""
    driver = "there is an NVIDIA driver, but torch"
    if cuda:
        return "note", f"{driver}'s CUDA {cuda} does not find it", "update the NVIDIA driver"
    fix = "install a build of torch for your driver into this environment"
    return "note", f"{driver} is a CPU build", fix


def _sandbox() -> Found:
    from autograder.sandbox import LEVELS, probe

    status = probe()
    known = f"strongest first: {', '.join(LEVELS)}"
    return "note" if status.fix else "ok", f"{status.level} ({known}): {status.reason}", status.fix


def _calibration() -> Found:
    from autograder.calibration import MINUTES, load

    if not (found := load()):
        return "note", "not yet", f"workbook calibrate (takes about {MINUTES} minutes)"
    moved = ", ".join(exercise_id for exercise_id, entry in found.items() if not entry["applies"])
    newest = max(entry["measured"] for entry in found.values())
    return "ok", f"{newest}: {', '.join(found)}; moved from clock to counts: {moved or 'none'}", ""


def _folders() -> dict[str, tuple[Path, str]]:
    """Every folder that is written to, with the variable that moves it."""
    from autograder.handout import default_folder
    from autograder.paths import data_directory
    from course_lib.data.cache import cache_dir

    return {
        "your notebooks": (default_folder(), "WORKBOOK_DIR"),
        "progress": (data_directory(), "WORKBOOK_DATA"),
        "data cache": (cache_dir(), "COURSE_LIB_CACHE"),
        "temporary": (Path(tempfile.gettempdir()), "TMPDIR"),
    }


def _nearest_existing(path: Path) -> Path:
    """Looking makes no folders: where there is room and right now, there will be later."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _disk() -> Found:
    free = {name: shutil.disk_usage(_nearest_existing(path)).free for name, (path, _) in _folders().items()}
    needed = f"{NEEDED_DISK_BYTES / 1e9:.0f} GB"
    if scarce := [f"{num / 1e9:.1f} GB for {name}" for name, num in free.items() if num < NEEDED_DISK_BYTES]:
        return "fail", "only " + ", ".join(scarce), f"free {needed} there"
    return "ok", f"at least {needed} free in every folder that is used", ""


def _write_access() -> Found:
    refused = {}
    for name, (path, variable) in _folders().items():
        try:
            with tempfile.NamedTemporaryFile(dir=_nearest_existing(path), prefix=".workbook-doctor-"):
                pass
        except OSError as error:
            refused[variable] = f"{name}: cannot write to {path} ({error.strerror})"
    if refused:
        fix = f"give yourself write access, or set {' and '.join(refused)} to a folder of your own"
        return "fail", "; ".join(refused.values()), fix
    return "ok", "every folder that is used can be written", ""


_LOOKS: dict[str, Callable[[], Found]] = {
    "Python": _python,
    "kernel": _kernel,
    "widgets": _widgets,
    "torch": _torch,
    "accelerator": _accelerator,
    "sandbox": _sandbox,
    "calibration": _calibration,
    "disk": _disk,
    "write access": _write_access,
}
