"""Feedback goes back by the system that a hand-in came from: names as the systems read them, nothing lost or double."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup

from autograder.cli.main import main
from autograder.grading.handed_in.collecting import collect
from autograder.grading.handed_in.known import Known
from autograder.grading.handed_in.origins import origin_of
from autograder.grading.handed_in.returned import returned_text
from autograder.grading.handed_in.returning import return_feedback
from autograder.grading.marking import grade
from tests.autograder.nbgrader_course import LESSON_00, NOTEBOOKS, Course, with_solutions
from tests.autograder.test_collect import zipped

NAME = f"{LESSON_00}.ipynb"
ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<img src=x onerror=alert(1)> $\\href{javascript:alert(1)}{x}$"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A class that handed in by Moodle, by Canvas, and by itself; graded."""
    folder = tmp_path_factory.mktemp("return")
    course = Course(folder, LESSON_00)
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        for student, name in {"al": "Ada Lovelace", "jd": "José D'Arc", "kim": "Kim Lee"}.items():
            first, last = name.split()
            gradebook.add_student(student, first_name=first, last_name=last)
        for student, number in {"ca": "4711", "cb": "4712", "cc": "4713", "cd": "4714"}.items():
            gradebook.add_student(student, lms_user_id=number)
        gradebook.add_student("own")
    release, source = course.notebook("release", LESSON_00), course.notebook("source", LESSON_00)
    stub = nbformat.writes(release).encode()
    right = nbformat.writes(with_solutions(release, source, "0.1")).encode()
    moodle = zipped(
        folder / "moodle.zip",
        (f"Ada Lovelace_20480_assignsubmission_file/{NAME}", right),
        (f"José D'Arc_20481_assignsubmission_file_{NAME}", stub),
        (f"Participant_20482_assignsubmission_file_/{NAME}", stub),
    )
    collect("00", course.root, [moodle], known=[Known(number="20482", called=("kim",))])
    packed = zipped(folder / "work.zip", (NAME, stub)).read_bytes()
    canvas = zipped(
        folder / "canvas.zip",
        (f"anonna_LATE_4711_902_{NAME}", stub),
        (f"anonna_LATE_4711_901_{LESSON_00}_answers.json", b'{"format": 1, "lesson": "00", "answers": {}}'),
        ("anon_4712_903_work.zip", packed),
        (f"2_4713_904_{LESSON_00}-1.ipynb", stub),
        ("dora_4714_905_essay.pdf", b"%PDF"),
    )
    known = [Known(name="anon_4712_903_work.zip", student="cb")]
    collect("00", course.root, [canvas], known=known)
    collect("00", course.root, [_folder(folder / "own", stub)])
    grade("00", course.root)
    return course


def _folder(path: Path, notebook: bytes) -> Path:
    (path / "own").mkdir(parents=True)
    (path / "own" / NAME).write_bytes(notebook)
    return path


@pytest.fixture
def course(made: Course, tmp_path: Path) -> Path:
    root = tmp_path / "course"
    shutil.copytree(made.root, root)
    config = root / "nbgrader_config.py"
    config.write_text(config.read_text().replace(str(made.root), str(root)))
    return root


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert len(set(names)) == len(names) and archive.testzip() is None
        return {name: archive.read(name) for name in names}


def moodle_of_today(path: str) -> tuple[int, str] | None:
    """Participant and file, as importziplib.php of Moodle 4.1 and later reads them: part by part of the path."""
    parts = f"/import/{path}".split("/")
    while parts:
        pieces = parts.pop(0).split("_", 4)
        if len(pieces) >= 4 and pieces[1].isdigit() and pieces[2:4] == ["assignfeedback", "file"]:
            return int(pieces[1]), "/".join([*pieces[4:], *parts])
    return None


def moodle_of_before(path: str) -> tuple[int, str] | None:
    """The same of versions before 4.1: the whole path at once."""
    pieces = f"/import/{path}".split("_", 4)
    if len(pieces) == 5 and pieces[1].isdigit() and pieces[2:4] == ["assignfeedback", "file"]:
        return int(pieces[1]), pieces[4]
    return None


def canvas_reads(name: str) -> tuple[str, str] | None:
    """User and attachment, as `infer_comment_context_from_filename` finds them; None for an anonymous one."""
    pieces = [piece for piece in name.split("_") if piece != "LATE"]
    if pieces[0] == "anon" or pieces[-1].startswith("link") or name.startswith("._"):
        return None
    user, attachment = [piece for piece in pieces if re.fullmatch(r"\d+", piece)][:2]
    return user, attachment


def test_moodle_takes_each_page_for_its_participant(course: Path) -> None:
    found = return_feedback("00", course, "moodle")
    assert found.archive == "returned/00-moodle-1.zip" and found.returned == ["al", "jd", "kim"]
    files = entries(course / found.archive)
    for read in (moodle_of_today, moodle_of_before):
        assert [read(name) for name in files] == [(n, f"{LESSON_00}.html") for n in (20480, 20481, 20482)]
    pages = {moodle_of_today(name)[0]: page for name, page in files.items()}  # type: ignore[index]
    assert pages[20480] == (course / "feedback" / "al" / LESSON_00 / f"{LESSON_00}.html").read_bytes()
    assert b"Check of 0.1: Passed" in pages[20480] and b"Check of 0.1: Passed" not in pages[20481]
    assert "came from Canvas" in found.elsewhere["ca"] and "not known" in found.elsewhere["own"]
    assert not found.failed and not found.ungraded
    text = returned_text(found)
    assert "Upload multiple feedback files in a zip" in text and "  own: it is not known" in text


def test_canvas_gets_a_file_of_the_kind_that_it_shows_it_under(course: Path) -> None:
    found = return_feedback("00", course, "canvas")
    assert found.returned == ["ca", "cc"]
    files = entries(course / found.archive)
    assert [canvas_reads(name) for name in files] == [("4711", "902"), ("4713", "904")]
    assert all(name.endswith(".ipynb") for name in files)
    for data in files.values():
        notebook = nbformat.reads(data.decode(), as_version=4)
        nbformat.validate(notebook)
        assert notebook.cells[0].source.startswith("# Feedback: 0 of 1 point\n")
        assert not any("nbgrader" in each.metadata for each in notebook.cells)
        outputs = [out for each in notebook.cells if each.cell_type == "code" for out in each.outputs]
        assert any("workbook-card" in out.data.get("text/html", "") for out in outputs)
    assert "had no number of the student" in found.elsewhere["cb"]
    assert "neither a notebook nor a zip" in found.elsewhere["cd"]


def test_who_handed_in_a_zip_gets_the_page_in_one(course: Path) -> None:
    origin = course / ".workbook" / "origins" / LESSON_00 / "ca.json"
    kept = json.loads(origin.read_text())
    assert kept == {
        "system": "canvas",
        "name": "anonna",
        "number": "4711",
        "files": {NAME: "902", f"{LESSON_00}_answers.json": "901"},
    }
    origin.write_text(json.dumps(kept | {"name": "anon", "files": {"work.zip": "900"}}))
    files = entries(course / return_feedback("00", course, "canvas").archive)
    name, data = next((name, data) for name, data in files.items() if name.endswith(".zip"))
    assert canvas_reads(name) == ("4711", "900")
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        assert inner.namelist() == [f"{LESSON_00}.html"] and b"Score:" in inner.read(f"{LESSON_00}.html")


def _comment(course: Path, student: str, text: str) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        comment = gradebook.find_comment("exercise-0-1", LESSON_00, LESSON_00, student)
        comment.manual_comment = text
        gradebook.db.commit()


@pytest.mark.parametrize(
    ("system", "student"), [("moodle", "jd"), pytest.param("canvas", "cc", marks=pytest.mark.further)]
)
def test_a_later_archive_has_what_is_new_alone(course: Path, system: str, student: str) -> None:
    first = return_feedback("00", course, system)
    again = return_feedback("00", course, system)
    assert again.archive == "" and not again.returned and set(again.unchanged) == set(first.returned)
    assert "nothing new" in returned_text(again)
    _comment(course, student, HOSTILE)
    later = return_feedback("00", course, system)
    assert later.archive.endswith("-2.zip") and later.returned == [student]
    [data] = entries(course / later.archive).values()
    assert HOSTILE.encode() not in data or system == "moodle"  # on nbgrader's page comments are Markdown
    assert return_feedback("00", course, system).archive == ""
    (course / first.archive).unlink()  # as if it had not been uploaded
    third = return_feedback("00", course, system)
    assert third.archive.endswith("-3.zip") and set(third.returned) == set(first.returned) - {student}


def test_an_archive_that_cannot_be_read_is_named(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (course / "returned").mkdir()
    (course / "returned" / "00-moodle-1.zip").write_bytes(b"PK")
    assert main(["return", "00", "--moodle", "--course", str(course)]) == 2
    assert "00-moodle-1.zip cannot be read" in capsys.readouterr().err


def test_what_is_not_known_is_asked_for(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(course / ".workbook" / "origins")
    assert main(["return", "00", "--canvas", "--course", str(course)]) == 2
    assert "workbook collect 00 FILE" in capsys.readouterr().err


def test_collecting_the_same_again_keeps_the_numbers(course: Path, tmp_path: Path) -> None:
    shutil.rmtree(course / ".workbook" / "origins")
    notebook = (course / "submitted" / "al" / LESSON_00 / NAME).read_bytes()
    archive = zipped(tmp_path / "m.zip", (f"Ada Lovelace_20480_assignsubmission_file/{NAME}", notebook))
    assert collect("00", course, [archive]).unchanged == ["al"]
    origin = origin_of(course, LESSON_00, "al")
    assert origin and (origin.system, origin.number) == ("moodle", "20480")
    assert return_feedback("00", course, "moodle").returned == ["al"]


def test_a_name_that_a_stranger_chose_leads_nowhere(course: Path) -> None:
    for student, name in {"al": "../../../etc/x", "jd": "~.", "kim": ".hidden"}.items():
        path = course / ".workbook" / "origins" / LESSON_00 / f"{student}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"name": name}))
    names = list(entries(course / return_feedback("00", course, "moodle").archive))
    assert [name.partition("_")[0] for name in names] == ["etcx", "student", "hidden"]


def test_who_has_no_grade_is_listed_and_one_failure_stays_ones_own(course: Path) -> None:
    shutil.rmtree(course / "autograded" / "al")
    (course / "autograded" / "jd" / LESSON_00 / NAME).chmod(0o644)
    (course / "autograded" / "jd" / LESSON_00 / NAME).write_text("{")
    found = return_feedback("00", course, "moodle")
    assert found.returned == ["kim"] and found.ungraded == ["al"] and list(found.failed) == ["jd"]


def test_a_page_needs_no_network(course: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_feedback", LESSON_00, "--student", "al"],
        cwd=course,
        check=True,
        capture_output=True,
    )
    page = (course / "feedback" / "al" / LESSON_00 / f"{LESSON_00}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(page, "html.parser")
    assert not soup.find_all("script") and not soup.find_all("link") and not soup.find_all("iframe")
    assert all(each["src"].startswith("data:") for each in soup.find_all(src=True))
    assert not re.findall(r"@import|url\(['\"]?(?:https?:)?//", page)
    assert soup.select(".workbook-card")


def test_the_lessons_have_no_formula_that_would_need_mathjax() -> None:
    """Why a page does without it. Who writes one must bring what sets it, too."""
    for path in (NOTEBOOKS / "lessons").glob("*.py"):
        texts = [c.source for c in _texts(path)]
        assert not any(re.search(r"(?<!\\)\$[^$\n`]+\$|\\\(|\\\[", text) for text in texts), path.name


def _texts(path: Path) -> list[Any]:
    import jupytext

    return [each for each in jupytext.read(path).cells if each.cell_type == "markdown"]


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted by a call of Linux")
def test_a_killed_return_loses_and_doubles_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.return_kills", "--kills", "6"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["bad"] == 0
