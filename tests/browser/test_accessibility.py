"""What learners see has no serious or critical issue by axe, in light and in dark: widgets, cards, texts and pages.

axe sees about half of what may be wrong; the keys and the words that are spoken are tested beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytest.importorskip("axe_playwright_python", reason="needs the `dev` extra")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from autograder.engine.check import check_source
from autograder.grading.reports import reporting as report
from autograder.kept import progress
from autograder.learner import certificate
from autograder.learner.standing import required, standings
from autograder.quizzes.grading import load_bank
from autograder.show.card import result_html
from autograder.show.evidence_page import page as evidence_page
from tests.autograder.results import result_of
from tests.autograder.test_evidence import RIGHT, block, dicts, speed
from tests.autograder.test_report import FOUND
from tests.browser.lab import CHROMIUM, PATIENCE, Notebook, chromium, served
from tests.browser.test_jupyterlab import START, cell_with
from tests.course_lib.record_runs import train, write_csv

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.timeout(900),
]

#: A lesson's parts in one notebook, each as a lesson calls it.
PARTS = {
    "imports": "from autograder import answer, check_quiz, compare, exam, predict, quiz\n"
    "from autograder.show.plots import figure, show",
    "card": "from IPython.display import HTML\nHTML(open('card.html').read())",
    "predict": 'predict("1a", "How many times fewer?", "×")',
    "compare": 'predict("1b", "And here?", "×", value=2)\ncompare("1b", 3.1, "×")',
    "figure": "fig, ax = figure()\nax.plot([1, 2, 3])\nshow(fig, 'A line that rises from 1 to 3')",
    "answers": 'for n in range(2, 11): answer(f"01.{n}", "a")',
    "quiz": 'quiz("01")',
    "graded": 'check_quiz("01")',
    "exam": 'exam("09")',
    "handed in": "for n in range(1, 16): answer(f'09.1.{n}', 'b')\ncheck_quiz('09')",
    "exam over": 'exam("09")',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learner") / "workbook"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def lab(folder: Path, browser: Browser) -> Iterator[Page]:
    with served(folder) as address:
        # So high that all of a notebook is in sight: axe leaves out what is not.
        page = browser.new_page(viewport={"width": 1280, "height": 20_000})
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        yield page


@pytest.fixture(scope="module")
def parts(lab: Page, folder: Path) -> Notebook:
    """The parts of a lesson, all run."""
    path = folder / "parts" / "parts.ipynb"
    path.parent.mkdir()
    (path.parent / "card.html").write_text(result_html(result_of(result())))
    cells = [nbformat.v4.new_code_cell(source, id=name.replace(" ", "-")) for name, source in PARTS.items()]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    lab.goto(lab.url.partition("/tree/")[0] + "/tree/parts/parts.ipynb")
    parts = Notebook(lab, path)
    parts.run(*parts.ids)
    return parts


def result() -> dict[str, Any]:
    """Of a check that measured."""
    blocks = [block(1.6), block(1.4, "BAAB"), block(1.2)]
    path = Path(check_source("0.1", RIGHT).evidence)
    record: dict[str, Any] = json.loads(path.read_text())
    record |= {"blocks": dicts(blocks), "attempts": 2, "clock_verdict": "pass"}
    record["result"] |= {
        "speedup": speed(blocks),
        "review": ["Faster than `1.5 ×`."],
        "counts": {"tokens": 3},
    }
    return record


def issues(page: Page, *ours: str) -> list[str]:
    """What axe finds serious or critical on the page, or in what these selectors name, in light and in dark."""
    found = []
    if ours:
        # JupyterLab's own body has no height and hides what flows over: to axe, nothing would be in sight.
        page.add_style_tag(content="body{height:100vh} .jp-Cell{content-visibility:visible!important}")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        if ours:  # JupyterLab has its own themes, and its own page around us
            theme = page.locator("body[data-jp-theme-light]")
            expect(theme).to_have_attribute("data-jp-theme-light", "true" if scheme == "light" else "false")
            expect(page.locator("#jupyterlab-splash")).to_have_count(
                0
            )  # it covers all while a theme is loaded
            for selector in ours:
                expect(page.locator(selector).first).to_be_attached()
        response = Axe().run(page, {"include": [[one] for one in ours]} if ours else None).response
        found += [
            f"{scheme}: {violation['impact']} {violation['id']}: {node['target']} {node['html'][:200]}"
            for violation in response["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]
    return found


def test_the_start_page(lab: Page, folder: Path, tmp_path: Path) -> None:
    start = Notebook(lab, folder / START / f"{START}.ipynb")
    for text in ("progress_html()", "machine()", 'predict("0a"'):
        start.run(cell_with(start, text))
    assert issues(lab, ".workbook-card", ".workbook-predict", ".jp-RenderedMarkdown") == []


def test_the_quiz_has_names_keys_and_a_voice(parts: Notebook) -> None:
    """The question is its group's name, keys move and choose, the focus stays, what is saved is spoken."""
    question = load_bank("01").questions[0]
    name = re.compile(f"^{question.id} .*{re.escape(question.text.splitlines()[-1])}$")
    group = parts.cell("quiz").get_by_role("radiogroup", name=name)
    options, press = group.get_by_role("radio"), parts.page.keyboard.press
    num_cells = parts.panel.locator(".jp-Notebook-cell").count()
    options.first.focus()
    for key, focused in (("ArrowUp", -1), ("ArrowDown", 0), ("c", 2), ("x", 2), ("b", 1)):
        press(key)
        expect(options.nth(focused)).to_be_focused()
    expect(group.locator("input:checked")).to_have_count(0)
    press("Space")
    expect(parts.cell("quiz").get_by_role("status").filter(has_text="✓ saved").first).to_be_visible()
    expect(options.nth(1)).to_be_checked()
    expect(options.nth(1)).to_be_focused()
    press("Tab")  # the next question's code, which may need scrolling
    press("Tab")
    expect(parts.cell("quiz").get_by_role("radiogroup").nth(1).get_by_role("radio").first).to_be_focused()
    button = parts.cell("quiz").get_by_role("button", name="Other questions")
    expect(button).to_be_enabled()
    button.focus()
    press("Enter")
    expect(parts.cell("quiz").get_by_role("heading", name="other questions")).to_be_focused()
    expect(parts.cell("quiz").get_by_role("radiogroup", name=re.compile("^01.1b "))).to_be_visible()
    # No key has reached JupyterLab.
    expect(parts.panel.locator(".jp-Notebook-cell")).to_have_count(num_cells)


def test_the_parts_of_a_lesson(lab: Page, parts: Notebook, tmp_path: Path) -> None:
    lab.screenshot(path=tmp_path / "parts.png")
    ours = (
        ".workbook-card",
        ".workbook-predict",
        ".workbook-quiz",
        ".workbook-turns",
        ".jp-OutputArea img",
    )
    assert issues(lab, *ours) == []

    lab.add_style_tag(content=":is(.workbook-card,.workbook-turns,.workbook-quiz) *{color:#888!important}")
    pale = " ".join(issues(lab, *ours))
    for seen in ("color-contrast", "<label>", "<strong>", "<td", "<h4"):
        assert seen in pale, "axe does not see what a learner sees"


def test_the_pages_beside_the_notebooks(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    train(tmp_path / "run", write_csv(tmp_path / "texts.csv"))
    passed, record = required(standings(progress.summary())), result()
    pages = {
        "evidence": evidence_page(record, result_of(record)),
        "report": (tmp_path / "run" / "report.html").read_text(),
        "certificate": certificate.page("Ada", passed, date(2026, 1, 2)),
    }
    report.write_page(FOUND, tmp_path / "class.html")
    pages["class"] = (tmp_path / "class.html").read_text(encoding="utf-8")
    for name, html in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(html)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=tmp_path / f"{name}_{scheme}.png", full_page=True)
        assert issues(page) == [], name
