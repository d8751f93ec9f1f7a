"""docs/instructors.md keeps its word: its commands and files exist, and the exercise that it writes works."""

from __future__ import annotations

import contextlib
import inspect
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jupytext
import numpy as np
import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp

from autograder.cli.main import _parser
from autograder.course.draws import values_of
from autograder.course.lessons import Clock, Exercise, find_exercise, load_lesson
from autograder.engine.job import CheckFailed, Job
from autograder.engine.measure import measure_speedup
from autograder.engine.source.notebook import exercise_sources
from autograder.lessons.checking.mutants import EXPLAINS, Mutant, edited, wrong
from autograder.notebooks.building import source_notebook
from autograder.quizzes.compiler import compile_bank
from tests.autograder.exercise_texts import one_line

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "instructors.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
PROSE = re.sub(r"^```.*?^```$", "", TEXT, flags=re.DOTALL | re.MULTILINE)
QUOTED = [" ".join(quoted.split()) for quoted in re.findall(r"`([^`]+)`", PROSE)]
COMMANDS = [line for kind, block in BLOCKS if kind == "console" for line in block.splitlines()]
# Of other programs; `python3 workbook.py VERB` is `workbook VERB`.
OTHERS = ("git", "cd", ".", "mkdir", "cp", "pip", "jupyter")


def commands(program: str) -> list[str]:
    """Each command of a program that the guide shows or names, without the program."""
    named = [*COMMANDS, *QUOTED]
    return [line.removeprefix(f"{program} ") for line in named if line.startswith(f"{program} ")]


def block(begins: str) -> str:
    """The one block of the guide in which this stands."""
    (found,) = [text for _, text in BLOCKS if begins in text]
    return found


def test_no_command_is_of_a_program_that_nobody_checks() -> None:
    known = ("workbook", "nbgrader", "pytest", "python", "python3", *OTHERS)
    assert not [line for line in COMMANDS if line.split()[0] not in known]


@pytest.mark.parametrize("command", commands("python -m"))
def test_its_modules_are_there(command: str) -> None:
    assert find_spec(command.split()[0])


@pytest.mark.parametrize("command", [*commands("workbook"), *commands("python3 workbook.py")])
def test_workbook_has_the_verb_and_its_options(command: str) -> None:
    try:
        _parser().parse_args(shlex.split(command))
    except SystemExit as ended:  # of --help
        assert ended.code == 0


@pytest.mark.parametrize("command", commands("nbgrader"))
def test_nbgrader_has_the_verb_and_its_options(command: str) -> None:
    app, words = NbGraderApp(), shlex.split(command)
    while words and words[0] in app.subcommands:
        app = app.subcommands[words.pop(0)][0]()
    options = {word.partition("=")[0].removeprefix("--") for word in words if word.startswith("--")}
    assert not isinstance(app, NbGraderApp) and options <= {*app.aliases, *app.flags}


def test_its_files_are_there() -> None:
    words = {word for line in [*COMMANDS, *QUOTED] for word in line.split()}
    files = {word.strip(".,;:`") for word in words if re.match(r"(autograder|tests|docs|notebooks)/", word)}
    files = {file for file in files if not file.startswith("notebooks/source")}  # made by `workbook build`
    assert files and not [file for file in sorted(files) if not (ROOT / file).exists()]
    links = {link for link in re.findall(r"\]\(([^)#]+)", PROSE) if "://" not in link}
    assert links and not [link for link in sorted(links) if not (GUIDE.parent / link).exists()]
    exporters = re.findall(r"autograder\.grading\.exports\.(\w+)", TEXT)
    assert exporters and all(
        f"class {name}(" in _text("autograder/grading/nbgrader/exports.py") for name in exporters
    )


def test_what_contributors_are_shown_is_there() -> None:
    text = _text("CONTRIBUTING.md")
    links = {link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link}
    assert len(links) > 30 and not [link for link in sorted(links) if not (ROOT / link).exists()]
    for package in ("autograder", "course_lib"):
        rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")} - {"old_names"}
        assert rooms == set(re.findall(rf"^\| \[`(\w+)`\]\({package}/", text, re.MULTILINE))


def test_its_exercise_is_solved_and_each_wrong_solution_is_named(tmp_path: Path) -> None:
    text, exercise = block('@exercise("1.7")\ndef padding_share(lengths: list[int])'), _exercise()
    path = tmp_path / "01_lesson.py"
    path.write_text(text, encoding="utf-8")
    marked = [
        cell.metadata.nbgrader.grade_id
        for cell in source_notebook(path, {"1.7": 5.0}).cells
        if "nbgrader" in cell.metadata
    ]
    assert marked == ["exercise-1-7", "check-1-7"]
    assert exercise.id not in {known.id for known in load_lesson("01").exercises}
    _check(exercise, exercise_sources(jupytext.read(path))["1.7"])
    path.write_text(block("what each lacks of the longest"), encoding="utf-8")
    _check(exercise, exercise_sources(jupytext.read(path))["1.7"])
    mutants = _run(block("_SHARE ="))["MUTANTS"]["1.7"]
    assert len(mutants) >= 3
    claims = _run(block('"The share of padded places"'))["PADDING"]
    quoted = [quote for quote in claims if quote not in one_line(text)]
    assert not quoted and {name for names in claims.values() for name in names} == {
        *EXPLAINS,
        *(mutant.name for mutant in mutants),
    }
    for mutant in mutants:
        with pytest.raises(CheckFailed, match=re.escape(mutant.says)):
            _check(exercise, mutant.source)


def test_its_drawn_exercise_is_another_for_each_student(tmp_path: Path) -> None:
    exercise = eval(block('entry="padded_width"'), {"Exercise": Exercise})
    path = tmp_path / "01_lesson.py"
    path.write_text(block("STUDENT = "), encoding="utf-8")
    source = exercise_sources(jupytext.read(path))["1.8"]
    names: dict[str, Any] = {"Job": Job}
    exec(f"from __future__ import annotations\n{block('def check_padded_width')}", names)
    harness = 'learner = globals().get("learner")\n' + block("def padded_widths")

    def check(source: str) -> None:
        with contextlib.closing(Job.of(exercise, source, harness)) as job:
            names["check_padded_width"](job)

    check(source)
    multiples = {name: values_of(exercise, name)["multiple"] for name in map("s{}".format, range(40))}
    assert len(set(multiples.values())) >= 6
    other = next(name for name, multiple in multiples.items() if multiple != 20)
    with pytest.raises(CheckFailed, match="that of another student"):
        check(source.replace('"me"', f'"{other}"'))
    check(source.replace('"me"', f'"{other}"').replace("= 20", f"= {multiples[other]}"))


def test_its_clock_is_that_of_the_exercise_it_names() -> None:
    names: dict[str, Any] = {"Clock": Clock}
    exec(block("clock = Clock("), names)
    assert names["clock"] == find_exercise("1.1")[1].clock


def test_it_shows_each_argument_of_the_clock_as_1_1_gives_it() -> None:
    arguments = inspect.signature(measure_speedup).parameters
    rows = re.findall(r"^\| (`.*?) \|", PROSE[PROSE.index("| Argument |") :], re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert arguments.keys() - {"job"} <= told
    shown = " ".join(block('function="collate_segment"').split())
    assert shown in " ".join(_text("autograder/lessons/lesson_01/checks/batches.py").split())


def test_its_question_compiles(tmp_path: Path) -> None:
    number = len(re.findall(r'^id = "01\.\d+"$', _text("notebooks/lessons/01_quiz.toml"), re.MULTILINE))
    question = block("[[question]]")
    assert f'id = "01.{number + 1}"' in question
    path = tmp_path / "01_quiz.toml"
    path.write_text(_text("notebooks/lessons/01_quiz.toml") + "\n" + question, encoding="utf-8")
    assert compile_bank(path).num_questions == number + 1


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _run(code: str) -> dict[str, Any]:
    """The names that a block defines, where it would stand."""
    names: dict[str, Any] = {"Mutant": Mutant, "edited": edited, "wrong": wrong, "Job": Job}
    names |= {"EXPLAINS": EXPLAINS, "math": __import__("math")}
    exec(f"from __future__ import annotations\n{code}", names)
    return names


def _exercise() -> Exercise:
    exercise = eval(block('entry="padding_share"'), {"Exercise": Exercise})
    assert isinstance(exercise, Exercise)
    return exercise


def _check(exercise: Exercise, source: str) -> None:
    """Raises as the check does."""
    harness = 'learner = globals().get("learner")\n' + block("def padding_shares")
    module, _, name = exercise.check.rpartition(".")
    assert f"`autograder/lessons/lesson_01/{module.replace('.', '/')}.py`" in PROSE
    check = _run(block(f"def {name}"))[name]
    job = Job(exercise.id, exercise.entry, source, harness, np.random.default_rng())
    try:
        check(job)
    finally:
        job.close()
