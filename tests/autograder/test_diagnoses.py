"""Diagnoses: committed before they are revealed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder import diagnose, reveal
from autograder.kept import kept_diagnosis
from autograder.kept.answers import lesson_of_answers, read_answers
from autograder.kernel.diagnose_widget import diagnose_box

NAME = "01_efficient_training_loops_answers.json"
OPTIONS = ["too low a `rate`", "labels that are wrong"]
ANSWERS = {"1i": ("Run A", "b", "Look at the *labels*.")}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    return tmp_path / "lesson"


def test_nothing_is_revealed_before_it_is_diagnosed(capsys: pytest.CaptureFixture[str]) -> None:
    diagnose("1i", "What has run **A**?", OPTIONS)
    assert "What has run A?\n  a  too low a rate\n  b  labels that are wrong" in capsys.readouterr().out
    reveal(ANSWERS)
    assert capsys.readouterr().out.strip() == "Run A: choose first, then run this cell again"
    diagnose("1i", "What has run **A**?", OPTIONS, choice="a")
    assert "Your diagnosis: a, saved" in capsys.readouterr().out
    reveal(ANSWERS)
    assert capsys.readouterr().out.strip() == "Run A: b; you said a. Look at the labels."
    diagnose("1i", "What has run **A**?", OPTIONS, choice="b")
    capsys.readouterr()
    reveal(ANSWERS)
    assert capsys.readouterr().out.strip() == "Run A: b, as you said. Look at the labels."


def test_the_first_choice_is_kept_beside_the_last(folder: Path) -> None:
    for choice in "ab":
        diagnose("1i", "?", OPTIONS, choice=choice)
    answers = read_answers(folder / NAME)
    assert (answers["diagnosis:1i"]["first"], answers["diagnosis:1i"]["choice"]) == ("a", "b")
    assert lesson_of_answers(folder / NAME, answers) == "01"


@pytest.mark.parametrize("choice", ["c", "", "ab", 1])
def test_a_letter_that_is_no_option_is_one_line(choice: str, capsys: pytest.CaptureFixture[str]) -> None:
    diagnose("1i", "?", OPTIONS, choice=choice)
    assert capsys.readouterr().out.startswith("not saved: ")
    assert kept_diagnosis("1i") is None


def test_the_list_saves_when_it_is_chosen_from(folder: Path) -> None:
    _head, box, status = diagnose_box("1i", "?", OPTIONS).children
    assert box.value is None and kept_diagnosis("1i") is None
    box.value = "b"
    assert kept_diagnosis("1i") == "b" and "saved b" in status.value
    box.value = None
    assert kept_diagnosis("1i") == "b"  # what was saved stays
    assert diagnose_box("1i", "?", OPTIONS).children[1].value == "b"


def test_a_file_may_hold_anything(folder: Path) -> None:
    for wrong in (3, "xx", None, ["a"]):
        document = {"format": 1, "lesson": "01", "answers": {"diagnosis:1i": {"choice": wrong}}}
        (folder / NAME).write_text(json.dumps(document))
        assert kept_diagnosis("1i") is None
        assert diagnose_box("1i", "?", OPTIONS).children[1].value is None
