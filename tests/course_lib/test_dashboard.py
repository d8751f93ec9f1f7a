"""One page for the runs of a folder, from runs that were trained for real; sorted by a real browser."""

import re
import shutil

import pytest
from record_runs import train, write_csv

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.runs.folder import RunFolder
from course_lib.runs.watching.dashboard import dashboard_html, read_runs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dashboard")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(directory / "cache"))
        data = write_csv(directory / "texts.csv")
        train(directory / "runs" / "study" / "trial-2", data, max_epochs=1)
        train(directory / "runs" / "trial-10", data)
        train(directory / "runs" / "free", data, price_per_hour=None, target=None, monitor="loss")
    folder = RunFolder(directory / "runs" / "begun")
    folder.write_record({"status": "running", "step": 0, "config": {"data": "x.csv"}})
    return directory / "runs"


def test_every_run_below_the_folder_is_a_row_with_its_own_numbers(directory):
    rows = {row["run"]: row for row in read_runs(directory)}
    assert set(rows) == {"study/trial-2", "trial-10", "free", "begun"}
    record = RunFolder(directory / "trial-10").read_record()
    assert rows["trial-10"]["best"] == record["best"]["value"]
    assert rows["trial-10"]["cost_to_target"] == record["cost"]["cost_to_target"] > 0
    assert rows["trial-10"]["utilisation"] == record["cost"]["matmul_peak_share"]
    assert rows["free"]["cost"] is None and rows["begun"]["best"] is None
    alone = read_runs(directory / "trial-10")
    assert [row["run"] for row in alone] == ["trial-10"]


def test_the_page_shows_them_and_draws_only_what_compares(directory):
    page = dashboard_html("runs", read_runs(directory))
    for name in ("study/trial-2", "trial-10", "free", "begun"):
        assert name in page
    (scatter,) = re.findall(r'aria-label="([^"]+)"', page)
    assert scatter.startswith("Best accuracy against cost to target (1: texts.csv, classification): ")
    assert "trial-10: " in scatter and "free" not in scatter  # monitors loss, has no price
    assert "http" not in re.sub(
        r"http://www\.w3\.org|https://matplotlib|http://purl|http://creativecommons", "", page
    )
    assert "—" in page


def test_unlike_runs_share_no_figure_and_the_table_says_what_they_are(directory):
    rows = read_runs(directory)
    other = [
        dict(row, run=f"other/{row['run']}", data="more.csv", judged_on=["f", 0.1, None]) for row in rows
    ]
    page = dashboard_html("runs", [*rows, *other])
    figures = re.findall(r'aria-label="([^"]+)"', page)
    told = [re.findall(r"([\w/-]+): [\d.]+ for", figure) for figure in figures]
    assert sorted(map(sorted, told)) == [
        ["other/study/trial-2", "other/trial-10"],
        ["study/trial-2", "trial-10"],
    ]
    assert "more.csv" in figures[1] and "texts.csv" in figures[0]
    cells = re.findall(r'<td class="text" data-value="([^"]*)"', page)
    assert cells.count("more.csv") == 4 and cells.count("classification") >= 6


def test_the_command_writes_one_file(directory, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["dashboard", str(directory), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"4 runs: {out}\n"
    assert "<h1>Runs in runs</h1>" in out.read_text()
    assert main(["dashboard", str(tmp_path / "nothing")]) == 2
    assert "no run is at or below" in capsys.readouterr().err
    with pytest.raises(UserError):
        read_runs(tmp_path)


@pytest.mark.further
@pytest.mark.browser
def test_a_heading_sorts_the_rows_by_mouse_and_by_keyboard(directory, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    out = tmp_path / "page.html"
    out.write_text(dashboard_html("runs", read_runs(directory)))
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(out.as_uri())

        def column(k):
            return page.locator(f"#runs tbody tr td:nth-child({k})").all_inner_texts()

        run, steps = (page.get_by_role("button", name=name, exact=True) for name in ("run", "steps"))
        run.click()
        assert column(1) == ["begun", "free", "study/trial-2", "trial-10"]
        run.press("Enter")
        assert column(1) == ["trial-10", "study/trial-2", "free", "begun"]
        steps.click()
        headings = [text.strip() for text in page.locator("#runs thead th").all_inner_texts()]
        numbers = [int(text) for text in column(headings.index("steps") + 1)]
        assert numbers == sorted(numbers) and numbers[0] == 0
        assert page.locator("th[aria-sort=ascending]").inner_text() == "steps"
        page.get_by_role("button", name="cost", exact=True).click()
        costs = column(headings.index("cost") + 1)
        assert costs[-2:] == ["—", "—"] and float(costs[0]) <= float(costs[1])
        page.get_by_role("button", name="cost", exact=True).click()
        costs = column([heading.strip() for heading in headings].index("cost") + 1)
        assert costs[-2:] == ["—", "—"] and float(costs[0]) >= float(costs[1])
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
