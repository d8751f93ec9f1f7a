"""The pages of `workbook site` in a browser: found, read on a phone and by axe, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("axe_playwright_python", reason="needs the `dev` extra")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from autograder.notebooks import make_site
from tests.browser.lab import CHROMIUM, chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "pages"
    make_site(out, ["00", "09"])
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param, viewport={"width": 390, "height": 800})
    asked: list[str] = []
    opened = context.new_page()
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("name", ["index.html", "00_start_here.html", "09_skill_exam.html"])
def test_a_page_reads_well_on_a_phone(site: Path, page: Page, name: str) -> None:
    page.goto((site / name).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    found = Axe().run(page).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found] == []


def test_a_search_leads_to_its_place(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.fill("#wanted", "sandbox")
    page.wait_for_function("document.querySelectorAll('#found a').length > 0")
    assert "found" in page.inner_text("#how-many")
    page.click("#found a")
    assert ".html#" in page.url
    anchor = page.url.partition("#")[2]
    assert page.evaluate("id => !!document.getElementById(decodeURIComponent(id))", anchor)
    page.fill("#wanted", "xyzzy")
    assert page.inner_text("#how-many") == "nothing found"
