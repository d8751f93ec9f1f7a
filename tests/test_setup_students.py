"""What students install: the checks for practice, and no text that solves an exercise."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.course.lessons import lesson_ids, load_lesson
from autograder.engine.source.marks import bound_names
from autograder.lessons.checking.mutants import load_mutants
from autograder.lessons.lesson_02 import baselines
from autograder.notebooks import packaging
from course_lib.base import UserError
from tests.autograder.solutions import reference_sources
from tests.test_setup_wheel import names_in

pytestmark = pytest.mark.slow

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
#: Exercises whose checks run a sealed source, and one that has none; and mistakes that a twin names.
PRACTISED = ("0.1", "1.4", "2.3", "3.1", "4.4", "5.2")
NAMED = {"1.4": "mask ignored", "2.3": "clipped by value", "3.1": "sum"}
_CHECK = (
    "import json, sys, autograder\n"
    "from autograder.engine import check_source\n"
    "assert autograder.__file__.startswith(sys.argv[1]), autograder.__file__\n"
    "for exercise_id, source in json.load(sys.stdin):\n"
    "    found = check_source(exercise_id, source)\n"
    "    told = [found.verdict, found.score, found.max_score, str(found.reason)]\n"
    "    print('told', json.dumps(told), flush=True)\n"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(packaging.package(tmp_path_factory.mktemp("dist"), for_students=True).wheel)


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its `autograder`, unpacked. `course_lib`, which is the same in both, is that of this environment: a worker sees
    no other."""
    folder = tmp_path_factory.mktemp("students")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if "course_lib" not in name])
    return folder


def ask(site: Path, command: list[str], data: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with what students install before all else."""
    path = os.pathsep.join([str(site), os.environ["PYTHONPATH"]])
    env = os.environ | {"WORKBOOK_DATA": str(data), "PYTHONPATH": path}
    command = [sys.executable, "-P", *command]
    return subprocess.run(command, capture_output=True, text=True, cwd=site, env=env, **options)


def checked(site: Path, pairs: list[tuple[str, str]]) -> list[list[Any]]:
    """Verdict, score, maximum and reason of each (exercise, source), by the installed checks."""
    done = ask(site, ["-c", _CHECK, str(site)], site / "data", input=json.dumps(pairs))
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    return [json.loads(line.removeprefix("told ")) for line in lines]


def texts_in(package: Path) -> Iterator[str]:
    """Every text of an installation: constants of the code, files of the lessons, strings of JSON, notebooks' cells."""
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "lessons" in path.parts:
            yield text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in [*package.rglob("*.json"), *package.rglob("*.ipynb")]:
        yield from _strings(json.loads(path.read_text(encoding="utf-8")))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in [*value, *value.values()]:
            yield from _strings(each)
    elif isinstance(value, list):
        if all(isinstance(each, str) for each in value):
            yield "".join(value)
        for each in value:
            yield from _strings(each)


def like_solutions(package: Path) -> list[tuple[str, str]]:
    """Each exercise with each text that binds what it asks for, as a solution does."""
    found: dict[tuple[str, str], None] = {}
    for text in dict.fromkeys(texts_in(package)):
        if any(exercise.entry in text for exercise in EXERCISES):
            bound = bound_names(text)
            found |= {(each.id, text): None for each in EXERCISES if each.entry in bound}
    return list(found)


def test_it_holds_all_but_what_is_withheld(root: Path, wheel: Path) -> None:
    names = names_in(wheel)
    assert "+students-" in wheel.name
    files = [path for folder in ("autograder", "course_lib") for path in (root / folder).rglob("*")]
    files = [path for path in files if path.is_file() and "__pycache__" not in path.parts]
    missing = {path.relative_to(root).as_posix() for path in files} - names
    assert missing and all(set(Path(name).parts) & set(packaging.WITHHELD) for name in missing), missing
    assert not any(set(Path(name).parts) & set(packaging.WITHHELD) for name in names if "/lesson_" in name)
    assert {"autograder/release/00_start_here/00_start_here.ipynb", "course_lib/data/corpus.zip"} <= names
    with zipfile.ZipFile(wheel) as archive:
        text = b"".join(map(archive.read, archive.namelist())).decode("utf-8", "replace")
    assert "BEGIN SOLUTION" not in text.replace('"### BEGIN SOLUTION', "").replace("### BEGIN SOLUTION …", "")


def test_no_text_of_it_earns_full_points(site: Path) -> None:
    """Whoever searches the installation finds nothing to hand in. That this finds what there is to find, and that the
    checks at hand would pay for it, the checkout shows."""
    package = site / "autograder"
    pairs = like_solutions(package) + like_solutions(packaging.ROOT / "course_lib")
    assert len({exercise_id for exercise_id, _ in pairs}) > 20  # stubs among them
    told = checked(site, pairs)
    assert not [reason for verdict, _, _, reason in told if verdict == "error"]
    paid = [pair for pair, (_, score, most, _) in zip(pairs, told, strict=True) if score >= most]
    assert paid == []
    assert ("2.3", baselines.STEP) in like_solutions(packaging.PACKAGE / "lessons" / "lesson_02")
    ((verdict, *_),) = checked(site, [("2.3", baselines.STEP)])
    assert verdict == "pass"


def test_practice_works_and_names_mistakes(site: Path) -> None:
    right = [(each, reference_sources(each.partition(".")[0].zfill(2))[each]) for each in PRACTISED]
    wrong = [
        (each, next(m for m in load_mutants(f"{int(each[0]):02}")[each] if name in m.name))
        for each, name in NAMED.items()
    ]
    told = checked(site, [*right, *((each, mutant.source) for each, mutant in wrong)])
    for (exercise_id, _), (verdict, *_, reason) in zip(right, told, strict=False):
        assert verdict == "pass", (exercise_id, reason)
    for (exercise_id, mutant), (verdict, *_, reason) in zip(wrong, told[len(right) :], strict=True):
        assert verdict == "fail" and mutant.says in reason, (exercise_id, reason)


def test_what_needs_the_references_says_so(site: Path, tmp_path: Path) -> None:
    workbook = ["-m", "autograder.cli.main"]
    assert "+students" in ask(site, [*workbook, "--version"], tmp_path).stdout
    for verb in ("calibrate", "package"):
        done = ask(site, [*workbook, verb], tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    looked = ask(
        site, ["-c", "from autograder.cli.doctor.machine import calibration; print(calibration())"], tmp_path
    )
    assert "for students" in looked.stdout, looked.stderr


def test_a_text_that_would_solve_an_exercise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "autograder" / "lessons" / "lesson_04" / "checks" / "resume.py"
    path.parent.mkdir(parents=True)
    path.write_text('"""Checks."""\n\nOURS = """\nclass RunCheckpoint:\n    pass\n"""\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"lesson_04/checks/resume.py, line 3, .*`RunCheckpoint`.*4\.1"):
        packaging._require_no_solution(tmp_path)
    path.write_text('"""Checks of `RunCheckpoint`, which a solution defines."""\n', encoding="utf-8")
    packaging._require_no_solution(tmp_path)
