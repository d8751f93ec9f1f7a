"""`workbook site`: the pages of all lessons, a front page and what searches them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from autograder.common import release_folder
from autograder.course import lesson_ids, parts
from autograder.notebooks.site.pages import Section, lesson_body, page, sections_of
from autograder.notebooks.site.running import run_lesson
from course_lib.base import UserError, atomic_write_text

_HERE = Path(__file__).parent
_OUTPUTS = "outputs"  # the folder in a site that keeps what cells gave


def make_site(
    out: Path, only: Sequence[str] = (), *, on_lesson: Callable[[str, int, int], None] = lambda *_: None
) -> list[Path]:
    """Write the pages into `out`; a lesson whose notebook has not changed since is not run again.

    Args:
        only: numbers of lessons, such as "01"; without any, all. The front page knows those that are there.
        on_lesson: is told the lesson, how many of its cells have run, and of how many.

    Returns:
        The pages that were written.

    Raises:
        UserError: a folder that holds other things, no such lesson, or a cell that failed.
    """
    unknown = sorted(set(only) - set(lesson_ids()))
    if unknown:
        raise UserError(f"there is no lesson {unknown[0]!r}; lessons are {', '.join(lesson_ids())}")
    kept = out / _OUTPUTS
    if out.exists() and any(out.iterdir()) and not kept.is_dir():
        raise UserError(f"{out} holds other things; choose an empty folder or one that does not exist yet")
    kept.mkdir(parents=True, exist_ok=True)
    notebooks = {path.stem[:2]: path for path in sorted(release_folder().glob("*/*.ipynb"))}
    titles = {part.id: part.title for part in parts()}
    written: list[Path] = []
    for lesson_id, path in notebooks.items():
        if only and lesson_id not in only:
            continue

        def on_cell(done: int, of: int, lesson_id: str = lesson_id) -> None:
            on_lesson(lesson_id, done, of)

        notebook = run_lesson(path, kept / path.name, on_cell)
        body = lesson_body(notebook)
        title = titles[lesson_id]
        written.append(
            _write(out / f"{path.stem}.html", "lesson.html", title=f"{lesson_id} · {title}", body=body)
        )
        atomic_write_text(
            kept / f"{path.stem}.json",
            json.dumps(
                [asdict(s) for s in sections_of(f"{path.stem}.html", title, body)], ensure_ascii=False
            ),
        )
    _write_shared(out, kept)
    written.append(_front_page(out, notebooks))
    return written


def _write(path: Path, template: str, **values: object) -> Path:
    atomic_write_text(path, page(template, **values))
    return path


def _write_shared(out: Path, kept: Path) -> None:
    """The style, and what searches: one script with all that it knows, for pages that are opened from a disk."""
    known = [
        Section(**each)
        for file in sorted(kept.glob("*.json"))
        for each in json.loads(file.read_text("utf-8"))
    ]
    atomic_write_text(out / "site.css", (_HERE / "site.css").read_text(encoding="utf-8"))
    script = (_HERE / "site.js").read_text(encoding="utf-8")
    index = json.dumps([asdict(section) for section in known], ensure_ascii=False)
    atomic_write_text(out / "site.js", f"const SECTIONS = {index};\n{script}")


def _front_page(out: Path, notebooks: dict[str, Path]) -> Path:
    pages = {lesson_id: f"{path.stem}.html" for lesson_id, path in notebooks.items()}
    lessons = [
        {"part": part, "page": pages[part.id] if (out / pages[part.id]).exists() else ""}
        for part in parts()
        if part.id in pages
    ]
    return _write(out / "index.html", "index.html", title="Training Workbook", lessons=lessons)
