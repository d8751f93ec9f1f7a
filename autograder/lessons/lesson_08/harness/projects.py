"""Harness of 8.3: a project under git, in each state that a project can be in."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

LINES = {"changed": " M train.py", "staged": "M  train.py", "removed": " D train.py", "new": "?? new.py"}
SETTINGS = ("user.name=A", "user.email=a@example.org", "commit.gpgsign=false", "safe.directory=*")


class _Project:
    """A repository with a commit. What `.gitignore` names is there all the time, and changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        (folder / "runs").mkdir(parents=True)
        (folder / "runs" / "old.json").write_text("{}\n")
        (folder / ".gitignore").write_text("runs/\n")
        (folder / "train.py").write_text("print(1)\n")
        self.git("init", "--quiet")
        self._commit()

    def git(self, *arguments: str) -> str:
        """What git prints, to the end of its last line."""
        done = subprocess.run(
            ["git", *(part for setting in SETTINGS for part in ("-c", setting)), *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def be(self, state: str) -> None:
        """Bring it into a state: "clean", or a file is "changed", "staged", "removed" or "new"; "" leaves it alone."""
        if not state:
            return
        self._commit()
        name = "new.py" if state == "new" else "train.py"
        if state == "removed":
            (self.folder / name).unlink()
        elif state != "clean":
            self._write(name)
        if state == "staged":
            self.git("add", name)

    def move_on(self) -> None:
        """What is open is committed; where nothing is, a file changes."""
        if self.git("status", "--porcelain"):
            self._commit()
        else:
            self._write("train.py")

    def _write(self, name: str) -> None:
        self.number += 1
        (self.folder / name).write_text(f"print({self.number + 1})\n")

    def _commit(self) -> None:
        """The commit is another one each time, also where nothing was open."""
        if not (self.folder / "train.py").exists():
            self._write("train.py")
        self.git("add", "--all")
        self.git("commit", "--allow-empty", "--quiet", "--message", f"after {self.number} changes")


class _Pretended:
    """The few commands that matter, where there is no git."""

    def __init__(self) -> None:
        self.commit = self.state = ""
        self.be("clean")

    def be(self, state: str) -> None:
        if not state:
            return
        self.commit, self.state = os.urandom(20).hex(), state

    def move_on(self) -> None:
        self.be("clean" if self.state != "clean" else "changed")

    def git(self, *arguments: str) -> str:
        printed = self._printed(*arguments)
        return printed and printed + "\n"

    def _printed(self, *arguments: str) -> str:
        line = LINES.get(self.state, "")
        if arguments[0] == "describe":
            return self.commit[:7] + ("-dirty" if line[:2].strip("? ") else "")
        if arguments[0] == "rev-parse" and "--short" in arguments:
            return self.commit[:7]
        if arguments[0] in ("rev-parse", "log", "show"):
            return self.commit
        return line if arguments[0] == "status" or self.state != "new" else ""


def project_in(place: Path) -> _Project | _Pretended:
    """A project in a folder of its own, under git where git is installed."""
    return _Project(place / "project") if shutil.which("git") else _Pretended()
