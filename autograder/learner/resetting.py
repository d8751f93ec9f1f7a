"""`workbook reset LESSON`: the lesson as it was handed out, and all that was changed in a backup beside it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from autograder.common import locked
from autograder.learner.handout import copy, dated_releases, read_record, release_files, sha256, write_record
from course_lib.base import UserError


def reset(lesson: str, release: Path, folder: Path, *, with_answers: bool = False) -> list[str]:
    """Put back a lesson's release files in the learner's folder; return what there is to say, a line each.

    What is replaced is copied into a dated backup folder first, and the answers file with it. The answers
    themselves stay as they are, unless told: a notebook begun anew shows them again.

    Args:
        lesson: its number, such as "01" or "1", or its folder's name.
        with_answers: begin the quiz answers and predictions anew too.

    Raises:
        UserError: there is no such lesson, or the folder cannot be written; nothing is lost.
    """
    slug = _slug(lesson, release)
    home = folder / slug
    if not home.is_dir():
        raise UserError(f"there is no {home}; `workbook start` makes it, and --dir names another folder")
    answers = home / f"{slug}_answers.json"
    sources = {home / source.relative_to(release / slug): source for source in release_files(release / slug)}
    begin_answers = with_answers and answers.exists()
    try:
        with locked(home), locked(answers):
            changed = [t for t, source in sources.items() if not t.exists() or sha256(t) != sha256(source)]
            superseded = [path for target in sources for path in dated_releases(target)]
            if not changed and not begin_answers:
                return [f"Nothing to do: {home} is as it was handed out.", *_about_answers(slug, answers)]
            kept = [*changed, *superseded, answers]
            backup = _back_up([path for path in kept if path.exists()], home)
            for target in changed:
                copy(sources[target], target)
            for path in [*superseded, *([answers] if begin_answers else [])]:
                path.unlink()
            released = {t.relative_to(folder).as_posix(): sha256(source) for t, source in sources.items()}
            write_record(folder, read_record(folder) | released)
    except OSError as error:
        reason = error.strerror or "another program keeps it locked; close other kernels"
        raise UserError(f"cannot reset {home}: {reason}. Nothing of yours is lost") from error
    said = [f"{home / slug}.ipynb is as it was handed out."]
    if backup:
        said.append(
            f"What was there is kept in {backup}. To have a file back, copy it from there into {home}."
        )
    said.append(
        "If it is open in JupyterLab: File > Reload Notebook from Disk, then Kernel > Restart Kernel."
    )
    said += (
        ["Your quiz answers and predictions begin anew."] if begin_answers else _about_answers(slug, answers)
    )
    return [*said, "What you have reached stays in your progress."]


def _slug(lesson: str, release: Path) -> str:
    slugs = sorted(path.name for path in release.iterdir() if path.is_dir() and path.name[:2].isdigit())
    for slug in slugs:
        if lesson == slug or lesson.zfill(2) == slug.partition("_")[0]:
            return slug
    raise UserError(f"no lesson {lesson!r}; there are: {', '.join(slug[:2] for slug in slugs)}")


def _back_up(files: list[Path], home: Path) -> Path | None:
    """Copies of the files in a new folder, on the disk before anything is replaced; None for no files."""
    if not files:
        return None
    backup = home / f"backup-{datetime.now():%Y-%m-%d-%H%M%S}"
    while backup.exists():
        backup = backup.with_name(f"{backup.name}-2")
    for path in files:
        copy(path, backup / path.relative_to(home))
    return backup


def _about_answers(slug: str, answers: Path) -> list[str]:
    if not answers.exists():
        return []
    anew = f"`workbook reset {slug[:2]} --answers` begins them anew."
    return [f"Your quiz answers and predictions stay as they are; {anew}"]
