"""The answers file: atomic, shared between processes, forgiving about what it finds."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.common import locks
from autograder.common.locks import locked
from autograder.kept.answers import MAX_BYTES, AnswersFile, read_answers
from course_lib.base.errors import UserError

WRITER = """
import sys
from autograder.kept.answers import AnswersFile
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
file = AnswersFile(path, "01")
for i in range(count):
    file.save(f"{name}.{i}", {"choice": "a", "filler": "x" * 2000})
    print(i, flush=True)
"""


@pytest.fixture(autouse=True)
def _data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path_factory.mktemp("data")))


def _writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    writers = [_writer(path, str(n), 25) for n in range(4)]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    expected = {f"{n}.{i}" for n in range(4) for i in range(25)}
    assert set(read_answers(path)) == expected
    assert [left.name for left in tmp_path.iterdir()] == ["answers.json"]


def test_kill_9_at_any_moment_leaves_every_saved_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    chance = random.Random(0)
    saved: set[str] = set()
    for attempt in range(12):
        writer = _writer(path, str(attempt), 100_000)
        assert writer.stdout is not None
        first = writer.stdout.readline()  # it is in full swing
        time.sleep(chance.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        said = [first, *writer.stdout.readlines()]
        writer.wait()
        writer.stdout.close()
        saved |= {f"{attempt}.{int(line)}" for line in said if line.strip()}
        document = json.loads(path.read_text())  # never torn
        assert saved <= set(document["answers"])
    assert len(saved) >= 12


@pytest.mark.parametrize(
    "damage",
    [
        b'{"answers": {"01.1": {"choi',
        b"\xff\xfe",
        b"[]",
        b'{"answers": []}',
        b'{"answers": {"01.1": "b"}}',
        b"",
    ],
)
def test_a_damaged_file_is_kept_aside_and_said(tmp_path: Path, damage: bytes) -> None:
    file = AnswersFile(tmp_path / "answers.json", "01")
    file.path.write_bytes(damage)
    assert file.entries() == {}
    notice = file.take_notices()
    (aside,) = tmp_path.glob("answers.damaged-*.json")
    assert aside.read_bytes() == damage
    assert aside.name in notice and len(notice.splitlines()) == 1
    file.save("01.1", {"choice": "b"})
    assert file.entries()["01.1"]["choice"] == "b"
    assert file.take_notices() == ""


def test_saving_over_a_damaged_file_sets_it_aside_too(tmp_path: Path) -> None:
    file = AnswersFile(tmp_path / "answers.json", "01")
    file.path.write_bytes(b"{")
    file.save("01.1", {"choice": "b"})
    assert len(list(tmp_path.glob("answers.damaged-*.json"))) == 1
    assert file.take_notices()


def test_entries_of_another_version_survive(tmp_path: Path) -> None:
    file = AnswersFile(tmp_path / "answers.json", "01")
    file.save("new-kind:7", {"anything": [1, 2]})
    file.save("01.1", {"choice": "b"})
    assert file.entries()["new-kind:7"]["anything"] == [1, 2]


def test_reading_for_a_grade_changes_nothing_and_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    assert read_answers(path) == {}
    path.write_bytes(b"{")
    assert "not JSON" in read_answers(path)["problem"]
    assert [left.name for left in tmp_path.iterdir()] == ["answers.json"]
    path.write_bytes(b" " * (MAX_BYTES + 1))
    assert "larger" in read_answers(path)["problem"]
    path.write_text("[" * 100_000)
    assert "not JSON" in read_answers(path)["problem"]


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    file = AnswersFile(tmp_path / "gone" / "answers.json", "01")
    with pytest.raises(UserError, match="not saved") as caught:
        file.save("01.1", {"choice": "b"})
    assert "\n" not in str(caught.value)


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    AnswersFile(path, "01").save("01.1", {"choice": "b"})
    before = path.read_bytes()
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "from autograder.kept.answers import AnswersFile\nfrom course_lib.base.errors import UserError\n"
        "try: AnswersFile(sys.argv[1], '01').save('01.2', {'choice': 'c'})\n"
        "except UserError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("not saved") and ran.stderr == ""
    assert path.read_bytes() == before
    assert [left.name for left in tmp_path.iterdir()] == ["answers.json"]


def test_a_lock_that_is_never_let_go_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.json"
    monkeypatch.setattr(locks, "LOCK_SECONDS", 0.05)
    with locked(path), pytest.raises(UserError, match="another program keeps it locked"):
        AnswersFile(path, "01").save("01.1", {"choice": "b"})
    AnswersFile(path, "01").save("01.1", {"choice": "b"})


def test_without_a_place_for_the_lock_answers_are_saved_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "file" / "data"))
    file = AnswersFile(tmp_path / "answers.json", "01")
    file.save("01.1", {"choice": "b"})
    assert file.entries()["01.1"]["choice"] == "b"
