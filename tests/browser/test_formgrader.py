"""An instructor opens formgrader in the browser: the lesson, the class, one submission with its reason."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest

from autograder.lessons import load_lesson
from tests.autograder.nbgrader_course import LESSON_01, Course, cell, right_answers, with_solutions

playwright = pytest.importorskip("playwright.sync_api", reason="needs the `dev` extra")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
POINTS = {exercise.id: float(exercise.max_score) for exercise in load_lesson("01").exercises}
UNTIMED = ("1.3", "1.4")
TOKEN = "a-secret-of-this-test"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.measures,  # the perfect submission earns its points against the clock
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Lesson 01, submitted by four learners and graded."""
    course = Course(tmp_path_factory.mktemp("course"))
    course.nbgrader("generate_assignment", LESSON_01)
    source = course.notebook("source", LESSON_01)
    half = with_solutions(course.notebook("release", LESSON_01), source, *UNTIMED)
    broken = with_solutions(course.notebook("release", LESSON_01), source, "1.3")
    cell(broken, "exercise-1-1").source = '@exercise("1.1")\ndef collate(batch:\n    return ((('
    answers = right_answers("01")
    course.submit("perfect", LESSON_01, source, answers)
    course.submit("empty", LESSON_01, course.notebook("release", LESSON_01))
    course.submit("half", LESSON_01, half, dict(list(answers.items())[:3]))
    course.submit("broken", LESSON_01, broken)
    course.nbgrader("autograde", LESSON_01)
    course.nbgrader("generate_feedback", LESSON_01)
    return course


@pytest.fixture(scope="module")
def address(course: Course) -> Iterator[str]:
    """A Jupyter server in the course folder, with nbgrader's extensions."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (course.data / "server.log").open("w")
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
            *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"),
            f"--ServerApp.root_dir={course.root}",
        ],
        cwd=course.root,
        env=course.environment(),
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api", server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=20)
        log.close()


@pytest.fixture
def page(address: str) -> Iterator[playwright.Page]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        page.goto(f"{address}/formgrader?token={TOKEN}")
        yield page
        browser.close()


def test_the_lesson_is_listed_with_its_submissions(page: playwright.Page, tmp_path: Path) -> None:
    row = page.get_by_role("row").filter(has_text=LESSON_01)
    row.wait_for()
    page.screenshot(path=tmp_path / "assignments.png")
    assert row.locator("td.num-submissions").inner_text().strip() == "4"


def test_the_class_is_listed_with_its_scores(
    page: playwright.Page, address: str, course: Course, tmp_path: Path
) -> None:
    page.goto(f"{address}/formgrader/gradebook/{LESSON_01}/{LESSON_01}")
    page.get_by_role("link", name="Submission #4").wait_for()
    page.screenshot(path=tmp_path / "submissions.png")
    shown = [float(text.split("/")[0]) for text in page.locator("td:nth-child(3)").all_inner_texts()]
    perfect = course.exported(LESSON_01)["perfect"]
    assert sorted(shown) == sorted([0.0, POINTS["1.3"], POINTS["1.3"] + POINTS["1.4"] + 3, perfect])
    # On a busy machine the clock may not decide, and then the points that need it are not given.
    certain = sum(exercise.clock_free_score for exercise in load_lesson("01").exercises)
    assert certain <= perfect - len(right_answers("01")) <= sum(POINTS.values())


@pytest.mark.parametrize(
    ("student", "reason"),
    [
        ("perfect", "Speedup"),
        ("empty", "still the stub"),
        ("half", "Right on secret inputs"),
        ("broken", "SyntaxError"),
    ],
)
def test_a_submission_shows_its_reasons(
    page: playwright.Page, address: str, course: Course, tmp_path: Path, student: str, reason: str
) -> None:
    page.goto(f"{address}/formgrader/submissions/{_submission_id(course, student)}")
    card = page.locator(".workbook-card").filter(has_text=reason).first
    card.wait_for()
    card.scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / f"{student}.png")
    assert page.locator(".workbook-card").count() == len(POINTS) + 1  # and the quiz


def test_autograde_works_from_its_button(
    page: playwright.Page, address: str, course: Course, tmp_path: Path
) -> None:
    page.goto(f"{address}/formgrader/manage_submissions/{LESSON_01}")
    page.get_by_role("row").filter(has_text="half").locator("td.autograde a").click()
    said = page.locator(".modal.in")
    said.get_by_text("Success", exact=True).wait_for(timeout=120_000)
    page.screenshot(path=tmp_path / "autograded.png")
    assert course.exported(LESSON_01)["half"] == POINTS["1.3"] + POINTS["1.4"] + 3


def test_feedback_has_the_measurement_drawn(course: Course) -> None:
    assert "<svg" in course.feedback("perfect", LESSON_01)
    assert "<svg" not in course.feedback("empty", LESSON_01)


def _submission_id(course: Course, student: str) -> str:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        return str(gradebook.find_submission_notebook(LESSON_01, LESSON_01, student).id)


def _wait_for(url: str, server: subprocess.Popen[bytes], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except URLError:
            time.sleep(0.3)
    raise AssertionError(f"the server did not answer within {seconds} s")
