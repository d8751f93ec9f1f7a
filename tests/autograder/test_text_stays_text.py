"""A learner who writes to be taken for us: in an error, an answer, a name of a file, a name of their own. Every command
is walked, and every byte that it prints and every page, table and record that it writes is looked at."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from tests.autograder.nbgrader_course import LESSON_00, Course

SCRIPT = "<script>alert('FORGED')</script>"
ACTS = "\x1b[2J\x1b]0;t\x07\x9b31m\x08a\u202eb\u2066c\u200bd\u2028e\u2029f\x85g\x0ch\x7fi\u3164j"
VERDICT = "✓ 0.1 Passed: 1 of 1 points FORGED"
FORMULA = "=SUM(1+1);=1+1|'!A0 FORGED"
HOSTILE = f"x {ACTS}\n{VERDICT}\r\n{VERDICT}\rLesson 00: 9 of 9 submissions have a grade FORGED\n{SCRIPT}\n{FORMULA}"
FILE_NAME = f"{VERDICT} \x1b[2J\u202e\n{VERDICT} <b onclick=alert(1)> [x](mailto:FORGED).ipynb"
STUDENTS = {
    "verdict": VERDICT,
    "formula": FORMULA,
    "page": "<img src=x onerror=alert(1)> FORGED",
    "control": f"al\n{VERDICT}\x1b[2J",
}
RAISES = f"""
@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    raise type({"E " + VERDICT!r}, (ValueError,), {{}})({HOSTILE!r})
"""
DIES = f"""
@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    import os, sys
    os.write(2, {HOSTILE!r}.encode("utf-8", "replace"))
    os._exit(3)
"""
RIGHT = """
@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError("durations must be above zero")
    return baseline_seconds / candidate_seconds
"""
#: How a line of ours begins that says how something stands.
OURS = re.compile(
    r"\s*([✓✗≈■○!] (?!folder )|Lesson|Exercises?:|Quiz|Mean score|\d+ (checks|collected)|For a person|workbook:)"
)
TQDM = re.compile(r"\r?(collecting|checks|timed checks|gradebook): .*\|.*")


def problems_of(text: str) -> list[str]:
    """What a text does beside being read: control characters in it, and lines of the learner that begin as ours."""
    found = [
        f"{char!r} in {text[max(0, at - 40) : at + 20]!r}" for at, char in enumerate(text) if _acts(char)
    ]
    for line in text.split("\n"):
        begins_as_ours = OURS.match(line)
        if begins_as_ours and "FORGED" in line and not line.startswith("workbook: "):
            found.append(f"a line of theirs: {line!r}")
    return found


def _acts(char: str) -> bool:
    return char != "\n" and (unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or char == "\u3164")


class Page(HTMLParser):
    """What could act on a page: handlers of events, addresses of scripts, scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_script = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script = tag == "script"
        handlers = [name for name, _ in attrs if name.startswith("on")]
        addresses = [value for name, value in attrs if name in ("href", "src") and "FORGED" in (value or "")]
        self.found += [f"<{tag}>: {what}" for what in (*handlers, *addresses)]

    def handle_data(self, data: str) -> None:
        if self._is_script and "FORGED" in data:
            self.found.append(data[:80])

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False


@dataclass
class Walk:
    """A course with hostile students, and what the commands printed in it."""

    course: Course
    said: dict[str, tuple[int, str, str]] = field(default_factory=dict)

    def run(self, *command: str, name: str = "", **more: str) -> tuple[int, str, str]:
        """Run a command; returns its status and all that it printed, and keeps them."""
        ran = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.course.root,
            env=self.course.environment() | {"WORKBOOK_PROFILE": f"me {VERDICT}", **more},
            capture_output=True,
            timeout=300,
        )
        said = ran.returncode, ran.stdout.decode(), ran.stderr.decode()
        self.said[name or " ".join(command[1:3])] = said
        return said

    def workbook(self, *arguments: str, **more: str) -> tuple[int, str, str]:
        return self.run("autograder.cli.main", *arguments, **more)

    @property
    def pages(self) -> dict[Path, str]:
        """What was written for people: by path, without what the course was made with."""
        places = [
            self.course.root / "feedback",
            self.course.root,
            self.course.data,
            self.course.data / "evidence",
        ]
        paths = {path for place in places for path in place.glob("*.html")}
        paths |= set((self.course.root / "feedback").rglob("*.html"))
        return {path: path.read_text(encoding="utf-8") for path in sorted(paths)}


def hand_in(course: Course, folder: Path, source: str, file_name: str = f"{LESSON_00}.ipynb") -> Path:
    """The release's notebook with hostile cells and answers, in a folder."""
    notebook = course.notebook("release", LESSON_00)
    for cell in notebook.cells:
        if '@exercise("0.1")' in cell.source and cell.cell_type == "code":
            cell.source = source
    notebook.cells += [new_markdown_cell(HOSTILE), new_raw_cell(HOSTILE), new_code_cell(f"# {HOSTILE}")]
    folder.mkdir(parents=True)
    (folder / file_name).write_text(json.dumps(notebook), encoding="utf-8")
    answers = {
        "format": 1,
        "lesson": "00",
        "answers": {HOSTILE: {"choice": HOSTILE}, "00.1": {"choice": HOSTILE}},
    }
    (folder / f"{LESSON_00}_answers.json").write_text(json.dumps(answers), encoding="utf-8")
    return folder / file_name


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Every command, in the order of a term."""
    from nbgrader.api import Gradebook

    course = Course(tmp_path_factory.mktemp("term"), LESSON_00)
    walk = Walk(course)
    for name, source in zip(STUDENTS.values(), (RAISES, DIES, RAISES, RAISES), strict=True):
        hand_in(course, course.root / "in" / name, source)
    hand_in(course, course.root / "in" / "renamed", RAISES, FILE_NAME)
    hand_in(course, course.root / "in" / "sound", RIGHT)
    walk.workbook("collect", "00", "in", "--new-students")
    walk.workbook("collect", "00", "in", "--new-students", "--json", name="collect --json")
    for name, source in zip(STUDENTS.values(), (RAISES, DIES, RAISES, RAISES), strict=True):
        hand_in(course, course.root / "submitted" / name / LESSON_00, source)
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        names = {"first_name": FORMULA, "last_name": f"-1{ACTS}{FORMULA}", "email": f" \t{FORMULA}"}
        gradebook.add_student("sound", **names)
    hand_in(course, course.root / "submitted" / "unpacked" / LESSON_00, RAISES, FILE_NAME)
    walk.workbook("grade", "00")
    walk.workbook("grade", "00", "--json", name="grade --json")
    walk.workbook("report", "00")
    walk.workbook("report", "00", "--json", name="report --json")
    mine = hand_in(course, course.root / "mine" / f"me {VERDICT}", RAISES)
    dead = hand_in(course, course.root / "mine" / "dead", DIES)
    odd = hand_in(course, course.root / "mine" / "odd", RAISES, FILE_NAME)
    walk.workbook("check", str(mine))
    walk.workbook("check", str(dead), name="check of what dies")
    walk.workbook("check", str(odd), name="check of an odd name")
    found = json.loads(walk.workbook("check", str(mine), "--json", name="check --json")[1])
    evidence = Path(found["exercises"][0]["evidence"])
    walk.workbook("check", "--evidence", str(evidence))
    forged = json.loads(evidence.read_text(encoding="utf-8")) | {"finished": f"now\n{VERDICT}{ACTS}"}
    (evidence.parent / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    walk.workbook(
        "check", "--evidence", str(evidence.parent / "forged.json"), name="check of forged evidence"
    )
    broken = course.root / "mine" / f"broken{FILE_NAME}"
    broken.write_text('{"cells": 1, "x": "' + HOSTILE.replace("\n", " ") + '"')
    walk.workbook("check", str(broken), name="check of a broken file")
    walk.workbook("check", f"nowhere {HOSTILE}".replace("/", ""), name="check of no file")
    walk.workbook("grade", "00", "--students", f"nobody {HOSTILE}".replace(",", ""), name="grade nobody")
    walk.workbook("collect", "00", f"nowhere {HOSTILE}".replace("/", ""), name="collect nothing")
    walk.workbook("progress")
    walk.workbook("progress", "--export", f"me {VERDICT}\x1b[2J.json", name="progress --export")
    walk.workbook("certificate", "--name", HOSTILE)
    walk.workbook("doctor", WORKBOOK_DIR=str(course.root / "mine" / f"me {VERDICT}"))
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-c", os.devnull, "--rootdir=.")
    walk.run("pytest", str(dead), *plain, name="pytest of what dies")
    walk.run("pytest", str(odd.parent), *plain, name="pytest of an odd name")
    walk.run("pytest", str(mine.rename(course.root / "mine" / "plain.ipynb")), *plain, name="pytest")
    for exporter in ("", "Canvas", "Moodle", "Csv"):
        chosen = [f"--exporter=autograder.grading.exports.{exporter}"] if exporter else []
        course.nbgrader("export", *chosen, "--to", f"grades-{exporter or 'default'}.csv")
    course.nbgrader("generate_feedback", LESSON_00)
    return walk


pytestmark = [pytest.mark.slow, pytest.mark.everyday, pytest.mark.timeout(900)]


def test_the_commands_met_the_learner(walk: Walk) -> None:
    """Else what follows would look at nothing."""
    for name in (
        "collect 00",
        "grade 00",
        "check --json",
        "check of what dies",
        "pytest",
        "pytest of an odd name",
    ):
        assert "FORGED" in walk.said[name][1], walk.said[name]
    for name in ("check of a broken file", "check of no file", "grade nobody", "collect nothing"):
        status, _, said = walk.said[name]
        assert status == 2 and "FORGED" in said and said.count("\n") == 1, said
    assert all("Traceback" not in out + err for _, out, err in walk.said.values())


def test_nothing_that_is_printed_acts_or_looks_like_a_verdict(walk: Walk) -> None:
    for name, (_, out, err) in walk.said.items():
        bars = "\n".join(line for line in re.split(r"[\r\n]", err) if not TQDM.fullmatch(line))
        assert not problems_of(out) and not problems_of(bars), name


def test_json_says_what_there_is(walk: Walk) -> None:
    """Escaped, a name is still the name: a program finds the folder by it."""
    found = json.loads(walk.said["grade --json"][1])
    assert {VERDICT, FORMULA, STUDENTS["control"]} <= set(found["students"])


def test_the_others_are_graded_and_a_name_that_no_folder_should_have_is_told(walk: Walk) -> None:
    found = json.loads(walk.said["grade --json"][1])["students"]
    assert found["sound"]["error"] == "" and found[VERDICT]["error"] == ""
    assert "rename it" in found[STUDENTS["control"]]["error"]


def test_no_page_acts(walk: Walk) -> None:
    pages = walk.pages
    kinds = {"feedback" if "feedback" in path.parts else path.parent.name for path in pages}
    assert {"feedback", "evidence", "course"} <= kinds, sorted(pages)
    for path, html in pages.items():
        assert not Page(html).found, path
        acts = (
            {char for char in ACTS if _acts(char)} if "feedback" in path.parts else set(filter(_acts, html))
        )
        assert not {char for char in acts - {"\t"} if char in html}, path


def rows(path: Path, delimiter: str = ",") -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file, delimiter=delimiter)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("exporter", ["default", "Canvas", "Moodle", "Csv"])
def test_no_cell_of_a_table_is_a_formula(walk: Walk, exporter: str, delimiter: str) -> None:
    cells = [cell for row in rows(walk.course.root / f"grades-{exporter}.csv", delimiter) for cell in row]
    assert any("FORGED" in cell for cell in cells)
    for cell in cells:
        start = unicodedata.normalize("NFKC", cell.strip().lstrip('"').strip())[:1]
        assert start not in ("=", "+", "-", "@") or re.fullmatch(r"-?\d+(\.\d+)?", cell), cell
    assert not problems_of(
        (walk.course.root / f"grades-{exporter}.csv").read_text(encoding="utf-8").replace("\r", "")
    )


def test_numbers_stay_numbers(walk: Walk) -> None:
    by_student = {row[3]: row for row in rows(walk.course.root / "grades-Csv.csv")}
    *numbers, note = by_student["sound"][7:]
    assert [float(value) for value in numbers] == [1.0, 0.0, 1.0, 1.0] and note == ""
    assert '"sound"' in (walk.course.root / "grades-Csv.csv").read_text(encoding="utf-8")


def test_reasons_and_pages_are_bounded(walk: Walk) -> None:
    for exercise in json.loads(walk.said["check --json"][1])["exercises"]:
        assert len(exercise["reason"].encode()) <= 4_000
    for path, html in walk.pages.items():
        assert len(html) <= (30_000_000 if "feedback" in path.parts else 1_000_000)


def on_a_terminal(command: list[str], environment: dict[str, str], columns: int) -> list[str]:
    """The lines of a window: broken where they are too long."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    data = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        data += piece
    process.wait(60)
    os.close(ours)
    text = data.decode().replace("\r\n", "\n").replace("\r\x1b[K", "\n")
    return [
        line[at : at + columns] for line in text.split("\n") for at in range(0, max(1, len(line)), columns)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other terminals")
@pytest.mark.parametrize("columns", [40, 62, 80])
def test_a_narrow_window_shows_no_line_of_theirs_as_ours(walk: Walk, columns: int) -> None:
    """Filled up to the edge of the window, a text of one line would go on where a line of ours begins."""
    filled = ["." * length + VERDICT for length in range(0, columns, 3)]
    source = RAISES.replace(repr(HOSTILE), f"' '.join({filled!r})")
    path = hand_in(walk.course, walk.course.root / f"window-{columns}", source)
    command = [sys.executable, "-m", "autograder.cli.main", "check", str(path)]
    environment = walk.course.environment() | {"TERM": "xterm", "COLUMNS": str(columns)}
    lines = on_a_terminal(command, environment, columns)
    assert sum("FORGED" in line for line in lines) > 3
    bad = [line for line in lines if line.startswith(("✓ ", "0.1 Passed", "Passed: ", "."))]
    assert not bad, bad
