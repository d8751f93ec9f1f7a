"""`workbook check` for people: what a report says beside verdicts and points."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from autograder.cli.check_report import full_marks, table
from autograder.common import Result
from autograder.engine.check import blank_result
from autograder.engine.timing.conditions import disturbance
from autograder.notebooks.check import Record, Report, check_notebook
from autograder.show.card import result_html
from tests.autograder.results import made_meanwhile, made_speed

WHY = "4.10× is faster than 1.5 × our reference <b>"


def report(**result: Any) -> Report:
    right = blank_result("1.1", "pass", "Right on secret inputs.")
    exercise = replace(right, **{"score": 10, "review": (WHY,)} | result)
    return Report(lesson="01", exercises=(exercise,))


def test_what_a_person_should_look_at_is_told_and_takes_no_points() -> None:
    shown = report()
    assert f"For a person to look at; it costs no points: {WHY}" in table(shown)
    html = result_html(shown.exercises[0])
    assert "For a person to look at; it costs no points" in html and "our reference &lt;b&gt;" in html
    assert full_marks(shown)


def test_the_page_of_the_evidence_is_named_for_what_did_not_pass() -> None:
    page = str(Path("evidence", "1.1-ab.html"))
    evidence = str(Path("evidence", "1.1-ab.json"))
    assert page not in table(report(evidence=evidence))
    assert page in table(report(evidence=evidence, verdict="fail", score=0))


def test_whether_a_record_is_confirmed_comes_last() -> None:
    says = "On record: pass, 10 points. The new check confirms it."
    record = Record(verdict="pass", score=10, confirmed=True, says=says)
    assert table(replace(report(), record=record)).endswith(says)


def test_which_of_several_cells_was_judged_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "00_start_here.ipynb"
    stub = '@exercise("0.1")\ndef speedup(a, b):\n    raise NotImplementedError\n'
    cells = [stub.replace("raise NotImplementedError", body) for body in ("return b / a", "return a / b")]
    made = [{"cell_type": "code", "metadata": {}, "source": each} for each in (stub, *cells, stub)]
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))

    def check(exercise_id: str, source: str, **_: Any) -> Result:
        assert source == cells[1]
        return blank_result(exercise_id, "pass", "")

    shown = check_notebook(path, only=["0.1"], check=check)
    assert table(shown).splitlines()[2] == "0.1: cell 2 holds other work on it: graded was cell 3"
    path.write_text(json.dumps({"cells": made[2:], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert check_notebook(path, only=["0.1"], check=check).cells == ()


def test_attempts_are_told_and_an_open_question_uses_none() -> None:
    speed = made_speed(attempts=2)
    assert "attempt 2 of 5 for this code" in table(report(speedup=speed))
    still_open = report(speedup=speed, verdict="inconclusive")
    assert "no attempt used: 2 of 5 for this code so far" in table(still_open)


def test_a_stopped_check_shows_no_points() -> None:
    (stopped,) = report(verdict="stopped", score=0, seconds=3.0).exercises
    assert "points" not in result_html(replace(stopped, review=())) and "stopped after 3.0 s" in result_html(
        stopped
    )


def test_what_disturbed_the_clock_is_named() -> None:
    quiet = disturbance(made_meanwhile(busy_share=1.0 / (psutil.cpu_count() or 1)), 1.0)
    assert "battery" in quiet or quiet == "Neither load nor heat explains it."
    worse = {"stolen_share": 0.2, "quota_throttled": 3, "quota_cores": 1.5, "heat_throttled": 1}
    said = disturbance(made_meanwhile(busy_share=1.0, **worse), 0.5)
    for cause in ("other programs kept", "took 20% of its time away", "(1.5 cores)", "was hot"):
        assert cause in said
