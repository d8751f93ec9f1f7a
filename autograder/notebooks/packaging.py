"""`workbook package`: the wheel of a checkout, whole for who grades, and for students without what solves an exercise.

A student's wheel holds the checks, for practice. It does not hold the wrong solutions, the claims, the references and
the lessons' texts, and the sources that checks run beside a solution are sealed: `baselines.py` and `twins.py` of each
lesson. No text that is left, by itself, defines what an exercise asks for; where one does, there is no wheel.
docs/grading.md says what it can still show.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.course import lesson_ids, load_lesson, seal
from autograder.engine import bound_names
from autograder.notebooks.building import NOTEBOOKS, PACKAGE
from course_lib.base import UserError

ROOT = PACKAGE.parent
#: In the folder of a lesson, what is for those who write and grade.
WITHHELD = ("mutants", "mutants.py", "claims", "claims.py", "references.py")
SEALED = ("baselines.py", "twins.py")
_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "LICENSE-lessons")
_VERSION = re.compile(r'^(version = "[^"+]+)(\+[^"]*)?"', re.MULTILINE)
_MODULE = '''"""What checks run beside a solution, sealed: this installation is for students (docs/grading.md)."""

{kept}

_SEALED = {sealed!r}


def __getattr__(name):
    from autograder.course import unseal

    return unseal(_SEALED, name)
'''


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """What `package` made.

    Attributes:
        withheld, sealed: files of the checkout that it does not hold, or holds sealed; none in a whole one.
    """

    wheel: str
    for_students: bool
    withheld: tuple[str, ...]
    sealed: tuple[str, ...]


def package(out: Path, *, for_students: bool) -> Packaged:
    """Make the wheel of this checkout in the folder `out`.

    Raises:
        UserError: this is no checkout, a text in it would solve an exercise, or pip cannot make it; names the fix.
    """
    if not (ROOT / "pyproject.toml").is_file() or not (NOTEBOOKS / "release").is_dir():
        raise UserError("a wheel is made in a checkout of the project, and this is an installed package")
    with tempfile.TemporaryDirectory(prefix="workbook-package-") as scratch:
        tree = Path(scratch, "project")
        _copy(tree)
        withheld, sealed = (_withhold(tree), _seal(tree)) if for_students else ([], [])
        if for_students:
            _mark(tree / "pyproject.toml")
            _require_no_solution(tree)
        made = _wheel(tree, Path(scratch, "made"))
        out.mkdir(parents=True, exist_ok=True)
        target = out / made.name
        shutil.copy(made, target)
    return Packaged(
        wheel=str(target), for_students=for_students, withheld=tuple(withheld), sealed=tuple(sealed)
    )


def packaged_text(found: Packaged) -> str:
    """What `package` did, in lines."""
    if not found.for_students:
        return (
            f"{found.wheel}: the whole project, wrong and right solutions among it. For students: --students"
        )
    return (
        f"{found.wheel}: for students\n"
        f"Left out, beside the lessons' texts: {len(found.withheld)} files and folders of wrong solutions, claims and "
        f"references. Sealed: {len(found.sealed)} files of sources that checks run.\n"
        "docs/grading.md says what a practice installation can still show."
    )


def _copy(tree: Path) -> None:
    """What a wheel is made of; no clutter of those who work in the checkout."""
    ignored = shutil.ignore_patterns("__pycache__", ".*", "*_answers.json", "*.egg-info")
    for folder in (PACKAGE, ROOT / "course_lib", NOTEBOOKS / "release"):
        shutil.copytree(folder, tree / folder.relative_to(ROOT), ignore=ignored)
    for name in _FILES:
        shutil.copy(ROOT / name, tree / name)


def _withhold(tree: Path) -> list[str]:
    found = sorted(path for name in WITHHELD for path in tree.glob(f"autograder/lessons/lesson_*/{name}"))
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return [path.relative_to(tree).as_posix() for path in found]


def _seal(tree: Path) -> list[str]:
    """Put the texts of each module of sources in another form: what they are when they are used, made of no pieces."""
    found = sorted(path for name in SEALED for path in tree.glob(f"autograder/lessons/lesson_*/{name}"))
    for path in found:
        module = importlib.import_module(f"autograder.lessons.{path.parent.name}.{path.stem}")
        sources, kept = dict[str, str](), list[str]()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            is_name = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
            name = statement.targets[0].id if is_name else ""  # type: ignore[attr-defined]
            if isinstance(getattr(module, name, None), str):
                sources |= {} if name.startswith("_") else {name: getattr(module, name)}
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                kept.append(ast.unparse(statement))
        path.write_text(_MODULE.format(kept="\n".join(kept), sealed=seal(sources)), encoding="utf-8")
    return [path.relative_to(tree).as_posix() for path in found]


def _mark(project: Path) -> None:
    """A version of its own (PEP 440's local one): pip, evidence and `workbook --version` tell which is installed."""
    text, num = _VERSION.subn(r'\1+students"', project.read_text(encoding="utf-8"), count=1)
    assert num == 1
    project.write_text(text, encoding="utf-8")


def _require_no_solution(tree: Path) -> None:
    for path, line, exercise_id, entry in _texts_like_solutions(tree):
        raise UserError(
            f"no wheel was made: {path}, line {line}, is a text that defines `{entry}`, as a solution of {exercise_id} "
            f"does; put it into {' or '.join(SEALED)} of its lesson, which are sealed, or into its mutants, which are "
            "left out"
        )


def _texts_like_solutions(tree: Path) -> Iterator[tuple[str, int, str, str]]:
    """File, line, exercise and entry of each text that binds what an exercise asks for."""
    asked = {each.entry: each.id for number in lesson_ids() for each in load_lesson(number).exercises}
    for path in sorted(tree.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if any(entry in text for entry in asked):
                for entry in sorted(bound_names(text) & asked.keys()):
                    yield path.relative_to(tree).as_posix(), node.lineno, asked[entry], entry  # type: ignore[attr-defined]


def _wheel(tree: Path, out: Path) -> Path:
    """By pip, with this machine's own settings; what builds is taken from here where it is here."""
    here = ["--no-build-isolation"] if importlib.util.find_spec("setuptools") else []
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", *here]
    done = subprocess.run([*command, "-w", str(out), str(tree)], capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it does not say why"])[-1]
        raise UserError(f"pip could not make the wheel: {why}")
    (made,) = out.glob("*.whl")
    return made
