"""Export and deletion of what is stored about a learner: all of theirs, nothing of anybody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.kept import progress
from autograder.kept.answers import AnswersFile

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which two learners have been at work."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WORKBOOK_DIR", str(tmp_path / "mine"))
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    evidence = tmp_path / "data" / "evidence"
    evidence.mkdir(parents=True)
    for learner, names in {"Ada": ["1.1-a", "1.1-both"], "Grace": ["1.1-b", "1.1-both"]}.items():
        monkeypatch.setenv("WORKBOOK_PROFILE", learner)
        for name in names:
            (evidence / f"{name}.json").write_text(json.dumps({"source": f"of {name}"}))
            (evidence / f"{name}.html").write_text("page")
            result = {"id": "1.1", "score": 3, "max_score": 10, "verdict": "fail"}
            progress.record_check(result | {"evidence": str(evidence / f"{name}.json")})
        progress.record_answer("01", "01.1", f"secret of {learner}", True)
    (tmp_path / "mine" / "01_lesson").mkdir(parents=True)
    AnswersFile(tmp_path / "mine" / "01_lesson" / "01_lesson_answers.json", "01").save(
        "predict:1a", {"value": 2}
    )
    monkeypatch.setenv("WORKBOOK_PROFILE", "Ada")
    return tmp_path / "data"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "autograder.cli.main", "progress", *arguments]
        return subprocess.run(
            command, input=typed, capture_output=True, text=True, cwd=tmp_path, env=os.environ, check=False
        )

    return run


def evidence_in(data: Path) -> set[str]:
    return {path.name for path in (data / "evidence").iterdir()}


def test_the_export_holds_all_that_is_mine(data: Path, run: Run, tmp_path: Path) -> None:
    ran = run("--export", "me.json")
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    found = json.loads((tmp_path / "me.json").read_text())
    assert found["learner"] == "Ada"
    assert [event["kind"] for event in found["progress"]["events"]] == ["exercise", "exercise", "answer"]
    assert {event["learner"] for event in found["progress"]["events"]} == {"Ada"}
    (answers,) = found["answers"]
    assert answers["file"].endswith("01_lesson_answers.json")
    assert answers["answers"]["predict:1a"]["value"] == 2
    (evidence,) = found["evidence"]
    assert evidence["file"] == str(data / "evidence" / "1.1-a.json")
    assert evidence["record"] == {"source": "of 1.1-a"}

    before = (tmp_path / "me.json").read_bytes()
    ran = run("--export", "me.json")
    assert ran.returncode == 2 and "exists; name another file" in ran.stderr
    assert (tmp_path / "me.json").read_bytes() == before
    ran = run("--export", "data/progress.sqlite3/me.json")
    assert ran.returncode == 2 and "cannot write" in ran.stderr and len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("typed", ["", "y\n", "no\n"])
def test_nothing_is_deleted_without_a_yes(data: Path, run: Run, typed: str) -> None:
    before = progress.summary()
    ran = run("--delete", typed=typed)
    assert ran.returncode == 1 and ran.stdout.endswith("Nothing was deleted.\n")
    assert progress.summary() == before and len(evidence_in(data)) == 6


def test_what_is_mine_is_deleted_and_all_else_stays(
    data: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace = progress.summary("Grace")
    ran = run("--delete", typed="yes\n")
    assert ran.returncode == 0, ran
    assert "3 progress rows: 2 checks, 1 quiz answers" in ran.stdout
    assert "1 evidence files" in ran.stdout and "These stay: your notebooks" in ran.stdout
    assert progress.summary().lessons == {} and progress.summary("Grace") == grace
    assert evidence_in(data) == {f"1.1-{name}.{kind}" for name in ("b", "both") for kind in ("json", "html")}
    assert (tmp_path / "mine" / "01_lesson" / "01_lesson_answers.json").exists()
    assert not any(b"secret of Ada" in path.read_bytes() for path in data.glob("progress*"))
    assert "Nothing is stored" in run("--delete", "--yes").stdout

    (data / "progress.damaged-20260101-000000.sqlite3").write_text("?")
    (data / "evidence" / "1.2-by-the-command-line.json").write_text("{}")
    monkeypatch.setenv("WORKBOOK_PROFILE", "Grace")  # the only one left: whose files they are is plain
    ran = run("--delete", "--yes", "--json")
    assert json.loads(ran.stdout) == {"deleted": True}
    assert "3 evidence files" in ran.stderr and "1 damaged" in ran.stderr
    assert evidence_in(data) == set() and not list(data.glob("*damaged*"))


def test_files_that_may_be_anybodys_are_counted_and_stay(data: Path, run: Run) -> None:
    (data / "evidence" / "1.2-by-the-command-line.json").write_text("{}")
    ran = run("--delete", "--yes")
    assert "1 files do not say whose they are" in ran.stdout
    assert (data / "evidence" / "1.2-by-the-command-line.json").exists()
