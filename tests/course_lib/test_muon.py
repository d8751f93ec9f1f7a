"""Runs with `optimizer=muon`: killed and resumed to the bit; refused where it cannot be."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from course_lib.runs.folder import RunFolder
from course_lib.training.checkpoint import load_checkpoint
from tests.benchmarks.made_csv import make_csv

SETTINGS = {
    **{
        "optimizer": "muon",
        "d_model": 16,
        "num_layers": 1,
        "vocab_size": 300,
        "max_length": 32,
        "dropout": 0.2,
    },
    **{"micro_batch_size": 8, "grad_accum_steps": 2, "embedding_lr_ratio": 4, "precision": "32-true"},
    **{"max_steps": 40, "log_every_steps": 1, "checkpoint_every_steps": 3},
}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts `course-lib` in one folder, which holds a table."""
    folder = tmp_path_factory.mktemp("muon")
    make_csv(folder / "t.csv", num_rows=200)
    (folder / "old").mkdir()
    # An older torch, by the one thing that counts: what it does not have.
    (folder / "old" / "sitecustomize.py").write_text("import torch.optim\ndel torch.optim.Muon\n")

    def go(*arguments, path="", **changes):
        settings = [f"--set={key}={value}" for key, value in {**SETTINGS, **changes}.items()]
        own = {"COURSE_LIB_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "course_lib",
                "train",
                *arguments,
                *(() if "--resume" in arguments else settings),
            ],
            **{"cwd": folder, "env": {**os.environ, **own}, "text": True},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
        )

    go.folder = folder
    return go


def answer(process):
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    return json.loads(stdout)


def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(start):
    whole = answer(start("--data", "t.csv", "--out", "whole", "--json"))
    assert whole["resolved"]["optimizer"].startswith("muon (torch.optim.Muon, one matrix of the blocks")
    process = start("--data", "t.csv", "--out", "cut")
    last = RunFolder(start.folder / "cut").last
    while not last.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 0 < load_checkpoint(last)["state"]["step"] < 40
    states = load_checkpoint(last)["optimizer"]["state"].values()
    assert {frozenset(state) for state in states} == {
        frozenset({"momentum_buffer"}),
        frozenset({"step", "exp_avg", "exp_avg_sq"}),
    }
    resumed = answer(start("--out", "cut", "--resume", "--json"))
    assert resumed["weights_sha256"] == whole["weights_sha256"]
    assert resumed["best_weights_sha256"] == whole["best_weights_sha256"]


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"sharding": "fsdp"}, "", "optimizer=muon cannot update parts of a matrix (fsdp): take adamw"),
        pytest.param({}, "old", "muon needs torch 2.9 or later", marks=pytest.mark.further),
    ],
)
def test_where_it_cannot_be_that_is_said_in_one_line_and_nothing_is_written(start, changes, path, says):
    process = start(
        "--data", "t.csv", "--out", "none", path=str(start.folder / path) if path else "", **changes
    )
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (2, ""), stderr
    assert stderr.splitlines()[-1].startswith("course-lib: ") and says in stderr
    assert stderr.count("course-lib: ") == 1 and "Traceback" not in stderr
    assert not (start.folder / "none").exists()
