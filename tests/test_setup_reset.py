"""A lesson put back as it was handed out, with the learner's work in a backup beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.learner.handout import hand_out, pending_updates
from autograder.learner.resetting import reset
from course_lib.base.errors import UserError

SLUG = "01_lesson"
ANSWERS = f"{SLUG}_answers.json"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    for name in ("00_start_here/00_start_here.ipynb", f"{SLUG}/{SLUG}.ipynb", f"{SLUG}/figure.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"release of {name}")
    return folder


@pytest.fixture
def mine(tmp_path: Path, release: Path) -> Path:
    """A learner's folder with work on lesson 01."""
    folder = tmp_path / "mine"
    hand_out(release, folder)
    (folder / SLUG / f"{SLUG}.ipynb").write_text("my solution")
    (folder / SLUG / ANSWERS).write_text("my answers")
    (folder / SLUG / "notes.txt").write_text("my notes")
    return folder


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


def backup_of(mine: Path) -> Path:
    (found,) = (mine / SLUG).glob("backup-*")
    return found


def test_the_notebook_is_new_and_the_old_one_a_copy_away(release: Path, mine: Path) -> None:
    before = files(mine / SLUG)
    said = reset("1", release, mine)
    after = files(mine / SLUG)
    assert after[f"{SLUG}.ipynb"] == f"release of {SLUG}/{SLUG}.ipynb"
    assert (after[ANSWERS], after["notes.txt"]) == ("my answers", "my notes")
    assert files(backup_of(mine)) == {f"{SLUG}.ipynb": "my solution", ANSWERS: "my answers"}
    assert any(str(backup_of(mine)) in line for line in said)
    assert any("stay as they are; `workbook reset 01 --answers`" in line for line in said)

    (mine / SLUG / f"{SLUG}.ipynb").write_bytes((backup_of(mine) / f"{SLUG}.ipynb").read_bytes())
    assert {name: files(mine / SLUG)[name] for name in before} == before


def test_answers_begin_anew_when_told(release: Path, mine: Path) -> None:
    said = reset(SLUG, release, mine, with_answers=True)
    assert not (mine / SLUG / ANSWERS).exists()
    assert (backup_of(mine) / ANSWERS).read_text() == "my answers"
    assert "Your quiz answers and predictions begin anew." in said
    assert reset("01", release, mine, with_answers=True)[0].startswith("Nothing to do")
    backup_of(mine)  # there is still one


def test_resets_in_one_second_have_a_backup_each(release: Path, mine: Path) -> None:
    for number in range(3):
        (mine / SLUG / f"{SLUG}.ipynb").write_text(f"solution {number}")
        reset("01", release, mine)
    kept = {(path / f"{SLUG}.ipynb").read_text() for path in (mine / SLUG).glob("backup-*")}
    assert kept == {"solution 0", "solution 1", "solution 2"}


def test_it_takes_a_newer_version_and_settles_the_update(release: Path, mine: Path) -> None:
    (release / SLUG / f"{SLUG}.ipynb").write_text("second release")
    hand_out(release, mine)
    assert len(pending_updates(mine)) == 1
    reset("01", release, mine)
    assert pending_updates(mine) == [] == hand_out(release, mine)
    assert (mine / SLUG / f"{SLUG}.ipynb").read_text() == "second release"
    assert sorted(files(mine / SLUG)) == sorted(
        [
            *(f"{backup_of(mine).name}/{name}" for name in files(backup_of(mine))),
            f"{SLUG}.ipynb",
            "figure.png",
            ANSWERS,
            "notes.txt",
        ]
    )
    (release / SLUG / f"{SLUG}.ipynb").write_text("third release")  # an untouched copy again
    hand_out(release, mine)
    assert (mine / SLUG / f"{SLUG}.ipynb").read_text() == "third release"


def test_a_lost_notebook_comes_back(release: Path, mine: Path) -> None:
    (mine / SLUG / f"{SLUG}.ipynb").unlink()
    (mine / SLUG / ANSWERS).unlink()
    reset("01", release, mine)
    assert (mine / SLUG / f"{SLUG}.ipynb").read_text() == f"release of {SLUG}/{SLUG}.ipynb"
    assert not list((mine / SLUG).glob("backup-*"))


def test_a_lesson_that_is_not_there_is_named_with_those_that_are(release: Path, mine: Path) -> None:
    with pytest.raises(UserError, match="no lesson '7'; there are: 00, 01"):
        reset("7", release, mine)
    with pytest.raises(UserError, match="workbook start"):
        reset("01", release, mine / "elsewhere")


def test_a_reset_that_fails_loses_nothing(release: Path, mine: Path) -> None:
    (mine / SLUG / f"{SLUG}.ipynb").write_text("my solution " * 1000)
    before = files(mine)
    code = (
        "import resource, sys; from pathlib import Path; from autograder.learner.resetting import reset\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try: reset('01', Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except ValueError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(release), str(mine)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("cannot reset") and "Nothing of yours is lost" in ran.stdout
    after = files(mine)
    assert {name: after[name] for name in before} == before


def test_the_command(mine: Path, root: Path) -> None:
    slug = "01_efficient_training_loops"
    command = [sys.executable, "-m", "autograder.cli.main", "reset"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=root, check=False)

    hand_out(root / "notebooks" / "release", mine)
    (mine / slug / f"{slug}.ipynb").write_text("my solution")
    ran = run("01", "--dir", str(mine))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "is kept in" in ran.stdout
    assert (mine / slug / f"{slug}.ipynb").read_text() != "my solution"
    assert run("11", "--dir", str(mine)).returncode == 2
