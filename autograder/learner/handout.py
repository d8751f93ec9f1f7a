"""Bring the release notebooks into the learner's own folder without ever overwriting work."""

from __future__ import annotations

import datetime
import hashlib
import importlib.util
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from autograder.common import default_folder
from course_lib.base import UserError, atomic_file, atomic_write_text

#: In the learner's folder: the last release seen of each file, as {relative path: sha256}.
RECORD = ".workbook-release.json"


@dataclass(frozen=True, kw_only=True)
class Update:
    """A newer release of a file that the learner has changed.

    Attributes:
        name: the learner's file, relative to their folder.
        beside: the newer release, which lies beside it.
        what_to_do: a sentence or two.
    """

    name: str
    beside: str
    what_to_do: str

    def __str__(self) -> str:
        return (
            f"{self.name.rpartition('/')[2]} has a newer version, which lies beside yours. {self.what_to_do}"
        )


def hand_out(release: Path, folder: Path, *, today: datetime.date | None = None) -> list[str]:
    """Bring every release file that the learner does not have; return what there is to say, a line each.

    A file that is still as it was handed out follows the release. One that was changed is the learner's and stays:
    the newer release is put beside it once, under a dated name, and each call says so until it is settled.

    Raises UserError if the folder cannot be written.
    """
    num_new, renewed = 0, []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record = read_record(folder)
        for source in release_files(release):
            name = source.relative_to(release).as_posix()
            target, content = folder / name, sha256(source)
            mine = sha256(target) if target.exists() else None
            if mine is None:
                copy(source, target)
                num_new += 1
            elif mine != content and mine == record.get(name):
                copy(source, target)
                renewed.append(source.name)
            elif mine != content != record.get(name) and content not in map(sha256, dated_releases(target)):
                copy(source, _free_name(target, today or datetime.date.today()))
            record[name] = content
        write_record(folder, record)
    except OSError as error:
        raise UserError(
            f"cannot write to {folder} ({error.strerror}); choose another with --dir FOLDER"
        ) from error
    said = [f"{num_new} new notebooks and files were copied there"] if num_new else []
    if renewed:
        said.append(f"brought up to date, as you had changed nothing there: {', '.join(renewed)}")
    return said + [str(update) for update in pending_updates(folder)]


def pending_updates(folder: Path) -> list[Update]:
    """The newer releases that lie beside files which the learner has changed, by name.

    One is settled by `workbook reset`, or by deleting it.
    """
    found = []
    for name, content in sorted(read_record(folder).items()):
        target = folder / name
        same = [path for path in dated_releases(target) if sha256(path) == content]
        if same and target.is_file() and sha256(target) != content:
            beside = same[-1].relative_to(folder).as_posix()
            found.append(Update(name=name, beside=beside, what_to_do=_advice(target, same[-1], folder)))
    return found


def dated_releases(target: Path) -> list[Path]:
    """The releases that were put beside a file of the learner's."""
    name = re.compile(
        rf"{re.escape(target.stem)}\.release-\d{{4}}-\d\d-\d\d(-\d+)?{re.escape(target.suffix)}"
    )
    return sorted(path for path in target.parent.glob("*.release-*") if name.fullmatch(path.name))


def release_files(release: Path) -> list[Path]:
    """What is for learners: no hidden file, and nothing in a hidden folder such as `.ipynb_checkpoints`."""
    files = [path for path in sorted(release.rglob("*")) if path.is_file()]
    return [path for path in files if "/." not in f"/{path.relative_to(release).as_posix()}"]


def copy(source: Path, target: Path) -> None:
    """Copy whole or not at all: an interrupted copy must not pass for the learner's own file. Raises OSError."""
    try:
        with atomic_file(target) as half:
            shutil.copyfile(source, half)
    except UserError as error:
        assert isinstance(error.__cause__, OSError)
        raise error.__cause__ from None


def sha256(path: Path) -> str:
    """Of the content of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_record(folder: Path) -> dict[str, str]:
    """What `RECORD` says; nothing where it is lost or damaged."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(folder: Path, record: dict[str, str]) -> None:
    """Keep what was handed out. Raises OSError."""
    try:
        atomic_write_text(folder / RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")
    except UserError as error:
        assert isinstance(error.__cause__, OSError)
        raise error.__cause__ from None


def _free_name(target: Path, today: datetime.date) -> Path:
    """`lesson.ipynb` → `lesson.release-2026-11-20.ipynb`, with `-2`, `-3` … where that is taken."""
    marks = ("", *(f"-{num}" for num in range(2, 1000)))
    names = (f"{target.stem}.release-{today}{mark}{target.suffix}" for mark in marks)
    return next(path for path in map(target.with_name, names) if not path.exists())


def _advice(target: Path, beside: Path, folder: Path) -> str:
    command = f"workbook reset {target.parent.name.partition('_')[0]}"
    if folder.resolve() != default_folder().resolve():
        command += f' --dir "{folder}"'
    text = f"To take it, run `{command}` in a terminal; yours goes to a backup. To keep yours, delete {beside.name}."
    if importlib.util.find_spec("nbdime") and target.suffix == ".ipynb":
        text += f' To compare them: `nbdiff-web "{target}" "{beside}"`.'
    return text
