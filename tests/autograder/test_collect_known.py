"""Whose hand-ins are and when they came, as tables say it; what stays of an earlier hand-in, and what lacks."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.cli.main import main
from autograder.course import load_lesson
from autograder.grading.handed_in.collected import Collected, collected_text
from autograder.grading.handed_in.collecting import collect
from autograder.grading.handed_in.known import Known, read_known
from autograder.grading.submissions import read_submission
from autograder.kept import read_answers
from autograder.quizzes import grade_quiz
from course_lib.base import UserError
from tests.autograder.nbgrader_course import LESSON_01, NOTEBOOKS
from tests.autograder.test_collect import NAME, NOTEBOOK, course, entry, roster, submitted, zipped

__all__ = ["course", "roster"]
#: As Moodle writes it: mod/assign/gradingtable.php.
WORKSHEET = """\
Identifier,"Full name","ID number","Email address",Status,Grade,"Maximum grade","Grade can be changed",\
"Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 20483","Kim Lee",kim2,k2@uni.edu,"Submitted for grading","",100.00,Yes,\
"Monday, 30 November 2026, 2:50 PM",-,""
"Participant 20484","Ada Lovelace",,,"Submitted for grading - 1 hour late","",100.00,Yes,\
"Tuesday, 1 December 2026, 12:05 AM",-,""
"Participant 20485","Kim Lee",kim1,k1@uni.edu,"No submission","",100.00,Yes,-,-,""
"""


def test_moodles_worksheet_tells_two_of_one_name_apart_and_says_when(course: Path, tmp_path: Path) -> None:
    (tmp_path / "worksheet.csv").write_text(WORKSHEET)
    known = read_known([tmp_path / "worksheet.csv"], "Europe/Berlin")
    archive = zipped(
        tmp_path / "blind.zip",
        (f"Kim Lee_20483_assignsubmission_file/{NAME}", NOTEBOOK),
        (f"Participant_20484_assignsubmission_file/{NAME}", NOTEBOOK),
    )
    found = collect("00", course, [archive], known=known)
    assert sorted(found.collected) == ["al", "kim2"] and not found.unassigned
    stamp = submitted(course, "kim2", "timestamp.txt").read_text()
    assert stamp == "2026-11-30 13:50:00 UTC"
    assert read_submission(course, "kim2", load_lesson("00")).stamp == stamp
    assert submitted(course, "al", "timestamp.txt").read_text() == "2026-11-30 23:05:00 UTC"
    # The same without the worksheet changes nothing of it.
    blind = collect("00", course, [archive])
    assert [each.name for each in blind.unassigned] == ["Kim Lee", "Participant"]
    assert submitted(course, "kim2", "timestamp.txt").read_text() == stamp


def test_a_time_that_becomes_known_later_is_written(course: Path, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", (f"lovelaceada_LATE_4711_902_{NAME}", NOTEBOOK))
    assert collect("00", course, [archive]).late == ["al"]
    known = [Known(name="lovelaceada", student="al", time=datetime(2026, 5, 4, 10, tzinfo=UTC))]
    found = collect("00", course, [archive], known=known)
    assert found.replaced == ["al"] and not found.late
    assert submitted(course, "al", "timestamp.txt").read_text() == "2026-05-04 10:00:00 UTC"
    assert not collect("00", course, [archive]).late  # asked once


def test_a_table_says_whose_a_folder_is(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in" / "my homework").mkdir(parents=True)
    (tmp_path / "in" / "my homework" / NAME).write_bytes(NOTEBOOK)
    command = ["collect", "00", str(tmp_path / "in"), "--course", str(course)]
    assert main(command) == 1
    assert "name and student" in capsys.readouterr().out and not (course / "submitted").exists()
    names = tmp_path / "names.csv"
    names.write_bytes("name;student;time\r\nmy homework;jd;2026-05-04 12:00+02:00\r\n".encode("utf-16"))
    assert main([*command, "--as", str(names), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collected"] == ["jd"]
    assert submitted(course, "jd", "timestamp.txt").read_text() == "2026-05-04 10:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,student\nx,nobody\n", "is no student of the gradebook"),
        ("name,student,time\nx,al,yesterday\n", "row 2: “yesterday” is no time such as"),
        ("name,student\nx\n", "row 2 has 1 fields, the first row 2"),
        ("name,student\n,al\n", "row 2 lacks the name"),
        ("who,is\na,b\n", "must name the columns name and student"),
        ("", "must name the columns name and student"),
        (
            WORKSHEET.replace("Tuesday, 1 December", "mardi, 1 décembre"),
            "set your language in Moodle to English",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_named_with_its_row(
    course: Path, tmp_path: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "names.csv").write_text(text)
    (tmp_path / "in").mkdir()
    command = ["collect", "00", str(tmp_path / "in"), "--course", str(course)]
    assert main([*command, "--as", str(tmp_path / "names.csv")]) == 2
    assert says in capsys.readouterr().err and not (course / "submitted").exists()


def test_times_need_a_zone_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no time zone “Mars/Olympus”"):
        read_known([], "Mars/Olympus")


def test_moodle_before_4_1_wrote_the_group_before_the_name(course: Path, tmp_path: Path) -> None:
    files = [
        f"Group B-{who}_assignsubmission_file_/{NAME}"
        for who in ("Ada Lovelace_1", "José María D'Arc-Núñez_2")
    ]
    found = collect("00", course, [zipped(tmp_path / "c.zip", *((file, NOTEBOOK) for file in files))])
    assert sorted(found.collected) == ["al", "jd"]
    # Of one alone it may be a name that somebody gave to herself.
    other = zipped(tmp_path / "d.zip", (f"X-Ada Lovelace_3_assignsubmission_file/{NAME}", NOTEBOOK + b" "))
    assert [each.name for each in collect("00", course, [other]).unassigned] == ["X-Ada Lovelace"]


ANSWERS = b'{"format": 1, "lesson": "01", "answers": {}}'
NOTEBOOK_01 = (NOTEBOOKS / "release" / LESSON_01 / f"{LESSON_01}.ipynb").read_bytes()


def _hand_in(folder: Path, time: float, files: dict[str, bytes]) -> Path:
    (folder / "al").mkdir(parents=True)
    for name, data in files.items():
        (folder / "al" / f"{LESSON_01}{name}").write_bytes(data)
        os.utime(folder / "al" / f"{LESSON_01}{name}", (time, time))
    return folder


def test_answers_stay_where_a_later_hand_in_has_none(course: Path, tmp_path: Path) -> None:
    def take(name: str, time: float, **files: bytes) -> Collected:
        named = {
            {"notebook": ".ipynb", "answers": "_answers.json"}[kind]: data for kind, data in files.items()
        }
        return collect("01", course, [_hand_in(tmp_path / name, time, named)])

    found = take("first", 1e9, notebook=NOTEBOOK_01)
    assert found.without_answers == ["al"] and "Without an answers file" in collected_text(found)
    found = take("second", 1.1e9, answers=ANSWERS)
    assert (
        found.replaced == ["al"]
        and found.stayed == {"al": [f"{LESSON_01}.ipynb"]}
        and not found.without_answers
    )
    later = NOTEBOOK_01 + b" "
    found = take("third", 1.2e9, notebook=later)
    assert found.stayed == {"al": [f"{LESSON_01}_answers.json"]} and not found.without_answers
    assert f"al: not in it, and stays as it was: {LESSON_01}_answers.json" in collected_text(found)
    assert take("third again", 1.2e9, notebook=later).unchanged == ["al"]
    home = course / "submitted" / "al" / LESSON_01
    assert (home / f"{LESSON_01}.ipynb").read_bytes() == later
    assert (home / f"{LESSON_01}_answers.json").read_bytes() == ANSWERS


def test_of_a_hand_in_without_answers_grading_says_so_once(course: Path, tmp_path: Path) -> None:
    collect("01", course, [_hand_in(tmp_path / "in", 1e9, {".ipynb": NOTEBOOK_01})])
    problems = read_submission(course, "al", load_lesson("01")).problems
    assert [line for line in problems if "answers" in line] == [
        f"there is no answers file, {LESSON_01}_answers.json: of the quiz nothing was handed in"
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_answers_count_in_whatever_encoding_an_editor_wrote(tmp_path: Path, encoding: str) -> None:
    document = {"format": 1, "lesson": "01", "answers": {"q1": {"answer": "b", "why": "größer"}}}
    path = tmp_path / "answers.json"
    path.write_bytes(json.dumps(document, ensure_ascii=False).encode(encoding))
    assert read_answers(path) == document["answers"]


def test_what_is_said_of_a_damaged_answers_file_is_one_thing(course: Path, tmp_path: Path) -> None:
    files = {".ipynb": NOTEBOOK_01, "_answers.json": b"{"}
    collect("01", course, [_hand_in(tmp_path / "in", 1e9, files)])
    submission = read_submission(course, "al", load_lesson("01"))
    assert [line for line in submission.problems if "answers" in line] == [
        f"{LESSON_01}_answers.json: the answers file could not be read (not JSON)"
    ]
    assert submission.answers and grade_quiz("01", read_answers(submission.answers)).problem.endswith(
        "the answers file could not be read (not JSON)"
    )


def test_who_takes_on_the_name_of_another_takes_nothing_from_her(course: Path, tmp_path: Path) -> None:
    names = ("Ada Lovelace_1", "Ada  lovelace_2", "José María D'Arc-Núñez_3")
    files = [(f"{name}_assignsubmission_file/{NAME}", NOTEBOOK + name.encode()) for name in names]
    found = collect("00", course, [zipped(tmp_path / "c.zip", *files)])
    assert sorted(found.collected) == ["al", "jd"] and [each.name for each in found.unassigned] == [
        "Ada  lovelace"
    ]
    assert submitted(course, "al").read_bytes().endswith(b"_1")
    same = zipped(
        tmp_path / "d.zip",
        *(("_".join(("Ada Lovelace", n, "assignsubmission_file/" + NAME)), NOTEBOOK) for n in "45"),
    )
    assert [each.name for each in collect("00", course, [same]).unassigned] == ["Ada Lovelace"] * 2
    known = [Known(number="4", called=("al",)), Known(number="5", called=("jd",))]
    assert sorted(collect("00", course, [same], known=known).replaced) == ["al", "jd"]


def test_the_time_of_a_zip_is_that_of_who_took_it_in(course: Path, tmp_path: Path) -> None:
    """The clock of a learner may be hours behind: what came later is newer all the same."""
    collect("00", course, [zipped(tmp_path / "c.zip", (entry(f"al/{NAME}", year=2026), NOTEBOOK))])
    inner = zipped(tmp_path / "w.zip", (entry(NAME, year=2020), NOTEBOOK + b" ")).read_bytes()
    later = zipped(tmp_path / "d.zip", (entry("al/work.zip", year=2027), inner))
    assert collect("00", course, [later]).replaced == ["al"]
