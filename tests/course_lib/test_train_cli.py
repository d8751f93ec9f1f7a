"""`course-lib` as a user runs it: real processes, real files, killed for real."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from importlib.metadata import version

import pytest
import torch
import yaml

from course_lib.cli.main import COMMANDS, main
from course_lib.runs.folder import RunFolder
from course_lib.training.checkpoint import load_checkpoint
from course_lib.training.reproducibility import weights_sha256
from tests.everyday import first_of

TOPICS = {
    "cooking": "onion garlic oven bake flour butter salt pepper roast sauce",
    "sport": "team goal match coach player season score league final referee",
    "travel": "flight hotel train beach museum passport luggage island ticket harbor",
}
COMMON = "the a of and we to it was in on with for this that very my our after before"
SMALL = [
    "d_model=16",
    "num_layers=1",
    "vocab_size=300",
    "micro_batch_size=16",
    "max_length=64",
    "precision=32-true",
]


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory):
    rng = random.Random(0)
    rows = ["text,label"]
    for _ in range(240):
        label = rng.choice(list(TOPICS))
        words = rng.choices(COMMON.split(), k=rng.randint(2, 25)) + rng.choices(TOPICS[label].split(), k=4)
        rng.shuffle(words)
        rows.append(f"{' '.join(words)},{label}")
    path = tmp_path_factory.mktemp("data") / "texts.csv"
    path.write_text("\n".join([*rows, ",cooking"]) + "\n")
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def command(cache, tmp_path):
    def build(*arguments, settings=()):
        options = [option for setting in settings for option in ("--set", setting)]
        return {
            "args": [sys.executable, "-m", "course_lib", *map(str, arguments), *options],
            "env": {**os.environ, "COURSE_LIB_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
            "cwd": tmp_path,
            "text": True,
        }

    return build


@pytest.fixture
def run(command):
    def go(*arguments, settings=()):
        return subprocess.run(
            **command(*arguments, settings=settings), capture_output=True, check=False, timeout=120
        )

    return go


class Structure(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.labels, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        if tag == "svg":
            self.labels.append(values.get("aria-label"))
        self.links += [values[name] for name in ("src", "href") if name in values]


def test_train_on_a_csv_writes_the_whole_run_folder(run, csv_file, tmp_path):
    settings = [*SMALL, "max_epochs=15", "learning_rate=1e-2"]
    done = run("train", "--data", csv_file, "--out", "runs/a", "--json", settings=settings)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)  # JSON alone on stdout
    assert "Epoch 15/15" in done.stderr and "val acc" in done.stderr
    folder = RunFolder(tmp_path / "runs" / "a")
    assert json.loads(folder.record.read_text()) == record
    assert record["status"] == "finished"
    assert record["environment"]["packages"]["training-workbook"] == version("training-workbook")
    assert record["validation"]["accuracy"] > 0.9  # chance is about 1/3
    assert sum(row["num_samples"] for row in record["per_class"]) == record["validation"]["num_items"]
    assert any("blank" in note for note in record["data"]["notes"])
    assert yaml.safe_load(folder.config.read_text()) == record["config"]
    last, best = load_checkpoint(folder.last), load_checkpoint(folder.best)
    assert weights_sha256(last["model"]) == record["weights_sha256"]
    assert weights_sha256(best["model"]) == record["best_weights_sha256"]
    assert best["state"]["step"] == record["best"]["step"]
    lines = folder.read_metrics()
    validations = [line for line in lines if line["kind"] == "validation"]
    assert len(validations) == 15
    assert record["best"]["value"] == max(line["macro_f1"] for line in validations)
    (chosen,) = (line for line in validations if line["step"] == record["best"]["step"])
    assert record["validation"]["loss"] == pytest.approx(chosen["loss"])
    assert {"learning_rate", "grad_norm", "samples_per_sec", "tokens_per_sec", "pad_fraction",
            "data_wait_fraction"} <= lines[0].keys()  # fmt: skip
    assert list(folder.tensorboard.glob("events.out.tfevents.*"))
    from tokenizers import Tokenizer

    assert Tokenizer.from_file(str(folder.tokenizer)).encode("the oven").ids
    check_report(folder.report.read_text(), record)
    assert not list((tmp_path / "runs").rglob("*.tmp"))

    again = run("train", "--data", csv_file, "--out", "runs/a", settings=settings)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "already holds a run" in again.stderr and "--resume" in again.stderr
    finished = run("train", "--out", "runs/a", "--resume", "--json")
    assert json.loads(finished.stdout) == record


def check_report(page, record):
    structure = Structure()
    structure.feed(page)
    assert structure.tags.count("svg") == 7
    assert all(label and re.search(r"from [\d.e+-]+ at step \d+ to", label) for label in structure.labels)
    assert not [link for link in structure.links if not link.startswith("#")]  # nothing from elsewhere
    assert "script" not in structure.tags
    assert f"{record['validation']['accuracy']:.1%}" in page
    assert all(row["label"] in page for row in record["per_class"])


def kill_at_random_moment(arguments, folder, rng):
    """Start, wait for a step that is not the last, then a random while, then SIGKILL. True if it was alive."""
    before = len(folder.read_metrics())
    process = subprocess.Popen(**arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    wanted = before + rng.randint(2, 25)
    while len(folder.read_metrics()) < wanted and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.03))
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.exhaustive
def test_killed_again_and_again_the_run_ends_with_the_same_weights(command, run, csv_file, tmp_path):
    settings = [*SMALL, "max_epochs=12", "log_every_steps=1", "checkpoint_every_steps=3", "dropout=0.2"]
    whole = run("train", "--data", csv_file, "--out", "whole", "--json", settings=settings)
    assert whole.returncode == 0, whole.stderr
    expected = json.loads(whole.stdout)
    rng = random.Random()
    folder = RunFolder(tmp_path / "cut")
    start = command("train", "--data", csv_file, "--out", "cut", settings=settings)
    assert kill_at_random_moment(start, folder, rng)
    num_kills = 1
    for _ in range(3):
        num_kills += kill_at_random_moment(command("train", "--out", "cut", "--resume"), folder, rng)
        if folder.last.exists():
            assert load_checkpoint(folder.last)["state"]["step"] > 0  # whole, whenever the kill came
    assert num_kills >= 3
    resumed = run("train", "--out", "cut", "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert "resuming at step" in resumed.stderr
    record = json.loads(resumed.stdout)
    for key in ("weights_sha256", "best_weights_sha256", "best", "per_class", "validation", "step"):
        assert record[key] == expected[key], key

    assert not list(folder.directory.rglob("*.tmp"))

    def timeless(lines):
        return [
            {k: v for k, v in line.items() if k in ("kind", "step", "loss", "learning_rate")}
            for line in lines
        ]

    assert timeless(folder.read_metrics()) == timeless(RunFolder(tmp_path / "whole").read_metrics())


@pytest.mark.further
def test_ctrl_c_keeps_the_checkpoint_and_says_how_to_go_on(command, run, csv_file, tmp_path):
    settings = [*SMALL, "max_epochs=80", "log_every_steps=1", "checkpoint_every_steps=2"]
    arguments = command("train", "--data", csv_file, "--out", "cut", settings=settings)
    process = subprocess.Popen(**arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    folder = RunFolder(tmp_path / "cut")
    deadline = time.monotonic() + 60
    while len(folder.read_metrics()) < 10 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == "" and "Traceback" not in stderr
    assert re.search(r"checkpoint of step \d+ is kept.*course-lib train --out cut --resume\n$", stderr)
    assert folder.read_record()["status"] == "interrupted"
    assert not list(folder.directory.rglob("*.tmp"))
    assert load_checkpoint(folder.last)["state"]["step"] == folder.read_record()["checkpoint_step"] > 0


@pytest.fixture(scope="module")
def short_run(csv_file, cache, tmp_path_factory):
    """A run that is not finished: its record says so, its checkpoint is there."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "short")
    options = [option for setting in [*SMALL, "max_steps=4"] for option in ("--set", setting)]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "course_lib",
            "train",
            "--data",
            csv_file,
            "--out",
            folder.directory,
            *options,
        ],
        env={**os.environ, "COURSE_LIB_CACHE": str(cache)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    folder.write_record({**folder.read_record(), "status": "running"})
    return folder


@pytest.mark.further
def test_resume_refuses_another_config_and_says_what_differs(run, short_run):
    done = run("train", "--out", short_run.directory, "--resume", settings=["seed=1", "d_model=32"])
    assert (done.returncode, done.stdout) == (2, "")
    assert "d_model: 16 → 32; seed: 0 → 1" in done.stderr


@pytest.mark.further
def test_resume_refuses_other_data(run, short_run, csv_file, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(csv_file.read_text() + "one more oven,cooking\n")
    done = run("train", "--out", short_run.directory, "--resume", "--data", other)
    assert done.returncode == 2
    assert "was made with other data" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.further
def test_resume_refuses_a_checkpoint_of_another_config(run, short_run):
    checkpoint = load_checkpoint(short_run.last)
    whole = short_run.last.read_bytes()
    try:
        torch.save({**checkpoint, "config": {**checkpoint["config"], "learning_rate": 0.5}}, short_run.last)
        done = run("train", "--out", short_run.directory, "--resume")
        assert done.returncode == 2
        assert "learning_rate: 0.5 → 0.001" in done.stderr
        short_run.last.write_bytes(whole[:1000])
        done = run("train", "--out", short_run.directory, "--resume")
        assert done.returncode == 2
        assert "cannot read the checkpoint" in done.stderr and done.stderr.count("course-lib:") == 1
    finally:
        short_run.last.write_bytes(whole)


@pytest.mark.parametrize(
    ("arguments", "says"),
    first_of(
        [
            (["tran"], "invalid choice: 'tran'"),
            ([], "required"),
            (["train"], "--data FILE.csv"),
            (["train", "--data", "none.csv"], "none.csv"),
            (["train", "--resume"], "add --out DIR"),
            (["train", "--resume", "--out", "nowhere"], "holds no run"),
            (["train", "--data", "x.csv", "--set", "lr=1"], "'learning_rate'"),
            (["train", "--data", "x.csv", "--config", "none.yaml"], "none.yaml"),
            (["train", "--data", "CSV", "--set", "device=warp"], "device must be"),
            (["train", "--data", "CSV", "--set", "device=cuda:99"], "not on this machine"),
            (["train", "--data", "CSV", "--out", "CSV/runs"], "cannot make the folder"),
        ],
        4,
    ),
)
def test_a_user_error_is_one_line_exit_2_and_nothing_written(run, csv_file, tmp_path, arguments, says):
    arguments = [argument.replace("CSV", str(csv_file)) for argument in arguments]
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("course-lib")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["train", "--dta", "x.csv"],
            "course-lib train: there is no --dta here, the nearest is --data; see ",
        ),
        (
            ["train", "--learning-rate=1e-3"],
            "course-lib train: --learning-rate is a key of the config: write --set ",
        ),
        (
            ["predict", "runs/a", "--jsn"],
            "course-lib predict: there is no --jsn here, the nearest is --json; see ",
        ),
        (
            ["dashboard", "runs", "more"],
            "course-lib dashboard: there is no more here; see course-lib dashboard --help",
        ),
        (["--versoin"], "course-lib: "),
    ],
)
def test_a_typo_of_a_flag_points_to_the_help_of_its_command(capsys, arguments, says):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, error = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and error.startswith(says) and error.count("\n") == 1


def test_a_language_model_of_one_token_has_nothing_to_predict(run, csv_file, tmp_path):
    settings = [*SMALL[:-1], "max_steps=1", "task=language-modelling", "max_length=1"]
    done = run("train", "--data", csv_file, "--out", "short", settings=settings)
    assert done.returncode == 2 and "max_length must be at least 2" in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "short").exists()


def test_several_processes_must_be_told_their_folder(monkeypatch, csv_file, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["train", "--data", str(csv_file)]) == 2
    assert "add --out DIR" in capsys.readouterr().err


def test_a_run_that_diverges_says_where_and_exits_1(run, csv_file, tmp_path):
    settings = [*SMALL, "max_epochs=5", "learning_rate=1000", "max_norm=.inf", "warmup_fraction=0"]
    settings += ["weight_decay=1000", "log_every_steps=1"]
    done = run("train", "--data", csv_file, "--out", "bad", settings=settings)
    assert done.returncode == 1
    place = r"step \d+ \(batch \d+ of the epoch\)"
    assert re.search(place + r": loss is \S+, gradient norm is \S+; training stopped", done.stderr)
    assert RunFolder(tmp_path / "bad").read_record()["status"] == "failed"


def test_info_and_help(run):
    facts = json.loads(run("info", "--json").stdout)
    assert facts["packages"]["torch"] == str(torch.__version__)
    assert {"device", "precision", "num_threads", "cache", "processor"} <= facts.keys()
    assert "cache" in run("info").stdout
    page = run("train", "--help").stdout
    assert "learning_rate" in page and "--resume" in page
    page = run("--help").stdout
    assert all(f"    {name}" in page for name in COMMANDS)
