"""Graded processes see no GPU, whatever the machine has, and no right solution fails because one is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.course.lessons import Exercise
from autograder.engine.check import check_source
from autograder.engine.job import Job
from autograder.engine.sandbox import start as sandbox
from autograder.engine.sandbox import view as sandbox_view
from autograder.engine.sandbox.inside import isolate
from autograder.engine.workers import Worker
from tests.autograder.solutions import reference_sources
from tests.autograder.test_lesson_checks import EXERCISES, require_full_marks

HARNESS = "def run(code):\n    space = {}\n    exec(code, space)\n    return space.get('answer')\n"
#: What torch tells of a machine with so many NVIDIA GPUs: it counts those that the environment leaves visible.
SEEN = """
import os
import torch

def device_count():
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {num} if visible is None else min({num}, len(visible.split(",")) if visible else 0)

torch.cuda.device_count = device_count
torch.cuda.is_available = lambda: device_count() > 0
"""
#: The same for the Pythons that a solution starts.
SEEN_BY_CHILDREN = """
from pathlib import Path
folder = Path.cwd() / "gpus"
folder.mkdir(exist_ok=True)
(folder / "sitecustomize.py").write_text({seen!r})
os.environ["PYTHONPATH"] = str(folder)
"""
NUM_GPUS = (0, 1, 8)
#: What asks how many GPUs there are, and fails if it is told: every day.
SAMPLE = {("6.3", 1), ("6.3", 8), ("1.5", 8)}


@pytest.fixture
def num_gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine with so many GPUs: in every worker and what it starts, and in this process."""
    num: int = request.param
    seen, load = SEEN.format(num=num), Worker.load
    before = seen + SEEN_BY_CHILDREN.format(seen=seen)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(
        Worker, "load", lambda self, harness, source, entry: load(self, before + harness, source, entry)
    )
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: num)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: num > 0)
    return num


@pytest.fixture
def own_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fork servers that begin in this test, and end with it."""
    monkeypatch.setattr(sandbox, "_servers", {})
    yield
    for server in sandbox._servers.values():
        server.close()


def _cases() -> Iterator[Any]:
    """Every reference with every number; with the most GPUs in `workbook test --all`, the rest by hand."""
    for exercise in EXERCISES:
        for num in NUM_GPUS:
            mark = pytest.mark.further if num == max(NUM_GPUS) else pytest.mark.exhaustive
            marks = [] if (exercise.id, num) in SAMPLE else [mark]
            yield pytest.param(num, exercise, id=f"{exercise.id} {num}", marks=marks)


@pytest.mark.parametrize(("num_gpus", "exercise"), list(_cases()), indirect=["num_gpus"])
def test_a_reference_gets_full_marks_on_a_machine_with_gpus(
    num_gpus: int, exercise: Exercise, without_the_clock: None
) -> None:
    require_full_marks(exercise, reference_sources(exercise.lesson_id)[exercise.id])


@pytest.mark.further
@pytest.mark.parametrize("num_gpus", [8], indirect=True)
def test_where_gpus_were_not_hidden_a_right_script_would_fail(
    num_gpus: int, own_servers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_view, "_NO_GPU", {})
    assert check_source("6.3", reference_sources("06")["6.3"]).verdict == "fail"


def _told(code: str) -> Any:
    job = Job("0.1", "solve", "def solve(): pass", HARNESS, np.random.default_rng(0))
    try:
        return job.learner().call("run", code=code)
    finally:
        job.close()


@pytest.mark.parametrize("level", [sandbox.probe().level, "limits"])
def test_the_environment_hides_gpus_at_every_level(
    own_servers: None, monkeypatch: pytest.MonkeyPatch, level: sandbox.Level
) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "0,1")
    monkeypatch.setattr(sandbox, "probe", lambda: sandbox.SandboxStatus(level, "for a test"))
    code = (
        "import os, torch\n"
        "visible = {name: value for name, value in os.environ.items() if 'VISIBLE_DEVICES' in name}\n"
        "answer = [visible, torch.cuda.device_count(), torch.cuda.is_available()]"
    )
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": ""}
    assert _told(code) == [hidden, 0, False]


_NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri/renderD128", "/dev/kfd")


def _with_nodes(folder: Path) -> list[str]:
    """The beginning of a command on a machine whose /dev has the nodes of GPUs: files of `folder`."""
    command = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--dir", "/dev/dri", "--cap-add", "ALL"]
    for node in _NODES:
        file = folder / Path(node).name
        file.touch()
        command += ["--bind", str(file), node]
    return command


_LOOK = f"""
import json, sys
from autograder.engine.sandbox import start
from tests.autograder.test_gpus import _told
level = sys.argv[1]
start.probe = lambda: start.SandboxStatus(level, "for a test")
code = '''
answer = {{}}
for node in {_NODES!r}:
    try:
        open(node, "r+b", buffering=0).close()
        answer[node] = "opened"
    except OSError as error:
        answer[node] = type(error).__name__
'''
print(json.dumps([[node for node in {_NODES!r} if open(node)], _told(code)]))
"""


@pytest.mark.parametrize(
    ("level", "says"), [("bubblewrap", "FileNotFoundError"), ("landlock", "PermissionError")]
)
def test_no_node_of_a_gpu_is_in_the_sandbox(tmp_path: Path, root: Path, level: str, says: str) -> None:
    on_machine = _with_nodes(tmp_path)
    if not shutil.which("bwrap") or subprocess.run([*on_machine, "true"], capture_output=True).returncode:
        pytest.skip("bubblewrap does not start, so no machine with other devices can be made here")
    if level == "landlock" and isolate.landlock_version() < 6:
        pytest.skip("the kernel has no Landlock that denies TCP")
    done = subprocess.run(
        [*on_machine, "--chdir", str(root), sys.executable, "-c", _LOOK, level],
        capture_output=True,
        text=True,
        env={**os.environ, "WORKBOOK_DATA": str(tmp_path / "data")},
    )
    assert done.returncode == 0, done.stderr
    there, told = json.loads(done.stdout)
    assert there == list(_NODES), "the made machine has them"
    assert told == dict.fromkeys(_NODES, says)
