"""Progress: what is kept, for whom, and that nothing it meets ever stops a check."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from autograder.kept import progress, progress_file


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.delenv("WORKBOOK_PROFILE", raising=False)
    monkeypatch.setattr(progress, "_said", set())
    monkeypatch.setattr(progress, "_waiting", {})
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
    lesson = progress.summary().lessons["01"]
    best = {"score": 10, "max_score": 10, "verdict": "pass", "evidence": "1.1-b.json"}
    assert lesson.exercises["1.1"] == progress.BestCheck(**best, attempts=4)
    assert lesson.exercises["1.2"].score == 0
    assert lesson.last_visited


def test_quiz_answers_and_the_last_place() -> None:
    progress.record_check(_result())
    progress.record_answer("01", "01.1", "b", False)
    progress.record_answer("01", "01.1", "a", True)
    progress.record_answer("01", "01.2", "a")
    progress.record_quiz("01", 7.0, 10.0, passed=True)
    progress.record_quiz("01", 5.0, 10.0, passed=False)
    progress.record_visit("02", "exercise 2.3")
    found = progress.summary()
    assert found.lessons["01"].quiz == progress.BestQuiz(score=7.0, max_score=10.0, passed=True)
    assert found.lessons["01"].answered == 2
    assert found.last and (found.last.lesson, found.last.place) == ("02", "exercise 2.3")


def test_learners_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    progress.record_check(_result(score=1))
    monkeypatch.setenv("WORKBOOK_PROFILE", "Ada")
    progress.record_check(_result(score=2))
    monkeypatch.setenv("JUPYTERHUB_USER", "grace")
    assert progress.summary().lessons == {}
    progress.record_check(_result(score=3))
    best = {name: progress.summary(name).lessons["01"].exercises["1.1"].score for name in ("learner", "Ada")}
    assert best == {"learner": 1, "Ada": 2}
    assert progress.summary().learner == "grace"


def test_time_adds_up_without_the_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in ("00:00", "02:00", "03:00", "50:00", "51:00"):
        monkeypatch.setattr(progress, "_now", lambda minute=minute: f"2030-01-01T10:{minute}.000+00:00")
        progress.record_visit("01")
    assert progress.summary().lessons["01"].seconds == 120 + 60 + 60


def test_many_processes_record_at_once(data: Path) -> None:
    code = (
        "from autograder.kept import progress\n"
        "for i in range(20): progress.record_check("
        "{'id': '1.1', 'score': i, 'max_score': 20, 'verdict': 'fail'})"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    for process in started:
        assert process.communicate(timeout=60)[0] == b""
    assert progress.summary().lessons["01"].exercises["1.1"].attempts == 80


def test_kill_9_at_any_moment_keeps_what_was_recorded(data: Path) -> None:
    code = (
        "from autograder.kept import progress\n"
        "for number in range(100_000): progress.record_answer('01', f'01.{number}', 'a'); print(number, flush=True)\n"
    )
    chance, expected = random.Random(0), 0
    for attempt in range(6):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            process.stdout.readline()  # it is in full swing
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
            expected += 1 + len(process.stdout.readlines())
        with contextlib.closing(sqlite3.connect(data / "progress.sqlite3")) as database:
            assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)
            (found,) = database.execute("SELECT COUNT(*) FROM events").fetchone()
        assert expected <= found <= expected + attempt + 1  # one may be in without having been told


def test_what_a_locked_file_refused_goes_in_later(
    data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "BUSY_SECONDS", 0.0)
    progress.record_check(_result())
    other = sqlite3.connect(data / "progress.sqlite3", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    progress.record_check(_result("1.2"))
    progress.record_check(_result("1.3"))
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1 and "locked; close it" in out and "not affected" in out and err == ""
    other.execute("ROLLBACK")
    other.close()
    progress.record_check(_result("1.4"))
    assert capfd.readouterr().out == "Progress is recorded again.\n"
    assert set(progress.summary().lessons["01"].exercises) == {"1.1", "1.2", "1.3", "1.4"}


def test_a_lock_that_is_let_go_in_time_costs_nothing(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    progress.record_check(_result())
    code = (
        "import sqlite3, sys; other = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "other.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", code, str(data / "progress.sqlite3")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout and other.stdin
        other.stdout.readline()  # it has the lock
        threading.Timer(2 * progress.TURN_SECONDS, other.stdin.close).start()
        progress.record_check(_result("1.2"))
    assert capfd.readouterr().out == ""
    assert set(progress.summary().lessons["01"].exercises) == {"1.1", "1.2"}


def test_a_folder_that_cannot_be_made_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "file" / "data"))
    progress.record_answer("01", "01.1", "a", True)
    progress.record_visit("01")
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1 and "not affected" in out and err == ""
    assert progress.summary().problem and progress.summary().lessons == {}


def test_what_a_full_disk_refused_goes_in_when_there_is_room(data: Path) -> None:
    code = (
        "import resource\n"
        "from autograder.kept import progress\n"
        "progress.record_visit('01')\n"
        "size = progress.progress_path().stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "for number in range(9): progress.record_answer('01', f'01.{number}', 'a' * 2000, True)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "progress.record_answer('01', '01.9', 'a', True)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    refused, again = ran.stdout.splitlines()
    assert (
        "Progress is not recorded" in refused and again == "Progress is recorded again." and ran.stderr == ""
    )
    assert progress.summary().lessons["01"].answered == 10


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system in a namespace of its own")
def test_a_disk_that_is_really_full_costs_one_line(data: Path, tmp_path: Path) -> None:
    code = (
        "from autograder.kept import progress\n"
        "progress.record_visit('01')\n"
        "filler = open('small/filler', 'wb', buffering=0)\n"
        "try:\n    while True: filler.write(bytes(4096))\n"
        "except OSError as error: print(error.strerror)\n"
        "for number in range(3): progress.record_answer('01', f'01.{number}', 'a' * 9000, True)\n"
        "print(progress.summary().problem)\n"
        "filler.truncate(0)\n"
        "progress.record_answer('01', '01.3', 'a', True)\n"
        "print(progress.summary().lessons['01'].answered)\n"
    )
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=256k small small && exec "$@"'
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody mount in a namespace of their own")
    ran = subprocess.run(
        [*inside, sys.executable, "-c", code],
        env=os.environ | {"WORKBOOK_DATA": "small/data"},
        capture_output=True,
        text=True,
        check=True,
    )
    full, refused, unread, again, answered = ran.stdout.splitlines()
    assert full == "No space left on device" and ran.stderr == ""
    for line in (refused, unread):
        assert "the disk of small/data/progress.sqlite3 is full" in line and "free some space" in line
    assert (again, answered) == ("Progress is recorded again.", "4")


def test_a_damaged_file_is_kept_aside(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data.mkdir()
    (data / "progress.sqlite3").write_bytes(b"this is no database, " * 100)
    progress.record_check(_result())
    assert "kept as progress.damaged-" in capfd.readouterr().out
    assert len(list(data.glob("progress.damaged-*"))) == 1
    assert progress.summary().lessons["01"].exercises["1.1"].attempts == 1


def _at_once(code: str) -> list[str]:
    """What four processes print that run some code after their imports, all at once."""
    command = [sys.executable, "-c", f"from autograder.kept import progress; input(); {code}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [subprocess.Popen(command, text=True, **pipes) for _ in range(4)]
    for process in started:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0] for process in started]


def test_kernels_that_find_a_damaged_file_at_once_set_it_aside_once(data: Path) -> None:
    data.mkdir()
    (data / "progress.sqlite3").write_bytes(b"this is no database, " * 100)
    said = _at_once("progress.record_visit('01')")
    assert sum("kept as" in text for text in said) == 1
    assert len(list(data.glob("progress.damaged-*.sqlite3"))) == 1
    with contextlib.closing(sqlite3.connect(data / "progress.sqlite3")) as database:
        assert database.execute("SELECT COUNT(*) FROM events").fetchone() == (4,), said


def test_a_file_of_a_newer_version_is_left_alone(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    progress.record_check(_result())
    with contextlib.closing(sqlite3.connect(data / "progress.sqlite3")) as database:
        database.execute(f"PRAGMA user_version = {progress_file.VERSION + 1}")
    before = (data / "progress.sqlite3").read_bytes()
    progress.record_check(_result())
    assert "newer version of this workbook; update the workbook" in capfd.readouterr().out
    assert "newer version" in progress.summary().problem
    assert (data / "progress.sqlite3").read_bytes() == before
