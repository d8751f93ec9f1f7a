"""Looks at the machine itself."""

from __future__ import annotations

import locale
import os
import shutil
import sys
from pathlib import Path

from autograder.cli.doctor.findings import Found, set_variable, unset_variable
from autograder.cli.doctor.installed import ask_torch

#: A lesson's kernel with its two workers, measured by lesson, is below this.
NEEDED_MEMORY_BYTES = 2_000_000_000


def text() -> Found:
    """Whether files and this window take every letter."""
    names = {"files": locale.getpreferredencoding(False), "this window": sys.stdout.encoding or "ascii"}
    odd = [f"{what} as {name}" for what, name in names.items() if name.lower().replace("-", "") != "utf8"]
    if not odd:
        return "ok", "UTF-8", ""
    is_told = bool(os.environ.get("PYTHONIOENCODING"))  # which weighs more than PYTHONUTF8
    fix = unset_variable("PYTHONIOENCODING") if is_told else set_variable("PYTHONUTF8", "1")
    return "note", f"Python writes {' and '.join(odd)}: some letters come out as `?`", fix


def memory() -> Found:
    """Where memory ends, the system ends the kernel, and JupyterLab says only that it died."""
    import psutil

    free = psutil.virtual_memory().available
    have = f"{free / 1e9:.1f} GB free"
    if free < NEEDED_MEMORY_BYTES:
        return (
            "note",
            f"only {have}: a kernel may be ended for it",
            "close other programs, and in JupyterLab: Kernel > Shut Down All Kernels",
        )
    return "ok", have, ""


def accelerator() -> Found:
    """What torch finds, and whether a driver is there that it does not."""
    try:
        _, _, cuda, gpu = ask_torch()
    except RuntimeError:
        return "note", "not known before torch runs", ""
    if gpu:
        return "ok", gpu, ""
    if not (shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists()):
        return "ok", "none; every lesson works on the processor alone", ""
    driver = "there is an NVIDIA driver, but torch"
    if cuda:
        return "note", f"{driver}'s CUDA {cuda} does not find it", "update the NVIDIA driver"
    fix = "install a build of torch for your driver into this environment"
    return "note", f"{driver} is a CPU build", fix


def sandbox() -> Found:
    """How well a worker is kept in."""
    from autograder.engine.sandbox import LEVELS, probe

    status = probe()
    known = f"strongest first: {', '.join(LEVELS)}"
    return "note" if status.fix else "ok", f"{status.level} ({known}): {status.reason}", status.fix


def calibration() -> Found:
    """Whether it is known which speed bars this machine can ask for."""
    from autograder.course import has_references
    from autograder.engine import calibration

    if not has_references():
        return (
            "ok",
            "not of this installation, which is for students: each bar is as its lesson states it",
            "",
        )
    if not (found := calibration.load()):
        return "note", "not yet", f"workbook calibrate (takes about {calibration.MINUTES} minutes)"
    moved = ", ".join(exercise_id for exercise_id, entry in found.items() if not entry.applies)
    newest = max(entry.measured for entry in found.values())
    return "ok", f"{newest}: {', '.join(found)}; moved from clock to counts: {moved or 'none'}", ""
