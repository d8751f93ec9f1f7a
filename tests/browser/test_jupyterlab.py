"""A learner's first hour in the browser: the start page, an exercise failed and solved, a quiz, and the day after.

Screenshots of every station are in the test's temporary folder (`--basetemp`), for eyes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="needs the `dev` extra")

from playwright.sync_api import Locator, Page, expect

from autograder.course.lessons import load_lesson
from autograder.kept.answers import AnswersFile
from tests.browser.lab import CHROMIUM, MISSING_WIDGET, PATIENCE, Notebook, chromium, served

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.timeout(1800),
]

START = "00_start_here"
LESSON = "01_efficient_training_loops"
QUESTION = "01.3"
EXERCISES = {exercise.id: exercise for exercise in load_lesson("01").exercises}
EXERCISE = EXERCISES["1.1"]
ALL_POINTS = sum(exercise.max_score for exercise in EXERCISES.values())

SPEEDUP = """\
from autograder import exercise


@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError("durations must be above zero")
    return baseline_seconds / candidate_seconds
"""

COLLATE = """\
import numpy as np
import torch

from autograder import exercise


@exercise("1.1")
def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    input_ids = np.zeros((len(batch), width), dtype=np.int64)
    mask = np.zeros((len(batch), width), dtype=bool)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = ids
        mask[row, : len(ids)] = True
    return {
        "input_ids": torch.from_numpy(input_ids),
        "attention_mask": torch.from_numpy(mask),
        "labels": torch.tensor([label for _, label in batch]),
    }
"""
WRONG_COLLATE = COLLATE.replace("mask[row, : len(ids)] = True", "mask[row] = True")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learner") / "my workbook"


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    """One JupyterLab, opened on the page that `workbook start` names."""
    with served(folder) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        yield page


@pytest.mark.everyday
def test_the_start_page_runs_from_top_to_bottom(page: Page, folder: Path, tmp_path: Path) -> None:
    start = Notebook(page, folder / START / f"{START}.ipynb")
    page.screenshot(path=tmp_path / "opened.png")
    predict, exercise = cell_with(start, 'predict("0a"'), "exercise-0-1"
    ids = start.code_ids()

    start.run(*ids[: ids.index(predict) + 1])
    expect(start.cell(cell_with(start, "progress_html()"))).to_contain_text("Nothing here yet")
    box = start.cell(predict).get_by_role("textbox", name="Your prediction")
    box.click()
    page.keyboard.type("12")
    expect(start.cell(predict).get_by_role("status")).to_contain_text("saved 12")

    start.write(exercise, SPEEDUP)
    start.run(*ids[ids.index(predict) + 1 :])
    expect(start.cell(cell_with(start, 'compare("0a"'))).to_contain_text("12")
    shoot(start.cell("check-0-1"), tmp_path / "check.png")
    expect(card(start, "check-0-1")).to_contain_text("Passed")
    assert_nothing_looks_broken(start)


def test_an_exercise_and_a_quiz_survive_a_reload(page: Page, folder: Path, tmp_path: Path) -> None:
    start = Notebook(page, folder / START / f"{START}.ipynb")
    # The one at the end: the others are in a folded table.
    start.cell(start.ids[-1]).locator(f"a[href*='{LESSON}.ipynb']").click()
    lesson = Notebook(page, folder / LESSON / f"{LESSON}.ipynb")
    page.screenshot(path=tmp_path / "lesson.png")
    figure = cell_with(lesson, "show(fig")
    lesson.run_through(figure)
    expect(lesson.outputs(figure).locator("img[alt]")).to_be_visible()
    shoot(lesson.outputs(figure).first, tmp_path / "figure.png")

    points = fail_then_solve(lesson, tmp_path)
    start = in_tab(page, folder, START)
    progress = cell_with(start, "progress_html()")
    start.run(progress)
    expect(start.cell(progress)).to_contain_text("Continue where you stopped: 01")
    start.cell(progress).get_by_role("link", name=re.compile(r"exercise 1\.[12]")).click()
    answer_the_quiz(Notebook(page, lesson.path), tmp_path)

    page.reload()
    find_all_again(Notebook(page, lesson.path), points, tmp_path)
    start = in_tab(page, folder, START)
    start.run(start.code_ids()[0], progress)
    shoot(start.cell(progress), tmp_path / "progress.png")
    row = start.cell(progress).get_by_role("row").filter(has_text="01 · Efficient training loops")
    expect(row).to_contain_text(f"{points:g} of {ALL_POINTS:g} points")
    expect(row).to_contain_text("1 of 10 answered")


def fail_then_solve(lesson: Notebook, pictures: Path) -> float:
    """Exercise 1.1, first with a mistake, then right; returns the points on the card."""
    lesson.write("exercise-1-1", WRONG_COLLATE)
    lesson.run("exercise-1-1", "check-1-1")
    shoot(lesson.cell("check-1-1"), pictures / "fail.png")
    expect(card(lesson, "check-1-1")).to_contain_text("Not yet")
    expect(card(lesson, "check-1-1")).to_contain_text("Next")

    lesson.write("exercise-1-1", COLLATE)
    lesson.run("exercise-1-1", "check-1-1")
    shoot(lesson.cell("check-1-1"), pictures / "verdict.png")
    return assert_solved(card(lesson, "check-1-1"))


def answer_the_quiz(lesson: Notebook, pictures: Path) -> None:
    """One click, and the answer is on disk."""
    lesson.run(cell_with(lesson, 'quiz("01")'))
    expect(quiz(lesson).locator("input:checked")).to_have_count(0)
    option(lesson, QUESTION, 1).click()
    expect(quiz_status(lesson)).to_have_text(re.compile(r"^1 of \d+ answered · ✓ saved in"))
    shoot(option(lesson, QUESTION, 1), pictures / "quiz.png", whole_page=True)
    answers = AnswersFile(lesson.path.with_name(f"{LESSON}_answers.json"), "01")
    assert answers.entries()[QUESTION]["choice"] == "b"
    assert_nothing_looks_broken(lesson)


def find_all_again(lesson: Notebook, points: float, pictures: Path) -> None:
    """After a reload: the solution and its verdict; with a new kernel: the answer."""
    expect(lesson.cell("exercise-1-1").locator(".cm-content")).to_contain_text("width = max(len(ids)")
    saved = lesson.saved().cells[lesson.ids.index("exercise-1-1")].source
    assert saved.strip() == COLLATE.strip()
    shoot(lesson.cell("check-1-1"), pictures / "verdict_after_reload.png")
    assert assert_solved(card(lesson, "check-1-1")) == points

    lesson.restart_and_clear()
    lesson.run(lesson.code_ids()[0], cell_with(lesson, 'quiz("01")'))
    expect(quiz_status(lesson)).to_have_text(re.compile(r"^1 of \d+ answered · ✓ restored from"))
    expect(option(lesson, QUESTION, 1)).to_be_checked()
    expect(quiz(lesson).locator("input:checked")).to_have_count(1)
    shoot(option(lesson, QUESTION, 1), pictures / "quiz_after_reload.png", whole_page=True)
    assert_nothing_looks_broken(lesson)


def in_tab(page: Page, folder: Path, slug: str) -> Notebook:
    """An open notebook, brought to the front by its tab."""
    page.locator(".lm-TabBar-tab").filter(has_text=slug).click()
    return Notebook(page, folder / slug / f"{slug}.ipynb")


def cell_with(notebook: Notebook, text: str) -> str:
    """The id of the first code cell that holds `text`."""
    return next(
        cell["id"] for cell in notebook.saved().cells if cell.cell_type == "code" and text in cell.source
    )


def card(notebook: Notebook, cell_id: str) -> Locator:
    return notebook.outputs(cell_id).locator(".workbook-card")


def assert_solved(shown: Locator) -> float:
    """A card that says pass, or honestly that the clock could not decide; returns its points."""
    expect(shown).to_have_count(1)
    text = shown.text_content() or ""
    found = re.search(rf"([\d.]+) of {EXERCISE.max_score:g} points", text)
    assert found, text
    # On a busy machine the verdict may stay open. Then the card says so, and the counts still earn their points.
    if "The clock could not decide" in text:
        assert float(found[1]) == EXERCISE.clock_free_score > 0
    else:
        assert "Passed" in text
        assert float(found[1]) == EXERCISE.max_score
    expect(shown.get_by_role("img", name=re.compile("Speedup of each of .* blocks"))).to_be_visible()
    return float(found[1])


def quiz(notebook: Notebook) -> Locator:
    return notebook.panel.locator(".workbook-quiz")


def quiz_status(notebook: Notebook) -> Locator:
    return quiz(notebook).get_by_role("status").filter(has_text="answered ·")


def option(notebook: Notebook, question_id: str, index: int) -> Locator:
    number = question_id.partition(".")[2]
    group = quiz(notebook).locator(".widget-radio").filter(has_text=f"Your answer to question {number}")
    return group.get_by_role("radio").nth(index)


def assert_nothing_looks_broken(notebook: Notebook) -> None:
    """No red output, and no widget that is not there, neither on the page nor in the saved file."""
    assert MISSING_WIDGET.findall(notebook.panel.text_content() or "") == []
    expect(notebook.panel.locator('[data-mime-type="application/vnd.jupyter.stderr"]')).to_have_count(0)
    expect(notebook.panel.locator('[data-mime-type="application/vnd.jupyter.error"]')).to_have_count(0)
    notebook.save()
    outputs = [output for cell in notebook.saved().cells for output in cell.get("outputs", [])]
    assert outputs, "nothing was run"
    assert [o for o in outputs if o.get("name") == "stderr" or o.output_type == "error"] == []


def shoot(what: Locator, path: Path, *, whole_page: bool = False) -> None:
    """A picture of one thing, or of the page with the thing in sight (for what is higher than the page)."""
    what.scroll_into_view_if_needed()
    (what.page if whole_page else what).screenshot(path=path)
