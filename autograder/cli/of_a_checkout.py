"""The verbs of `workbook` for those who write lessons: they make what others open and install, in a checkout."""

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
