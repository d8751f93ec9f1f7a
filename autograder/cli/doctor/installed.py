"""Looks at Python and at what is installed for it."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.cli.doctor.findings import Found, reinstall, unset_variable
from autograder.cli.doctor.places import shadowing

PROJECT = "training-workbook"


def python() -> Found:
    """Whose Python, and whether a variable makes it read modules from somewhere else."""
    version = sys.version.split()[0]
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if names := [path.name for path in shadowing(Path(folder))]:
            found = (
                f"PYTHONPATH puts {', '.join(names[:3])} from {folder} in front of the module of that name"
            )
            return "fail", found, unset_variable("PYTHONPATH")
    if sys.prefix == sys.base_prefix:
        return "note", f"{version}, not in an environment of its own: {sys.executable}", ""
    return "ok", f"{version} in {sys.prefix}", ""


def packages() -> Found:
    """Whether each package is there in a version that the others accept."""
    wrong: dict[str, tuple[str, str]] = {}
    for name, needed, have in _conflicts(PROJECT):
        wrong.setdefault(name, (needed, have))  # our own wish comes first
    if not wrong:
        return "ok", "each is there, in a version that fits", ""
    found = "; ".join(f"{needed} is needed, {have} is here" for needed, have in wrong.values())
    return (
        "fail",
        found,
        f'"{sys.executable}" -m pip install ' + " ".join(f'"{needed}"' for needed, _ in wrong.values()),
    )


def _conflicts(project: str) -> Iterator[tuple[str, str, str]]:
    """(what is needed, what is installed) for each unfit dependency of the project and its course, then of theirs."""
    from packaging.requirements import Requirement

    seen, waiting = {project}, [project]
    while waiting:
        name = waiting.pop()
        extra = "course" if name == project else ""
        for line in importlib.metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker and not needed.marker.evaluate({"extra": extra}):
                continue
            try:
                have = importlib.metadata.version(needed.name)
            except importlib.metadata.PackageNotFoundError:
                yield needed.name, f"{needed.name}{needed.specifier}", "none"
                continue
            if not needed.specifier.contains(have, prereleases=True):
                yield needed.name, f"{needed.name}{needed.specifier}", have
            if needed.name not in seen:
                seen.add(needed.name)
                waiting.append(needed.name)


def pip() -> Found:
    """The cures use it."""
    command = [sys.executable, "-m", "pip", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        return "fail", "does not run", f'"{sys.executable}" -m ensurepip --upgrade'
    version = done.stdout.split()[1]
    if int(version.split(".")[0]) < 23:  # older ones cannot say beforehand what they would download
        return "note", f"{version} is old", f'"{sys.executable}" -m pip install --upgrade pip'
    return "ok", version, ""


_TRAIN_A_LITTLE = """
import torch
layer = torch.nn.Linear(8, 8)
layer(torch.randn(4, 8)).sum().backward()
assert torch.isfinite(layer.weight.grad).all()
torch.zeros(1).numpy()
gpu = ""
if torch.cuda.is_available():
    gpu = torch.cuda.get_device_name(0)
elif torch.backends.mps.is_available():
    gpu = "Apple GPU (mps)"
print(torch.__version__, torch.get_num_threads(), torch.version.cuda or "", gpu, sep="|")
"""


@functools.cache
def ask_torch() -> tuple[str, str, str, str]:
    """Version, threads, CUDA version and accelerator ("" for none), from a process of its own: a broken build may
    end it. Raises RuntimeError with its last line."""
    # -P: not a torch.py of the folder that this was called in.
    command = [sys.executable, "-P", "-c", _TRAIN_A_LITTLE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode < 0:
        raise RuntimeError(f"torch ended its process with {signal.Signals(-done.returncode).name}")
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    version, threads, cuda, gpu = done.stdout.strip().splitlines()[-1].split("|")
    return version, threads, cuda, gpu


def torch() -> Found:
    """Train a little."""
    try:
        version, threads, _, _ = ask_torch()
    except RuntimeError as error:
        return "fail", str(error)[:200], reinstall()
    return "ok", f"{version} computes a gradient on {threads} threads", ""
