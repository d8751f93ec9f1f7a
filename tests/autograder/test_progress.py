"""Progress: what is kept, for whom, and that nothing it meets ever stops a check."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder import progress


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.delenv("WORKBOOK_PROFILE", raising=False)
    monkeypatch.setattr(progress, "_said", set())
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def _result(exercise: str = "1.1", score: float = 3, verdict: str = "fail", **more: Any) -> dict[str, Any]:
    return {"id": exercise, "score": score, "max_score": 10, "verdict": verdict, "speedup": None} | more


def test_the_best_score_stays_and_attempts_are_counted() -> None:
    progress.record_check(_result(score=3, verdict="inconclusive"))
    passed = {"speedup": {"estimate": 1.8}, "seconds": 2.5, "evidence": "/somewhere/1.1-a.json"}
    progress.record_check(_result(score=10, verdict="pass", **passed))
    progress.record_check(_result(score=10, verdict="pass", **passed | {"evidence": "/somewhere/1.1-b.json"}))
    progress.record_check(_result(score=0))
    progress.record_check(_result("1.2", score=0))
    lesson = progress.summary()["lessons"]["01"]
    best = {"score": 10, "max_score": 10, "verdict": "pass", "evidence": "1.1-b.json"}
    assert lesson["exercises"]["1.1"] == best | {"attempts": 4}
    assert lesson["exercises"]["1.2"]["score"] == 0
    assert lesson["last_visited"]


def test_quiz_answers_and_the_last_place() -> None:
    progress.record_check(_result())
    progress.record_answer("01", "01.1", "b", False)
    progress.record_answer("01", "01.1", "a", True)
    progress.record_answer("01", "01.2", "a")
    progress.record_quiz({"lesson": "01", "score": 7.0, "max_score": 10.0, "passed": True})
    progress.record_quiz({"lesson": "01", "score": 5.0, "max_score": 10.0, "passed": False})
    progress.record_visit("02", "exercise 2.3")
    found = progress.summary()
    assert found["lessons"]["01"]["quiz"] == {"score": 7.0, "max_score": 10.0, "passed": True}
    assert found["lessons"]["01"]["answered"] == 2
    assert (found["last"]["lesson"], found["last"]["place"]) == ("02", "exercise 2.3")


def test_learners_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    progress.record_check(_result(score=1))
    monkeypatch.setenv("WORKBOOK_PROFILE", "Ada")
    progress.record_check(_result(score=2))
    monkeypatch.setenv("JUPYTERHUB_USER", "grace")
    assert progress.summary()["lessons"] == {}
    progress.record_check(_result(score=3))
    best = {
        name: progress.summary(name)["lessons"]["01"]["exercises"]["1.1"]["score"]
        for name in ("learner", "Ada")
    }
    assert best == {"learner": 1, "Ada": 2}
    assert progress.summary()["learner"] == "grace"


def test_time_adds_up_without_the_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in ("00:00", "02:00", "03:00", "50:00", "51:00"):
        monkeypatch.setattr(progress, "_now", lambda minute=minute: f"2030-01-01T10:{minute}.000+00:00")
        progress.record_visit("01")
    assert progress.summary()["lessons"]["01"]["seconds"] == 120 + 60 + 60


def test_many_processes_record_at_once(data: Path) -> None:
    code = (
        "from autograder import progress\n"
        "for i in range(20): progress.record_check("
        "{'id': '1.1', 'score': i, 'max_score': 20, 'verdict': 'fail'})"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    for process in started:
        assert process.communicate(timeout=60)[0] == b""
    assert progress.summary()["lessons"]["01"]["exercises"]["1.1"]["attempts"] == 80


def test_a_locked_file_costs_one_line(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    progress.record_check(_result())
    capfd.readouterr()
    other = sqlite3.connect(data / "progress.sqlite3", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    progress.record_check(_result())
    progress.record_check(_result())
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1 and "locked" in out and err == ""
    other.execute("ROLLBACK")
    other.close()
    progress.record_check(_result())
    assert progress.summary()["lessons"]["01"]["exercises"]["1.1"]["attempts"] == 2


def test_a_folder_that_cannot_be_made_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "file" / "data"))
    progress.record_answer("01", "01.1", "a", True)
    progress.record_visit("01")
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1 and "not affected" in out and err == ""
    assert progress.summary()["problem"] and progress.summary()["lessons"] == {}


def test_a_full_disk_costs_one_line(data: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from autograder import progress\n"
        "progress.record_answer('01', '01.1', 'a', True)\n"
        "progress.record_visit('01')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(ran.stdout.splitlines()) == 1 and "Progress could not" in ran.stdout and ran.stderr == ""


def test_a_damaged_file_is_kept_aside(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data.mkdir()
    (data / "progress.sqlite3").write_bytes(b"this is no database, " * 100)
    progress.record_check(_result())
    assert "kept as progress.damaged-" in capfd.readouterr().out
    assert len(list(data.glob("progress.damaged-*"))) == 1
    assert progress.summary()["lessons"]["01"]["exercises"]["1.1"]["attempts"] == 1


def test_a_file_of_a_newer_version_is_left_alone(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    progress.record_check(_result())
    database = sqlite3.connect(data / "progress.sqlite3")
    database.execute(f"PRAGMA user_version = {progress.VERSION + 1}")
    database.close()
    before = (data / "progress.sqlite3").read_bytes()
    progress.record_check(_result())
    assert "newer version" in capfd.readouterr().out
    assert (data / "progress.sqlite3").read_bytes() == before


def test_the_map_of_lessons(tmp_path: Path) -> None:
    empty = progress.progress_html()
    assert "Mixed precision" in repr(empty) and "begin with" in empty._repr_html_()
    (tmp_path / "01_efficient_training_loops.ipynb").write_text("{}")
    progress.record_check(_result("1.1", score=10, verdict="pass"))
    text, html = repr(progress.progress_html()), progress.progress_html()._repr_html_()
    assert "10 of" in text and "exercise 1.1" in text
    assert "Continue where you stopped" in html
    assert 'href="01_efficient_training_loops.ipynb"' in html
    assert 'role="progressbar"' in html and "aria-label" in html


def test_names_are_escaped_on_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_PROFILE", "<script>alert(1)</script>")
    progress.record_visit("01", "<b>x</b>")
    html = progress.progress_html()._repr_html_()
    assert "<script>" not in html and "<b>x" not in html
