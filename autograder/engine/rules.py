"""The key of a grade: a hash of all that decides it, and of nothing else.

What decides is found by import lines, followed from file to file: the exercise's check and the engine with its sandbox
on this side; in the worker the lesson's harness, baselines and the learner's own cell, and what these import of
`course_lib`; and torch. What is only said or shown (`show`, `course`) decides nothing and is not followed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from autograder.common import CELL_SECONDS, ApartError, run_apart
from autograder.course import Exercise, find_exercise
from course_lib.base import installed_version

ROOT = Path(__file__).resolve().parents[2]  # the folder that holds both packages
_FOLLOWED = ("autograder.common", "autograder.engine", "autograder.lessons", "course_lib")
# Found in the text, not in its tree: a baseline or a harness stands in a string, and imports there count as well.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+((?:autograder|course_lib)[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+((?:autograder|course_lib)[\w.]*))",
    re.MULTILINE,
)
_BESIDE = re.compile(r"""with_name\(["']([\w.]+)["']\)""")  # code that is read as text
_MAX_NAMES = 200  # of one module; from more than that, all of the module is taken to be imported
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")


def key_of(exercise_id: str, source: str, root: Path = ROOT) -> str:
    """The key of the grade of a cell. `root`: where the packages lie."""
    files = _deciding(exercise_id, root) | _reached(_imported_by_cell(source, root), root)
    key = hashlib.sha256(
        f"{exercise_id}\0{_declared(exercise_id)}\0torch {installed_version('torch')}".encode()
    )
    for file in sorted(files):
        key.update(f"\0{file.relative_to(root).as_posix()}\0{_content(file)}".encode())
    key.update(b"\0" + source.encode("utf-8", "surrogatepass"))
    return key.hexdigest()


def _declared(exercise_id: str) -> str:
    """What the registry says of an exercise, less its title."""
    exercise = find_exercise(exercise_id)[1]
    return repr([getattr(exercise, each.name) for each in fields(Exercise) if each.name != "short_title"])


@functools.cache
def _deciding(exercise_id: str, root: Path) -> frozenset[Path]:
    """The files that decide whatever the cell says."""
    exercise = find_exercise(exercise_id)[1]
    lessons, engine = root / "autograder" / "lessons", root / "autograder" / "engine"
    lesson = lessons / f"lesson_{exercise.lesson_id}"
    places = [exercise.check, *((exercise.clock.baseline,) if exercise.clock else ())]
    begin = {lesson.joinpath(*place.split(".")[:-1]).with_suffix(".py") for place in places}
    begin |= {*(lesson / "harness").glob("*.py"), lessons / "checking" / "harness_shared.py"}
    if exercise.draws:
        begin |= {root / "autograder" / "course" / "draws.py"}
    begin |= {root / "autograder" / "course" / "lessons.py"}  # how a harness is put together
    begin |= {engine / "check.py", *(engine / "sandbox" / "inside").glob("*.py")}
    data = {path for path in lesson.glob("*.json") if path.name != "quiz.json"}
    return frozenset(_reached(begin, root) | data)


def _reached(begin: Iterable[Path], root: Path) -> set[Path]:
    """These files, those that they import, and so on."""
    found: set[Path] = set()
    ahead = set(begin)
    while ahead:
        found |= ahead
        ahead = {file for path in ahead for file in _imports(path, root)} - found
    return found


@functools.cache
def _imports(path: Path, root: Path) -> frozenset[Path]:
    if path.suffix != ".py" or _listed(path):
        return frozenset()
    text = path.read_text(encoding="utf-8")
    beside = {file for name in _BESIDE.findall(text) if (file := path.with_name(name)).is_file()}
    return frozenset(beside | _imported(text, root))


@functools.cache
def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _imported_by_cell(source: str, root: Path) -> set[Path]:
    """`_imported`, apart: a learner's text decides how long it takes. Past the limit, the text alone makes its key."""
    if not any(package in source for package in ("autograder", "course_lib")):
        return set()
    with contextlib.suppress(ApartError):
        return set(map(Path, run_apart(_names_imported, source, str(root), seconds=CELL_SECONDS)))
    return set()


def _names_imported(source: str, root: str) -> list[str]:
    return sorted(map(str, _imported(source, Path(root))))


def _imported(text: str, root: Path) -> set[Path]:
    """The files of ours that the import lines of a text name."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for module, names, plain in _IMPORT.findall(text):
        wanted[plain or module].update([""] if plain else _NAME.findall(names) or ["*"])
    return {
        file
        for module, names in wanted.items()
        for name in (names if len(names) <= _MAX_NAMES else ["*"])
        for file in _files(module, name, root)
    }


def _files(module: str, name: str, root: Path) -> Iterator[Path]:
    """Where `name` of a module is written. A face only says where its names are: it decides nothing itself."""
    if not module.startswith(_FOLLOWED):
        return
    file = (_file(f"{module}.{name}", root) if name else None) or _file(module, root)
    listed = _listed(file) if file else ()
    homes = {home for home, names in listed if name in names}
    if file and not homes:  # no face; or all of one, or a name that it finds in a way of its own
        yield file
    for home in homes or {home for home, _ in listed}:
        yield from _files(home, "*" if name in ("", "*") else name, root)


@functools.cache
def _listed(file: Path) -> tuple[tuple[str, frozenset[str]], ...]:
    """The names of a face, each with the module that it is of; empty for a module that is no face."""
    text = file.read_text(encoding="utf-8")
    if file.name != "__init__.py" or "= attach(" not in text:
        return ()
    _, _, below = text.partition("if TYPE_CHECKING:")
    return tuple((home, frozenset(_NAME.findall(names))) for home, names, _ in _IMPORT.findall(below))


def _file(module: str, root: Path) -> Path | None:
    """The file of a module; one with an old name is found where those lie."""
    package, *rest = module.split(".")
    for folder in (root / package, root / package / "old_names"):
        path = folder.joinpath(*rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if rest and file.is_file():
                return file
    return root / package / "__init__.py" if not rest else None
