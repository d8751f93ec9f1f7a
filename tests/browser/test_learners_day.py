"""The rest of a learner's day: the first start, a whole lesson, keys alone, the stop button, the exam, the certificate.

Every station is photographed in light and in dark, into the test's temporary folder (`--basetemp`), for eyes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="needs the `dev` extra")

from playwright.sync_api import BrowserContext, Locator, Page, expect

from autograder.course.lessons import load_lesson
from autograder.kept import progress
from autograder.kept.answers import read_answers
from autograder.learner.standing import required, standings
from autograder.quizzes import exams
from autograder.quizzes.grading import load_bank
from autograder.quizzes.kinds import Choice
from autograder.quizzes.question import Question
from tests.autograder.solutions import reference_sources
from tests.browser.lab import CHROMIUM, PATIENCE, RUN_PATIENCE, Notebook, chromium, served, user_folder
from tests.browser.test_jupyterlab import (
    COLLATE,
    START,
    assert_nothing_looks_broken,
    assert_solved,
    card,
    cell_with,
    option,
    quiz,
    quiz_status,
    shoot,
)
from tests.browser.test_jupyterlab import LESSON as OTHER_LESSON

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.timeout(1800),
]

LESSON = "04_checkpointing_and_early_stopping"
EXAM = "09_skill_exam"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learner") / "workbook"


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def context(address: str) -> Iterator[BrowserContext]:
    """A browser that the server knows, on a system with a light desktop."""
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
        context.set_default_timeout(PATIENCE)
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    yield page
    page.close()


def opened(page: Page, address: str, folder: Path, slug: str) -> Notebook:
    """A notebook, by its own address."""
    page.goto(re.sub(r"/lab[^?]*", f"/lab/tree/{slug}/{slug}.ipynb", address))
    return Notebook(page, folder / slug / f"{slug}.ipynb")


def picture(what: Locator | Page, path: Path, name: str) -> None:
    """A station in light and in dark."""
    page = what if isinstance(what, Page) else what.page
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        theme = page.locator("body[data-jp-theme-light]")
        expect(theme).to_have_attribute("data-jp-theme-light", "true" if scheme == "light" else "false")
        expect(page.locator("#jupyterlab-splash")).to_have_count(0)
        shot = path / f"{name}_{scheme}.png"
        if isinstance(what, Page):
            page.screenshot(path=shot)
        else:
            shoot(what, shot)


def right(question: Question) -> int:
    """The place of its right option."""
    assert isinstance(question, Choice)
    lesson_id = question.id.partition(".")[0]
    letters = [option.id for option in question.options]
    return next(i for i, letter in enumerate(letters) if question.judge(lesson_id, letter).is_right)


def test_the_first_start(page: Page, address: str, folder: Path, tmp_path: Path) -> None:
    page.goto(address)
    start = Notebook(page, folder / START / f"{START}.ipynb")
    expect(page.locator("#jp-main-dock-panel .lm-TabBar-tab")).to_have_count(1)
    contents = page.locator(".jp-TableOfContents")
    for heading in ("Where you are", "Your machine", "Your certificate"):
        expect(contents.get_by_text(heading, exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".Toastify__toast")).to_have_count(0)
    picture(page, tmp_path, "first_start")

    progress_cell, machine = cell_with(start, "progress_html()"), cell_with(start, "machine()")
    start.run(progress_cell, machine)
    expect(start.cell(progress_cell)).to_contain_text("Nothing here yet")
    expect(start.cell(progress_cell).get_by_role("link", name=re.compile("^01 ·")).first).to_be_visible()
    picture(start.cell(progress_cell), tmp_path, "map")
    picture(start.cell(machine), tmp_path, "machine")
    contents.get_by_text("Your certificate", exact=True).click()
    certificate = cell_with(start, "certificate(name=")
    expect(start.cell(certificate)).to_be_in_viewport()
    start.run(certificate)
    expect(start.cell(certificate)).to_contain_text("No certificate yet: 10 parts are not passed")
    picture(start.cell(certificate), tmp_path, "no_certificate")
    assert_nothing_looks_broken(start)


def test_a_lesson_from_top_to_bottom(page: Page, address: str, folder: Path, tmp_path: Path) -> None:
    lesson = opened(page, address, folder, LESSON)
    for exercise_id, source in reference_sources("04").items():
        lesson.write(f"exercise-{exercise_id.replace('.', '-')}", source)
    lesson.run_through(lesson.ids[-1])
    for exercise in load_lesson("04").exercises:
        shown = card(lesson, f"check-{exercise.id.replace('.', '-')}")
        undecided = exercise.clock and "The clock could not decide" in (shown.text_content() or "")
        points = exercise.clock_free_score if undecided else exercise.max_score
        expect(shown).to_contain_text("The clock could not decide" if undecided else "Passed")
        expect(shown).to_contain_text(f"{points:g} of {exercise.max_score:g} points")
    picture(card(lesson, "check-4-5"), tmp_path, "lesson_done")
    expect(card(lesson, "quiz-04")).to_contain_text("0 of 8 right")
    assert_nothing_looks_broken(lesson)


def test_a_quiz_by_keyboard_alone(page: Page, address: str, folder: Path, tmp_path: Path) -> None:
    lesson = opened(page, address, folder, LESSON)
    bank = load_bank("04")
    shown = cell_with(lesson, 'quiz("04")')
    lesson.run(lesson.code_ids()[0])
    lesson.cell(shown).locator(".jp-InputArea-prompt").click()  # the last click
    page.keyboard.press("ControlOrMeta+Enter")
    expect(quiz_status(lesson)).to_contain_text(f"0 of {len(bank.questions)} answered")
    answer_by_keys(lesson, bank.questions, num_wrong=1)
    picture(page, tmp_path, "quiz_answered")
    press_button(lesson, "Other questions")
    expect(quiz_status(lesson)).to_contain_text(f"0 of {len(bank.second_forms)} answered")
    picture(page, tmp_path, "quiz_other")
    answer_by_keys(lesson, bank.second_forms)
    page.keyboard.press("Shift+Enter")  # on to the cell below, as in any notebook
    expect(lesson.cell("quiz-04")).to_have_class(re.compile("jp-mod-active"))
    page.keyboard.press("Shift+Enter")
    count = len(bank.second_forms)
    expect(card(lesson, "quiz-04")).to_contain_text(
        re.compile(rf"{count} of {count} right.*: passed"), timeout=RUN_PATIENCE
    )
    picture(card(lesson, "quiz-04"), tmp_path, "quiz_graded")
    assert_nothing_looks_broken(lesson)


def answer_by_keys(lesson: Notebook, questions: Sequence[Question], num_wrong: int = 0) -> None:
    """Tab to each question, arrows to an option, Space or Enter to choose it."""
    for number, question in enumerate(questions):
        at = (right(question) + (number < num_wrong)) % len(question.options)
        tab_to(lesson.page, f"Your answer to question {question.id.partition('.')[2]};")
        for _ in range(at):
            lesson.page.keyboard.press("ArrowDown")
        expect(option(lesson, question.id, at)).to_be_focused()
        lesson.page.keyboard.press("Space" if number % 2 else "Enter")
        expect(quiz_status(lesson)).to_contain_text(
            re.compile(rf"^{number + 1} of \d+ answered · ✓ saved in")
        )


def press_button(lesson: Notebook, name: str) -> None:
    """Walk to a button, and press it."""
    tab_to(lesson.page, name)
    lesson.page.keyboard.press("Enter")


def tab_to(page: Page, name: str) -> None:
    """Tab until the focus is on what carries this name, itself or by its group."""
    for _ in range(50):
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"Tab does not come to {name}")


#: What a screen reader says of the place of the focus, roughly.
FOCUSED = """() => {
  const at = document.activeElement, group = at.closest('[role=radiogroup]');
  return group ? group.querySelector('.widget-label').textContent + ';' : at.textContent;
}"""


@pytest.mark.measures  # beside another test the button would come too late
def test_the_stop_button_during_a_timed_check(page: Page, address: str, folder: Path, tmp_path: Path) -> None:
    lesson = opened(page, address, folder, OTHER_LESSON)
    lesson.write("exercise-1-1", COLLATE)
    lesson.run(lesson.code_ids()[0], "exercise-1-1")
    shown = lesson.cell("check-1-1")
    lesson.prompt("check-1-1").click()
    page.keyboard.press("Shift+Enter")
    # Looked for at each frame: a block is over soon.
    measuring = "element => /Block [2-9] of/.test(element.textContent)"
    page.wait_for_function(measuring, arg=shown.element_handle(), timeout=RUN_PATIENCE)
    shoot(shown, tmp_path / "measuring.png")
    lesson.panel.locator('[data-command="notebook:interrupt-kernel"]').click()
    expect(card(lesson, "check-1-1")).to_contain_text("Stopped")
    expect(card(lesson, "check-1-1")).to_contain_text(re.compile(r"Nothing is lost.*blocks? (is|are) kept"))
    said = lesson.outputs("check-1-1").last
    expect(said).to_have_text("Stopped: the cells below were not run.")
    expect(said).to_have_css("background-color", "rgba(0, 0, 0, 0)")  # JupyterLab's own is red
    picture(shown, tmp_path, "stopped")

    lesson.run("check-1-1")
    assert_solved(card(lesson, "check-1-1"))
    picture(shown, tmp_path, "after_the_stop")
    assert_nothing_looks_broken(lesson)


def test_an_exam_is_begun_closed_resumed_and_passed(
    page: Page, context: BrowserContext, address: str, folder: Path, tmp_path: Path
) -> None:
    exam = opened(page, address, folder, EXAM)
    sheet = cell_with(exam, 'exam("09")')
    exam.run(exam.code_ids()[0], sheet)
    questions = paper(folder)
    expect(quiz_status(exam)).to_contain_text("0 of 15 answered")
    choose_right(exam, questions[:4])
    picture(page, tmp_path, "exam_begun")
    asked = quiz(exam).locator(".workbook-asked").all_inner_texts()
    exam.save()
    exam.menu("Kernel", "Shut Down Kernel")
    expect(page.get_by_text("No Kernel").first).to_be_visible()
    page.close()

    with contextlib.closing(context.new_page()) as page:
        exam = opened(page, address, folder, EXAM)
        exam.restart_and_clear()
        exam.run(exam.code_ids()[0], sheet)
        expect(quiz_status(exam)).to_have_text(re.compile(r"^4 of 15 answered · ✓ restored from"))
        assert quiz(exam).locator(".workbook-asked").all_inner_texts() == asked
        for question in questions[:4]:
            expect(option(exam, question.id, right(question))).to_be_checked()
        choose_right(exam, questions[4:], before=4)
        exam.cell(sheet).get_by_role("button", name="Hand in").click()
        graded = exam.cell(sheet).get_by_label("Result of quiz 09")
        expect(graded).to_contain_text(re.compile("15 of 15 right.*: passed"))
        picture(page, tmp_path, "exam_passed")
        assert_nothing_looks_broken(exam)

        start = opened(page, address, folder, START)
        map_of_course = cell_with(start, "progress_html()")
        start.run(map_of_course)
        row = start.cell(map_of_course).get_by_role("row").filter(has_text="09 · Skill exam")
        expect(row).to_contain_text("15 of 15 right, passed")
        expect(row).to_contain_text("✓ done")


def paper(folder: Path) -> Sequence[Question]:
    """The questions of the exam that was begun, as the answers file names them."""
    place = exams.place_in(read_answers(folder / EXAM / f"{EXAM}_answers.json"))
    assert place is not None
    return exams.paper(load_bank("09"), place).questions


def choose_right(exam: Notebook, questions: Sequence[Question], before: int = 0) -> None:
    for number, question in enumerate(questions, start=before + 1):
        option(exam, question.id, right(question)).click()
        expect(quiz_status(exam)).to_contain_text(re.compile(rf"^{number} of 15 answered · ✓ saved in"))


def test_the_certificate(
    page: Page, address: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(user_folder(folder) / "data"))
    pass_all_parts()
    start = opened(page, address, folder, START)
    certificate, map_of_course = cell_with(start, "certificate(name="), cell_with(start, "progress_html()")
    start.run(map_of_course)
    start.cell(map_of_course).get_by_role("link", name="Your certificate").click()
    expect(start.cell(certificate)).to_be_in_viewport()
    picture(start.cell(map_of_course), tmp_path, "course_passed")
    source = start.saved().cells[start.ids.index(certificate)].source
    start.write(certificate, source.replace('name=""', 'name="Ada Lovelace"'))
    start.run(certificate)
    link = start.cell(certificate).get_by_role("link", name="certificate.html")
    picture(start.cell(certificate), tmp_path, "certificate_card")
    link.click()
    shown = page.frame_locator("iframe.jp-HTMLViewer, .jp-HTMLViewer iframe").first
    expect(shown.get_by_text("Ada Lovelace")).to_be_visible()
    picture(page, tmp_path, "certificate_in_tab")

    page.goto(re.sub(r"/lab[^?]*", f"/files/{START}/certificate.html", address))
    expect(page.get_by_text("Ada Lovelace")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=tmp_path / f"certificate_{scheme}.png", full_page=True)
    pdf = page.pdf(path=tmp_path / "certificate.pdf", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def pass_all_parts() -> None:
    """What the checks and quizzes of a whole course leave in progress. What was measured here stays as it is."""
    for standing in required(standings(progress.summary())):
        for exercise in load_lesson(standing.part.id).exercises:
            if exercise.id in standing.exercises and standing.exercises[exercise.id].verdict == "pass":
                continue
            points = {"score": exercise.max_score, "max_score": exercise.max_score}
            progress.record_check({"id": exercise.id, "verdict": "pass"} | points)
        if standing.part.id != "10":
            count = load_bank(standing.part.id).num_questions
            progress.record_quiz(standing.part.id, count, count, passed=True)
