"""`workbook release`: what students get, and what they must not."""

from __future__ import annotations

import base64
import errno
import functools
import gzip
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.cli.main import main
from autograder.course.lessons import load_lesson
from autograder.grading.gradebook import nbgrader_api
from autograder.grading.leaks import scan
from autograder.grading.nbgrader.bridge import prepare_environment
from autograder.grading.releasing import release
from autograder.grading.reports.reporting import report
from autograder.grading.terms.keys import grading_bank
from autograder.grading.units import cannot_write
from autograder.kept import progress
from autograder.kept.answers import AnswersFile
from autograder.learner import certificate
from autograder.notebooks.building import lesson_points, source_notebook
from autograder.quizzes.acting import check_quiz, give_answer
from autograder.quizzes.compiler import compile_bank
from autograder.quizzes.grading import bank_in
from autograder.quizzes.widget import QuizView
from course_lib.base.errors import UserError
from tests.autograder.nbgrader_course import LESSON_01, NOTEBOOKS

LESSON = load_lesson("01")
QUIZ_POINTS = 2.0
RIGHT = {"01.1": "a", "01.2": "b"}
REASON = "It changes how many steps are needed, and never how long one takes."
BANK = f"""\
lesson = "01"
title = "Loops, for credit"
[[question]]
id = "01.1"
kind = "diagnose"
text = "Of a step of 100 ms, 60 ms are spent waiting for data. What helps most?"
[[question.option]]
text = "Workers that read ahead"
right = true
reason = "The wait is the largest part, and workers overlap it with the model’s “own” work."
[[question.option]]
text = "A model of half the size, to shorten what remains of it"
mistake = "shortening what is no bottleneck"
reason = "At most 40 ms can go that way, and the wait of 60 ms stays."
[[question.option]]
text = "A larger learning rate"
mistake = "steps taken for seconds"
reason = "{REASON}"
[[question]]
id = "01.2"
kind = "bug"
text = "The loss is divided by the number of micro-batches, which hold unequal numbers of tokens. What is wrong?"
[[question.option]]
text = "Nothing"
mistake = "a mean of unequal means"
reason = "Unequal micro-batches weigh the same that way, so that short ones count too much."
[[question.option]]
text = "It must be divided by the tokens of all of them"
right = true
reason = "Only then has every token the same weight, however they are dealt out."
[[question.option]]
text = "It must be multiplied by the number of micro-batches instead"
mistake = "scaling up in place of down"
reason = "The gradient would grow with the number of micro-batches."
"""


@functools.cache
def built_source() -> str:
    """The source notebook of lesson 01, which a clone does not have before it is built."""
    points = lesson_points("01", NOTEBOOKS / "lessons" / "01_quiz.toml")
    return str(nbformat.writes(source_notebook(NOTEBOOKS / "lessons" / f"{LESSON_01}.py", points)))


def make_course(root: Path) -> Path:
    """A course with lesson 01, and questions of its own on it."""
    prepare_environment()
    source = root / "source" / LESSON_01
    source.mkdir(parents=True)
    shutil.copy(NOTEBOOKS / "nbgrader_config.py", root)
    (source / f"{LESSON_01}.ipynb").write_text(built_source(), encoding="utf-8")
    (root / "banks").mkdir()
    (root / "banks" / "01_quiz.toml").write_text(BANK, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose lesson 01 is released as graded. Nobody changes it."""
    root = make_course(tmp_path_factory.mktemp("graded") / "course")
    (root / "source" / LESSON_01 / f"{LESSON_01}_answers.json").write_text('{"of": "the instructor"}')
    found = release("01", root, graded=True)
    assert found.released and not found.leaks
    return root


@pytest.fixture
def course(released: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(released, tmp_path / "course"))


@pytest.fixture
def learner(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder, current, with what was released and nothing else of the course."""
    folder = tmp_path / "learner" / LESSON_01
    shutil.copytree(files_of(released), folder)
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(folder)
    return folder


def files_of(course: Path) -> Path:
    return course / "release" / LESSON_01


def quiz_points(notebook: Path) -> float:
    cells = nbformat.read(notebook, as_version=4).cells
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    return float(next(mark["points"] for mark in marks if mark.get("grade_id") == "quiz-01"))


def test_what_students_get(released: Path) -> None:
    names = {path.name for path in files_of(released).iterdir()}
    assert names == {f"{LESSON_01}.ipynb", f"{LESSON_01}_quiz.json"}
    assert quiz_points(files_of(released) / f"{LESSON_01}.ipynb") == QUIZ_POINTS
    asked = json.loads((files_of(released) / f"{LESSON_01}_quiz.json").read_text(encoding="utf-8"))
    assert [set(question) for question in asked["questions"]] == [{"id", "text", "options"}] * 2
    assert all(set(each) == {"id", "text"} for question in asked["questions"] for each in question["options"])


def test_the_keys_stay_with_the_instructor(released: Path) -> None:
    (kept,) = (released / ".workbook" / "keys").iterdir()
    questions = grading_bank(released, LESSON).questions
    assert {question.id: question.key for question in questions} == RIGHT
    if os.name == "posix":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def secrets() -> list[str]:
    """What the text of the questions says and students must not read."""
    options = [option for question in tomllib.loads(BANK)["question"] for option in question["option"]]
    return [option[key] for option in options for key in ("mistake", "reason") if key in option]


def test_nothing_of_the_keys_is_in_it(released: Path) -> None:
    """Searched without the release's own scan: each secret as it stands, in JSON, and in base64 at any offset."""
    source = nbformat.reads(built_source(), as_version=4)
    regions = [
        cell.source.partition("### BEGIN SOLUTION")[2].partition("### END")[0] for cell in source.cells
    ]
    code = [line.strip() for region in regions for line in region.splitlines() if len(line.strip()) > 45]
    assert len(secrets()) == 10 and len(code) > 10
    for path in (*files_of(released).iterdir(), *(released / "source" / LESSON_01).glob("*_quiz.json")):
        text = path.read_text(encoding="utf-8")
        for secret in (*secrets(), *code):
            for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
                assert form not in text, (path, secret)
            for offset in range(3):
                assert base64.b64encode(b" " * offset + secret.encode())[4:-8].decode() not in text
        for word in ("sealed", "### BEGIN", '"mistake"', '"reason"', '"right"', '"key"'):
            assert word not in text, (path, word)


def test_nbgrader_itself_makes_the_same_release(course: Path) -> None:
    """So that the button in formgrader, which asks for just this, takes nothing back."""
    before = {path.name: path.read_bytes() for path in files_of(course).iterdir()}
    shutil.rmtree(files_of(course))
    assert nbgrader_api(course).generate_assignment(LESSON_01)["success"]
    assert {path.name: path.read_bytes() for path in files_of(course).iterdir()} == before


def solution_line() -> str:
    lines = built_source().split("### BEGIN SOLUTION")[1].split("### END SOLUTION")[0].split('\\n",\n')
    return max((json.loads(f'"{line.strip().strip(chr(34))}"').strip() for line in lines), key=len)


def cell_with(**changes: Any) -> bytes:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    notebook.cells[0].update(changes)
    return str(nbformat.writes(notebook)).encode()


def sealed_bank(tmp_path: Path) -> bytes:
    (tmp_path / "01_quiz.toml").write_text(BANK, encoding="utf-8")
    return json.dumps(compile_bank(tmp_path / "01_quiz.toml").to_dict()).encode()


OUTPUT = nbformat.v4.new_output("stream", text="42")
LEAKS: dict[str, tuple[str, bytes, str]] = {
    "text of the bank": ("my_quiz.toml", BANK.encode(), "the text of a quiz"),
    "reason": ("notes.md", f"Note:  {REASON[:30]}\n   {REASON[30:]}".encode(), "a reason of question 01.1"),
    "reason in JSON": ("n.json", json.dumps({"a": [REASON]}).encode(), "a reason of question 01.1"),
    "reason in UTF-16": ("n.txt", REASON.encode("utf-16"), "a reason of question 01.1"),
    "reason in base64": ("n.bin", base64.b64encode(f"salt {REASON}".encode()), "a reason of question 01.1"),
    "reason, line by line": (
        "n.ipynb",
        cell_with(source=REASON.replace(" ", " \n")),
        "a reason of question 01.1",
    ),
    "mistake": ("n.txt", b"Beware of Steps taken for seconds!", "a mistake of question 01.1"),
    "list of keys": ("key.txt", b"01.1: a, 01.2: b", "the right answers of 2 questions"),
    "right answers": (
        "key.json",
        b'{"01.1": {"choice": "a"}, "01.2": {"choice": "b"}}',
        "the right answers of 2",
    ),
    "answers file": ("me_answers.json", b"{}", "somebody's answers"),
    "renamed answers": ("x.json", b'{"format": 1, "lesson": "01", "answers": {}}', "somebody's answers"),
    "evidence": ("e.json", b'{"schema_version": 2, "result": {"verdict": "pass"}}', "evidence of a check"),
    "outputs": ("n.ipynb", cell_with(outputs=[OUTPUT]), "outputs of a cell"),
    "it was run": ("n.ipynb", cell_with(execution_count=3), "outputs of a cell"),
    "solution marked": ("n.ipynb", cell_with(source="### BEGIN SOLUTION\nx"), "the solution, marked as such"),
    "hidden tests": ("t.py", b"    ### BEGIN HIDDEN TESTS\n    assert x", "the hidden tests"),
    "solution": ("help.py", f"if 1:\n{' ' * 9}{solution_line()}".encode(), "a line of the solution"),
    "checkpoint": (".ipynb_checkpoints/n.ipynb", cell_with(), "an older version"),
    "archive": ("all.zip", b"PK\x03\x04", "an archive"),
    "compressed": ("n.gz", gzip.compress(REASON.encode()), "an archive"),
    "gradebook": ("g", b"SQLite format 3\x00", "a database"),
}


@pytest.mark.parametrize("kind", [*LEAKS])
def test_each_leak_is_found(released: Path, tmp_path: Path, kind: str) -> None:
    name, data, says = LEAKS[kind]
    folder = Path(shutil.copytree(files_of(released), tmp_path / "release"))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    source = released / "source" / LESSON_01 / f"{LESSON_01}.ipynb"
    found = scan(folder, source, grading_bank(released, LESSON))
    assert {leak.file for leak in found} == {name}
    assert any(leak.what.startswith(says) for leak in found), found


def test_the_sealed_bank_and_links_are_found(released: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "bank.json").write_bytes(sealed_bank(tmp_path))
    (folder / "out").symlink_to(tmp_path)
    source = released / "source" / LESSON_01 / f"{LESSON_01}.ipynb"
    said = {leak.what for leak in scan(folder, source, grading_bank(released, LESSON))}
    assert {"keys of a quiz, sealed", "a reason of question 01.1", "a reason of question 01.2"} <= said
    assert "a link, which leads out of the folder" in said
    (folder / "out").unlink()
    (folder / "bank.json").write_text(built_source())
    said = {leak.what.partition(":")[0] for leak in scan(folder, source, None)}
    assert {"the solution, marked as such", "a line of the solution of exercise-1-1"} <= said


def test_no_lesson_as_it_stands_is_a_finding(tmp_path: Path) -> None:
    """A scan that cries wolf would be switched off."""
    for text in sorted((NOTEBOOKS / "lessons").glob("[0-9][0-9]_*.py")):
        quiz = text.with_name(f"{text.name[:2]}_quiz.toml")
        source = tmp_path / f"{text.stem}.ipynb"
        nbformat.write(source_notebook(text, lesson_points(text.name[:2], quiz)), source)
        assert not scan(NOTEBOOKS / "release" / text.stem, source, None), text.stem


def state_of(course: Path) -> dict[str, bytes]:
    """Every file of a course but those where a release is made and withheld, and the gradebook's tables as text."""
    with sqlite3.connect(course / "gradebook.db") as db:
        tables = {"gradebook": "\n".join(db.iterdump()).encode()}
    apart = ("releasing", "withheld")
    files = [path for path in course.rglob("*") if path.is_file() and not {*apart} & {*path.parts}]
    return tables | {str(path): path.read_bytes() for path in files if path.name != "gradebook.db"}


def test_a_release_that_is_withheld_changes_nothing(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for with another question, so that points, questions and keys would be others."""
    (course / "source" / LESSON_01 / "key.txt").write_text(f"Hello\n\n01.1 a\n01.2 b\n{REASON}")
    notebook = cell_with(source=f"x = 1\n# {REASON}")
    (course / "source" / LESSON_01 / "more.ipynb").write_bytes(notebook)
    third = BANK.split("[[question]]")[1].replace("01.1", "01.3").replace("Of a step", "Of steps")
    third = third.replace(REASON, "It is no matter of how far a step leads, only of how soon it is over.")
    (course / "banks" / "01_quiz.toml").write_text(f"{BANK}[[question]]{third}")
    before = state_of(course)
    assert main(["release", "01", "--graded", "--course", str(course)]) == 1
    said = capsys.readouterr().out
    assert "key.txt, line 3: the right answers of 2 questions: “01.1 a”" in said
    assert f"key.txt, line 5: a reason of question 01.1: “{REASON}”" in said
    assert f"more.ipynb, cell 1, line 2: a reason of question 01.1: “# {REASON}”" in said
    assert "as they were" in said
    assert state_of(course) == before
    assert (course / ".workbook" / "withheld" / LESSON_01 / "key.txt").exists()
    for name in ("key.txt", "more.ipynb"):
        (course / "source" / LESSON_01 / name).unlink()
    assert main(["release", "01", "--graded", "--course", str(course), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["released"] and found["questions"] == QUIZ_POINTS + 1
    assert quiz_points(files_of(course) / f"{LESSON_01}.ipynb") == QUIZ_POINTS + 1


def test_a_release_that_nbgrader_refuses_changes_nothing(course: Path) -> None:
    """A cell that was lost its mark half-way stops nbgrader, after the questions were written."""
    source = course / "source" / LESSON_01 / f"{LESSON_01}.ipynb"
    notebook = nbformat.read(source, as_version=4)
    marked = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    marked[1].metadata["nbgrader"]["grade_id"] = marked[0].metadata["nbgrader"]["grade_id"]
    nbformat.write(notebook, source)
    (course / "banks" / "01_quiz.toml").write_text(BANK.replace("Of a step", "Of steps"))
    before = state_of(course)
    with pytest.raises(UserError, match="nbgrader could not make the release"):
        release("01", course, graded=True)
    assert state_of(course) == before


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("gradebook.db", "grade"),
        ("gradebook.db", "report"),
        ("nbgrader_config.py", "release"),
        (f"source/{LESSON_01}/{LESSON_01}.ipynb", "release"),
        ("banks/01_quiz.toml", "release"),
        (".workbook/keys/01.json", "grade"),
    ],
)
def test_a_damaged_file_of_a_course_is_named(
    course: Path, capsys: pytest.CaptureFixture[str], name: str, verb: str
) -> None:
    handed_in = course / "submitted" / "ada" / LESSON_01
    shutil.copytree(files_of(course), handed_in)
    (course / name).write_bytes(b"\xff{ not what it was")
    graded = ["--graded"] if verb == "release" else []
    capsys.readouterr()
    assert main([verb, "01", *graded, "--course", str(course)]) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("workbook: ")]
    assert Path(name).name in said and "mistake of ours" not in said and "ree space" not in said


def test_what_a_disk_refuses_names_the_file_and_what_helps() -> None:
    """Rights that root always has, and a full disk."""
    refused = PermissionError(errno.EACCES, "Permission denied", "/course/late.py")
    assert str(cannot_write(Path("/course"), refused)).startswith(
        "cannot read or write /course/late.py: Permission denied. Mend that file or its rights"
    )
    full = OSError(errno.ENOSPC, "No space left on device", "/course/.workbook/x.json")
    assert str(cannot_write(Path("/course"), full)).startswith(
        "cannot write in /course: No space left on device. Free space there"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([('lesson = "01"', 'lesson = "02"'), ('"01.', '"02.')], "says lesson 02"),
        ([('id = "01.2"', 'id = "01.1b"')], "has one form; take 01.1b"),
        ([('text = "Of a step', 'text = "Of a'), ('= "Loops, for credit"', "= 3 4")], "cannot be read"),
    ],
)
def test_questions_that_will_not_do(course: Path, changes: list[tuple[str, str]], says: str) -> None:
    text = BANK
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (course / "bank.toml").write_text(text)
    with pytest.raises(UserError, match=says):
        release("01", course, graded=True, bank=course / "bank.toml")


def test_published_and_measured_questions_and_places_are_refused(course: Path) -> None:
    own, shipped = course / "bank.toml", NOTEBOOKS / "lessons" / "01_quiz.toml"
    with pytest.raises(
        UserError, match=r"question 01\.1 is the course's own 01\.1, whose key every student has"
    ):
        release("01", course, graded=True, bank=shipped)
    measured = BANK.replace('kind = "diagnose"', 'kind = "estimate"\nmeasured = "padding_share"')
    measured = measured.replace(
        'right = true\nreason = "The wait', 'mistake = "m"\nhigh = 1\nreason = "The wait'
    )
    measured = measured.replace('mistake = "shor', 'low = 1\nhigh = 2\nmistake = "shor')
    own.write_text(measured.replace('mistake = "steps', 'low = 2\nmistake = "steps'))
    with pytest.raises(UserError, match=r"question 01\.1 is measured"):
        release("01", course, graded=True, bank=own)
    inside = course / "source" / LESSON_01 / "bank.toml"
    inside.write_text(BANK)
    with pytest.raises(UserError, match="lies where students get what is there"):
        release("01", course, graded=True, bank=inside)
    (course / "banks" / "01_quiz.toml").unlink()
    with pytest.raises(UserError, match="needs questions of your own"):
        release("01", course, graded=True)
    with pytest.raises(UserError, match="--bank goes with --graded"):
        release("01", course, bank=own)


def test_questions_that_change_after_hand_in_are_told(course: Path) -> None:
    shutil.copytree(files_of(course), course / "submitted" / "ada" / LESSON_01)
    assert release("01", course, graded=True).notes == ()
    (course / "banks" / "01_quiz.toml").write_text(BANK.replace("A larger", "A smaller"), encoding="utf-8")
    (note,) = release("01", course, graded=True).notes
    assert "changed after hand-in" in note


def test_an_exercise_that_goes_after_hand_in_is_told_what_to_do_instead(course: Path) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "training-workbook") as gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission(LESSON_01, "ada")
    source = course / "source" / LESSON_01 / f"{LESSON_01}.ipynb"
    notebook = nbformat.read(source, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if 'check("1.5")' not in cell.source]
    nbformat.write(notebook, source)
    with pytest.raises(UserError, match="set the points of its check to 0"):
        release("01", course, graded=True)
    assert files_of(course).is_dir(), "what students have stays"


@pytest.mark.parametrize(("lesson_id", "says"), [("09", "is an exam"), ("00", "has no quiz")])
def test_lessons_without_a_graded_quiz(course: Path, lesson_id: str, says: str) -> None:
    slug = load_lesson(lesson_id).slug
    shutil.copytree(NOTEBOOKS / "release" / slug, course / "source" / slug)
    with pytest.raises(UserError, match=says):
        release(lesson_id, course, graded=True, bank=course / "banks" / "01_quiz.toml")


def test_a_practice_release_takes_the_place_of_a_graded_one_only_when_asked(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["release", "1", "--course", str(course)]
    assert main(command) == 2
    assert "move its keys away" in capsys.readouterr().err
    (course / ".workbook" / "keys" / "01.json").unlink()
    with pytest.raises(UserError, match=r"01\.json is missing"):  # students have keyless questions
        grading_bank(course, LESSON)
    assert main(command) == 0
    assert "only lightly hidden" in capsys.readouterr().out
    assert [path.name for path in files_of(course).iterdir()] == [f"{LESSON_01}.ipynb"]
    assert (
        files_of(course).joinpath(f"{LESSON_01}.ipynb").read_bytes()
        == (NOTEBOOKS / "release" / LESSON_01 / f"{LESSON_01}.ipynb").read_bytes()
    )
    assert grading_bank(course, LESSON) == bank_in(course, "01")


def learner_runs(code: str) -> str:
    """What a process of the learner's own prints in the current folder."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_learner_without_keys(learner: Path) -> None:
    code = (
        'from autograder import answer, check_quiz, quiz; answer("01.2", "c"); quiz("01"); check_quiz("01")'
    )
    said = learner_runs(code)
    assert "saved in" in said and "it is graded after you hand in" in said
    assert "Of a step of 100 ms" in said and "(•) c  It must be multiplied" in said, (
        "its own questions, restored"
    )
    assert "1 of 2 answered: graded by your instructor" in said
    assert not any(secret in said for secret in secrets())
    assert not any(word in said for word in ("✗", "✓", "Right", "right at", "other questions"))


def test_the_widget_saves_and_tells_nothing(learner: Path) -> None:
    for choice in ("c", "a"):
        view = QuizView(bank_in(learner, "01"), AnswersFile(learner / f"{LESSON_01}_answers.json", "01"))
        view.radios["01.1"].value = choice
        assert "graded after you hand in" in view.feedback["01.1"].value
        assert not any(secret in view.feedback["01.1"].value for secret in secrets())
        again = QuizView(bank_in(learner, "01"), AnswersFile(learner / f"{LESSON_01}_answers.json", "01"))
        assert again.radios["01.1"].value == choice and again.feedback["01.1"].value == ""
    with pytest.raises(UserError, match="has no question"):
        give_answer("01.3", "a")


def test_progress_certificate_and_check_wait_for_the_instructor(
    learner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_answer("01.1", "a")
    score = check_quiz("01")
    assert float(score) == 0 and "graded by your instructor" in score._repr_html_()  # type: ignore[operator]
    assert progress.summary().lessons["01"].quiz is None
    made = certificate.make("Ada", learner / "certificate.html")
    missing = next(what for part, what in made.missing.items() if part.startswith("01"))
    assert "quiz: 1 of 2 answered, graded by your instructor" in missing
    assert main(["progress"]) == 0 and "graded by your instructor" in capsys.readouterr().out
    assert main(["check", f"{LESSON_01}.ipynb"]) == 1
    assert "Quiz: 1 of 2 answered: graded by your instructor" in capsys.readouterr().out
    assert main(["check", f"{LESSON_01}.ipynb", "--only", "1.1"]) == 1
    assert "Quiz" not in capsys.readouterr().out
    assert main(["check", f"{LESSON_01}.ipynb", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["quiz"] == {"score": None, "max_score": 2.0, "passed": None}


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 100_000, b'{"questions": [1]}'])
def test_a_damaged_file_of_questions_is_one_line(learner: Path, data: bytes) -> None:
    (learner / f"{LESSON_01}_quiz.json").write_bytes(data)
    with pytest.raises(UserError, match="put the one there that your course handed out"):
        give_answer("01.1", "a")


@pytest.mark.slow
def test_from_the_release_to_the_points(
    course: Path, learner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Learners answer in processes without keys, are collected and graded; a corrected key grades them again."""
    homes = {}
    for student, choices in (("full", RIGHT), ("half", {"01.1": "a", "01.2": "c"}), ("none", {})):
        homes[student] = Path(shutil.copytree(learner, tmp_path / "in" / student))
        lines = "".join(f"answer({question!r}, {choice!r}); " for question, choice in choices.items())
        os.chdir(homes[student])
        learner_runs(f"from autograder import answer; {lines}")
    # A learner's own questions and keys in the hand-in count for nothing.
    (homes["none"] / f"{LESSON_01}_quiz.json").write_bytes(sealed_bank(tmp_path))
    where = ["--course", str(course)]
    assert main(["collect", "01", str(tmp_path / "in"), *where, "--new-students"]) == 0
    assert main(["grade", "01", *where]) == 0
    assert quiz_scores(course) == {"full": 2.0, "half": 1.0, "none": 0.0}
    questions = {question.id: question for question in report("01", course).questions}
    assert questions["01.1"].difficulty == 1.0 and questions["01.2"].difficulty == 0.5
    assert questions["01.2"].mistakes == {"scaling up in place of down": 1}
    told = (course / "autograded" / "half" / LESSON_01 / f"{LESSON_01}.ipynb").read_text(encoding="utf-8")
    assert "The loss is divided by the number of micro-batches" in told, "what was asked"
    assert "The gradient would grow with the number" in told and "Only then has every token" not in told
    capsys.readouterr()
    main(["check", str(course / "submitted" / "half" / LESSON_01 / f"{LESSON_01}.ipynb"), "--json"])
    assert json.loads(capsys.readouterr().out)["quiz"] == {"score": 1.0, "max_score": 2.0, "passed": False}

    moved = BANK.replace('right = true\nreason = "Only then', 'mistake = "m"\nreason = "Only then')
    moved = moved.replace('mistake = "scaling up in place of down"', "right = true")
    (course / "banks" / "01_quiz.toml").write_text(moved, encoding="utf-8")
    capsys.readouterr()
    assert main(["release", "01", "--graded", *where]) == 0
    assert "changed after hand-in" not in capsys.readouterr().out, "no text changed"
    assert main(["grade", "01", *where]) == 0
    assert quiz_scores(course) == {"full": 1.0, "half": 2.0, "none": 0.0}


def quiz_scores(course: Path) -> dict[str, float]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "training-workbook") as gradebook:
        return {
            submission.student.id: next(
                grade.auto_score for grade in submission.notebooks[0].grades if grade.name == "quiz-01"
            )
            for submission in gradebook.assignment_submissions(LESSON_01)
        }


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="nbgrader has no exchange on Windows")
def test_the_exchange_works_as_stock(course: Path, tmp_path: Path) -> None:
    """release_assignment, fetch_assignment, submit and collect, on an exchange of this test's own."""
    exchange, home = tmp_path / "exchange", tmp_path / "home"
    exchange.mkdir()
    exchange.chmod(0o777)
    home.mkdir()
    lines = f"c.Exchange.root = {str(exchange)!r}\nc.Exchange.cache = {str(tmp_path / 'cache')!r}\n"
    config = course / "nbgrader_config.py"
    config.write_text(f"{config.read_text(encoding='utf-8')}\n{lines}", encoding="utf-8")
    (home / "nbgrader_config.py").write_text(f"c = get_config()\n{lines}")
    environment = os.environ | {
        "JUPYTERHUB_USER": "ada",
        "HOME": str(tmp_path),
        "WORKBOOK_DATA": str(tmp_path / "d"),
    }

    def nbgrader(folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "nbgrader", *arguments, "--course", "training-workbook"]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr

    nbgrader(course, "release_assignment", LESSON_01)
    nbgrader(home, "fetch_assignment", LESSON_01)
    fetched = {path.name: path.read_bytes() for path in (home / LESSON_01).iterdir()}
    assert fetched == {path.name: path.read_bytes() for path in files_of(course).iterdir()}
    AnswersFile(home / LESSON_01 / f"{LESSON_01}_answers.json", "01").save("01.1", {"choice": "a"})
    nbgrader(home, "submit", LESSON_01)
    nbgrader(course, "collect", LESSON_01)
    (collected,) = (course / "submitted").glob(f"*/{LESSON_01}")
    assert {path.name for path in collected.iterdir()} == {
        *fetched,
        f"{LESSON_01}_answers.json",
        "timestamp.txt",
        "submission_secret.txt",
    }
