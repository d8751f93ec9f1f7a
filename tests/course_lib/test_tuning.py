"""Searches over real trainings: what is tried, what is spent, and what survives a kill."""

import dataclasses
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder

optuna = pytest.importorskip("optuna")

from course_lib.runs.train import run_training  # noqa: E402
from course_lib.tuning.report import write_study  # noqa: E402
from course_lib.tuning.search import Search  # noqa: E402
from course_lib.tuning.search_space import default_space, grid_values, make_space, parse_searches  # noqa: E402
from course_lib.tuning.study import make_sampler, tune  # noqa: E402

TOPICS = {"food": "onion garlic oven flour butter", "sport": "team goal coach season score"}
COMMON = "the a of and we to it was in on with for this that very my our after before"
SMALL = {"d_model": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 300, "micro_batch_size": 16}
SMALL |= {"max_length": 32, "max_steps": 10, "device": "cpu", "precision": "32-true", "monitor": "loss"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = random.Random(0)
    rows = ["text,label"]
    for _ in range(160):
        label = rng.choice(list(TOPICS))
        words = rng.choices(COMMON.split(), k=rng.randint(4, 20)) + rng.choices(TOPICS[label].split(), k=2)
        rng.shuffle(words)
        rows.append(f"{' '.join(words)},{label}")
    path = tmp_path_factory.mktemp("data") / "texts.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Path(os.environ["COURSE_LIB_CACHE"])


@pytest.fixture
def search(data, tmp_path):
    def make(texts, *, values=None, out=tmp_path / "study", **options):
        config = TrainConfig(data=str(data), **{**SMALL, **(values or {})})
        return Search(config=config, out=out, texts=texts, **options)

    return make


def look(study):
    """What equal studies have in common: all but times and folders."""
    keys = ("number", "state", "value", "params", "steps")
    return [{key: trial[key] for key in keys} for trial in study["trials"]]


# The space


CONFIG = TrainConfig(data="x.csv")


@given(
    low=st.floats(-5, 1).map(lambda exponent: float(f"{10**exponent:.4g}")),
    factor=st.floats(1.5, 90.0),
)
@settings(max_examples=50, deadline=None)
def test_a_grid_keeps_the_ends_of_a_range_and_is_even_in_between(low, factor):
    high = float(f"{low * factor:.6g}")
    part = make_space({"learning_rate": f"log:{low}..{high}"}, CONFIG)["learning_rate"]
    assert (part.low, part.high, part.log) == (low, high, True)
    first, *_, last = values = grid_values(part)
    assert (first, last) == (low, high) and len(values) == 4
    assert values[1] / values[0] == pytest.approx(values[3] / values[2])


def test_whole_numbers_and_choices_have_the_types_of_the_config():
    space = make_space(
        {"num_layers": "int:1..4", "d_model": [32, "64"], "compile": "choice:true, off",
         "activation_checkpointing": "choice:true, false",
         "micro_batch_size": "log:16..128", "optimizer": "choice:sgd,adamw"}, CONFIG
    )  # fmt: skip
    assert {key: grid_values(part) for key, part in space.items()} == {
        "activation_checkpointing": [True, False], "compile": ["on", "off"], "d_model": [32, 64],
        "micro_batch_size": [16, 32, 64, 128],
        "num_layers": [1, 2, 3, 4], "optimizer": ["sgd", "adamw"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"learning_rat": "log:1e-4..1e-2"}, "unknown key 'learning_rat'; the nearest known key is 'learning_rate'"),
        ({"weight_decay": "log:0..0.1"}, "a log range begins above 0"),
        ({"learning_rate": "log:0..0.1"}, "learning_rate must be above 0"),
        ({"learning_rate": "log:1e-2..1e-4"}, "give the lower end, then the higher one"),
        ({"learning_rate": "float:0.1..0.1"}, "give the lower end, then the higher one"),
        ({"max_norm": "log:1..inf"}, "give the lower end, then the higher one"),
        ({"dropout": "float:0..1.5"}, "dropout must be at least 0 and below 1, got 1.5"),
        ({"num_layers": "float:1..4"}, "num_layers=float:1..4: write KEY=log"),
        ({"dropout": "int:0..1"}, "dropout must be at least 0 and below 1"),
        ({"num_layers": "int:1.5..4"}, "num_layers must be a whole number"),
        ({"d_model": "choice:32,65"}, "d_model must be a multiple of num_heads, got 65 and 4"),
        ({"d_model": "choice:32"}, "at least two choices"),
        ({"d_model": "choice:32,32"}, "at least two choices"),
        ({"optimizer": "choice:adamw,adamm"}, "optimizer must be one of"),
        ({"micro_batch_size": "choice:[,"}, "micro_batch_size must be a number or auto, got '['"),
        ({"micro_batch_size": "int:16..auto"}, "micro_batch_size=int:16..auto: write KEY=log"),
        ({"num_layers": 3}, "num_layers=3: write KEY=log"),
        ({"monitor": ["loss", "accuracy"]}, "monitor must be the same in all trials"),
        ({"max_epochs": "int:1..4"}, "max_epochs must be the same in all trials"),
        ({}, "the search space is empty"),
    ],
)  # fmt: skip
def test_bad_spaces_are_refused_before_any_trial(texts, message):
    with pytest.raises(UserError, match=re.escape(message)):
        make_space(texts, CONFIG)


def test_a_grid_too_large_and_a_search_without_range_are_refused(search):
    keys = ("dropout", "label_smoothing", "weight_decay", "learning_rate", "layer_decay", "max_norm")
    texts = dict.fromkeys(keys, "float:0.1..0.3") | {"num_layers": "int:1..1000000000"}
    with pytest.raises(UserError, match="a grid of 16,384 points is above 10,000"):
        search(texts, sampler="grid")
    with pytest.raises(UserError, match="--search learning_rate: write KEY="):
        parse_searches(["learning_rate"])
    assert parse_searches(["d_model=choice:16,32"]) == {"d_model": "choice:16,32"}
    for task in ("classification", "language-modelling"):
        config = TrainConfig(data="x.csv", task=task)
        assert make_space(default_space(config), config)


def test_random_trials_are_log_uniform_and_independent_of_who_draws_them(search):
    made = search({"learning_rate": "log:1e-4..1e-2"}, sampler="random")
    study = optuna.create_study()
    part = made.space["learning_rate"]

    def draw(number):
        study.sampler = make_sampler(made, number)
        return study.ask({"learning_rate": part}).params["learning_rate"]

    values = [draw(number) for number in range(400)]
    shares = sorted(math.log10(value / 1e-4) / 2 for value in values)
    # Kolmogorov–Smirnov: a uniform sample of 400 is further off than 0.098 once in a thousand times.
    assert max(abs(share - place / 400) for place, share in enumerate(shares)) < 0.098
    assert [draw(number) for number in (399, 7)] == [values[399], values[7]]


@pytest.mark.parametrize("kind", ["tpe", "random"])
def test_tpe_learns_from_the_trials_before_and_random_does_not(search, kind):
    made = search({"learning_rate": "log:1e-6..1"}, sampler=kind)
    study, misses = optuna.create_study(), []
    for number in range(60):
        study.sampler = make_sampler(made, number)
        trial = study.ask(made.space)
        misses.append(abs(math.log10(trial.params["learning_rate"]) + 2))
        study.tell(trial, misses[-1] ** 2)
    # The first ten of TPE are random. A random miss is (2² + 4²) / 12 = 1.67 on average.
    assert (statistics.mean(misses[20:]) < 0.9) == (kind == "tpe")


# Studies


@pytest.fixture(scope="module")
def found(data, tmp_path_factory, cache):
    """A search over a learning rate whose range is far too wide."""
    out = tmp_path_factory.mktemp("found") / "study"
    config = TrainConfig(data=str(data), **{**SMALL, "max_steps": 20})
    texts = {"learning_rate": "log:1e-6..1", "dropout": "float:0..0.3"}
    return tune(Search(config=config, out=out, texts=texts, trials=9), progress=False), out


def test_the_best_is_the_best_of_the_complete(found):
    study, _ = found
    values = [trial["value"] for trial in study["trials"]]
    assert study["best"]["value"] == min(t["value"] for t in study["trials"] if t["state"] == "complete")
    assert study["best"]["value"] < 0.8 * max(values)
    assert study["importance"] == {}  # of so few complete trials it would be noise


def test_pruned_trials_are_cheaper_and_every_step_is_counted(found):
    study, out = found
    by_state = {
        state: [t for t in study["trials"] if t["state"] == state] for state in ("complete", "pruned")
    }
    assert by_state["pruned"] and all(trial["steps"] < 20 for trial in by_state["pruned"])
    assert all(trial["steps"] == 20 for trial in by_state["complete"])
    records = [RunFolder(path).read_record() for path in sorted((out / "trials").iterdir())]
    assert len(records) == 9
    assert study["spent"]["steps"] == sum(record["step"] for record in records) < 9 * 20
    assert study["spent"]["trials"] == 9
    for trial, record in zip(study["trials"], records, strict=True):
        assert trial["seconds"] > 0 and trial["steps"] == record["step"]
        assert record["stop_reason"].startswith("pruned at step") == (trial["state"] == "pruned")
        assert {key: record["config"][key] for key in trial["params"]} == trial["params"]


def test_the_best_config_trains_to_the_same_weights(found, tmp_path):
    study, out = found
    values = yaml.safe_load((out / "best.yaml").read_text())
    plain = run_training(TrainConfig.from_dict(values), tmp_path / "plain", progress=False)
    record = RunFolder(out / "trials" / f"{study['best']['number']:04d}").read_record()
    assert plain["weights_sha256"] == record["weights_sha256"]
    assert plain["best"]["value"] == study["best"]["value"]


def test_trials_share_the_tokenised_data(found, cache):
    _, out = found
    assert len(list(cache.glob("store-*"))) == 1
    tokenizers = {path.read_text() for path in (out / "trials").glob("*/tokenizer.json")}
    assert len(tokenizers) == 1


def test_the_report_shows_the_best_the_time_and_the_plots(found):
    study, out = found
    page = (out / "tuning.html").read_text()
    assert re.findall(r'<img alt="([^"]+)" src="([^"]+)"', page) == [
        ("history of loss", "history.svg"), ("slices of loss", "slices.svg")
    ]  # fmt: skip
    assert all("<path" in (out / name).read_text() for name in ("history.svg", "slices.svg"))
    assert f"The best is trial {study['best']['number']}" in page and "spent</li>" in page
    assert "course-lib train --config best.yaml" in page
    assert json.loads((out / "study.json").read_text()) == study


def test_importance_names_the_key_that_matters(search):
    made = search({"learning_rate": "log:1e-4..1e-1", "optimizer": "choice:adamw,sgd"})
    made.out.mkdir()
    study, rng = optuna.create_study(), random.Random(0)
    for _ in range(40):
        params = {"learning_rate": 10 ** rng.uniform(-4, -1), "optimizer": rng.choice(["adamw", "sgd"])}
        value = (math.log10(params["learning_rate"]) + 2) ** 2 + rng.gauss(1, 0.1)
        study.add_trial(optuna.create_trial(value=value, params=params, distributions=made.space))
    result = write_study(made, study)
    assert list(result["importance"]) == ["learning_rate", "optimizer"]
    assert result["importance"]["learning_rate"] > 0.8
    assert sum(result["importance"].values()) == pytest.approx(1)
    assert "What made the difference:\nlearning_rate " in (made.out / "tuning.html").read_text()
    assert (made.out / "importance.svg").exists()


def test_a_grid_covers_exactly_the_product(search):
    texts = {"d_model": [16, 32], "learning_rate": [1e-6, 1e-2]}
    study = tune(search(texts, sampler="grid", pruner="halving"), progress=False)
    tried = sorted(
        (trial["params"]["d_model"], trial["params"]["learning_rate"]) for trial in study["trials"]
    )
    assert tried == [(16, 1e-6), (16, 1e-2), (32, 1e-6), (32, 1e-2)]
    assert study["spent"]["pruned"] > 0 < study["spent"]["complete"] and study["spent"]["steps"] < 40


@pytest.mark.further
def test_budgets_are_exact_and_the_same_search_goes_on(search, tmp_path):
    texts = {"learning_rate": "log:1e-4..1e-1"}
    by_steps = tune(search(texts, max_total_steps=29, sampler="random"), progress=False)
    assert (by_steps["spent"]["trials"], by_steps["spent"]["steps"]) == (2, 20)
    by_trials = tune(search(texts, trials=3, sampler="random"), progress=False)
    assert by_trials["spent"]["trials"] == 3
    assert look(by_trials)[:2] == look(by_steps)  # continued, not begun again
    assert tune(search(texts, trials=3, sampler="random"), progress=False) == by_trials
    whole = tune(search(texts, trials=2, sampler="random", out=tmp_path / "whole"), progress=False)
    assert look(whole) == look(by_steps)  # equal seeds, equal studies


def test_after_the_minutes_no_trial_begins(search):
    study = tune(search({"learning_rate": "log:1e-4..1e-1"}, minutes=0.2 / 60, trials=50), progress=False)
    assert study["spent"]["complete"] == study["spent"]["trials"] < 50


def test_a_trial_that_fails_is_reported_and_the_others_go_on(search):
    texts = {"learning_rate": [1e-2, 1000.0], "micro_batch_size": [16, 24]}
    values = {"optimizer": "sgd", "max_norm": math.inf, "monitor": "accuracy", "max_steps": 20}
    values |= {"global_batch_size": 32}
    study = tune(search(texts, sampler="grid", pruner="none", values=values), progress=False)
    for trial in study["trials"]:
        if trial["params"]["micro_batch_size"] == 24:
            assert trial["state"] == "failed" and "global_batch_size" in trial["failure"]
        elif trial["params"]["learning_rate"] == 1000:
            assert trial["state"] == "failed" and "step" in trial["failure"]
        else:
            assert trial["state"] == "complete" and 0 < trial["value"] <= 1
            assert study["best"] == trial
    assert study["spent"]["failed"] == 3


def test_a_trial_that_needs_more_memory_than_there_is_does_not_end_the_search(search):
    study = tune(search({"d_model": [16, 2**17]}, sampler="grid", pruner="none"), progress=False)
    assert study["best"]["params"] == {"d_model": 16}
    assert "tried to allocate" in next(trial["failure"] for trial in study["trials"] if trial["failure"])


def test_processes_of_one_job_cannot_search(search, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="in several shells"):
        tune(search({"learning_rate": [1e-3, 1e-2]}), progress=False)


def test_another_search_in_the_same_folder_is_refused(search, data, tmp_path):
    texts = {"learning_rate": "log:1e-4..1e-1"}
    tune(search(texts, trials=1), progress=False)
    more = tmp_path / "more.csv"
    more.write_text(data.read_text() + "the oven is hot,food\n")
    others = {
        "search learning_rate: log:1e-4..1e-1 → log:1e-4..1e-2": search({"learning_rate": "log:1e-4..1e-2"}),
        "search dropout: None → float:0..0.1": search({**texts, "dropout": "float:0..0.1"}),
        "sampler: tpe → random": search(texts, sampler="random"),
        "pruner: median → none": search(texts, pruner="none"),
        "d_model: 16 → 32": search(texts, values={"d_model": 32}),
        "data fingerprint: ": dataclasses.replace(
            search(texts), config=TrainConfig(data=str(more), **SMALL)),
    }  # fmt: skip
    for difference, other in others.items():
        with pytest.raises(UserError, match=re.escape(difference)):
            tune(other, progress=False)


# Processes


def command(data, out, *options):
    small = [option for key, value in SMALL.items() for option in ("--set", f"{key}={value}")]
    arguments = ["tune", "--data", data, "--out", out, *small, *options]
    return [sys.executable, "-m", "course_lib", *map(str, arguments)]


@pytest.mark.further
def test_two_shells_share_a_study_and_a_killed_trial_is_taken_over(data, tmp_path):
    out = tmp_path / "study"
    options = ["--search", "learning_rate=log:1e-3..1e-2", "--sampler", "random", "--pruner", "none"]
    options += ["--trials", 3, "--set", "max_steps=100", "--set", "checkpoint_every_seconds=0.001", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    victim = subprocess.Popen(command(data, out, *options), **pipes)
    metrics = RunFolder(out / "trials" / "0000").metrics
    deadline = time.time() + 120
    while time.time() < deadline and (not metrics.exists() or metrics.read_text().count("validation") < 3):
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert RunFolder(out / "trials" / "0000").read_record()["status"] == "running"
    shells = [subprocess.Popen(command(data, out, *options), **pipes) for _ in range(2)]
    outputs = [shell.communicate(timeout=120) for shell in shells]
    assert [shell.returncode for shell in shells] == [0, 0], outputs
    study = json.loads((out / "study.json").read_text())
    assert [trial["number"] for trial in study["trials"]] == [0, 1, 2]
    assert {trial["state"] for trial in study["trials"]} == {"complete"}
    assert json.loads(outputs[0][0])["monitor"] == "loss"  # JSON alone on stdout
    record = RunFolder(out / "trials" / "0000").read_record()
    assert record["step"] == study["trials"][0]["steps"] == 100
    plain = run_training(TrainConfig(**record["config"]), tmp_path / "plain", progress=False)
    assert plain["weights_sha256"] == record["weights_sha256"]


def test_the_command_says_the_best_and_what_to_do_next(data, tmp_path, monkeypatch, capsys):
    from course_lib.cli.main import main

    monkeypatch.chdir(tmp_path)
    space = tmp_path / "space.yaml"
    space.write_text("learning_rate: log:1e-3..1e-2\n")
    arguments = command(data, "s", "--space", space, "--trials", 2, "--search", "d_model=choice:16,32")[3:]
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert "trial 1: " in told.err
    best, spent, train = told.out.splitlines()
    assert best.startswith("best: trial ") and "learning_rate" in best and spent.startswith("2 trials (")
    assert train == "train it: course-lib train --config s/best.yaml --out runs/best"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--search", "lr_rate=log:1e-4..1e-2"), "unknown key 'lr_rate'"),
        (("--space", "absent.yaml"), "cannot read the config absent.yaml"),
        (("--trials", "0"), "trials must be above 0"),
        (("--minutes", "nan"), "minutes must be above 0"),
        (("--sampler", "anneal"), "invalid choice: 'anneal'"),
    ],
)
def test_wrong_commands_get_one_line(capsys, tmp_path, data, options, message):
    from course_lib.cli.main import main

    try:
        code = main(["tune", "--data", str(data), "--out", str(tmp_path / "s"), *options])
    except SystemExit as error:
        code = error.code
    stderr = capsys.readouterr().err
    assert code == 2 and stderr.count("\n") == 1 and message in stderr
    assert not (tmp_path / "s").exists()
