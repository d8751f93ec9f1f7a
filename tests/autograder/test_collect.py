"""What a class hands in, as folders and zips bring it, and what strangers may put into them."""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from autograder.cli.main import main
from autograder.course.lessons import load_lesson
from autograder.grading.handed_in.collected import Collected, Outcome, collected_text
from autograder.grading.handed_in.collecting import collect
from autograder.grading.handed_in.files import MAX_FILES
from autograder.grading.nbgrader.bridge import prepare_environment
from autograder.grading.submissions import read_submission, students_of
from course_lib.base.errors import UserError
from tests.autograder.nbgrader_course import LESSON_00, LESSON_01, NOTEBOOKS

LESSON = load_lesson("00")
NOTEBOOK = (NOTEBOOKS / "release" / LESSON_00 / f"{LESSON_00}.ipynb").read_bytes()
NAME = f"{LESSON_00}.ipynb"
NEVER = 'c = get_config()\nc.CourseDirectory.course_id = "c"\n'


@pytest.fixture(scope="module")
def roster(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A gradebook with four students, two of them of one name."""
    from nbgrader.api import Gradebook

    prepare_environment()
    path = tmp_path_factory.mktemp("roster") / "gradebook.db"
    with Gradebook(f"sqlite:///{path}", "c") as gradebook:
        gradebook.add_student("al", first_name="Ada", last_name="Lovelace", lms_user_id="4711")
        gradebook.add_student("jd", first_name="José María", last_name="D'Arc-Núñez")
        gradebook.add_student("kim1", first_name="Kim", last_name="Lee")
        gradebook.add_student("kim2", first_name="Kim", last_name="Lee")
    return path.read_bytes()


@pytest.fixture
def course(tmp_path: Path, roster: bytes) -> Path:
    root = tmp_path / "course"
    root.mkdir()
    (root / "gradebook.db").write_bytes(roster)
    (root / "nbgrader_config.py").write_text(f"{NEVER}c.CourseDirectory.root = {str(root)!r}\n")
    return root


def zipped(path: Path, *files: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return path


def entry(name: str, *, year: int = 2026, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (year, 5, 4, 12, 0, 0))
    info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    return info


def submitted(course: Path, student: str, name: str = NAME) -> Path:
    return course / "submitted" / student / LESSON_00 / name


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_a_plain_folder(course: Path, tmp_path: Path) -> None:
    plain = tmp_path / "in"
    for folder in ("al", "new.one@uni.edu", f"nested/{LESSON_00}", f"nested/{LESSON_01}", "Ada Lovelace"):
        (plain / folder).mkdir(parents=True)
        (plain / folder / NAME).write_bytes(NOTEBOOK)
    (plain / "file.ipynb").write_bytes(NOTEBOOK)
    (plain / "file_answers.json").write_text('{"format": 1, "lesson": "00", "answers": {}}')
    zipped(plain / "packed.zip", (f"home/{NAME}", NOTEBOOK))
    found = collect("00", course, [plain])
    new = ["file", "nested", "new.one@uni.edu", "packed"]
    assert found.collected == ["al"] and not found.new
    assert [each.name for each in found.unassigned] == [
        "file",
        "nested",
        "new.one@uni.edu",
        "packed",
        "Ada Lovelace",
    ]
    found = collect("00", course, [plain], takes_new=True)
    assert found.collected == found.new == new and found.unchanged == ["al"]
    assert [each.name for each in found.unassigned] == ["Ada Lovelace"]
    assert "al has another hand-in here, al" in found.unassigned[0].why
    assert everything(course / "submitted" / "nested") == {f"{LESSON_00}/{NAME}"}
    assert (
        submitted(course, "file").exists() and submitted(course, "file", f"{LESSON_00}_answers.json").exists()
    )
    for student in students_of(course, LESSON_00):
        assert "0.1" in read_submission(course, student, LESSON).sources, student


@pytest.mark.parametrize("end", ["", "_"])
def test_a_zip_of_moodle(course: Path, tmp_path: Path, end: str) -> None:
    """Names as in Moodle's mod/assign/classes/downloader.php, with folders and without; before 4.1 with a "_" more."""
    archive = zipped(
        tmp_path / "COURSE-Loops-123.zip",
        (f"Ada Lovelace_20481_assignsubmission_file{end}/{NAME}", NOTEBOOK),
        (f"Ada Lovelace_20481_assignsubmission_file{end}/{LESSON_00}_answers.json", b"{}"),
        (f"Ada Lovelace_20481_assignsubmission_file{end}/timestamp.txt", b"2020-01-01 00:00:00 UTC"),
        (f"Ada Lovelace_20481_assignsubmission_onlinetext{end}/onlinetext.html", b"<p>hello</p>"),
        (f"José María D'Arc-Núñez_20482_assignsubmission_file_{NAME}", NOTEBOOK),
        (f"Kim Lee_20483_assignsubmission_file{end}/{NAME}", NOTEBOOK),
        (f"Participant_20484_assignsubmission_file{end}/{NAME}", NOTEBOOK),
        (f"Default group_assignsubmission_file{end}/{NAME}", NOTEBOOK),
    )
    found = collect("00", course, [archive])
    assert found.collected == ["al", "jd"]
    why = {each.name.partition("_")[0]: each.why for each in found.unassigned}
    assert "2 students are called so: kim1, kim2" in why["Kim Lee"]
    assert "no student of the gradebook" in why["Participant"] and {"Ada Lovelace", "Default group"} < set(
        why
    )
    assert "nbgrader db student add ID" in collected_text(found)
    # The student's own word on the time counts for nothing.
    assert everything(course / "submitted" / "al") == {
        f"{LESSON_00}/{NAME}",
        f"{LESSON_00}/{LESSON_00}_answers.json",
    }


def test_a_zip_of_canvas(course: Path, tmp_path: Path) -> None:
    """Names as in Canvas's lib/content_zipper.rb."""
    archive = zipped(
        tmp_path / "submissions.zip",
        (f"somebodyelse_4711_900_{LESSON_00}-1.ipynb", NOTEBOOK),
        (f"somebodyelse_4711_901_{LESSON_00}_answers-1.json", b"{}"),
        (f"darcnúñezjosémaría_LATE_88_902_{NAME}", NOTEBOOK),
        (f"nobodyknown_89_903_{NAME}", NOTEBOOK),
        (f"anon_x7Yz_904_{NAME}", NOTEBOOK),
    )
    found = collect("00", course, [archive])
    assert sorted(found.collected) == ["al", "jd"]
    assert everything(course / "submitted" / "al") == {
        f"{LESSON_00}/{NAME}",
        f"{LESSON_00}/{LESSON_00}_answers.json",
    }
    assert found.late == ["jd"] and "and not how late: jd" in collected_text(found)
    why = {each.name: each.why for each in found.unassigned}
    assert "or 89 as Canvas's number" in why["nobodyknown"] and f"anon_x7Yz_904_{NAME}" in why


@pytest.mark.parametrize("top", ["", "class/"])
def test_a_zip_of_folders_packed_whole_or_not(course: Path, tmp_path: Path, top: str) -> None:
    files = [(f"{top}{student}/{NAME}", NOTEBOOK) for student in ("al", "jd")]
    archive = zipped(tmp_path / "class.zip", *files, (f"{top}__MACOSX/al/._{NAME}", b"x"))
    assert collect("00", course, [archive]).collected == ["al", "jd"]


def test_one_students_folder_in_the_lessons_name_is_nobodys(course: Path, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "mine.zip", (NAME, NOTEBOOK))
    found = collect("00", course, [archive])
    assert "a lesson's name and no student's" in found.unassigned[0].why
    assert not (course / "submitted").exists()


def test_hostile_names_cost_themselves_alone(course: Path, tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "evil.zip",
        (f"al/{NAME}", NOTEBOOK),
        ("al/../../../escaped.txt", b"x"),
        ("/escaped.txt", b"x"),
        ("C:\\escaped.txt", b"x"),
        ("al\\..\\..\\escaped.txt", b"x"),
        (entry("al/link", mode=stat.S_IFLNK | 0o777), b"/etc/passwd"),
        (entry("al/device", mode=stat.S_IFCHR | 0o666), b""),
        ("al/" + "n" * 250 + ".txt", b"x"),
        ("al/two\nlines", b"x"),
        ("al/deep/file", b"x"),
        ("al/deep", b"a file where a folder is"),
        (f"../{NAME}", NOTEBOOK),
        (f"..hidden/{NAME}", NOTEBOOK),
        (f"{LESSON_01}/{NAME}", NOTEBOOK),
    )
    found = collect("00", course, [archive])
    assert found.collected == ["al"]
    taken = {NAME, "deep/file", "two_lines", "n" * 196 + ".txt"}
    assert everything(course / "submitted") == {f"al/{LESSON_00}/{name}" for name in taken}
    assert not list(tmp_path.rglob("escaped*")) and not list(tmp_path.rglob("*link*"))
    problems = "\n".join(found.problems)
    assert problems.count("its name leads out of the folder") == 5
    assert problems.count("a link or a device") == 2 and problems.count("no name that a file can have") == 2
    assert "al: deep: a file and a folder" in problems
    assert {each.name for each in found.unassigned} == {"..hidden", LESSON_01}
    assert "al: “two\\nlines”: no name that a file can have: taken as two_lines" in found.problems


def test_links_of_a_folder_are_not_followed(course: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("s")
    (tmp_path / "in" / "al").mkdir(parents=True)
    (tmp_path / "in" / "al" / NAME).symlink_to(secret / "key")
    (tmp_path / "in" / "jd").symlink_to(secret)
    os.mkfifo(tmp_path / "in" / "al" / "pipe")
    found = collect("00", course, [tmp_path / "in"])
    assert not found.collected and not (course / "submitted" / "al").exists()
    said = {student: why.count("a link or a device") for student, why in found.failed.items()}
    assert said == {"al": 2, "jd": 1}


def test_bombs_cost_themselves_alone(course: Path, tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as bomb:
        for number in range(MAX_FILES + 5):
            bomb.writestr(f"{number}.txt", b"")
    big = b"\0" * 1_000_000
    archive = tmp_path / "class.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as outer:
        with outer.open(f"al/{NAME}", "w") as file:
            file.write(NOTEBOOK)
        with outer.open("al/bomb.ipynb", "w", force_zip64=True) as file:
            for _ in range(201):
                file.write(big)
        outer.writestr("al/many.zip", inner.getvalue())
        outer.writestr(f"jd/{NAME}", NOTEBOOK)
        for number in range(MAX_FILES + 5):
            outer.writestr(f"jd/{number}.txt", b"")
    found = collect("00", course, [archive])
    assert found.collected == ["al", "jd"]
    assert everything(course / "submitted" / "al") == {f"{LESSON_00}/{NAME}"}
    assert len(everything(course / "submitted" / "jd")) == MAX_FILES
    problems = "\n".join(found.problems)
    assert "201 MB unpacked" in problems and "a zip with more than 1000 files" in problems
    assert "jd: 999.txt: beyond 1000 files" in problems


def test_damaged_encrypted_twice_and_strangely_named(course: Path, tmp_path: Path) -> None:
    marker = b"a text that is stored as it is " * 9
    archive = tmp_path / "class.zip"
    with zipfile.ZipFile(archive, "w") as outer:
        outer.writestr(f"al/{NAME}", NOTEBOOK)
        outer.writestr("al/damaged.txt", marker)
        outer.writestr("al/secret.txt", b"s" * 40)
        outer.writestr("al/lies.txt", b"l" * 40)
        with pytest.warns(UserWarning, match="Duplicate"):
            outer.writestr(f"al/{NAME}", b"another one")
        outer.writestr(f"jd/{NAME.upper()}", NOTEBOOK)
        outer.writestr("jd/naïve.txt", b"")
        outer.writestr("kim1/latin.txt", b"")
    data = archive.read_bytes().replace(marker, marker.replace(b"stored", b"altered"[:6]), 1)
    data = data.replace("naïve.txt".encode(), b"na\xff\xfeve.txt")  # said to be UTF-8, and is none
    for name, patch in (
        (b"al/secret.txt", lambda record: record[:8] + bytes([record[8] | 1]) + record[9:]),
        (b"al/lies.txt", lambda record: record[:24] + (4).to_bytes(4, "little") + record[28:]),
    ):
        start = data.rindex(name) - 46
        data = data[:start] + patch(data[start : start + 46]) + data[start + 46 :]
    archive.write_bytes(data)
    found = collect("00", course, [archive])
    assert found.collected == ["al", "jd", "kim1"]
    assert submitted(course, "al").read_bytes() == NOTEBOOK
    problems = "\n".join(found.problems)
    for said in ("damaged.txt: damaged", "secret.txt: encrypted", "lies.txt: damaged", "is there twice"):
        assert said in problems, problems
    assert everything(course / "submitted" / "al") == {f"{LESSON_00}/{NAME}"}
    assert everything(course / "submitted" / "jd") == {
        f"{LESSON_00}/{NAME.upper()}",
        f"{LESSON_00}/na_■ve.txt",
    }
    assert "kim1: no notebook in it" in problems


def test_a_file_that_is_no_zip_is_one_line(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "class.zip").write_bytes(b"PK\x03\x04 and no more")
    for path in ("class.zip", "nothing"):
        assert main(["collect", "00", str(tmp_path / path), "--course", str(course)]) == 2
        said = capsys.readouterr().err
        assert said.startswith("workbook: ") and said.count("\n") == 1


def hand_in(folder: Path, data: bytes, *, time: float, stamp: str = "") -> Path:
    (folder / "al").mkdir(parents=True)
    (folder / "al" / NAME).write_bytes(data)
    os.utime(folder / "al" / NAME, (time, time))
    if stamp:
        (folder / "al" / "timestamp.txt").write_text(stamp)
        os.utime(folder / "al" / "timestamp.txt", (time, time))
    return folder


def kinds(found: Collected) -> dict[str, list[str]]:
    outcomes: tuple[Outcome, ...] = ("collected", "replaced", "unchanged", "kept")
    return {outcome: names for outcome in outcomes if (names := found.of(outcome))}


def test_the_newer_one_stays(course: Path, tmp_path: Path) -> None:
    first = hand_in(tmp_path / "first", NOTEBOOK, time=1e9)
    second = hand_in(tmp_path / "second", NOTEBOOK + b" ", time=1.1e9)
    assert kinds(collect("00", course, [first])) == {"collected": ["al"]}
    assert kinds(collect("00", course, [first])) == {"unchanged": ["al"]}
    (submitted(course, "al").parent / "of the older one").write_text("")
    os.utime(submitted(course, "al").parent / "of the older one", (0, 0))
    assert kinds(collect("00", course, [second])) == {"replaced": ["al"]}
    assert kinds(collect("00", course, [first])) == {"kept": ["al"]}
    assert everything(course / "submitted") == {f"al/{LESSON_00}/{NAME}"}
    assert submitted(course, "al").read_bytes() == NOTEBOOK + b" "
    assert submitted(course, "al").stat().st_mtime == 1.1e9


def test_the_time_stamp_counts_before_the_times_of_files(course: Path, tmp_path: Path) -> None:
    late = hand_in(tmp_path / "late", NOTEBOOK, time=1e9, stamp="2026-05-04 12:00:00.123 UTC")
    early = hand_in(tmp_path / "early", NOTEBOOK + b" ", time=1.9e9, stamp="2026-05-03 12:00:00 UTC")
    broken = hand_in(tmp_path / "broken", NOTEBOOK + b"  ", time=1.9e9, stamp="last Monday")
    assert kinds(collect("00", course, [late])) == {"collected": ["al"]}
    assert kinds(collect("00", course, [early])) == {"kept": ["al"]}
    assert submitted(course, "al", "timestamp.txt").read_text() == "2026-05-04 12:00:00.123 UTC"
    found = collect("00", course, [broken])
    assert "timestamp.txt holds no time" in found.problems[0] and found.replaced == ["al"]
    assert not submitted(course, "al", "timestamp.txt").exists()


def test_killed_between_the_two_renames(course: Path, tmp_path: Path) -> None:
    first = hand_in(tmp_path / "first", NOTEBOOK, time=1e9)
    collect("00", course, [first])
    home = submitted(course, "al").parent
    home.rename(home.with_name(f".replaced-{LESSON_00}"))
    (home.with_name(f".collecting-{LESSON_00}")).mkdir()
    assert students_of(course, LESSON_00) == []
    assert kinds(collect("00", course, [first])) == {"unchanged": ["al"]}
    assert everything(course / "submitted") == {f"al/{LESSON_00}/{NAME}"}


def test_the_command_answers_in_json_and_says_what_is_nobodys(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = zipped(
        tmp_path / "c.zip", (f"Not Known_1_assignsubmission_file_/{NAME}", NOTEBOOK), (f"al/{NAME}", NOTEBOOK)
    )
    command = ["collect", "0", str(archive), "--course", str(course)]
    assert main(command) == 1
    said = capsys.readouterr().out
    assert "1 collected" in said and "“Not Known”: no student" in said
    assert main([*command, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["unchanged"] == ["al"] and found["unassigned"][0]["name"] == "Not Known"


def test_no_course_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no nbgrader course"):
        collect("00", tmp_path, [tmp_path])
