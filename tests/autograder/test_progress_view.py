"""The map of the course: where a learner stands, what comes next, and how both are shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from autograder.common.folders import START_PAGE, release_folder
from autograder.course.lessons import load_lesson
from autograder.course.outline import parts
from autograder.kept import progress
from autograder.kept.answers import answers_file
from autograder.learner.progress_view import progress_html
from autograder.learner.standing import FURTHER, Standing, Step, is_course_passed, next_step, standings
from autograder.quizzes.acting import give_answer, hand_in
from autograder.quizzes.bank import PASS_MARK
from autograder.quizzes.exams import paper, place_in
from autograder.quizzes.grading import load_bank
from autograder.quizzes.showing import exam

ALL = [f"{number:02}" for number in range(1, 11)]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WORKBOOK_DIR", str(tmp_path / "nowhere"))
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.delenv("WORKBOOK_PROFILE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def _check(exercise_id: str, score: float | None = None) -> None:
    number = exercise_id.partition(".")[0].zfill(2)
    exercise = next(e for e in load_lesson(number).exercises if e.id == exercise_id)
    score = exercise.max_score if score is None else score
    verdict = "pass" if score == exercise.max_score else "fail"
    more: dict[str, Any] = {"verdict": verdict, "speedup": None, "seconds": 1.0}
    progress.record_check({"id": exercise_id, "score": score, "max_score": exercise.max_score, **more})


def _quiz(lesson_id: str, score: float = 7, max_score: float = 10) -> None:
    passed = score >= 0.7 * max_score
    progress.record_quiz(lesson_id, score, max_score, passed=passed)


def _do(*lesson_ids: str) -> None:
    """Pass whole parts."""
    for lesson_id in lesson_ids:
        for exercise in load_lesson(lesson_id).exercises:
            _check(exercise.id)
        if lesson_id != "10":
            _quiz(lesson_id, 12, 15) if lesson_id == "09" else _quiz(lesson_id)


def _found() -> dict[str, Standing]:
    return {standing.part.id: standing for standing in standings(progress.summary())}


def _next() -> Step:
    found = progress.summary()
    return next_step(standings(found), found.last)


def _place() -> tuple[str, str]:
    step = _next()
    return step.part.id, step.place


def test_every_part_says_what_it_teaches_how_long_it_takes_and_where_its_places_are() -> None:
    for part in parts():
        assert part.minutes >= 10, part
        assert bool(part.goal) == (part.id != "00"), part
        places = {f"exercise {exercise.id}" for exercise in load_lesson(part.id).exercises}
        assert places <= part.sections.keys()
        assert all(part.sections[place].heading.startswith(place.split()[1]) for place in places)
    assert parts()[1].sections["quiz"].heading == "Quiz"
    assert FURTHER in parts()[-1].sections


def test_the_start_page_states_the_one_pass_mark() -> None:
    page = (release_folder() / START_PAGE).read_text(encoding="utf-8")
    said = set(re.findall(r"(\d+ %) (?:of the points|in the (?:quiz|exam))", page))
    assert said == {f"{PASS_MARK:.0%}".replace("%", " %")}


def test_nothing_yet_begins_with_the_exercise_on_the_start_page() -> None:
    card = progress_html()
    assert _place() == ("00", "exercise 0.1")
    assert "Nothing here yet: begin with 00 · Start here, exercise 0.1" in repr(card)
    assert {standing.state for standing in _found().values()} == {"not started"}
    assert "Continue where" not in card._repr_html_()


def test_what_is_unfinished_comes_first_then_what_follows_it() -> None:
    _do("00")
    assert (_next().lead, *_place()) == ("Next:", "01", "")
    _check("1.1", 4)
    assert (_next().lead, *_place()) == ("Continue where you stopped:", "01", "exercise 1.1")
    _check("1.1")
    assert _place() == ("01", "exercise 1.2")
    progress.record_visit("01", "prediction 1c")
    assert _place() == ("01", "prediction 1c")
    assert "prediction 1c in “Waiting for data" in repr(progress_html())
    for number in (3, 4, 5, 6):
        _check(f"1.{number}")
    assert _place() == ("01", "quiz"), "what follows the last exercise, although 1.2 is open"
    progress.record_answer("01", "01.1", "a")
    assert _place() == ("01", "quiz")
    _quiz("01", 6)
    assert _place() == ("01", "quiz"), "not passed"
    _quiz("01", 7)
    assert (_next().lead, *_place()) == ("Next:", "02", "")
    _check("1.2", 0)
    assert (_next().lead, *_place()) == ("Continue where you stopped:", "01", "exercise 1.2")


def test_a_lesson_that_was_left_out_comes_before_the_end() -> None:
    _do(*ALL[1:])
    assert _place() == ("01", "")
    _check("1.2")
    _do("10")
    assert _place() == ("01", "exercise 1.1")
    _do("01")
    step = _next()
    assert (step.part.id, step.place) == ("10", FURTHER)
    assert "passed the course" in step.lead


def test_a_lesson_is_passed_with_seventy_percent_of_points_and_of_the_quiz() -> None:
    for number in (1, 2, 3, 4):
        _check(f"1.{number}")
    _check("1.5", 1)
    _quiz("01", 7)
    assert _found()["01"].missing == ("41 of 60 points, 42 are needed",)
    _check("1.5", 2)
    assert _found()["01"].state == "done"
    _do(*ALL[1:-1])
    assert not is_course_passed(_found().values())
    _do("10")
    assert is_course_passed(_found().values()), "the start page is asked of nobody"


def test_a_quiz_that_is_answered_or_failed_is_missing() -> None:
    progress.record_answer("01", "01.1", "a")
    assert "quiz: 1 of 10 answered, not graded" in _found()["01"].missing
    _quiz("01", 6)
    assert "quiz: 6 of 10 right, 7 are needed" in _found()["01"].missing


def test_the_exam_tells_of_its_attempt() -> None:
    assert _found()["09"].missing == ("exam: not begun",)
    exam("09")
    file = answers_file("09")
    place = place_in(file.entries())
    assert place
    first = paper(load_bank("09"), place).questions[0]
    give_answer(first.id, "a", file=file)
    assert _found()["09"].missing == ("exam: attempt 1 open, 1 of 15 answered",)
    hand_in("09", file, incomplete=True)
    words = _found()["09"].quiz_words
    assert re.fullmatch(r"attempt 1 handed in; best: [01] of 15 right", words)
    assert "needed" in _found()["09"].missing[0]


def test_the_exam_is_found_from_the_start_page_and_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("00_start_here", "09_skill_exam"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "09_skill_exam")
    exam("09")
    monkeypatch.chdir(tmp_path / "00_start_here")
    assert "attempt 1 open" in _found()["09"].quiz_words
    monkeypatch.chdir(tmp_path / "00_start_here" / "..")
    assert "attempt 1 open" in _found()["09"].quiz_words
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("WORKBOOK_DIR", str(tmp_path))
    assert "attempt 1 open" in _found()["09"].quiz_words


def test_the_card_is_a_table_with_headers_links_and_named_bars(tmp_path: Path) -> None:
    (tmp_path / "01_efficient_training_loops.ipynb").write_text("{}")
    _check("1.1")
    card = progress_html()
    text, html = repr(card), card._repr_html_()
    assert "10 of 60 points" in text and "exercise 1.2" in text
    assert html.index("Continue where you stopped") < html.index("<table")
    assert 'href="01_efficient_training_loops.ipynb#cell-id=1-2-a-batch-sampler-that-puts-like-1"' in html
    assert html.count('<th scope="row"') == len(parts()) + 1 and html.count('<th scope="col"') == 5
    bars = re.findall('<div role="progressbar"[^>]*>', html)
    assert len(bars) == len(parts()) + 1 and all("aria-label" in bar for bar in bars)
    assert "Part 01: 17 %" in bars[1] and 'aria-valuenow="17"' in bars[1]
    assert f"as of {card.as_of:%Y-%m-%d %H:%M}" in html and "Run this cell again" in html
    assert html.count("not started") == len(parts()) - 1


def test_names_are_escaped_on_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_PROFILE", "<script>alert(1)</script>")
    progress.record_visit("01", "<b>x</b>")
    html = progress_html()._repr_html_()
    assert "<script>" not in html and "<b>x" not in html
