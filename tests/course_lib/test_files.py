"""A file or folder takes its name whole or not at all, and what a killed process left is cleared."""

import os
import signal
import subprocess
import sys

import pytest

from course_lib.base.errors import UserError
from course_lib.base.files import BUILDING, atomic_directory, atomic_file, atomic_write_text, remove_leftovers


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_while_writing_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "kept.txt"
    atomic_write_text(path, "old")
    with pytest.raises(error), atomic_file(path) as temporary:
        temporary.write_text("half")
        raise error
    with pytest.raises(error), atomic_directory(tmp_path / "folder") as temporary:
        (temporary / "part").write_text("half")
        raise error
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.txt"] and path.read_text() == "old"


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name exist on Linux alone")
def test_a_text_half_written_when_killed_leaves_what_was_there_and_nothing_else(tmp_path):
    atomic_write_text(tmp_path / "kept.txt", "old")
    code = (
        "import os, pathlib, signal, sys; from course_lib.base.files import atomic_write_text\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"  # written, not on the disk yet
        "atomic_write_text(pathlib.Path(sys.argv[1]), 'new' * 100_000)"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path / "kept.txt"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.txt"]
    assert (tmp_path / "kept.txt").read_text() == "old"


def test_where_every_file_has_a_name_the_text_is_the_same(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    atomic_write_text(tmp_path / "text.txt", "é\n")
    assert (tmp_path / "text.txt").read_bytes() == "é\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["text.txt"]


def test_of_two_equal_folders_the_first_is_kept(tmp_path):
    with atomic_directory(tmp_path / "store") as slower:
        (slower / "by").write_text("slower")
        with atomic_directory(tmp_path / "store") as quicker:
            (quicker / "by").write_text("quicker")
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]
    assert (tmp_path / "store" / "by").read_text() == "quicker"


def test_what_was_left_a_day_ago_goes_at_the_next_write_and_what_is_fresh_stays(tmp_path):
    old, fresh = tmp_path / f"{BUILDING}1-old.tmp", tmp_path / f"{BUILDING}2-fresh.tmp"
    old.mkdir()
    (old / "part").write_text("half")
    fresh.write_text("half")
    os.utime(old, (0, 0))
    atomic_write_text(tmp_path / "new.txt", "whole")
    assert {entry.name for entry in tmp_path.iterdir()} == {"new.txt", fresh.name}
    remove_leftovers(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {"new.txt"}


def test_a_refusal_of_the_system_names_the_file_and_the_fix(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*new\.txt.*COURSE_LIB_CACHE.*--out"):
        atomic_write_text(tmp_path / "file" / "new.txt", "")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_a_file_has_the_modes_of_the_umask_whoever_writes_it(tmp_path, umask):
    before = os.umask(umask)
    try:
        with atomic_file(tmp_path / "own") as temporary:
            temporary.write_text("whole")
        with atomic_file(tmp_path / "replaced") as temporary:  # as safetensors does
            (tmp_path / "private").write_text("whole")
            (tmp_path / "private").chmod(0o600)
            (tmp_path / "private").replace(temporary)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o666 & ~umask}
