"""`workbook collect` goes on: what is wrong with one hand-in is the fate of its student alone, who is named with the
reason, and no archive's inside speaks for another student. Real archives, as tools and attackers write them."""

# ruff: noqa: F811 - fixtures of the other file
from __future__ import annotations

import io
import os
import stat
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.cli.main import main
from autograder.grading.handed_in.archives import MAX_INNER_ZIP
from autograder.grading.handed_in.collecting import Collected, collect
from autograder.grading.handed_in.files import MAX_FILES, MAX_FOLDERS
from tests.autograder.nbgrader_course import LESSON_00
from tests.autograder.test_collect import (
    NAME,
    NOTEBOOK,
    course,  # noqa: F401
    entry,
    everything,
    hand_in,
    kinds,
    roster,  # noqa: F401
    submitted,
    zipped,
)

Files = list[tuple[str | zipfile.ZipInfo, bytes]]
MOODLE = "{}_assignsubmission_file_"
JOSE = MOODLE.format("José María D'Arc-Núñez_7")


def packed(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip in memory."""
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return blob.getvalue()


def changed(data: bytes, name: str, place: int, value: bytes) -> bytes:
    """A zip with another value in the record of `name` in its list of entries."""
    start = data.rindex(name.encode()) - 46 + place
    return data[:start] + value + data[start + len(value) :]


def with_damage(data: bytes, text: bytes) -> bytes:
    """A zip with one bit of `text` turned, which is stored in it."""
    place = data.index(text)
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def bomb(num_bytes: int) -> bytes:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(num_bytes))
    return blob.getvalue()


def nested(depth: int) -> bytes:
    data = packed((NAME, NOTEBOOK))
    for number in range(depth):
        data = packed((f"{number}.zip", data))
    return data


WHOLE = packed((NAME, NOTEBOOK), method=zipfile.ZIP_STORED)
NOISE = os.urandom(300)
LARGE = bytes(99_000_000)
FOLDERS = packed(*((f"{n}/", b"") for n in range(MAX_FILES)))
UNREADABLE: dict[str, tuple[Files, str]] = {
    "deep folders": ([("d/" * 3000 + NAME, NOTEBOOK)], f"more than {MAX_FOLDERS} folders"),
    "a path over 4,096 bytes": (
        [(("d" * 199 + "/") * 18 + "🐛" * 60 + "/" + NAME, NOTEBOOK)],
        "is longer than",
    ),
    "no zip": ([("work.zip", b"PK\x03\x04 and no more")], "cannot be read as a zip"),
    "cut in the list": ([("work.zip", WHOLE[:-30])], "cannot be read as a zip"),
    "cut in the middle": ([("work.zip", WHOLE[: len(WHOLE) // 2])], "cannot be read as a zip"),
    "a damaged member": ([("work.zip", with_damage(WHOLE, NOTEBOOK[:50]))], "damaged"),
    "a damaged list": ([("work.zip", changed(WHOLE, NAME, 42, b"\xf0\xff\xff\x7f"))], "damaged"),
    "encrypted": ([("work.zip", changed(WHOLE, NAME, 8, b"\x01"))], "encrypted"),
    "a size that is a lie": ([("work.zip", changed(WHOLE, NAME, 24, b"\x04\0\0\0"))], "damaged"),
    "bzip2": (
        [("work.zip", with_damage(packed(("a", NOISE), method=zipfile.ZIP_BZIP2), b"BZh"))],
        "not read here",
    ),
    "lzma": ([("work.zip", packed(("a", NOISE), method=zipfile.ZIP_LZMA))], "not read here"),
    "a method that nobody knows": ([("work.zip", changed(WHOLE, NAME, 10, b"\x63"))], "not read here"),
    "a link": (
        [("work.zip", packed((entry(NAME, mode=stat.S_IFLNK | 0o777), b"/etc/passwd")))],
        "a link or a device",
    ),
    "absolute": ([("work.zip", packed((f"/{NAME}", NOTEBOOK)))], "leads out"),
    "upwards": ([("work.zip", packed((f"../../jd/{LESSON_00}/{NAME}", b"{}")))], "leads out"),
    "upwards with backslashes": (
        [("work.zip", packed((f"..\\..\\jd\\{LESSON_00}\\{NAME}", b"{}")))],
        "leads out",
    ),
    "a drive": ([("work.zip", packed((f"C:\\{NAME}", NOTEBOOK)))], "leads out"),
    "a bomb by size": ([("work.zip", bomb(201_000_000))], "201 MB unpacked"),
    "a bomb by number": (
        [("work.zip", packed(*((f"{n}.txt", b"") for n in range(MAX_FILES + 1))))],
        f"{MAX_FILES} files",
    ),
}
TAKEN: dict[str, tuple[Files, str, set[str]]] = {
    "a month that no year has": ([("work.zip", changed(WHOLE, NAME, 14, b"\xff\xff"))], "", {NAME}),
    "a bomb by depth": ([("work.zip", nested(8))], "a zip within a zip", {"7.zip"}),
    "long names": ([("é" * 120 + ".ipynb", NOTEBOOK)], "taken as", {"é" * 97 + ".ipynb"}),
    "control characters": ([("a\x1b[2J\n✓\u202e.ipynb", NOTEBOOK)], "taken as", {"a_[2J_✓_.ipynb"}),
    "a C1 control": ([(NAME, NOTEBOOK), ("na\x9bve.txt", b"")], "taken as", {NAME, "na_ve.txt"}),
    "code page 437": (
        [("w.zip", packed((NAME, NOTEBOOK), ("naXve", b"")).replace(b"naX", b"na\x81"))],
        "",
        {NAME, "naüve"},
    ),
    "twice, but for case": ([(NAME, NOTEBOOK), (NAME.upper(), b"2")], "is there twice", {NAME}),
    "twice, in and out of a zip": (
        [(NAME, NOTEBOOK), ("w.zip", packed((NAME, b"2")))],
        "is there twice",
        {NAME},
    ),
    "a file and a folder": ([(NAME, NOTEBOOK), (f"{NAME}/x", b"")], "a file and a folder", {NAME}),
    "many large zips": (
        [(NAME, NOTEBOOK), *((f"{n}.zip", LARGE) for n in range(5))],
        f"beyond {MAX_FILES} files or 400 MB",
        {NAME},
    ),
    "many zips of folders alone": (
        [*((f"{n}.zip", FOLDERS) for n in range(7)), (f"z_{NAME}", NOTEBOOK)],
        "beyond 5,000 entries of zips",
        {f"z_{NAME}"},
    ),
}


def class_zip(path: Path, cases: dict[str, Files]) -> Path:
    """A zip with a student per case, and the sound hand-ins of `al` and `jd` among them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"al/{NAME}", NOTEBOOK)
        for number, files in enumerate(cases.values()):
            for name, data in files:
                archive.writestr(f"s{number:02}/{name}" if isinstance(name, str) else name, data)
        archive.writestr(f"jd/{NAME}", NOTEBOOK)
    return path


def collected_files(course: Path, student: str) -> dict[str, bytes]:
    home = course / "submitted" / student
    return {name: (home / name).read_bytes() for name in everything(home)}


def said_of(found: Collected, student: str) -> str:
    lines = [line for line in found.problems if line.startswith(f"{student}: ")]
    return "\n".join([found.failed.get(student, ""), *lines])


def test_what_nothing_can_be_taken_of_is_named_and_the_others_are_collected(
    course: Path, tmp_path: Path
) -> None:
    archive = class_zip(tmp_path / "class.zip", {kind: files for kind, (files, _) in UNREADABLE.items()})
    found = collect("00", course, [archive], takes_new=True)
    assert found.collected == ["al", "jd"]
    for number, (kind, (_, says)) in enumerate(UNREADABLE.items()):
        assert says in found.failed.get(f"s{number:02}", "not named"), kind
    assert collected_files(course, "al") == collected_files(course, "jd") == {f"{LESSON_00}/{NAME}": NOTEBOOK}
    assert {path.name for path in (course / "submitted").iterdir()} == {"al", "jd"}
    assert not list(tmp_path.glob("*.ipynb")) and not list(course.glob("*.ipynb"))


def test_what_can_be_taken_is_and_the_rest_is_named(course: Path, tmp_path: Path) -> None:
    archive = class_zip(tmp_path / "class.zip", {kind: files for kind, (files, _, _) in TAKEN.items()})
    found = collect("00", course, [archive], takes_new=True)
    assert not found.failed and not found.unassigned
    for number, (kind, (_, says, names)) in enumerate(TAKEN.items()):
        student = f"s{number:02}"
        assert says in said_of(found, student), kind
        there = {name.removeprefix(f"{LESSON_00}/") for name in collected_files(course, student)}
        assert there == names, kind
    assert collected_files(course, "al") == collected_files(course, "jd") == {f"{LESSON_00}/{NAME}": NOTEBOOK}


def test_a_folder_goes_on_like_a_zip(course: Path, tmp_path: Path) -> None:
    plain = tmp_path / "in"
    for student in ("al", "deep", "damaged", "jd", "odd", "pipe"):
        (plain / student).mkdir(parents=True)
        if student in ("al", "jd"):
            (plain / student / NAME).write_bytes(NOTEBOOK)
    (plain / "damaged" / "work.zip").write_bytes(WHOLE[:-30])
    os.mkfifo(plain / "pipe" / NAME)
    deepest = os.open(plain / "deep", os.O_RDONLY)
    for _ in range(60):  # 60 names of 200 bytes: no path leads there
        os.mkdir("d" * 200, dir_fd=deepest)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=deepest)
        os.close(deepest)
        deepest = below
    os.close(deepest)
    with open(os.path.join(os.fsencode(plain / "odd"), b"\xff\xfe\x1b.ipynb"), "wb") as file:  # noqa: PTH118, PTH123
        file.write(NOTEBOOK)
    found = collect("00", course, [plain], takes_new=True)
    assert found.collected == ["al", "jd", "odd"] and sorted(found.failed) == ["damaged", "deep", "pipe"]
    assert everything(course / "submitted" / "odd") == {f"{LESSON_00}/___.ipynb"}
    assert "taken as ___.ipynb" in said_of(found, "odd")
    assert collected_files(course, "jd") == {f"{LESSON_00}/{NAME}": NOTEBOOK}
    remove = "import shutil, sys; sys.setrecursionlimit(10000); shutil.rmtree(sys.argv[1])"
    subprocess.run([sys.executable, "-c", remove, plain / "deep"], check=True)


SPEAKS_FOR_JD: dict[str, Callable[[Path], Path]] = {
    "a zip with one student": lambda place: zipped(place / "class.zip", (f"al/jd/{NAME}", b"{}")),
    "a zip named for a student": lambda place: zipped(
        place / "al.zip", (f"jd/{NAME}", b"{}"), ("kim1/x", b"")
    ),
    "a zip in a folder": lambda place: zipped(place / "in" / "al.zip", (f"jd/{NAME}", b"{}")).parent,
    "a zip of a system's names": lambda place: (
        zipped(place / "in" / "al.zip", (f"{JOSE}/{NAME}", b"{}")).parent
    ),
    "a folder with one student": lambda place: zipped(
        place / "in" / "al" / "jd" / "x.zip", (NAME, b"{}")
    ).parents[2],
    "a folder that looks like a system's": lambda place: zipped(
        place / "in" / "al" / "darcnúñezjosémaría_88_902_x.zip", (NAME, b"{}")
    ).parents[1],
    "a file that looks like a system's": lambda place: zipped(place / "al.zip", (f"x_4711_9_{NAME}", b"{}")),
}


@pytest.mark.parametrize("kind", SPEAKS_FOR_JD)
def test_the_inside_of_a_students_hand_in_speaks_for_nobody_else(
    course: Path, tmp_path: Path, kind: str
) -> None:
    for student in ("jd", "kim1"):
        (tmp_path / "first" / student).mkdir(parents=True)
        (tmp_path / "first" / student / NAME).write_bytes(NOTEBOOK)
    collect("00", course, [tmp_path / "first"])
    (tmp_path / "in" / "al" / "jd").mkdir(parents=True)
    found = collect("00", course, [SPEAKS_FOR_JD[kind](tmp_path)])
    assert kinds(found) == {"collected": ["al"]} and not found.unassigned
    assert collected_files(course, "jd") == {f"{LESSON_00}/{NAME}": NOTEBOOK}


@pytest.mark.parametrize("end", ["..", ".", "..\\.."])
def test_a_systems_name_that_leads_out_of_its_folder_leads_nowhere(
    course: Path, tmp_path: Path, end: str
) -> None:
    other = f"{JOSE}{end}/02_mixed_precision/x.ipynb"
    archive = zipped(tmp_path / "class.zip", (f"{JOSE}/{NAME}", NOTEBOOK), (other, b"{}"))
    found = collect("00", course, [archive])
    assert found.collected == ["jd"]
    inside = [path for path in everything(course / "submitted") if path.startswith(f"jd/{LESSON_00}/")]
    assert f"jd/{LESSON_00}/{NAME}" in inside and set(inside) == everything(course / "submitted")


def test_a_file_within_a_zip_changes_no_byte_of_another_students(course: Path, tmp_path: Path) -> None:
    """A text that looks like a zip's record of an entry was taken for one, and a bit of another file turned."""
    data = packed((f"jd/{NAME}", NOTEBOOK), ("al/naïve.txt", b""), method=zipfile.ZIP_STORED)
    place = data.index(NOTEBOOK) + 5
    record = struct.pack("<4s24xH12xI2s", b"PK\x01\x02", 2, place - 7, b"\xff\xfe")
    files = ((f"jd/{NAME}", NOTEBOOK), ("al/naïve.txt", b""), ("al/text", record + b" " * 99))
    data = packed(*files, method=zipfile.ZIP_STORED).replace("naïve".encode(), b"na\xff\xfeve")
    (tmp_path / "class.zip").write_bytes(data)
    found = collect("00", course, [tmp_path / "class.zip"])
    assert found.collected == ["al", "jd"]
    assert collected_files(course, "jd") == {f"{LESSON_00}/{NAME}": NOTEBOOK}
    assert everything(course / "submitted" / "al") == {f"{LESSON_00}/text", f"{LESSON_00}/na_■ve.txt"}


def test_a_name_that_can_be_read_in_two_ways_is_nobodys(course: Path, tmp_path: Path) -> None:
    """Who may choose a name in the system could choose one that holds another's number, or another's name."""
    archive = zipped(
        tmp_path / "submissions.zip",
        (f"x_4711_9_13_900_{NAME}", b"{}"),
        (f"lovelaceada_4711_9_13_901_{NAME}", b"{}"),
        (f"{MOODLE.format('Ada Lovelace_1')}x_99{MOODLE.format('')}/{NAME}", b"{}"),
        (f"{MOODLE.format('Ada Lovelace_2')}/{NAME}", NOTEBOOK),
        (f"al\\x_13{MOODLE.format('')}/{NAME}", b"{}"),
        (f"AL/{NAME}", b"{}"),
    )
    found = collect("00", course, [archive])
    assert found.collected == ["al"] and collected_files(course, "al") == {f"{LESSON_00}/{NAME}": NOTEBOOK}
    why = {each.name: each.why for each in found.unassigned}
    assert "more than one way" in why["x"] and "more than one way" in why["Ada Lovelace"]
    assert "al in other letters" in why["AL"] and "no student" in why["al\\x"]


def test_of_two_that_claim_one_name_none_is_taken_and_both_are_named(course: Path, tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "COURSE.zip",
        (f"{MOODLE.format('Ada Lovelace_1')}/{NAME}", b"{}"),
        (f"{MOODLE.format('Ada Lovelace_2')}/{NAME}", NOTEBOOK),
        (f"{JOSE}/{NAME}", NOTEBOOK),
    )
    found = collect("00", course, [archive])
    assert found.collected == ["jd"]
    assert [each.name for each in found.unassigned] == ["Ada Lovelace", "Ada Lovelace"]


@pytest.mark.parametrize("top", ["bo", "all of them"])
def test_a_zip_of_one_folder_that_may_be_anything_is_asked_about(
    course: Path, tmp_path: Path, top: str
) -> None:
    found = collect("00", course, [zipped(tmp_path / "class.zip", (f"{top}/al/{NAME}", NOTEBOOK))])
    assert not kinds(found) and "Unpack it" in found.unassigned[0].why


def test_every_file_that_was_replaced_is_named(
    course: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    collect("00", course, [hand_in(tmp_path / "first", NOTEBOOK, time=1e9)])
    (submitted(course, "al").parent / "gone.txt").write_text("")
    os.utime(submitted(course, "al").parent / "gone.txt", (0, 0))
    second = hand_in(tmp_path / "second", NOTEBOOK + b" ", time=1.1e9)
    assert main(["collect", "00", str(second), "--course", str(course)]) == 0
    assert f"  al: newer than what was there, and in its place: {NAME}, gone.txt" in capsys.readouterr().out


def test_what_was_there_stays_where_nothing_can_be_taken(
    course: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    collect("00", course, [hand_in(tmp_path / "first", NOTEBOOK, time=1e9)])
    again = zipped(tmp_path / "class.zip", ("al/work.zip", b"no zip"), (f"jd/{NAME}", NOTEBOOK))
    assert main(["collect", "00", str(again), "--course", str(course)]) == 1
    said = capsys.readouterr().out
    assert "1 collected" in said and "  al: work.zip: cannot be read as a zip" in said
    assert submitted(course, "al").read_bytes() == NOTEBOOK


def test_what_is_told_of_one_student_is_bounded(course: Path, tmp_path: Path) -> None:
    files = [(f"al/../{'x' * 3000}{number}", b"") for number in range(200)]
    files += [(f"al/{'y' * 3000}{number}/" + "d/" * 30, b"") for number in range(200)]
    archive = zipped(tmp_path / "class.zip", *files, (f"jd/{NAME}", NOTEBOOK))
    with zipfile.ZipFile(archive, "a") as more:
        for number in range(200):
            more.writestr(f"al/{number}/" + "d/" * 30 + "x", b"")
    found = collect("00", course, [archive])
    assert found.collected == ["jd"] and list(found.failed) == ["al"]
    assert len(found.problems) <= 21 and max(map(len, [*found.problems, *found.failed.values()])) <= 500


def test_a_zip_within_a_zip_that_is_too_large_is_not_read(course: Path, tmp_path: Path) -> None:
    archive = class_zip(tmp_path / "class.zip", {"large": [("w.zip", bytes(MAX_INNER_ZIP + 1))]})
    assert "more than 100 MB" in collect("00", course, [archive], takes_new=True).failed["s00"]


def test_a_zip_that_takes_long_to_list_is_refused_at_once(course: Path, tmp_path: Path) -> None:
    """Python's own reader takes the bytes beside a name apart in quadratic time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(500):
            about = zipfile.ZipInfo(f"{number}")
            about.extra = b"\x99\x99\x00\x00" * 16_000
            archive.writestr(about, b"")
    files = {"slow": [("work.zip", packed.getvalue())]}
    start = time.process_time()
    found = collect("00", course, [class_zip(tmp_path / "class.zip", files)], takes_new=True)
    assert "64,000 bytes beside its name" in found.failed["s00"] and found.collected == ["al", "jd"]
    assert time.process_time() - start < 20
