"""`torchrun -m course_lib train` as a user runs it: one voice, one writer; a process killed, the job ended."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import psutil
import pytest
import torch

from course_lib.runs.folder import RunFolder
from course_lib.runs.using.predict import load_trained
from course_lib.training.checkpoint import load_checkpoint
from tests.course_lib.scripts.small import SCRIPTS, torchrun, torchrun_command
from tests.everyday import first_of

SMALL = ("d_model=16", "num_layers=1", "vocab_size=300", "max_length=64", "checkpoint_every_steps=5",
         "log_every_steps=5", "dropout=0.2", "precision=32-true")  # fmt: skip
TWO = (*SMALL, "micro_batch_size=16")
SOON = 30.0
"""Seconds in which a job with a dead process must have ended."""


def options(*settings):
    return [option for setting in settings for option in ("--set", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rng = random.Random(0)
    topics = {
        "cooking": "onion garlic oven bake flour butter",
        "sport": "team goal match coach player season",
    }
    rows = ["text,label"]
    for _ in range(230):
        label = rng.choice(list(topics))
        words = rng.choices(["the", "a", "of", "and", "we", "to", "it", "was"], k=rng.randint(2, 25))
        rows.append(f"{' '.join([*words, *rng.choices(topics[label].split(), k=4)])},{label}")
    (folder / "texts.csv").write_text("\n".join(rows) + "\n")
    return folder


def environment(folder, **more):
    return {"COURSE_LIB_CACHE": str(folder / "cache"), **more}


def arguments(folder, out, *more):
    return [
        "-m",
        "course_lib",
        "train",
        "--data",
        folder / "texts.csv",
        "--out",
        folder / out,
        "--json",
        *more,
    ]


def run(folder, out, *more, **keywords):
    return torchrun(*arguments(folder, out, *more), env=environment(folder), **keywords)


@pytest.fixture(scope="module")
def undisturbed(folder):
    """One run of two processes that nothing happens to, and which files each of them opened to write."""
    watch = {
        "PYTHONPATH": f"{SCRIPTS / 'audit'}:{SCRIPTS.parents[2]}",
        "AUDIT_LOG": str(folder / "opened"),
        "AUDIT_WATCHED": str(folder / "whole"),
    }
    done = torchrun(
        *arguments(folder, "whole", *options(*TWO, "max_epochs=8")), env=environment(folder, **watch)
    )
    return done, json.loads(done.stdout)  # JSON alone on stdout: one process speaks


@pytest.mark.further
def test_one_process_writes_and_speaks(folder, undisturbed):
    done, record = undisturbed
    assert record["world_size"] == 2 and record["status"] == "finished"
    assert done.stderr.count("Epoch 8/8") >= 1
    opened = {path.name: path.read_text() for path in folder.glob("opened-*")}
    assert opened.keys() == {"opened-0"}
    assert all(name in opened["opened-0"] for name in ("metrics.jsonl", "checkpoints"))
    out = RunFolder(folder / "whole")
    steps = [line["step"] for line in out.read_metrics() if line["kind"] == "train"]
    assert steps == sorted(set(steps)) and steps[-1] == record["max_steps"]
    assert len(list(out.tensorboard.glob("events.out.tfevents.*"))) == 1
    assert len(load_checkpoint(out.last)["rng"]) == 2  # each process has its own dropout


@pytest.mark.further
def test_two_processes_train_what_one_with_the_same_global_batch_trains(folder):
    # Muon computes in 16 bits, and turns other rounding into another direction where a gradient has hardly any.
    same = (
        *SMALL,
        "micro_batch_size=16",
        "global_batch_size=64",
        "max_epochs=2",
        "dropout=0",
        "optimizer=adamw",
    )
    records = [json.loads(run(folder, f"same{n}", *options(*same), processes=n).stdout) for n in (1, 2)]
    one, two = (load_checkpoint(RunFolder(folder / f"same{n}").last)["model"] for n in (1, 2))
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-5)
    assert records[0]["validation"]["num_items"] == records[1]["validation"]["num_items"]
    assert records[0]["best"]["value"] == pytest.approx(records[1]["best"]["value"], rel=1e-4)


def worker(job, rank):
    """The process of this rank, once it is there."""
    while job.poll() is None:
        for process in psutil.Process(job.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.environ().get("RANK") == str(rank):
                    return process
        time.sleep(0.05)
    raise AssertionError(job.communicate()[1])


def kill_one(folder, out, rank, *settings):
    """Start a job of two processes, kill one when a checkpoint is there; gives the job's exit and stderr."""
    job = subprocess.Popen(
        torchrun_command(*arguments(folder, out.directory.name, *options(*settings))),
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    victim = worker(job, rank)
    while not out.last.exists():
        assert job.poll() is None, job.communicate()[1]
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    killed_at = time.monotonic()
    stdout, stderr = job.communicate(timeout=120)
    assert time.monotonic() - killed_at < SOON
    assert job.returncode != 0 and stdout == ""
    assert "Signal 9 (SIGKILL)" in stderr  # torchrun says who died
    assert stderr.count("course-lib:") <= 1


def resume(folder, out, **how):
    done = torchrun(
        *("-m", "course_lib", "train", "--out", out.directory, "--resume", "--json"),
        env=environment(folder),
        **how,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("rank", first_of([0, 1], everyday=0, further=1))
def test_a_killed_process_ends_the_job_and_resume_completes_it(folder, undisturbed, rank):
    out = RunFolder(folder / f"killed{rank}")
    kill_one(folder, out, rank, *TWO, "max_epochs=8")
    assert 0 < load_checkpoint(out.last)["state"]["step"] < undisturbed[1]["max_steps"]
    assert resume(folder, out)["weights_sha256"] == undisturbed[1]["weights_sha256"]


def test_a_mistake_is_told_once(folder):
    done = run(folder, "none", "--set", "learning_rat=1", check=False)
    assert done.returncode != 0 and not (folder / "none").exists()
    assert done.stderr.count("learning_rate") == 1


@pytest.mark.exhaustive
def test_a_killed_fsdp_job_is_completed_by_one_process(folder):
    settings = (*SMALL, "micro_batch_size=16", "global_batch_size=32", "dropout=0", "sharding=fsdp")
    settings = (*settings, "optimizer=sgd", "max_epochs=8")
    alone = json.loads(run(folder, "alone", *options(*settings), processes=1).stdout)
    out = RunFolder(folder / "fsdp")
    kill_one(folder, out, 1, *settings)
    record = resume(folder, out, processes=1)
    assert (record["status"], record["step"]) == ("finished", alone["step"])
    assert len(list(out.last.parent.glob("sharded-*"))) == 2  # older ones are gone
    assert record["best"]["value"] == pytest.approx(alone["best"]["value"], rel=1e-3)
    weights, expected = (load_trained(folder / name).model.state_dict() for name in ("fsdp", "alone"))
    for name in expected:
        torch.testing.assert_close(weights[name], expected[name], rtol=1e-4, atol=1e-5)
