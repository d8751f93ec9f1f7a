"""The verbs of `workbook` for those who write lessons: they make what others open, install and read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from autograder.cli.of_a_course import Verb, answer


def add_verbs(verb: Callable[[str, Verb, str], argparse.ArgumentParser]) -> None:
    """Add each verb with its options. `verb` makes the parser of one, from its name, its function and its help."""
    build = verb("build", _build, "make the notebooks from the lessons' texts (in a checkout)")
    build.add_argument("lesson", nargs="*", help='numbers, such as "01"; without any, all are made')
    build.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a notebook would change"
    )
    pack = verb("package", _package, "make the wheel that a class installs (in a checkout)")
    pack.description = (
        "Make a wheel of this checkout, with its notebooks and checks. For students it holds no wrong solutions, no "
        "references and no lesson texts, and no text in it defines what an exercise asks for."
    )
    pack.add_argument("--students", action="store_true", help="without what solves an exercise")
    pack.add_argument("--out", type=Path, default=Path("dist"), metavar="DIR", help="default: dist, here")
    pages = verb("site", _site, "write the lessons as plain pages, with the outputs of this machine")
    pages.description = (
        "Write the lessons as plain pages to read: texts, figures and outputs of this machine, exercises without "
        "solutions, questions without keys, a front page and a search. They need no network and no server. Running "
        "all lessons takes about 15 minutes; what has not changed since is not run again."
    )
    pages.add_argument("lesson", nargs="*", help='numbers, such as "01"; without any, all')
    pages.add_argument("--out", type=Path, required=True, metavar="DIR", help="a folder for the pages")


def _site(arguments: argparse.Namespace) -> int:
    from autograder.cli.check_report import progress_bar
    from autograder.notebooks import make_site

    lessons = [lesson.zfill(2) for lesson in arguments.lesson]
    with progress_bar("running") as show:
        written = make_site(
            arguments.out,
            lessons,
            on_lesson=lambda lesson, done, of: show(f"{lesson} · cell {done} of {of}", done / of),
        )
    said = f"Wrote {len(written) - 1} lessons; open {arguments.out / 'index.html'}"
    answer(arguments, {"pages": [str(page) for page in written]}, said)
    return 0


def _package(arguments: argparse.Namespace) -> int:
    from autograder.notebooks import package, packaged_text

    found = package(arguments.out.resolve(), for_students=arguments.students)
    answer(arguments, asdict(found), packaged_text(found))
    return 0


def _build(arguments: argparse.Namespace) -> int:
    from autograder.notebooks import build

    changed = build(arguments.lesson, check=arguments.check)
    done = "would change" if arguments.check else "wrote"
    text = "\n".join(f"{done}: {name}" for name in changed) or "Every notebook is as its text says."
    answer(arguments, {"changed": changed}, text)
    return 1 if arguments.check and changed else 0
