"""An instructor's evening in formgrader: generate, autograde, read, comment, give points, hand feedback out, export."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from nbformat.v4 import new_markdown_cell

pytest.importorskip("playwright.sync_api", reason="needs the `dev` extra")

from playwright.sync_api import Page, expect

from autograder.course.lessons import load_lesson
from autograder.lessons.checking.mutants import load_mutants
from tests.autograder.nbgrader_course import LESSON_01, Course, cell, right_answers, with_solutions
from tests.browser.lab import CHROMIUM, SECOND, chromium, free_port

EXERCISES = {exercise.id: exercise for exercise in load_lesson("01").exercises}
TOKEN = "a-secret-of-this-test"
PATIENCE = 180 * SECOND
COMMENT = "Close. Read *section 3* again: which divisor is the same for every batch?"
ATTACK = "My notes. <img src=x onerror=\"document.title='owned'\"> [here](javascript:alert(1))"
WHY = {
    "ada": ["Speedup", "averaged batch means", "still the stub"],
    "broken": ["SyntaxError", "came without its answers file"],
    "grace": ["Right on secret inputs", "3 of"],
}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.timeout(900),
]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Lesson 01, not generated yet."""
    return Course(tmp_path)


@pytest.fixture
def address(course: Course) -> Iterator[str]:
    """A Jupyter server in the course folder, with nbgrader's extensions."""
    course.data.mkdir()
    port = free_port()
    with (
        (course.data / "server.log").open("w") as log,
        subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
                *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"),
                f"--ServerApp.root_dir={course.root}",
            ],
            cwd=course.root,
            env=course.environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            _wait_for(f"http://127.0.0.1:{port}/api", server)
            yield f"http://127.0.0.1:{port}/formgrader"
        finally:
            server.terminate()
            server.wait(timeout=20)


def test_an_evening_in_formgrader(course: Course, address: str, tmp_path: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(PATIENCE)
        # nbgrader's pages ask another host for MathJax, and are not ready before it has answered.
        page.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
        page.goto(f"{address}?token={TOKEN}")
        generate(page, tmp_path)
        hand_in(course)
        autograde(page, address, tmp_path)
        read_and_comment(page, address, tmp_path)
        give_feedback(page, address)
        a_learner_reads(page, course, tmp_path)
    exported(course)


def generate(page: Page, tmp_path: Path) -> None:
    """The assignments page: make the release, and look at it."""
    row = page.get_by_role("row").filter(has_text=LESSON_01)
    row.locator("td.assign a").click()
    succeeded(page)
    expect(row.locator("td.num-submissions")).to_have_text("0")
    expect(row.locator("td.preview a")).to_have_attribute("href", re.compile(f"release/{LESSON_01}$"))
    page.screenshot(path=tmp_path / "assignments.png")


def hand_in(course: Course) -> None:
    """Ada solves 1.1, makes a mistake in 1.3 and writes what must not run; Grace does the half; one is broken."""
    source, release = course.notebook("source", LESSON_01), course.notebook("release", LESSON_01)
    ada = with_solutions(release, source, "1.1")
    (mistake,) = (each for each in load_mutants("01")["1.3"] if each.says == "averaged batch means")
    cell(ada, "exercise-1-3").source = mistake.source
    ada.cells.insert(1, new_markdown_cell(ATTACK))
    course.submit("ada", LESSON_01, ada, {})
    grace = with_solutions(course.notebook("release", LESSON_01), source, "1.3", "1.4")
    course.submit("grace", LESSON_01, grace, dict(list(right_answers("01").items())[:3]))
    broken = course.notebook("release", LESSON_01)
    cell(broken, "exercise-1-1").source = '@exercise("1.1")\ndef collate(batch:\n    return ((('
    course.submit("broken", LESSON_01, broken)


def autograde(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/manage_submissions/{LESSON_01}")
    for student in WHY:
        row = page.get_by_role("row").filter(has_text=student)
        expect(row.locator("td.status")).to_have_text("needs autograding")
        row.locator("td.autograde a").click()
        succeeded(page)
        expect(row.locator("td.status")).to_have_text("graded")
    page.screenshot(path=tmp_path / "autograded.png")


def read_and_comment(page: Page, address: str, tmp_path: Path) -> None:
    """From the first submission to the last, as the Next link leads."""
    page.goto(f"{address}/gradebook/{LESSON_01}/{LESSON_01}")
    page.get_by_role("link", name="Submission #1").click()
    left = set(WHY)
    for _ in WHY:
        # What is typed before all is there is lost.
        page.wait_for_function("window.formgrader?.grades?.loaded && formgrader.comments?.loaded")
        title = page.locator("li.live-notebook a.name-shown")
        student = (title.text_content() or "").strip()
        left.remove(student)
        cards = page.locator(".workbook-card")
        expect(cards).to_have_count(len(EXERCISES) + 1)  # and the quiz
        for reason in WHY[student]:
            expect(cards.filter(has_text=reason).first).to_be_visible()
        expect(cards.locator("svg")).to_have_count(1 if student == "ada" else 0)
        assert not page.evaluate(
            "[...document.querySelectorAll('.workbook-card')].some(e => e.scrollWidth > e.clientWidth)"
        )
        assert page.title() == LESSON_01, "a learner's text has run"
        page.screenshot(path=tmp_path / f"{student}.png", full_page=True)
        if student == "ada":
            give(page, "#check-1-3_extra_credit", "2.5", "grade")
            give(page, "#exercise-1-3-comment", COMMENT, "comment")
        with page.expect_navigation():
            page.get_by_role("link", name="Next →").click()
    assert not left


def give(page: Page, field: str, value: str, kind: str) -> None:
    """Type into a field, leave it, and wait until the server has it."""
    page.locator(field).fill(value)
    with page.expect_response(
        lambda answer: answer.request.method == "PUT" and f"/api/{kind}/" in answer.url
    ) as saved:
        page.locator(field).blur()
    assert saved.value.ok


def give_feedback(page: Page, address: str) -> None:
    page.goto(f"{address}/manage_assignments")
    row = page.get_by_role("row").filter(has_text=LESSON_01)
    row.locator("td.generate-feedback a").click()
    succeeded(page)


def a_learner_reads(page: Page, course: Course, tmp_path: Path) -> None:
    """What Ada gets: the file alone, on her machine."""
    page.goto((course.root / "feedback" / "ada" / LESSON_01 / f"{LESSON_01}.html").as_uri())
    expect(page.get_by_text("which divisor is the same for every batch?")).to_be_visible()
    card = page.locator(".workbook-card").filter(has_text="averaged batch means")
    for word in ("Expected", "Got", "Likely", "Next"):
        expect(card.get_by_text(word, exact=True)).to_be_visible()
    plot = page.get_by_role("img", name=re.compile("Speedup of each of"))
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    assert box and 300 < box["width"] <= 560
    expect(page.get_by_text("My notes. <img src=x")).to_be_visible()
    expect(page.get_by_text("You may change answers")).to_have_count(0)  # it is handed in
    assert page.title() == LESSON_01
    page.screenshot(path=tmp_path / "feedback.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"


def exported(course: Course) -> None:
    """Grades with what was given by hand."""
    totals = course.exported(LESSON_01)
    assert totals["broken"] == 0.0
    assert totals["grace"] == EXERCISES["1.3"].max_score + EXERCISES["1.4"].max_score + 3
    # On a busy machine the clock may not decide, and then the points that need it are not given.
    timed = EXERCISES["1.1"]
    assert timed.clock_free_score + 2.5 <= totals["ada"] <= timed.max_score + 2.5
    course.nbgrader("export", "--exporter=autograder.grading.nbgrader.exports.Moodle")
    with (course.root / "grades-moodle.csv").open(encoding="utf-8") as file:
        assert {row["Username"]: float(row[LESSON_01]) for row in csv.DictReader(file)} == totals


def succeeded(page: Page) -> None:
    """A button's work is done, and said so; the message is closed."""
    said = page.locator(".modal.in")
    expect(said.locator(".modal-title")).to_have_text("Success", timeout=PATIENCE)
    said.get_by_role("button", name="OK").click()
    expect(page.locator(".modal")).to_have_count(0)


def _wait_for(url: str, server: subprocess.Popen[bytes], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except URLError:
            time.sleep(0.3)
    raise AssertionError(f"the server did not answer within {seconds} s")
