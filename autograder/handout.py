"""Bring the release notebooks into the learner's own folder without ever overwriting what is there."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
from pathlib import Path

from course_lib.errors import UserError

START_PAGE = Path("00_start_here", "00_start_here.ipynb")
#: In the learner's folder: which release each file was copied from, as {relative path: sha256}.
RECORD = ".workbook-release.json"


def release_folder() -> Path:
    """Where the release notebooks are: inside the installed package, or in the checkout it runs from.

    Raises UserError where neither has them.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "release", package.parent / "notebooks" / "release"):
        if (folder / START_PAGE).is_file():
            return folder
    raise UserError("the release notebooks are not here; in a checkout, make them with: workbook build")


def default_folder() -> Path:
    """The learner's folder: `WORKBOOK_DIR`, else `training-workbook` in the home folder."""
    return Path(os.environ.get("WORKBOOK_DIR") or Path.home() / "training-workbook").expanduser()


def hand_out(release: Path, folder: Path, *, today: datetime.date | None = None) -> list[str]:
    """Copy every release file that the learner does not have; return what there is to say, a line each.

    A file that exists is the learner's and stays as it is. If the release has changed since it was copied, the
    new one is put beside it once, under a dated name.

    Raises UserError if the folder cannot be written.
    """
    said: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record = _read_record(folder)
        num_new = 0
        for source in _files(release):
            name = source.relative_to(release).as_posix()
            target = folder / name
            content = _sha256(source)
            if not target.exists():
                _copy(source, target)
                num_new += 1
            elif record.get(name) != content and _sha256(target) != content:
                beside = _free_name(target, today or datetime.date.today())
                _copy(source, beside)
                said.append(
                    f"{name} has a newer release: yours stays as it is, the new one is beside it as {beside.name}"
                )
            record[name] = content
        (folder / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot write to {folder} ({error.strerror}); choose another with --dir FOLDER"
        ) from error
    if num_new:
        said.insert(0, f"{num_new} new notebooks and files were copied there")
    return said


def _files(release: Path) -> list[Path]:
    """What is for learners: no hidden file, and nothing in a hidden folder such as `.ipynb_checkpoints`."""
    files = [path for path in sorted(release.rglob("*")) if path.is_file()]
    return [path for path in files if "/." not in f"/{path.relative_to(release).as_posix()}"]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _free_name(target: Path, today: datetime.date) -> Path:
    """`lesson.ipynb` → `lesson.release-2026-11-20.ipynb`, with `-2`, `-3` … where that is taken."""
    marks = ("", *(f"-{num}" for num in range(2, 1000)))
    names = (f"{target.stem}.release-{today}{mark}{target.suffix}" for mark in marks)
    return next(path for path in map(target.with_name, names) if not path.exists())


def _copy(source: Path, target: Path) -> None:
    """Copy whole or not at all: an interrupted copy must not pass for the learner's own file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.half")
    shutil.copyfile(source, half)
    half.replace(target)


def _read_record(folder: Path) -> dict[str, str]:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
