"""What others rely on stays: import paths, notebooks and courses of earlier releases; and how the house is entered."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from autograder.course.lessons import harness_files

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("autograder", "course_lib")
RELIED_ON = [
    line
    for line in (ROOT / "tests" / "relied_on.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
FIXTURES = ROOT / "tests" / "fixtures"
LESSON = FIXTURES / "lesson_of_2026_11" / "04_checkpointing_and_early_stopping.ipynb"
COURSE = FIXTURES / "course_of_2026_11"
MOST_ENTRIES = 15
_IMPORT = re.compile(r"^\s*(?:#\s*)?from ((?:autograder|course_lib)[\w.]*) import (\([^)]*\)|[^\n#]*)", re.M)
#: These name the modules of a room: old names stand for one, and lessons are loaded by name.
NO_FACES = ("old_names", "lessons")


def test_every_path_that_others_rely_on_is_there() -> None:
    """Each in a state of its own: nothing may hang on what was imported before."""
    code = (
        "import importlib, sys\n"
        "for line in sys.stdin.read().split():\n"
        "    for name in [n for n in sys.modules if n.split('.')[0] in ('autograder', 'course_lib')]:\n"
        "        del sys.modules[name]\n"
        "    module, _, name = line.partition(':')\n"
        "    try: exec(f'from {module} import {name}')\n"
        "    except ImportError as error: print(line, error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], input="\n".join(RELIED_ON), capture_output=True, text=True, check=True
    )
    assert ran.stdout == ""


def test_what_notebooks_import_is_on_the_list() -> None:
    cells = [
        "".join(cell["source"])
        for path in [*(ROOT / "notebooks" / "release").glob("*/*.ipynb"), *FIXTURES.rglob("*.ipynb")]
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]
    cells.append((ROOT / "notebooks" / "nbgrader_config.py").read_text(encoding="utf-8"))
    used = {
        f"{module}:{name}"
        for cell in cells
        for module, names in _IMPORT.findall(cell)
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names)
    }
    assert used - set(RELIED_ON) == set()


def test_an_old_name_is_one_line() -> None:
    for package in PACKAGES:
        for path in (ROOT / package / "old_names").glob("[!_]*.py"):
            lines = path.read_text(encoding="utf-8").splitlines()
            assert all(line.startswith("from ") and " import " in line for line in lines), path


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_shows_at_most_fifteen_entries(package: str) -> None:
    for folder in [ROOT / package, *(path for path in (ROOT / package).rglob("*") if path.is_dir())]:
        hidden = {"__pycache__", "old_names", "templates", "labextension", "release"} & {*folder.parts}
        if folder.name != "lessons" and not hidden:
            own = {"__pycache__"} if folder == ROOT / package else {"__pycache__", "__init__.py"}
            shown = [path.name for path in folder.iterdir() if path.name not in own]
            assert len(shown) <= MOST_ENTRIES, f"{folder}: {sorted(shown)}"


def _imports(path: Path) -> list[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return [(str(node.module), alias.name) for node in found for alias in node.names]


def _defined(path: Path) -> list[str]:
    """What a module defines at its top level, also by an assignment."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [
                each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
            ]
    return found


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_room_is_entered_by_its_face(package: str) -> None:
    """A name of another room comes from the room, not from a module in it; a module may come as a whole."""
    wrong = []
    for path in (ROOT / package).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if set(path.parts) & {*NO_FACES, "harness", "inside"} or module == _room(module):
            continue
        for home, name in _imports(path):
            is_own = _room(home) == _room(module) or home.split(".")[0] != package
            file = ROOT.joinpath(*home.split("."))
            is_module = (file / f"{name}.py").exists() or (file / name / "__init__.py").exists()
            is_face = (file / "__init__.py").exists() or name == "attach" or home.endswith(".main")
            if not (is_own or is_module or is_face):
                wrong.append(f"{module}: from {home} import {name}")
            if home == _room(module) and not is_module:
                wrong.append(f"{module}: enters its own room by its face")
    assert wrong == []


def test_no_name_of_a_face_is_a_module_of_its_room() -> None:
    """Whoever asks first would decide which of the two it is."""
    for package in PACKAGES:
        for face in (ROOT / package).rglob("__init__.py"):
            if "= attach(" in face.read_text(encoding="utf-8"):
                modules = {path.stem for path in face.parent.iterdir()} - {"__init__"}
                names = {name for _, name in _imports(face)} - {"TYPE_CHECKING", "attach", "import_module"}
                assert not names & modules, face


def test_no_two_files_of_a_harness_define_one_name() -> None:
    """A worker gets them as one source, in which the later one would silently be everybody's."""
    for folder in (ROOT / "autograder" / "lessons").glob("lesson_*/harness"):
        defined = Counter(name for file in harness_files(folder) for name in _defined(file))
        assert [name for name, times in defined.items() if times > 1] == [], folder


def test_a_lesson_released_earlier_is_checked(tmp_path: Path) -> None:
    path = tmp_path / LESSON.name
    shutil.copy(LESSON, path)
    command = [sys.executable, "-m", "autograder.cli.main", "check", str(path), "--only", "4.1"]
    ran = subprocess.run([*command, "--only", "4.2", "--json"], capture_output=True, text=True, check=False)
    found = {each["id"]: each for each in json.loads(ran.stdout)["exercises"]}
    assert (found["4.1"]["verdict"], found["4.1"]["score"]) == ("pass", 10), found["4.1"]["reason"]
    assert found["4.2"]["verdict"] == "not_attempted"


@pytest.mark.further
def test_a_course_made_earlier_is_graded_and_given_feedback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    course = tmp_path / "course"
    shutil.copytree(COURSE, course)
    command = [sys.executable, "-m", "autograder.cli.main", "grade", "08", "--json"]
    ran = subprocess.run(command, cwd=course, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    # 8.5 alone: 8.1 forgets NumPy, and 8.2 lets an OverflowError out where a whole number is `.inf`.
    assert json.loads(ran.stdout)["students"]["ada"]["score"] == 11.0
    command = [sys.executable, "-m", "nbgrader", "generate_feedback", "08_reproducibility"]
    subprocess.run(command, cwd=course, capture_output=True, check=True)
    page = (course / "feedback" / "ada" / "08_reproducibility" / "08_reproducibility.html").read_text()
    assert "NumPy is not seeded" in page and "Right on secret inputs" in page
