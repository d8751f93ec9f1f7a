"""The learner's folder: filled once, and never written over."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from autograder.common.folders import START_PAGE, release_folder
from autograder.learner.handout import hand_out, pending_updates
from autograder.learner.progress_view import progress_html
from course_lib.base.errors import UserError

TODAY = datetime.date(2026, 11, 20)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    for name in ("00_start_here/00_start_here.ipynb", "01_lesson/01_lesson.ipynb", "01_lesson/figure.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"first release of {name}")
    (folder / "01_lesson" / ".ipynb_checkpoints").mkdir()
    (folder / "01_lesson" / ".ipynb_checkpoints" / "01_lesson.ipynb").write_text("not for learners")
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "mine"


def listing(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_copies_all_once(release: Path, mine: Path) -> None:
    assert hand_out(release, mine, today=TODAY) == ["3 new notebooks and files were copied there"]
    assert set(listing(mine)) == {
        "00_start_here/00_start_here.ipynb",
        "01_lesson/01_lesson.ipynb",
        "01_lesson/figure.png",
    }
    before = listing(mine)
    assert hand_out(release, mine, today=TODAY) == []
    assert listing(mine) == before


def test_work_stays_and_a_newer_release_comes_beside_it_once(release: Path, mine: Path) -> None:
    hand_out(release, mine, today=TODAY)
    work = mine / "01_lesson" / "01_lesson.ipynb"
    work.write_text("my solution")
    assert hand_out(release, mine, today=TODAY) == []  # the release did not change

    (release / "01_lesson" / "01_lesson.ipynb").write_text("second release")
    said = hand_out(release, mine, today=TODAY)
    assert len(said) == 1 and "01_lesson.release-2026-11-20.ipynb" in said[0]
    assert work.read_text() == "my solution"
    assert (mine / "01_lesson" / "01_lesson.release-2026-11-20.ipynb").read_text() == "second release"
    before = listing(mine)
    assert hand_out(release, mine, today=TODAY) == said  # until it is settled
    assert listing(mine) == before

    (release / "01_lesson" / "01_lesson.ipynb").write_text("third release, the same day")
    (said,) = hand_out(release, mine, today=TODAY)
    assert "01_lesson.release-2026-11-20-2.ipynb" in said
    assert work.read_text() == "my solution"
    assert (mine / "01_lesson" / "01_lesson.release-2026-11-20.ipynb").read_text() == "second release"
    assert (mine / "01_lesson" / "01_lesson.release-2026-11-20-2.ipynb").read_text().startswith("third")

    (release / "01_lesson" / "01_lesson.ipynb").write_text("second release")  # another checkout of the course
    assert "01_lesson.release-2026-11-20.ipynb" in hand_out(release, mine, today=TODAY)[0]
    assert len(list((mine / "01_lesson").glob("*.release-*"))) == 2


def test_a_pending_update_says_what_to_do_and_goes_when_it_is_done(release: Path, mine: Path) -> None:
    hand_out(release, mine, today=TODAY)
    assert pending_updates(mine) == []
    work = mine / "01_lesson" / "01_lesson.ipynb"
    work.write_text("my solution")
    (release / "01_lesson" / "01_lesson.ipynb").write_text("second release")
    hand_out(release, mine, today=TODAY)
    (update,) = pending_updates(mine)
    assert update.name == "01_lesson/01_lesson.ipynb"
    assert f'workbook reset 01 --dir "{mine}"' in update.what_to_do
    beside = mine / update.beside
    assert f"delete {beside.name}" in update.what_to_do

    kept = beside.read_text()
    beside.unlink()  # one way
    assert pending_updates(mine) == [] == hand_out(release, mine, today=TODAY)
    beside.write_text(kept)
    assert pending_updates(mine) == [update]
    work.write_text(kept)  # the other
    assert pending_updates(mine) == []


def test_an_untouched_copy_follows_the_release(release: Path, mine: Path) -> None:
    hand_out(release, mine, today=TODAY)
    for text in ("second release", "third release"):
        (release / START_PAGE).write_text(text)
        assert hand_out(release, mine, today=TODAY) == [
            "brought up to date, as you had changed nothing there: 00_start_here.ipynb"
        ]
        assert (mine / START_PAGE).read_text() == text
    (mine / START_PAGE).write_text("my notes")
    (release / START_PAGE).write_text("fourth release")
    hand_out(release, mine, today=TODAY)
    assert (mine / START_PAGE).read_text() == "my notes"


def test_an_untouched_copy_stays_when_nothing_says_that_it_is_untouched(release: Path, mine: Path) -> None:
    hand_out(release, mine, today=TODAY)
    (mine / ".workbook-release.json").unlink()
    (release / START_PAGE).write_text("second release")
    assert "00_start_here.release-2026-11-20.ipynb" in hand_out(release, mine, today=TODAY)[0]
    assert (mine / START_PAGE).read_text().startswith("first")


def test_a_file_of_the_same_name_from_elsewhere_is_kept(release: Path, mine: Path) -> None:
    (mine / START_PAGE).parent.mkdir(parents=True)
    (mine / START_PAGE).write_text("mine before the course")
    said = hand_out(release, mine, today=TODAY)
    assert (mine / START_PAGE).read_text() == "mine before the course"
    assert any("00_start_here.release-2026-11-20.ipynb" in line for line in said)


def test_a_lost_record_costs_nothing(release: Path, mine: Path) -> None:
    hand_out(release, mine, today=TODAY)
    before = listing(mine)
    for content in (None, "", "[]", "{half"):
        record = next(mine.glob(".workbook-release.json"))
        record.unlink() if content is None else record.write_text(content)
        assert hand_out(release, mine, today=TODAY) == []
        assert listing(mine) == before


def test_a_folder_that_cannot_be_written_is_named_with_the_fix(release: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--dir FOLDER"):
        hand_out(release, tmp_path / "file" / "folder")


def test_the_checkout_has_its_release(root: Path) -> None:
    assert release_folder() == root / "notebooks" / "release"


def test_a_tool_that_compares_notebooks_is_named_where_it_is_installed(
    release: Path, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_out(release, mine, today=TODAY)
    (mine / START_PAGE).write_text("my notes")
    (release / START_PAGE).write_text("second release")
    hand_out(release, mine, today=TODAY)
    assert "nbdiff-web" not in pending_updates(mine)[0].what_to_do
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "nbdime.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert f'nbdiff-web "{mine / START_PAGE}"' in pending_updates(mine)[0].what_to_do


def test_the_start_page_shows_what_is_pending(
    release: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_out(release, mine, today=TODAY)
    monkeypatch.chdir((mine / START_PAGE).parent)
    assert "newer version" not in progress_html()._repr_html_()
    (mine / START_PAGE).write_text("my notes")
    (release / START_PAGE).write_text("second release")
    hand_out(release, mine, today=TODAY)
    html = progress_html()._repr_html_()
    assert "has a newer version" in html and "<code>workbook reset 00" in html
