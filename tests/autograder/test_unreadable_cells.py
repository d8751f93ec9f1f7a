"""A cell that is no Python fails its own exercise, with line and caret, wherever it is checked; others are judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.engine.check import check_source
from autograder.engine.source.cell import read_cell
from autograder.engine.source.family import family
from autograder.engine.source.notebook import MAX_CELL, as_python, exercise_ids, is_python
from autograder.notebooks.check import check_notebook
from autograder.show import result_text
from autograder.show.card import result_html
from tests.autograder.nbgrader_course import NOTEBOOKS
from tests.autograder.solutions import reference_sources
from tests.kernels import run_all_cells

DEDENT = '@exercise("0.1")\ndef speedup(a, b):\n    if a:\n        x = 1\n      return 2\n'
CASES = {
    "a bad dedent": (DEDENT, "unindent", 5, "      return 2", "      ^", "another number of spaces"),
    "no colon": ("def f()\n    pass", "expected ':'", 1, "def f()", "       ^", "lacks the colon"),
    "an open bracket": ("x = [1, 2\ny = 3", "never closed", 1, "x = [1, 2", "    ^", "has no partner"),
    "an open quote": ("print('a)", "unterminated", 1, "print('a)", "      ^", "a quote"),
    "quotes of a word processor": ("x = “a”", "invalid character", 1, "x = “a”", "    ^", "word processors"),
    "return outside": ("x = 1\nreturn x", "outside function", 2, "return x", "^^^^^^^^", "indentation"),
    "a null byte": ("x = 1\ny\0 = 2", "null byte", 2, "y  = 2", " ^", "no text"),
    "half a sign": ("x = '\ud800'", "surrogates", 1, "x = ' '", "     ^", "half of a sign"),
    "too many digits": ("y = 1\nx = " + "1" * 5_000, "digits", 2, "x = 111", "", "worked out"),
    "too many brackets": ("x = 1\n" + "(" * 300, "nested", 2, "(((", "", "by a program"),
    "too deep": ("x = 1\n" + "-" * 150_000 + "1", "nested deeper", 2, "---", "^", "by a program"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mistake_is_named_with_line_and_place(name: str) -> None:
    source, got, line, text, caret, likely = CASES[name]
    result = check_source("0.1", source)
    assert (result.verdict, result.score, result.max_score) == ("fail", 0, 1)
    assert result.reason.expected == "code that Python can read"
    lines = [each.removeprefix("  | ") for each in result.reason.got.splitlines()]
    assert got in lines[0].lower() or got in lines[0]
    assert lines[0].endswith(f"in line {line} of the cell:")
    assert len(lines) == 3 and text in lines[1] and lines[2].startswith(caret) and lines[2].strip(" ^") == ""
    assert likely in result.reason.likely and result.reason.next
    assert "ours" not in result_text(result)
    assert len(result_html(result)) < 20_000


def test_the_place_in_a_long_line_is_shown_with_what_stands_around_it() -> None:
    mistake = read_cell("x = [" + "1, " * 300 + "2 3" + ", 4" * 300 + "]", "x").mistake
    assert mistake
    _, line, carets = (each.removeprefix("  | ") for each in mistake.got.splitlines())
    assert len(line) < 120 and line.startswith("…") and line.endswith("…")
    assert line[carets.index("^") : carets.rindex("^") + 1] == "2 3"


def test_a_cell_that_is_too_long_is_not_read() -> None:
    mistake = read_cell("x = 1\n" * 40_000, "x").mistake
    assert mistake and mistake.got == "240,000 characters" and f"{MAX_CELL:,}" in mistake.expected


@pytest.mark.parametrize(
    "source",
    [
        "%time 1\n" * 25_000,
        "exercise (" + "\n" * 190_000,
        "@exercise(" + "\n" * 95_000 + "%" * 95_000,
        "'''" * 66_000,
    ],
)
def test_what_no_python_can_read_is_gone_through_once(source: str) -> None:
    assert exercise_ids(source) == []
    assert as_python(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass  # %matplotlib inline\nx = 1"),
        ("if x:\n    !ls \\\n  -l\n    y = 1", "if x:\n    pass  # !ls \\\n#   -l\n    y = 1"),
        ("files = !ls\n", "files = None  # !ls\n"),
        ("x = f(\n1)\nf?\n", "x = f(\n1)\npass  # f?\n"),
        ("x = (7\n% 3)\n%time 1", "x = (7\n% 3)\npass  # %time 1"),
        ("x = 'a\\\n%b'\n!ls", "x = 'a\\\n%b'\npass  # !ls"),
        ('x = """"a\n%b"""\n!ls', 'x = """"a\n%b"""\npass  # !ls'),
        ("# what?\n!ls", "# what?\npass  # !ls"),
        (">>> x = 1\n>>> y = 2", "x = 1\ny = 2"),
        ("    x = 1\n    !ls", "x = 1\npass  # !ls"),
    ],
)
def test_what_is_meant_for_ipython_becomes_a_comment_in_its_line(cell: str, python: str) -> None:
    assert as_python(cell) == python and is_python(cell)


def test_many_names_of_locals_are_numbered_in_one_pass() -> None:
    def code(name: str) -> str:
        return "def f():\n" + "".join(f" {name}{number}=1\n" for number in range(19_000))

    assert family(code("a")) == family(code("b")) != family(code("a") + " return 1")
    long = "def f():\n" + "".join(f" a{number}=1\n" for number in range(60_000))
    assert family(long) != family(code("a"))


def handed_in(folder: Path, lesson_id: str, **cells: str) -> Path:
    """The release of a lesson in which cells have been filled in, and one that is no Python was added."""
    (path,) = (NOTEBOOKS / "release").glob(f"{lesson_id}_*/{lesson_id}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    for each in notebook.cells:
        (exercise_id,) = (exercise_ids(each.source) if each.cell_type == "code" else None) or [""]
        each.source = cells.get(f"of_{exercise_id.replace('.', '_')}", each.source)
    notebook.cells.append(nbformat.v4.new_code_cell("if True:\n        exercise\n   1"))
    nbformat.write(notebook, folder / path.name)
    return folder / path.name


def test_the_other_exercises_are_judged(tmp_path: Path) -> None:
    solved = reference_sources("08")
    path = handed_in(tmp_path, "08", of_8_1=solved["8.1"] + "\n  return (\n", of_8_5=solved["8.5"])
    broken, other = check_notebook(path, only=["8.1", "8.5"]).exercises
    assert broken.verdict == "fail" and "of the cell" in broken.reason.got
    assert other.verdict == "pass"


def test_workbook_check_says_where(tmp_path: Path) -> None:
    path = handed_in(tmp_path, "00", of_0_1=reference_sources("00")["0.1"] + "\n  return 1\n")
    for options in ([], ["--json"]):
        ran = subprocess.run(
            [sys.executable, "-m", "autograder.cli.main", "check", str(path), *options],
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 1 and "unindent does not match" in ran.stdout and "ours" not in ran.stdout
    (result,) = json.loads(ran.stdout)["exercises"]
    assert result["verdict"] == "fail" and "\n  |   ^" in result["reason"]


@pytest.mark.slow
@pytest.mark.everyday
def test_in_a_notebook_it_is_the_cell_that_was_run_last_that_fails(tmp_path: Path) -> None:
    right = '@exercise("0.1")\ndef speedup(baseline_seconds, candidate_seconds):\n'
    sources = [
        "from autograder import check, exercise",
        right + "    return baseline_seconds / candidate_seconds",
        right + "    return (baseline_seconds",
        'check("0.1")',
        right + "    return candidate_seconds",
        'check("0.1")',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    run_all_cells(notebook, tmp_path, seconds=120, allow_errors=True)
    broken, wrong = (str(notebook.cells[index].outputs) for index in (3, 5))
    assert "was never closed" in broken and "in line 3 of the cell" in broken
    assert "was never closed" not in wrong and "Not yet" in wrong
