"""A Python with torch, NumPy and `course_lib`, and nothing else that this one has installed.

It is a virtual environment and no wall around imports: what is not there is not there for `find_spec`, for processes
that are started, and for the metadata by which versions are found. What it holds are links to this environment's own
packages, those that torch and NumPy ask for included, so it is made in a second and without a network.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
from pathlib import Path

from packaging.requirements import Requirement

import course_lib

PACKAGES = ("torch", "numpy")


class Alone:
    """The environment that is made in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, symlinks=True)
        (site,) = folder.glob("[Ll]ib/**/site-packages")
        for path in {path for name in needed(PACKAGES) for path in top_level(name)}:
            (site / path.name).symlink_to(path)
        (site / "course_lib").symlink_to(Path(course_lib.__file__).parent)
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / Path(sys.executable).name

    def run(self, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """Run this Python in its own folder; `more` is added to the environment, which has a home of its own."""
        kept = {name: os.environ[name] for name in ("PATH", "OMP_NUM_THREADS") if name in os.environ}
        environment = kept | {"HOME": str(self.folder), "PYTHONNOUSERSITE": "1"} | more
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


def needed(names: tuple[str, ...]) -> set[str]:
    """The distributions that these cannot be installed without, themselves included."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        wanted = map(Requirement, importlib.metadata.requires(name) or ())
        todo += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def top_level(name: str) -> set[Path]:
    """The folders and files of a distribution that stand in site-packages itself."""
    distribution = importlib.metadata.distribution(name)
    names = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    return {Path(str(distribution.locate_file(name))) for name in names}
