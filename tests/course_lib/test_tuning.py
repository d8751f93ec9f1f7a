"""Searches over real trainings: what is tried, what is spent, and what survives a kill."""

import dataclasses
import itertools
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

from course_lib.config import TrainConfig
from course_lib.errors import UserError
from course_lib.metrics import RunFolder

optuna = pytest.importorskip("optuna")

from course_lib.search_space import default_space, grid_points, make_space, parse_searches  # noqa: E402
from course_lib.train import run_training  # noqa: E402
from course_lib.tuning import Search, tune  # noqa: E402
from course_lib.tuning_report import write_study  # noqa: E402
from course_lib.tuning_study import JournalLock, make_sampler  # noqa: E402

TOPICS = {"food": "onion garlic oven flour butter", "sport": "team goal coach season score"}
COMMON = "the a of and we to it was in on with for this that very my our after before"
SMALL = {"d_model": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 300, "micro_batch_size": 16}
SMALL |= {"max_length": 32, "max_steps": 10, "device": "cpu", "precision": "32-true"}


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
    count=st.integers(2, 9),
)
@settings(max_examples=50, deadline=None)
def test_ranges_keep_their_ends_and_every_grid_value_makes_a_config(low, factor, count):
    high = float(f"{low * factor:.6g}")
    part = make_space({"learning_rate": f"log:{low}..{high}/{count}"}, CONFIG)["learning_rate"]
    assert (part.distribution.low, part.distribution.high, part.distribution.log) == (low, high, True)
    assert math.isclose(part.grid[0], low) and math.isclose(part.grid[-1], high) and len(part.grid) == count
    ratios = [b / a for a, b in itertools.pairwise(part.grid)]
    assert max(ratios) == pytest.approx(min(ratios))  # evenly spaced in the logarithm
    again = make_space({"learning_rate": part.text}, CONFIG)["learning_rate"]
    assert again == part


def test_whole_numbers_and_choices_have_the_types_of_the_config():
    space = make_space(
        {"num_layers": "int:1..4", "d_model": [32, "64"], "compile": "choice:true,false",
         "micro_batch_size": "log:16..64/3", "optimizer": "choice:sgd,adamw"}, CONFIG
    )  # fmt: skip
    assert {key: part.grid for key, part in space.items()} == {
        "compile": [True, False], "d_model": [32, 64], "micro_batch_size": [16, 32, 64],
        "num_layers": [1, 2, 3, 4], "optimizer": ["sgd", "adamw"],
    }  # fmt: skip
    points = grid_points(space, CONFIG)
    assert len(points) == len({str(point) for point in points}) == 2 * 2 * 3 * 4 * 2


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"learning_rat": "log:1e-4..1e-2"}, "unknown key 'learning_rat'; the nearest known key is 'learning_rate'"),
        ({"weight_decay": "log:0..0.1"}, "zero has no logarithm"),
        ({"learning_rate": "log:0..0.1"}, "learning_rate must be above 0"),
        ({"learning_rate": "log:1e-2..1e-4"}, "the range is empty"),
        ({"learning_rate": "float:0.1..0.1"}, "the range is empty"),
        ({"max_norm": "log:1..inf"}, "the range is empty"),
        ({"dropout": "float:0..1.5"}, "dropout must be at least 0 and below 1, got 1.5"),
        ({"num_layers": "float:1..4"}, "write num_layers=int:1..4"),
        ({"dropout": "int:0..1"}, "dropout must be at least 0 and below 1"),
        ({"num_layers": "int:1.5..4"}, "num_layers must be a whole number"),
        ({"d_model": "choice:32,65"}, "d_model must be a multiple of num_heads, got 65 and 4"),
        ({"d_model": "choice:32"}, "at least two choices"),
        ({"d_model": "choice:32,32"}, "at least two choices, all different"),
        ({"optimizer": "choice:adamw,adamm"}, "optimizer must be one of"),
        ({"micro_batch_size": "choice:[,"}, "micro_batch_size=choice:[,: write KEY=log"),
        ({"num_layers": 3}, "num_layers=3: write KEY=log"),
        ({"monitor": ["loss", "accuracy"]}, "monitor must be the same in all trials"),
        ({"max_epochs": "int:1..4"}, "max_epochs must be the same in all trials"),
        ({}, "the search space is empty"),
    ],
)  # fmt: skip
def test_bad_spaces_are_refused_before_any_trial(texts, message):
    with pytest.raises(UserError, match=re.escape(message)):
        make_space(texts, CONFIG)


def test_a_grid_is_checked_point_by_point():
    space = make_space(
        {"d_model": [12, 64], "num_heads": [4, 8]}, CONFIG
    )  # each value is good with the defaults
    with pytest.raises(UserError, match="d_model must be a multiple of num_heads, got 12 and 8"):
        grid_points(space, CONFIG)
    huge = make_space({"num_layers": "int:1..1000000000", "learning_rate": "log:1e-4..1/99"}, CONFIG)
    with pytest.raises(UserError, match="grid of 990,099 points is above 10,000"):
        grid_points(huge, CONFIG)
    with pytest.raises(UserError, match="--search learning_rate: write KEY="):
        parse_searches(["learning_rate"])
    for task in ("classification", "language-modelling"):
        config = TrainConfig(data="x.csv", task=task)
        assert make_space(default_space(config), config)


def test_random_trials_are_log_uniform_and_independent_of_who_draws_them(search):
    made = search({"learning_rate": "log:1e-4..1e-2"}, sampler="random")
    study = optuna.create_study()
    part = made.space["learning_rate"].distribution

    def draw(number):
        study.sampler = make_sampler(made, number)
        return study.ask({"learning_rate": part}).params["learning_rate"]

    values = [draw(number) for number in range(400)]
    shares = sorted(math.log10(value / 1e-4) / 2 for value in values)
    # Kolmogorov–Smirnov: a uniform sample of 400 is further off than 0.098 once in a thousand times.
    assert max(abs(share - place / 400) for place, share in enumerate(shares)) < 0.098
    assert [draw(number) for number in (399, 7)] == [values[399], values[7]]


# Studies


@pytest.fixture(scope="module")
def found(data, tmp_path_factory, cache):
    """A search over a learning rate whose range is far too wide."""
    out = tmp_path_factory.mktemp("found") / "study"
    config = TrainConfig(data=str(data), **{**SMALL, "max_steps": 20})
    texts = {"learning_rate": "log:1e-6..1", "dropout": "float:0..0.3"}
    study = tune(
        Search(config=config, out=out, texts=texts, trials=13, pruner="median", seeds=2), progress=False
    )
    return study, out


def test_tpe_finds_the_good_region(found):
    study, _ = found
    values = [trial["value"] for trial in study["trials"]]
    assert study["best"]["value"] == min(t["value"] for t in study["trials"] if t["state"] == "complete")
    assert study["best"]["value"] < 0.8 * max(values)
    # The first ten are random, the others know what the first have shown.
    rates = [abs(math.log10(trial["params"]["learning_rate"] / study["best"]["params"]["learning_rate"]))
             for trial in study["trials"]]  # fmt: skip
    assert statistics.mean(rates[10:]) < 0.7 * statistics.mean(rates[:10])
    assert study["importance"] == {}  # of so few complete trials it would be noise


def test_pruned_trials_are_cheaper_and_every_step_is_counted(found):
    study, out = found
    by_state = {
        state: [t for t in study["trials"] if t["state"] == state] for state in ("complete", "pruned")
    }
    assert by_state["pruned"] and all(trial["steps"] < 20 for trial in by_state["pruned"])
    assert all(trial["steps"] == 20 for trial in by_state["complete"])
    records = [RunFolder(path).read_record() for path in sorted((out / "trials").iterdir())]
    assert len(records) == 13 + 1  # and one more seed
    assert study["spent"]["steps"] == sum(record["step"] for record in records) < 13 * 20
    assert study["spent"]["trials"] == 13
    for trial in study["trials"]:
        record = RunFolder(trial["folder"]).read_record()
        assert record["stop_reason"].startswith("pruned at step") == (trial["state"] == "pruned")
        assert {key: record["config"][key] for key in trial["params"]} == trial["params"]


def test_the_best_config_trains_to_the_same_weights(found, tmp_path):
    study, out = found
    values = yaml.safe_load((out / "best.yaml").read_text())
    plain = run_training(TrainConfig.from_dict(values), tmp_path / "plain", progress=False)
    record = RunFolder(study["best"]["folder"]).read_record()
    assert plain["weights_sha256"] == record["weights_sha256"]
    assert plain["best"]["value"] == study["best"]["value"]
    assert [repeat["seed"] for repeat in study["repeats"]] == [1]
    assert study["repeats"][0]["value"] != study["best"]["value"]


def test_trials_share_the_tokenised_data(found, cache):
    _, out = found
    assert len(list(cache.glob("store-*"))) == 2  # this split, and that of the second seed
    tokenizers = {path.read_text() for path in (out / "trials").glob("*/tokenizer.json")}
    assert len(tokenizers) == 2


def test_the_report_says_it_in_figures_with_words(found):
    study, out = found
    page = (out / "tuning.html").read_text()
    labels = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    assert [label.partition(":")[0] for label in labels] == [
        "History", "dropout", "learning_rate"
    ]  # fmt: skip
    assert (
        f"best so far from {study['trials'][0]['value']:.4g} at trial 0 to {study['best']['value']:.4g}"
        in labels[0]
    )
    assert f"the best values of loss: {study['best']['value']:.4g} at " in labels[2]
    assert "±" in page and "course-lib train --config best.yaml" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert json.loads((out / "study.json").read_text()) == study


def test_importance_names_the_key_that_matters(search):
    made = search({"learning_rate": "log:1e-4..1e-1", "optimizer": "choice:adamw,sgd"})
    made.out.mkdir()
    study, rng = optuna.create_study(), random.Random(0)
    distributions = {key: part.distribution for key, part in made.space.items()}
    for _ in range(40):
        params = {"learning_rate": 10 ** rng.uniform(-4, -1), "optimizer": rng.choice(["adamw", "sgd"])}
        value = (math.log10(params["learning_rate"]) + 2) ** 2 + rng.gauss(1, 0.1)
        study.add_trial(optuna.create_trial(value=value, params=params, distributions=distributions))
    result = write_study(made, study)
    assert list(result["importance"]) == ["learning_rate", "optimizer"]
    assert result["importance"]["learning_rate"] > 0.8
    assert sum(result["importance"].values()) == pytest.approx(1)
    assert 'aria-label="What made the difference: learning_rate ' in (made.out / "tuning.html").read_text()


def test_a_grid_covers_exactly_the_product(search):
    texts = {"d_model": [16, 32], "learning_rate": "log:1e-3..1e-2/2"}
    study = tune(search(texts, sampler="grid", pruner="none"), progress=False)
    tried = sorted(
        (trial["params"]["d_model"], trial["params"]["learning_rate"]) for trial in study["trials"]
    )
    assert tried == [(16, 0.001), (16, 0.01), (32, 0.001), (32, 0.01)]
    assert study["spent"]["complete"] == 4 and study["spent"]["steps"] == 40


def test_budgets_are_exact_and_the_same_search_goes_on(search):
    texts = {"learning_rate": "log:1e-4..1e-1"}
    by_steps = tune(search(texts, max_total_steps=29, sampler="random"), progress=False)
    assert (by_steps["spent"]["trials"], by_steps["spent"]["steps"]) == (2, 20)
    by_trials = tune(search(texts, trials=3, sampler="random"), progress=False)
    assert by_trials["spent"]["trials"] == 3
    assert look(by_trials)[:2] == look(by_steps)  # continued, not begun again
    enough = tune(search(texts, trials=3, sampler="random"), progress=False)
    assert enough == by_trials
    whole = tune(
        search(texts, trials=3, sampler="random", out=Path(f"{by_trials['best']['folder']}/whole")),
        progress=False,
    )
    assert look(whole) == look(by_trials)  # equal seeds, equal studies
    other = search(
        texts, trials=1, sampler="random", values={"seed": 5}, out=Path(by_trials["best"]["folder"]) / "x"
    )
    assert look(tune(other, progress=False))[0]["params"] != look(whole)[0]["params"]


def test_time_leaves_the_trial_open_and_the_next_command_ends_it(search):
    texts = {"learning_rate": "log:1e-4..1e-1"}
    values = {"max_steps": 800, "validate_every_steps": 20, "checkpoint_every_seconds": 1e-3}
    study = tune(search(texts, minutes=0.5 / 60, trials=1, values=values), progress=False)
    assert study["best"] is None and study["spent"]["steps"] < 800
    params = [(trial["params"], trial["state"]) for trial in study["trials"]]
    study = tune(search(texts, trials=1, values=values), progress=False)
    (ended,) = study["trials"]
    assert params in ([(ended["params"], "open")], []) and ended["state"] == "complete"
    record = RunFolder(ended["folder"]).read_record()
    assert record["step"] == 800 <= ended["steps"] <= 820  # what was trained twice counts twice
    plain = run_training(TrainConfig(**record["config"]), Path(ended["folder"]) / "plain", progress=False)
    assert plain["weights_sha256"] == record["weights_sha256"]


def test_a_trial_that_diverges_is_a_result(search):
    texts = {"learning_rate": [1e-2, 1000.0]}
    values = {"optimizer": "sgd", "max_norm": math.inf, "monitor": "accuracy", "max_steps": 20}
    study = tune(search(texts, sampler="grid", pruner="none", values=values), progress=False)
    states = {trial["params"]["learning_rate"]: trial for trial in study["trials"]}
    assert states[0.01]["state"] == "complete" and 0 < states[0.01]["value"] <= 1
    assert states[1000.0]["state"] == "failed" and "step" in states[1000.0]["failure"]
    assert states[1000.0]["steps"] > 0
    assert study["best"]["number"] == states[0.01]["number"]


def test_another_search_in_the_same_folder_is_refused(search, data, tmp_path):
    texts = {"learning_rate": "log:1e-4..1e-1"}
    tune(search(texts, trials=1), progress=False)
    more = tmp_path / "more.csv"
    more.write_text(data.read_text() + "the oven is hot,food\n")
    others = {
        "search learning_rate: log:0.0001..0.1 → log:0.0001..0.01": search({"learning_rate": "log:1e-4..1e-2"}),
        "search dropout: None → float:0.0..0.1": search({**texts, "dropout": "float:0..0.1"}),
        "sampler: tpe → random": search(texts, sampler="random"),
        "pruner: median → none": search(texts, pruner="none"),
        "d_model: 16 → 32": search(texts, values={"d_model": 32}),
        "data fingerprint: ": dataclasses.replace(
            search(texts), config=TrainConfig(data=str(more), **SMALL)),
        "storage: journal → ": search(texts, storage="sqlite:///x.db"),
    }  # fmt: skip
    for difference, other in others.items():
        with pytest.raises(UserError, match=re.escape(difference)):
            tune(other, progress=False)


def test_a_storage_url_is_passed_through(search, tmp_path):
    texts = {"learning_rate": "log:1e-4..1e-1"}
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = tune(search(texts, trials=1, storage=url), progress=False)
    (name,) = optuna.get_all_study_names(url)
    assert optuna.load_study(study_name=name, storage=url).best_value == study["best"]["value"]
    with pytest.raises(UserError, match="cannot open the storage") as caught:
        tune(search(texts, storage="nosuch://user:secret@host/db", out=tmp_path / "b"), progress=False)
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_half_a_line_in_the_journal_goes(tmp_path):
    journal = tmp_path / "journal.log"
    storage = optuna.storages.journal.JournalFileBackend(str(journal), JournalLock(journal))
    storage.append_logs([{"a": 1}])
    journal.write_bytes(journal.read_bytes() + b'{"b": "killed in the mid')
    storage.append_logs([{"c": 3}])
    assert list(storage.read_logs(0)) == [{"a": 1}, {"c": 3}]


# Processes


def command(data, out, *options):
    small = [option for key, value in SMALL.items() for option in ("--set", f"{key}={value}")]
    arguments = ["tune", "--data", data, "--out", out, *small, *options]
    return [sys.executable, "-m", "course_lib", *map(str, arguments)]


def test_two_shells_share_a_study_and_a_killed_trial_is_taken_over(data, tmp_path):
    out = tmp_path / "study"
    options = ["--search", "learning_rate=log:1e-3..1e-2", "--sampler", "random", "--pruner", "none"]
    options += ["--trials", 4, "--set", "max_steps=150", "--set", "checkpoint_every_seconds=0.001", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    victim = subprocess.Popen(command(data, out, *options), **pipes)
    metrics = RunFolder(out / "trials" / "0000").metrics
    deadline = time.time() + 60
    while time.time() < deadline and (not metrics.exists() or metrics.read_text().count("validation") < 3):
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert RunFolder(out / "trials" / "0000").read_record()["status"] == "running"
    shells = [subprocess.Popen(command(data, out, *options), **pipes) for _ in range(2)]
    outputs = [shell.communicate(timeout=120) for shell in shells]
    assert [shell.returncode for shell in shells] == [0, 0], outputs
    study = json.loads((out / "study.json").read_text())
    assert [trial["number"] for trial in study["trials"]] == [0, 1, 2, 3]
    assert {trial["state"] for trial in study["trials"]} == {"complete"}
    assert json.loads(outputs[0][0])["monitor"] == "loss"  # JSON alone on stdout
    first = study["trials"][0]
    record = RunFolder(first["folder"]).read_record()
    assert record["step"] == 150 < first["steps"]  # the steps lost with the killed process count
    plain = run_training(TrainConfig(**record["config"]), tmp_path / "plain", progress=False)
    assert plain["weights_sha256"] == record["weights_sha256"]


def test_jobs_share_the_work_and_the_summary_says_what_to_do_next(data, tmp_path):
    space = tmp_path / "space.yaml"
    space.write_text("learning_rate: log:1e-3..1e-2/2\nd_model: [16, 32]\n")
    done = subprocess.run(
        command(data, "s", "--space", space, "--jobs", 2, "--sampler", "grid", "--pruner", "halving"),
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4/4" in done.stderr and "best loss" in done.stderr
    best, spent, train = done.stdout.splitlines()
    assert best.startswith("best: trial ") and "learning_rate" in best and spent.startswith("4 trials (")
    assert train == "train it: course-lib train --config s/best.yaml --out runs/best"
    study = json.loads((tmp_path / "s" / "study.json").read_text())
    assert len({str(trial["params"]) for trial in study["trials"]}) == 4


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
    from course_lib.cli import main

    try:
        code = main(["tune", "--data", str(data), "--out", str(tmp_path / "s"), *options])
    except SystemExit as error:
        code = error.code
    stderr = capsys.readouterr().err
    assert code == 2 and stderr.count("\n") == 1 and message in stderr
    assert not (tmp_path / "s").exists()
