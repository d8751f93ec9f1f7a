"""Damaged hand-ins through `workbook grade`: a sample, of which `python -m tests.fuzz` is the whole; and that it would
be told if a class came out otherwise than it must."""

from __future__ import annotations

import json
import random
from encodings.aliases import aliases
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import nbformat_schema

from tests.fuzz.__main__ import main
from tests.fuzz.damage import Damage, all_damages, damaged, damages_of, round_length
from tests.fuzz.damage_bytes import CODECS
from tests.fuzz.damage_fields import FIELDS
from tests.fuzz.hand_in import EXAMPLE, HandIn, dumped
from tests.fuzz.judge import Failure, Outcome, failures

NUMBERS = st.integers(0, 5000)


def told(score: float) -> dict[str, Any]:
    """What the command says of somebody sound."""
    return {"score": score, "error": "", "look": []}


SOUND = {"a-sound": told(1.0), "m-sound": told(0.5), "z-sound": told(0.0)}


def a_hand_in() -> HandIn:
    notebook = json.loads(dumped(EXAMPLE))
    mark = {
        "grade_id": "exercise-0-1",
        "grade": False,
        "solution": True,
        "task": True,
        "locked": False,
        "points": 2,
    }
    source = ["@exercise('0.1')\n", "def f():\n", "    return 1\n"]
    exercise = {"cell_type": "code", "source": source, "metadata": {"nbgrader": mark}}
    notebook["cells"].append(exercise | {"outputs": [], "execution_count": None})
    answers = {"format": 1, "lesson": "00", "answers": {"00.1": {"choice": "b"}}}
    return HandIn(
        student="",
        folder="00_course",
        files={
            "00_course.ipynb": dumped(notebook).encode(),
            "00_course_answers.json": dumped(answers).encode(),
        },
        notebook="00_course.ipynb",
        answers="00_course_answers.json",
    )


def test_the_whole_holds_every_damage() -> None:
    assert round_length() <= 5000
    assert {each.name for each in all_damages()} == {
        d.name for n in range(round_length()) for d in damages_of(n, 0)
    }
    assert len({each.name for each in all_damages()}) == len(all_damages()), "a name says which it is"


def test_every_field_of_nbformat_is_exchanged() -> None:
    schema = json.loads(files("nbformat.v4").joinpath(nbformat_schema[4, 5]).read_text(encoding="utf-8"))
    of_fields = {part for field in FIELDS for part in field.replace("[]", "").split(".")}
    for name in _properties(schema):
        assert set(name.split(".")) <= of_fields, name


def _properties(schema: Any) -> set[str]:
    """The names of all fields in a JSON schema."""
    found: set[str] = set()
    if isinstance(schema, dict):
        found = {*schema["properties"]} if isinstance(schema.get("properties"), dict) else set()
    for held in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        found |= _properties(held)
    return found


def test_every_encoding_of_python_comes() -> None:
    known = set(aliases.values()) - {name for name in aliases.values() if name.endswith("_codec")}
    assert known - {"rot_13", "mbcs", "oem"} <= {*CODECS}  # no encoding, and those of Windows
    assert {"utf_8_sig", "koi8_u", "punycode", "cp720"} <= {*CODECS}, "some that have one name alone"


@settings(deadline=None, max_examples=60)
@given(NUMBERS, st.integers(0, 3))
def test_a_hand_in_follows_from_its_number(number: int, seed: int) -> None:
    assert damaged(number, seed, [a_hand_in]) == damaged(number, seed, [a_hand_in])


@settings(deadline=None, max_examples=60)
@given(NUMBERS)
def test_a_hand_in_lies_in_its_own_folder(tmp_path_factory: pytest.TempPathFactory, number: int) -> None:
    submitted = tmp_path_factory.mktemp("submitted")
    hand_in, _ = damaged(number, 0, [a_hand_in])
    hand_in.write(submitted)
    assert [path.name for path in submitted.iterdir()] == [hand_in.student]


def test_each_damage_does_something() -> None:
    for each in all_damages():
        assert any(_does_something(each, number) for number in range(20)), each.name


def _does_something(each: Damage, number: int) -> bool:
    hand_in = a_hand_in()
    each.change(hand_in, random.Random(number))
    return hand_in != a_hand_in()


def outcome(grade: dict[str, Any] | None = None, **changed: Any) -> Outcome:
    """That of a class which came out well; `d-1` handed in something damaged, and got this `grade`."""
    its = told(0.0) | {"look": ["no notebook could be read"]} | (grade or {})
    log = [
        {"begins": "enter", "student": "d-1", "at": 1.0, "cpu": 1.0},
        {"ends": "enter", "student": "d-1", "at": 2.0, "cpu": 2.0},
        {"graded": {"students": SOUND | {"d-1": its}}, "at": 3.0, "cpu": 3.0},
    ]
    whole: dict[str, Any] = {
        "status": 0,
        "log": log,
        "printed": "  d-1: no notebook could be read\n",
        "sound": SOUND,
    }
    whole |= changed
    return Outcome(**whole)


BEGUN = [{"begins": "read", "student": "d-1", "at": 1.0, "cpu": 1.0}]
SLOW = [*BEGUN, {"ends": "read", "student": "d-1", "at": 20.0, "cpu": 19.0}]
LEFT_OUT = [{"graded": {"students": SOUND}}]
OTHER = SOUND | {"m-sound": told(0.0)}
#: What is said of each, of whom, and where.
WRONG: dict[str, tuple[str, str | None, Outcome]] = {
    "it raised": ("a traceback", None, outcome(printed="Traceback (most recent call last):\n  File")),
    "it ended": ("the class did not end", "d-1", outcome(status=2, log=BEGUN)),
    "it was ended": ("nothing happened any more", "d-1", outcome(status=None, log=BEGUN)),
    "it took long": ("slow", "d-1", outcome(log=[*SLOW, *outcome().log])),
    "another grade": ("a sound student's grade", None, outcome(sound=OTHER)),
    "a file outside": ("a file where it must not be", None, outcome(strangers=["'course/x': new"])),
    "left out": ("neither graded nor named", "d-1", outcome(log=LEFT_OUT, printed="")),
    "no reason": ("neither graded nor named", "d-1", outcome({"score": None})),
    "no words": ("a reason for programmers", "d-1", outcome({"score": None, "error": "KeyError: 0"})),
    "no words to look at": ("a reason for programmers", "d-1", outcome({"look": ["0.1: KeyError: 0"]})),
    "a terminal is moved": ("control characters printed", None, outcome(printed="  d-1: \x1b[2J\n")),
    "a forged line": (
        "a line that looks like another's",
        None,
        outcome(printed="  d-1\n  z-sound: no grade\n"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_must_not_be_is_told(name: str) -> None:
    kind, student, found = WRONG[name]
    hand_ins = {"d-1": damaged(1, 0, [a_hand_in])[0]}
    assert failures(outcome(), hand_ins, SOUND) == []
    (failure,) = failures(found, hand_ins, SOUND)
    assert (failure.kind, failure.student) == (kind, student)


def test_points_for_a_link_to_anothers_work_are_told() -> None:
    hand_in = a_hand_in()
    hand_in.may_earn = False
    found = outcome({"score": 1.0})
    assert failures(found, {"d-1": hand_in}, SOUND) == [
        Failure(kind="points for another's work", student="d-1", what="1.0 points")
    ]


def run(monkeypatch: pytest.MonkeyPatch, results: Path, *arguments: str) -> int:
    monkeypatch.setenv("WORKBOOK_DATA", "")  # it sets one of its own, and after the test the old one is back
    return main(["--results", str(results), *arguments])


@pytest.mark.slow
@pytest.mark.everyday
@pytest.mark.timeout(900)
def test_a_few_damaged_hand_ins_and_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "fuzz.jsonl"
    assert run(monkeypatch, results, "--number", "10") == 0, capsys.readouterr().out
    assert "10 damaged hand-ins in 1 classes" in capsys.readouterr().out
    before = results.read_text(encoding="utf-8")
    assert run(monkeypatch, results, "--number", "10") == 0
    assert results.read_text(encoding="utf-8") == before, "what is there is not graded again"
    assert "10 damaged hand-ins in 1 classes" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_sample_of_damaged_hand_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path / "fuzz.jsonl", "--number", "150", "--seed", "14") == 0, (
        capsys.readouterr().out
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_some_whose_cells_are_checked_for_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--number", "10", "--seed", "15", "--real"]
    assert run(monkeypatch, tmp_path / "fuzz.jsonl", *arguments) == 0, capsys.readouterr().out
