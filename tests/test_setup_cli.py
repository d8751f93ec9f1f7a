"""The `workbook` command as a user meets it: verbs, exit status, one-line errors, JSON alone."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pty
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from autograder.cli.doctor import LOOKS
from autograder.cli.main import SANDBOX_LEVELS
from autograder.cli.run_tests import count, durations, slowest, summary_line
from autograder.engine.sandbox.start import LEVELS
from tests.everyday import first_of

WORKBOOK = Path(sys.executable).with_name("workbook")


def workbook(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WORKBOOK, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


def one_line_error(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("workbook: "), done.stderr
    return lines[0]


def test_every_verb_has_help() -> None:
    for verb in ("start", "test", "doctor", "check", "calibrate", "progress", "build"):
        done = workbook(verb, "--help")
        assert done.returncode == 0 and f"usage: workbook {verb}" in done.stdout
    assert workbook().returncode == 2
    assert workbook("fly").returncode == 2


def test_both_commands_say_the_version_of_the_installation() -> None:
    version = importlib.metadata.version("training-workbook")
    assert workbook("--version").stdout == f"workbook {version}\n"
    done = subprocess.run([WORKBOOK.with_name("course-lib"), "--version"], capture_output=True, text=True)
    assert done.stdout == f"course-lib {version}\n"


@pytest.mark.parametrize(
    ("name", "content"),
    first_of(
        [
            ("absent.ipynb", None),
            ("empty.ipynb", b""),
            ("text.ipynb", b"just text"),
            ("latin.ipynb", '{"cells": "é"}'.encode("latin-1")),
            ("list.ipynb", b"[]"),
            ("other.ipynb", b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'),
        ]
    ),
)
def test_a_notebook_that_is_none_of_ours_is_told_in_one_line(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    message = one_line_error(workbook("check", str(tmp_path / name), "--json"))
    assert name in message and "a mistake of ours" not in message


def test_a_folder_instead_of_a_notebook(tmp_path: Path) -> None:
    assert "a mistake of ours" not in one_line_error(workbook("check", str(tmp_path)))


@pytest.fixture
def start_page(root: Path) -> Path:
    return root / "notebooks/release/00_start_here/00_start_here.ipynb"


def test_check_prints_json_alone_and_answers_by_its_status(start_page: Path) -> None:
    done = workbook("check", str(start_page), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1  # nothing solved yet
    assert set(report) == {"lesson", "score", "max_score", "exercises", "quiz"}
    assert [result["verdict"] for result in report["exercises"]] == ["not_attempted"]


@pytest.mark.further
def test_check_of_a_solved_notebook_says_yes(start_page: Path, tmp_path: Path) -> None:
    notebook = json.loads(start_page.read_text())
    solution = (
        'from autograder import exercise\n\n@exercise("0.1")\ndef speedup(baseline_seconds, candidate_seconds):\n'
        "    if min(baseline_seconds, candidate_seconds) <= 0:\n"
        '        raise ValueError("durations are above zero")\n'
        "    return baseline_seconds / candidate_seconds\n"
    )
    for cell in notebook["cells"]:
        if '@exercise("0.1")' in "".join(cell["source"]):
            cell["source"] = solution
    mine = tmp_path / start_page.name
    mine.write_text(json.dumps(notebook))
    done = workbook("check", str(mine))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ 0.1" in done.stdout and "1 of 1 point\n" in done.stdout
    assert done.stderr == "checking 0.1 …\n"  # without a terminal, one line an exercise


@pytest.mark.further
def test_check_shows_a_bar_in_a_terminal(start_page: Path, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    stub = r"raise NotImplementedError(\"not written yet\")"  # as it stands in JSON
    source = start_page.read_text()
    assert stub in source
    (tmp_path / start_page.name).write_text(source.replace(stub, "return 7"))
    done = subprocess.run(
        [WORKBOOK, "check", tmp_path / start_page.name], stdout=subprocess.PIPE, stderr=follower, timeout=120
    )
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 1
    page = Path(done.stdout.decode().partition("How it was measured: ")[2].splitlines()[0])
    assert "return 7" in page.read_text()
    assert "·" in shown and "0.1" in shown
    assert shown.endswith("\r\x1b[K")  # the bar is gone when the table comes


def test_check_of_an_exercise_that_does_not_exist(start_page: Path) -> None:
    assert "no exercise 9.9" in one_line_error(workbook("check", str(start_page), "--only", "9.9"))


def test_a_grade_below_the_required_sandbox_is_refused_with_the_fix(start_page: Path, tmp_path: Path) -> None:
    required = ("check", str(start_page), "--require-sandbox")
    message = one_line_error(workbook(*required, "bubblewrap", PATH=str(tmp_path)))  # where no bubblewrap is
    assert "'bubblewrap' is required" in message and "bubblewrap" in message.rpartition(": ")[2]
    assert workbook(*required, "limits", PATH=str(tmp_path)).returncode == 1  # checked, and not solved yet
    assert "invalid choice" in workbook(*required, "none").stderr


def test_sandbox_levels_are_those_of_the_sandbox() -> None:
    assert SANDBOX_LEVELS == LEVELS


@pytest.mark.further
def test_build_check_answers_by_its_status(root: Path) -> None:
    done = workbook("build", "--check", "--json", cwd=root)
    assert done.returncode == bool(json.loads(done.stdout)["changed"])  # that nothing did is tested elsewhere


def test_progress_in_text_and_json(tmp_path: Path) -> None:
    done = workbook("progress", "--json", WORKBOOK_DATA=str(tmp_path))
    assert done.returncode == 0 and json.loads(done.stdout)["lessons"] == {}
    assert "Efficient training loops" in workbook("progress", WORKBOOK_DATA=str(tmp_path)).stdout


@pytest.mark.further
def test_doctor_finds_this_machine_fit(tmp_path: Path) -> None:
    done = workbook("doctor", "--json", COURSE_LIB_CACHE=str(tmp_path / "cache"), PYTHONPATH="")
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    failures = [finding for finding in findings.values() if finding["level"] == "fail"]
    assert done.returncode == bool(failures)
    assert set(findings) == set(LOOKS)
    for name in ("Python", "packages", "kernel", "JupyterLab", "widgets", "torch", "write access"):
        assert findings[name]["level"] in ("ok", "note"), findings[name]
    assert all(finding["fix"] for finding in failures)


@pytest.mark.further
def test_doctor_says_no_where_something_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = workbook("doctor", WORKBOOK_DATA=str(tmp_path / "file" / "data"))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    index = next(i for i, line in enumerate(lines) if line.startswith("✗ write access"))
    assert "progress" in lines[index] and "fix: export WORKBOOK_DATA=" in lines[index + 1]


def test_the_summary_adds_up_what_pytest_wrote(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 0\n"
        "def test_skipped(): pytest.skip('x')\n"
        "@pytest.fixture\ndef broken(): 1 / 0\n"
        "def test_error(broken): pass\n"
    )
    record = tmp_path / "record.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={record}",
        tmp_path,
    ]
    assert subprocess.run(command, capture_output=True, cwd=tmp_path).returncode == 1
    totals = count(record)
    assert totals == Counter(passed=1, failed=1, errors=1, skipped=1)
    line = summary_line(totals, 1.5, failed=True)
    assert " 1 failed, 1 errors, 1 passed, 1 skipped in 1.50s " in line
    assert count(tmp_path / "absent.xml") == Counter()
    spent = durations(record)
    assert len(spent) == 4 and durations(tmp_path / "absent.xml") == {}
    longest = slowest(spent | {f"tests.test_x::{number}": 10.0 + number for number in range(20)})
    assert len(longest) == 11 and longest[1] == "  29.00 s  tests.test_x::19"
    assert "pytest stopped early" in summary_line(Counter(passed=3), 1.0, failed=True)


@pytest.mark.parametrize(
    ("typed", "passed_on"),
    [
        (["test"], []),
        (["test", "--rest"], ["--rest"]),
        (["test", "-m", "exhaustive", "-q"], ["-m", "exhaustive", "-q"]),
        (["test", "tests/autograder", "-k", "card"], ["tests/autograder", "-k", "card"]),
    ],
)
def test_what_follows_test_is_pytests(
    typed: list[str], passed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograder.cli import main, run_tests

    found: list[list[str]] = []
    monkeypatch.setattr(run_tests, "run_tests", lambda arguments: found.append(list(arguments)) or 0)
    assert main.main(typed) == 0 and found == [passed_on]
