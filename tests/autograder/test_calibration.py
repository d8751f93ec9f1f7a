"""What is kept of a calibration, when it counts, and a real one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from autograder.course.lessons import lesson_ids, load_lesson
from autograder.engine import calibration
from autograder.engine.calibration import calibrate, load, reference_source, table
from autograder.engine.check import check_source
from tests.autograder.solutions import reference_sources

TIMED = [e for number in lesson_ids() for e in load_lesson(number).exercises if e.clock]


def calibration_entry(exercise_id: str, *, speedup: float, bar: float = 1.5) -> dict[str, Any]:
    """What a calibration on 2026-11-20 would have kept."""
    return {
        "speedup": speedup,
        "low": 0.9 * speedup,
        "high": 1.1 * speedup,
        "bar": bar,
        "blocks": 8,
        "spread": 0.04,
        "of": calibration._fingerprint(exercise_id),
        "measured": "2026-11-20",
    }


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    return tmp_path / "calibration.json"


def write(cache: Path, *, machine: str | None = None, **speedups: float) -> None:
    entries = {name[1:].replace("_", "."): value for name, value in speedups.items()}
    kept = {i: calibration_entry(i, speedup=speedup) for i, speedup in entries.items()}
    cache.write_text(json.dumps({machine or calibration._machine(): kept}))


def test_the_clock_is_asked_where_the_reference_has_room(cache: Path) -> None:
    write(cache, _1_1=1.79, _1_2=1.81)  # 1.2 x the bar is 1.8
    assert {i: reached.applies for i, reached in load().items()} == {"1.1": False, "1.2": True}


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"x": 1}', "\x00", '{"MACHINE": {"1.1": {}}}'])
def test_no_cache_or_a_broken_one_is_no_calibration(cache: Path, content: str | None) -> None:
    if content is not None:
        cache.write_text(content.replace("MACHINE", calibration._machine()))
    assert load() == {}


def test_another_machine_and_another_reference_do_not_count(cache: Path) -> None:
    write(cache, machine="another processor, torch 1.0", _1_1=4.0)
    assert load() == {}
    entry = calibration_entry("1.1", speedup=4.0) | {"of": "an older reference"}
    cache.write_text(
        json.dumps({calibration._machine(): {"1.1": entry, "1.2": calibration_entry("1.2", speedup=4.0)}})
    )
    assert list(load()) == ["1.2"]


def test_every_timed_exercise_has_a_reference() -> None:
    assert TIMED and all(reference_source(exercise) for exercise in TIMED)


def test_the_table_tells_what_is_asked_of_what_and_why(cache: Path) -> None:
    write(cache, _1_1=1.6, _1_2=2.0, _1_6=9.0)
    lines = table(load()).splitlines()
    assert "counts: the reference reaches 1.1 × the bar, and 1.2 × is needed" in lines[1]
    assert "the clock: the reference reaches 1.3 × the bar" in lines[2]
    assert "note: a bar above √reference" in lines[3] and math.sqrt(2.0) < 1.5
    assert "the clock" in lines[4] and len(lines) == 5, "a head, three exercises, one note"


def test_a_bar_out_of_reach_here_moves_to_counts_and_says_so(cache: Path) -> None:
    write(cache, _1_1=1.3)
    result = check_source("1.1", reference_sources("01")["1.1"])
    assert (result.verdict, result.score) == ("pass", 10), result.reason
    assert result.speedup is None
    assert "Clock: not asked for" in str(result.reason) and "1.5×" in str(result.reason)


@pytest.mark.measures
@pytest.mark.exhaustive
@pytest.mark.parametrize("exercise", TIMED, ids=lambda e: e.id)
def test_a_reference_gets_full_marks(cache: Path, exercise: Any) -> None:
    result = check_source(exercise.id, reference_source(exercise))
    assert (result.verdict, result.score) == ("pass", exercise.max_score), result.reason


@pytest.mark.further
@pytest.mark.measures
def test_calibration_goes_on_where_it_was_stopped(cache: Path) -> None:
    """All but one are known from before; one is measured, for real."""
    write(cache, machine="another processor", _1_1=9.0)
    others = json.loads(cache.read_text())
    mine = {e.id: calibration_entry(e.id, speedup=9.0) for e in TIMED if e.id != "1.2"}
    cache.write_text(json.dumps(others | {calibration._machine(): mine}))
    shown: list[str] = []
    found = calibrate(lambda text, part: shown.append(text))
    assert {text.split()[0] for text in shown} == {"1.2"}
    assert found["1.2"].speedup > 1.3 and found["1.2"].bar == 1.3
    assert found["1.2"].low <= found["1.2"].speedup <= found["1.2"].high
    assert found == load() and found["1.1"].speedup == 9.0
    assert json.loads(cache.read_text())["another processor"] == others["another processor"]
