"""The certificate: nothing before the course is passed, then one sheet with what was measured and how to check it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from autograder.cli.main import main
from autograder.common.folders import data_directory
from autograder.common.result import Reason, Result
from autograder.course.lessons import Exercise, load_lesson
from autograder.engine import evidence
from autograder.kept import progress
from autograder.learner import certificate
from autograder.learner.certificate import make
from tests.autograder.results import made_speed

LESSONS = [f"{number:02}" for number in range(1, 9)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WORKBOOK_DIR", str(tmp_path / "nowhere"))
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.delenv("WORKBOOK_PROFILE", raising=False)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def _check(exercise: Exercise, *, score: float | None = None, estimate: float | None = None) -> None:
    """What a check leaves behind: evidence when there is a measurement, and progress."""
    score = exercise.max_score if score is None else score
    result = Result(
        id=exercise.id,
        title=exercise.title,
        score=score,
        max_score=exercise.max_score,
        verdict="pass" if score == exercise.max_score else "fail",
        reason=Reason(note="as asked"),
        sandbox="bubblewrap",
        seconds=1.0,
    )
    if estimate:
        low, high, ratios = 0.9 * estimate, 1.1 * estimate, (estimate,)
        speed = made_speed(estimate=estimate, low=low, high=high, blocks=1, spread=0.01, ratios=ratios)
        result = replace(result, speedup=speed)
        source = f"def {exercise.entry}(): return {estimate}"
        path = evidence.save(
            evidence.path_of(exercise.id, source),
            source,
            1,
            evidence.History(1, "pass", ()),
            evidence.Facts(result=result, threads=1, conditions={}),
        )
        assert path
        result = replace(result, evidence=path)
    progress.record_check(result.to_dict())


def _evidence(exercise_id: str) -> Path:
    return next(Path(data_directory(), "evidence").glob(f"{exercise_id}-*.json"))


def _quiz(lesson_id: str, score: float = 8, max_score: float = 10) -> None:
    passed = score >= 0.7 * max_score
    progress.record_quiz(lesson_id, score, max_score, passed=passed)


def _pass(*, but: str = "") -> None:
    """The whole course, but for one part."""
    for lesson_id in [*LESSONS, "10"]:
        for exercise in load_lesson(lesson_id).exercises if lesson_id != but else ():
            _check(exercise)
        if lesson_id not in (but, "10"):
            _quiz(lesson_id)
    if but != "09":
        _quiz("09", 12, 15)


def test_before_the_course_is_passed_it_says_what_is_missing_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = load_lesson("03").exercises
    _check(first, score=4)
    assert main(["certificate", "--name", "Ada"]) == 1
    said = capsys.readouterr().out
    assert "10 parts are not passed. Nothing was written." in said
    assert "03 · Batch size and gradient accumulation: 4 of 60 points, 42 are needed; quiz: not begun" in said
    assert "01 · Efficient training loops: not started" in said
    assert list(folder.iterdir()) == []


def test_one_part_that_is_missing_is_enough(folder: Path) -> None:
    _pass(but="09")
    _quiz("09", 10, 15)
    result = make("Ada")
    assert result.missing == {"09 · Skill exam": "exam: 10 of 15 right, 11 are needed"}
    assert result.path is None and list(folder.iterdir()) == []
    assert "1 part is not passed" in result._repr_html_()


def test_the_sheet_says_who_what_and_what_was_measured(folder: Path) -> None:
    _pass()
    first, second, *_ = load_lesson("01").exercises
    _check(first, estimate=1.81)
    _check(first, estimate=2.31)
    _check(second, estimate=1.62)
    _evidence("1.2").unlink()
    result = make("Ada <b>Lovelace</b>")
    assert result.path == Path("certificate.html") and not result.missing
    html = (folder / "certificate.html").read_text(encoding="utf-8")
    text = " ".join(re.sub("<[^>]+>", " ", html).split())
    assert "Ada &lt;b&gt;Lovelace&lt;/b&gt; has passed" in text
    assert "Each part was passed with 70 % or more." in text
    assert "60 of 60 8 of 10" in text and "12 of 15" in text
    assert "Pad no more than you must 2.31× 2.08 to 2.54 1.5× bubblewrap" in text, "of the last best"
    assert "Like lengths together no evidence file here" in text
    assert evidence.hardware()["processor"] in text
    assert "Evidence files: 1 of 49 exercises" in text
    assert "workbook check NOTEBOOK" in text and "by itself it proves nothing" in text
    assert str(date.today().year) in text
    assert not re.search(r"""(src|href)=|https?://|@import|url\(""", html), "needs no other file, no network"


def test_points_that_rest_on_counts_are_no_speedup(folder: Path) -> None:
    _pass()
    _check(load_lesson("06").exercises[-1], estimate=2.0)
    record = json.loads(_evidence("6.6").read_text(encoding="utf-8"))
    record["result"]["speedup"] = None
    _evidence("6.6").write_text(json.dumps(record), encoding="utf-8")
    assert make("Ada").path
    assert "passed by counts, not by the clock" in (folder / "certificate.html").read_text(encoding="utf-8")


def test_it_asks_for_a_name_and_takes_the_profile(
    monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _pass()
    assert main(["certificate"]) == 2
    assert '--name "Your Name"' in capsys.readouterr().err
    assert certificate.certificate("") is None, "a notebook shows the line and no traceback"
    assert 'certificate("Your Name")' in capsys.readouterr().out
    assert main(["certificate", "--name", "x" * 81]) == 2
    assert list(folder.iterdir()) == []
    monkeypatch.setenv("WORKBOOK_PROFILE", "grace")
    assert make().missing, "another learner"
    _pass()
    assert make().path
    assert '<p class="name">grace</p>' in (folder / "certificate.html").read_text(encoding="utf-8")


def test_it_replaces_its_own_page_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _pass()
    other = folder / "mine.html"
    other.write_text("my own", encoding="utf-8")
    assert main(["certificate", "--name", "Ada", "--out", str(other)]) == 2
    assert "is no certificate" in capsys.readouterr().err
    assert other.read_text(encoding="utf-8") == "my own"
    assert make("Ada").path and make("Grace").path
    assert "Grace" in (folder / "certificate.html").read_text(encoding="utf-8")
    (folder / "certificate.html").unlink()
    (folder / "certificate.html").mkdir()
    assert main(["certificate", "--name", "Ada"]) == 2
    assert "certificate.html is there already" in capsys.readouterr().err


def test_json_is_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _pass(but="10")
    assert main(["certificate", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "passed": False,
        "missing": {"10 · Mini project": "not started"},
        "file": None,
    }
    for exercise in load_lesson("10").exercises:
        _check(exercise)
    assert main(["certificate", "--name", "Ada", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == "certificate.html"


@pytest.mark.further
@pytest.mark.browser
def test_it_prints_on_one_sheet(folder: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="needs the `dev` extra")
    from tests.browser.lab import CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    _pass()
    for lesson_id in [*LESSONS, "10"]:
        for exercise in load_lesson(lesson_id).exercises:
            if exercise.clock:
                _check(exercise, estimate=2.31)
    result = make("A name of eighty characters that " + "W" * 47)
    assert result.path
    with chromium() as browser:
        page = browser.new_page()
        page.goto(result.path.resolve().as_uri())
        pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
