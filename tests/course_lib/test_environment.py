"""The record says what code a run was made with, and on what."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_lib.base.errors import UserError
from course_lib.base.machine import environment, git_state, hardware, memory_bytes, resolve_device

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *arguments):
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", *settings, *arguments], cwd=folder, text=True).strip()


@needs_git
def test_commit_and_changes_of_a_repository(tmp_path):
    assert git_state(tmp_path) is None  # no repository
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None  # no commit yet
    file = tmp_path / "train.py"
    file.write_text("one")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-q", "-m", "First")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "new.txt").write_text("a run folder is no change of the code")
    assert git_state(tmp_path / "runs") == {"commit": commit, "is_dirty": False}
    file.write_text("two")
    assert git_state(tmp_path) == {"commit": commit, "is_dirty": True}


def test_no_git_is_no_error(tmp_path):
    code = "from course_lib.base.machine import environment; print(environment()['code'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("{'folder': None}", "")


def test_environment_and_hardware():
    facts = environment()
    assert facts["packages"]["torch"] == torch.__version__
    assert set(facts["code"]) == {"folder"}
    machine = hardware()
    assert machine["num_threads"] == torch.get_num_threads()
    assert machine["memory_bytes"] > 2**28
    assert len(machine["accelerators"]) == torch.cuda.device_count()
    used = memory_bytes(torch.device("cpu"))
    assert 0 < used["memory_bytes"] <= max(used["peak_memory_bytes"], machine["memory_bytes"])


def test_devices():
    device, reason = resolve_device("auto")
    assert reason.startswith("auto: ") and device.type in ("cpu", "cuda", "mps")
    assert resolve_device("cpu")[0] == torch.device("cpu")
    for wrong in ("warp", "cuda:99"):
        with pytest.raises(UserError):
            resolve_device(wrong)
