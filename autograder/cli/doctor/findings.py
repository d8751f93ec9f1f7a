"""What a look returns, and the cures that more than one look names. A cure is a command or a setting, to be copied."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["ok", "note", "fail"]
Found = tuple[Level, str, str]  # level, what was found, the fix


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `note` is no failure, but has a consequence that is worth knowing."""

    name: str
    level: Level
    found: str
    fix: str


def reinstall() -> str:
    """Make the environment anew."""
    launcher = Path(sys.prefix).parent / "workbook.py"
    if not launcher.exists():
        return f'"{sys.executable}" -m pip install --force-reinstall "training-workbook[course]"'
    again = f'"{base_python()}" "{launcher}" doctor'
    return f'rm -rf "{sys.prefix}" && {again}' if os.name != "nt" else f'rmdir /s /q "{sys.prefix}" & {again}'


def base_python() -> str:
    """The Python that the environment was made from."""
    return str(getattr(sys, "_base_executable", sys.executable))


def set_variable(name: str, value: str) -> str:
    """For this window; the profile of the shell makes it last."""
    return f'export {name}="{value}"' if os.name != "nt" else f"set {name}={value}"


def unset_variable(*names: str) -> str:
    """For this window."""
    return f"unset {' '.join(names)}" if os.name != "nt" else " & ".join(f"set {name}=" for name in names)


def move(path: Path, to: Path) -> str:
    """Give a file or folder another name."""
    return f'{"mv" if os.name != "nt" else "move"} "{path}" "{to}"'


def make_folder(path: Path) -> str:
    """With those above it."""
    return f'{"mkdir -p" if os.name != "nt" else "mkdir"} "{path}"'
