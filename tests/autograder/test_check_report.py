"""`workbook check` for people: what a report says beside verdicts and points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autograder.card import result_html
from autograder.check_report import full_marks, table
from autograder.engine import blank_result

WHY = "4.10× is faster than 1.5 × our reference <b>"


def report(**result: Any) -> dict[str, Any]:
    exercise = (
        blank_result("1.1", "pass", "Right on secret inputs.") | {"score": 10, "review": [WHY]} | result
    )
    return {
        "lesson": "01",
        "score": exercise["score"],
        "max_score": 10,
        "exercises": [exercise],
        "quiz": None,
    }


def test_what_a_person_should_look_at_is_told_and_takes_no_points() -> None:
    shown = report()
    assert f"For a person to look at; it costs no points: {WHY}" in table(shown)
    html = result_html(shown["exercises"][0])
    assert "For a person to look at; it costs no points" in html and "our reference &lt;b&gt;" in html
    assert full_marks(shown)


def test_the_page_of_the_evidence_is_named_for_what_did_not_pass() -> None:
    page = str(Path("evidence", "1.1-ab.html"))
    evidence = str(Path("evidence", "1.1-ab.json"))
    assert page not in table(report(evidence=evidence))
    assert page in table(report(evidence=evidence, verdict="fail", score=0))


def test_whether_a_record_is_confirmed_comes_last() -> None:
    says = "On record: pass, 10 points. The new check confirms it."
    assert table(report() | {"record": {"confirmed": True, "says": says}}).endswith(says)
