"""The README's pictures, taken anew: `python -m tests.browser.pictures` writes docs/images/*.png.

Look at them before you commit them: what they show was measured while they were taken.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import PATIENCE, Notebook, chromium, served
from tests.browser.test_jupyterlab import COLLATE, LESSON, START, card, cell_with, option, quiz

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
#: CSS pixels to image pixels, for sharp screens.
SCALE = 1.5


def take(folder: Path) -> None:
    """Do what the pictures show, in a new folder."""
    with served(folder) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1060, "height": 1400}, device_scale_factor=SCALE)
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        Notebook(page, folder / START / f"{START}.ipynb")
        page.locator(f".jp-RenderedMarkdown a[href*='{LESSON}.ipynb']").last.click()
        lesson = Notebook(page, folder / LESSON / f"{LESSON}.ipynb")
        page.keyboard.press("ControlOrMeta+b")  # the file browser away
        take_lesson(lesson, page)
        lesson.write("exercise-1-1", COLLATE)
        lesson.run("exercise-1-1", "check-1-1")
        store(page, card(lesson, "check-1-1"), card(lesson, "check-1-1"), "check", margin=0)
        grown = cell_with(lesson, 'so_far("1.1"')
        lesson.run(grown)
        picture = lesson.outputs(grown).locator("img")
        picture.wait_for()
        store(page, lesson.cell(grown), picture, "program")
        take_quiz(lesson, page)


def take_lesson(lesson: Notebook, page: Page) -> None:
    """A prediction, what was measured, and the figure that shows it."""
    predict = cell_with(lesson, 'predict("1a"')
    lesson.run_through(predict)
    lesson.cell(predict).get_by_role("textbox", name="Your prediction").click()
    page.keyboard.type("50")
    expect(lesson.cell(predict).get_by_role("status")).to_contain_text("saved 50")
    later = lesson.ids[lesson.ids.index(predict) + 1 :]
    code = set(lesson.code_ids())
    figure = next(i for i in later if i in code and lesson.cell(i).locator(".jp-InputPlaceholder").count())
    lesson.run(*[i for i in later[: later.index(figure) + 1] if i in code])
    lesson.outputs(figure).locator("img").wait_for()
    store(page, lesson.cell(predict), lesson.outputs(figure).locator("img"), "lesson")


def take_quiz(lesson: Notebook, page: Page) -> None:
    """Two questions, one answered rightly and one not."""
    lesson.run(cell_with(lesson, 'quiz("01")'))
    option(lesson, "01.1", 1).click()
    option(lesson, "01.2", 0).click()
    second = quiz(lesson).get_by_role("status").nth(1)
    expect(second).to_contain_text("Not this one")
    option(lesson, "01.2", 0).blur()
    store(page, quiz(lesson), second, "quiz")


def store(page: Page, top: Locator, bottom: Locator, name: str, *, margin: int = 8) -> None:
    """Write the part of the page from the top of one thing to the bottom of another, in 256 colours.

    margin: CSS pixels on either side and below.
    """
    top.evaluate("element => element.scrollIntoView({block: 'start'})")
    page.mouse.move(2, 700)  # nothing is pointed at
    first, last = top.bounding_box(), bottom.bounding_box()
    assert first and last
    clip = {"x": first["x"] - margin, "y": first["y"], "width": first["width"] + 2 * margin}
    clip["height"] = last["y"] + last["height"] - first["y"] + margin
    image = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
    IMAGES.mkdir(parents=True, exist_ok=True)
    image.quantize(256, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        take(Path(temporary) / "training-workbook")
