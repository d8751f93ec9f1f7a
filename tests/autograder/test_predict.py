"""Predictions: kept at once, restored, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder import compare, predict, predicted
from autograder.kept.answers import answers_file, read_answers
from autograder.kept.predictions import parse_number, prediction_file
from autograder.kernel.predict_widget import predict_box, why_box
from course_lib.base.errors import UserError

NAME = "01_efficient_training_loops_answers.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    return tmp_path / "lesson"


def test_a_typed_number_is_kept_at_once_and_restored(folder: Path) -> None:
    view = predict_box("1a", "How many times?", "×", prediction_file("1a"))
    assert view.box.value == "" and predicted("1a") is None
    view.box.value = "2"
    assert predicted("1a") == 2
    view.box.value = "2.5"
    assert predicted("1a") == 2.5 and "saved 2.5" in view.status.value
    view.box.value = "2.5 apples"
    assert "is no number" in view.status.value
    assert predicted("1a") == 2.5  # what was saved stays
    again = predict_box("1a", "How many times?", "×", prediction_file("1a"))
    assert again.box.value == "2.5" and "restored" in again.status.value


def test_zero_is_a_prediction(folder: Path) -> None:
    predict("1a", "How much?", value=0)
    assert predicted("1a") == 0
    assert predict_box("1a", "How much?", "", prediction_file("1a")).box.value == "0"


def test_the_way_without_widgets(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    predict("1a", "How **many** times?", unit="×", value=2.5)
    predict("1a", "How many times?", unit="×")
    compare("1a", 5, unit="×", digits=1)
    compare("1a", 5, unit="×", digits=1, why="the tail is long")
    out, err = capfd.readouterr()
    assert err == ""
    assert "How many times?\nYour prediction 2.5×" in out
    assert "predicted  2.5×\nmeasured   5.0×\nThe prediction is 2 times too low." in out
    assert 'why="…"' in out
    assert read_answers(folder / NAME)["why:1a"]["text"] == "the tail is long"


def test_the_reason_is_kept(folder: Path) -> None:
    view = why_box("1a", answers_file("01"))
    view.box.value = "a long tail"
    assert read_answers(folder / NAME)["why:1a"]["text"] == "a long tail"
    assert "saved" in view.status.value
    assert why_box("1a", answers_file("01")).box.value == "a long tail"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2.5", 2.5),
        ("2,5", 2.5),
        (" 2.5 ×", 2.5),
        ("40%", 40),
        ("-3", -3),
        ("−3", -3),
        ("1e3", 1000),
        (7, 7),
        ("12,000", 12000),
        ("3 s", 3),
        ("2.", 2),
        (".5", 0.5),
    ],
)
def test_numbers_as_people_type_them(text: object, number: float) -> None:
    assert parse_number(text, "s") == number


@pytest.mark.parametrize("text", ["", "-", "two", "nan", "inf", "1e999", "1 2", "2.5.1", True, None, [1]])
def test_what_is_no_number_is_said(text: object) -> None:
    with pytest.raises(UserError, match="is no number"):
        parse_number(text)


def test_comparing_without_a_prediction_says_to_predict(capfd: pytest.CaptureFixture[str]) -> None:
    compare("1a", 3.0, "×")
    assert "type a number into the box above" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("kept", "measured", "says"),
    [(4, 2, "2 times too high"), (2, 2, "The same."), (-1, 2, "3 too low"), (0, 0.5, "0.5 too low")],
)
def test_the_difference_in_words(
    kept: float, measured: float, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    predict("1a", "How much?", value=kept)
    compare("1a", measured)
    assert says in capfd.readouterr().out


@pytest.mark.parametrize("value", ['"2"', "true", "null", "[1]", "1" + "0" * 400])
def test_a_prediction_that_is_none_in_the_file_counts_as_none(folder: Path, value: str) -> None:
    (folder / NAME).write_text('{"answers": {"predict:1a": {"value": VALUE}}}'.replace("VALUE", value))
    assert predicted("1a") is None
    assert predict_box("1a", "?", "", prediction_file("1a")).box.value == ""


def test_bad_names_and_measurements_are_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    predict("zz", "?")
    predict("77a", "?")
    compare("1a", "fast")  # type: ignore[arg-type]
    predict("1a", "?", value="many")  # type: ignore[arg-type]
    out, err = capfd.readouterr()
    assert err == "" and len(out.splitlines()) == 4
