"""Finished runs that go on: to a later end where the schedule allows, else as a new run from their weights."""

import shutil

import pytest
import torch
from record_runs import write_csv

from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.runs.using.predict import load_trained
from course_lib.training.checkpoint import load_checkpoint

SMALL = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 32, "precision": "32-true", "device": "cpu",
         "learning_rate": 1e-2, "micro_batch_size": 16, "log_every_steps": 2, "optimizer": "adamw"}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LIB_CACHE", str(root / "cache"))
        yield write_csv(root / "texts.csv", num_rows=90)


def config(data, **changes):
    return TrainConfig(data=str(data), **(SMALL | {"schedule": "constant", "max_epochs": 2} | changes))


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """Copies of a run of two epochs, by its settings; each is trained once."""
    root, made = tmp_path_factory.mktemp("finished"), {}

    def copy(folder, **changes):
        key = str(sorted(changes.items()))
        if key not in made:
            made[key] = root / str(len(made))
            run_training(config(data, **changes), made[key], progress=False)
        shutil.copytree(made[key], folder)
        return folder

    return copy


def weights(folder):
    return load_checkpoint(RunFolder(folder).last)["model"]


def are_equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("schedule", ["constant", "plateau"])
def test_a_finished_run_with_more_epochs_is_the_run_that_had_them_from_the_start(
    data, finished, tmp_path, schedule
):
    settings = {"schedule": schedule, "warmup_fraction": 0.0}
    longer = config(data, **settings, max_epochs=4)
    first = RunFolder(finished(tmp_path / "a", **settings)).read_record()
    record = run_training(longer, tmp_path / "a", resume=True, progress=False)
    whole = run_training(longer, tmp_path / "whole", progress=False)
    assert record["status"] == "finished" and record["step"] == whole["step"] == 2 * first["step"]
    assert record["weights_sha256"] == whole["weights_sha256"] != first["weights_sha256"]
    assert record["best"] == whole["best"]
    assert RunFolder(tmp_path / "a").read_config()["max_epochs"] == 4
    steps = [
        line["step"] for line in RunFolder(tmp_path / "a").read_metrics() if line["kind"] == "validation"
    ]
    assert steps == sorted({*steps}) and len(steps) == 4
    again = run_training(longer, tmp_path / "a", resume=True, progress=False)  # nothing left to do
    assert again["process_seconds"] == record["process_seconds"]


def test_the_warmup_stays_that_of_the_beginning(data, finished, tmp_path):
    finished(tmp_path / "a", warmup_fraction=0.5)
    run_training(config(data, warmup_fraction=0.5, max_epochs=6), tmp_path / "a", resume=True, progress=False)
    rates = [
        line["learning_rate"] for line in RunFolder(tmp_path / "a").read_metrics() if line["kind"] == "train"
    ]
    half = len([rate for rate in rates if rate < 1e-2])
    assert rates[half:] == [pytest.approx(1e-2)] * (len(rates) - half)  # it never rises again
    assert 0 < half < len(rates) / 3


def test_a_run_that_is_cut_while_it_goes_on_goes_on_again(data, finished, tmp_path):
    finished(tmp_path / "a")
    longer = config(data, max_epochs=4, checkpoint_every_steps=2)

    class Cut(Exception):
        pass

    from course_lib.training.callbacks import Callback

    class CutAt(Callback):
        def __init__(self, step):
            self.step = step

        def on_safe_point(self, state):
            if state.step >= self.step:
                raise Cut

    for step in (13, 18):  # before the first checkpoint of the longer run, and after it
        with pytest.raises(Cut):
            run_training(longer, tmp_path / "a", resume=True, progress=False, callbacks=[CutAt(step)])
    record = run_training(longer, tmp_path / "a", resume=True, progress=False)
    straight = run_training(longer, finished(tmp_path / "b"), resume=True, progress=False)
    assert record["weights_sha256"] == straight["weights_sha256"]


def test_from_python_a_start_names_no_model_and_its_path_may_be_relative(
    data, finished, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "a", model="ngrams", optimizer="auto")
    plain = {"data": str(data), "precision": "32-true", "device": "cpu", "schedule": "constant"}
    first = run_training(TrainConfig(**plain, init_from="a", max_epochs=1), "b", progress=False)
    assert first["config"]["model"] == "ngrams" and first["config"]["init_from"] == str(tmp_path / "a")
    longer = run_training(TrainConfig(**plain, init_from="a", max_epochs=2), "b", resume=True, progress=False)
    assert longer["step"] == 2 * first["step"]


@pytest.mark.parametrize(
    ("first", "then", "says"),
    [
        (
            {"schedule": "linear"},
            {"schedule": "linear", "max_epochs": 4},
            r"schedule=linear .*--init-from .*/a ",
        ),
        ({"schedule": "linear"}, {"schedule": "linear", "max_steps": 40}, "--init-from"),
        ({}, {"max_epochs": 1}, "has made 12 steps, and would end after 6"),
        ({}, {"max_epochs": 4, "seed": 1}, "seed: 0 → 1"),
        ({}, {"max_steps": 20}, "would end after 12"),
    ],
)
def test_what_cannot_go_on_says_why_and_stays_as_it_is(data, finished, tmp_path, first, then, says):
    finished(tmp_path / "a", **first)
    before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=says):
        run_training(config(data, **then), tmp_path / "a", resume=True, progress=False)
    assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()} == before


def test_a_new_run_begins_with_the_weights_and_the_tokenizer_of_another(
    finished, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "a", schedule="linear")
    more = write_csv(tmp_path / "more.csv", num_rows=60, seed=1)
    rate = ["--set", "learning_rate=1e-30", "--set", "weight_decay=0"]  # so small that nothing moves
    arguments = [
        "train",
        "--init-from",
        "a",
        "--data",
        str(more),
        "--out",
        "b",
        "--set",
        "max_epochs=1",
        *rate,
    ]
    assert main(arguments) == 0
    a, b = RunFolder(tmp_path / "a"), RunFolder(tmp_path / "b")
    assert b.tokenizer.read_text() == a.tokenizer.read_text()
    assert are_equal(weights("b"), load_checkpoint(a.best)["model"])
    record = b.read_record()
    assert record["config"]["d_model"] == 16 and record["config"]["data"] == str(more)
    assert record["config"]["init_from"] == str(tmp_path / "a")
    assert record["resolved"]["init_from"].startswith(f"best weights of {tmp_path / 'a'}, step ")
    capsys.readouterr()
    a.directory.rename(tmp_path / "elsewhere")  # what has begun needs it no more
    b.write_record({**record, "status": "running"})
    assert main(["train", "--out", "b", "--resume"]) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "d_model=32"], "do not fit this model"),
        (["--data", "OTHER"], "has other labels (3, here 2; only one of both has"),
        (["--init-from", "nowhere"], "nowhere holds no run"),
        (["--resume"], "give one of them"),
    ],
)
def test_a_start_that_does_not_fit_is_one_line_and_writes_nothing(
    finished, tmp_path, capsys, monkeypatch, arguments, says
):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "a", schedule="linear")
    other = tmp_path / "other.csv"
    other.write_text("text,label\n" + "".join(f"onion {i},cooking\nmuseum {i},elsewhere\n" for i in range(9)))
    arguments = [argument.replace("OTHER", str(other)) for argument in arguments]
    capsys.readouterr()
    assert main(["train", "--init-from", "a", "--out", "b", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert says in error and error.startswith("course-lib: ")
    assert not (tmp_path / "b").exists()


def test_the_last_weights_of_a_run_that_fsdp_has_split_are_put_together(data, tmp_path):
    run_training(config(data, sharding="fsdp", max_epochs=1), tmp_path / "a", progress=False)
    assert "shards" in load_checkpoint(RunFolder(tmp_path / "a").last)
    last, best = (
        load_trained(tmp_path / "a", weights=weights).model.state_dict() for weights in ("last", "best")
    )
    assert are_equal(last, best)  # of one epoch, which is validated once
