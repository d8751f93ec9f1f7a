"""From a table of any kind to a judged run: what was found is told, other files are used, every task is scored."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest
import yaml

from course_lib import TrainConfig, run_training
from course_lib.base.errors import UserError
from course_lib.cli.main import main
from course_lib.runs import Predictor, RunFolder, read_config
from course_lib.training import Callback

WORDS = ["red", "green", "blue", "large", "small", "thing", "house", "cat", "dog", "runs", "sleeps", "eats"]
COLOURS = WORDS[:3]
SMALL = {
    "d_model": 16,
    "num_layers": 1,
    "num_heads": 2,
    "max_steps": 40,
    "learning_rate": 0.01,
    "vocab_size": 280,
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(num=120, seed=0):
    rng = random.Random(seed)
    for _ in range(num):
        words = rng.choices(WORDS, k=8)
        first = next((word for word in words if word in COLOURS), "none")
        yield {
            "review": " ".join(words),
            "first": first,
            "colours": [word for word in COLOURS if word in words],
            "price": 7 + 1000 * words.count("cat"),
            "words": words,
            "roles": ["colour" if word in COLOURS else "other" for word in words],
        }


def table(path, *columns, num=120, seed=0, delimiter=","):
    made = [{name: row[name] for name in columns} for row in rows(num, seed)]
    if path.suffix == ".json":
        path.write_text(json.dumps(made))
    else:
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=delimiter)
        writer.writerows([columns, *([row[name] for name in columns] for row in made)])
        path.write_text(out.getvalue())
    return path


def settings(**values):
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def as_training(**values):
    return TrainConfig(**{"model": "transformer", **SMALL, **values})


TASKS = {
    "classification": ("data.csv", ("review", "first"), ("accuracy", "macro_f1")),
    "multi-label": ("data.json", ("review", "colours"), ("accuracy", "macro_f1", "micro_f1")),
    "regression": ("data.tsv", ("review", "price"), ("mae", "rmse", "r2")),
    "token-classification": ("data.json", ("words", "roles"), ("accuracy", "macro_f1")),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_trains_from_the_command_line(folder, capsys, task):
    name, columns, scores = TASKS[task]
    path = table(folder / name, *columns, num=240, delimiter="\t" if name.endswith("tsv") else ",")
    values = {**SMALL, "task": task, "model": "transformer", "max_steps": 90}
    assert main(["train", "--data", str(path), "--out", "run", *settings(**values)]) == 0
    stdout, stderr = capsys.readouterr()
    record = RunFolder("run").read_record()
    assert set(scores) <= set(record["validation"])
    score = record["validation"]["r2" if task == "regression" else "macro_f1"]
    assert score > 0.5, record["validation"]
    assert record["data"]["columns"] == dict(zip(("text", "label"), columns, strict=True))
    said = f'label = "{columns[1]}": the only other column'
    assert said in record["data"]["notes"] and f"data: {said}" in stderr
    for words in {"regression": ("MAE", "RMSE", "R²"), "multi-label": ("macro F1", "micro F1")}.get(task, ()):
        assert f"{words} " in stdout
    assert (folder / "run" / "report.html").exists()
    assert len(Predictor.load("run").predict(["red cat runs", "dog sleeps"])) == 2


class Stop(Callback):
    """Ends a run as ctrl-C does, at a step."""

    def __init__(self, step):
        self.step = step

    def on_step(self, state):
        if state.step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_an_interrupted_run_ends_on_the_weights_of_one_that_was_not(folder, task):
    name, columns, _ = TASKS[task]
    config = as_training(
        data=str(table(folder / name, *columns)), task=task, checkpoint_every_steps=5, log_every_steps=5
    )
    whole = run_training(config, "whole", progress=False)
    with pytest.raises(KeyboardInterrupt):
        run_training(config, "cut", progress=False, callbacks=[Stop(17)])
    resumed = run_training(config, "cut", resume=True, progress=False)
    assert resumed["weights_sha256"] == whole["weights_sha256"]
    assert resumed["validation"] == whole["validation"]


def test_files_to_validate_and_to_test_on_stand_beside_the_first(folder, capsys):
    table(folder / "a.csv", "review", "first")
    table(folder / "b.csv", "review", "first", num=50, seed=1)
    both = (folder / "b.csv").read_text() + "\n".join((folder / "a.csv").read_text().splitlines()[1:4])
    (folder / "c.csv").write_text(both)
    values = {**SMALL, "model": "transformer", "validation_data": "b.csv", "test_data": "c.csv"}
    assert main(["train", "--data", "a.csv", "--out", "run", *settings(**values)]) == 0
    record, stdout = RunFolder("run").read_record(), capsys.readouterr().out
    sizes = [record["data"][f"num_{part}"] for part in ("train", "validation", "test")]
    assert sizes == [120, 50, 53]
    assert record["validation"]["num_items"] == 50 and record["test"]["num_items"] == 53
    assert "test_data: 3 of 53 texts are trained on as well" in record["data"]["notes"]
    assert not any(note.startswith("validation_data: ") for note in record["data"]["notes"])
    assert "\ntest: accuracy" in stdout
    assert read_config("run/config.yaml")["test_data"] == str(folder / "c.csv"), (
        "to be resumed from elsewhere"
    )


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (
            "review,first\nred cat,violet\n",
            "b.csv: row 2: the label 'violet' is none of the training table's: 'blue'",
        ),
        (
            "text,label\nred cat,red\n",
            "b.csv: text_column=review: there must be one such column, found: 'text'",
        ),
        ("", "b.csv: text_column=review"),
    ],
)
def test_another_file_must_be_of_the_same_kind(folder, capsys, cells, says):
    table(folder / "a.csv", "review", "first")
    (folder / "b.csv").write_text(cells)
    assert main(["train", "--data", "a.csv", "--out", "run", "--set", "validation_data=b.csv"]) == 2
    stderr = capsys.readouterr().err.splitlines()[-1]
    assert says in stderr and not (folder / "run").exists()


def test_what_was_found_and_left_out_is_told_before_a_run_as_well(folder, capsys):
    path = table(folder / "a.csv", "review", "first", delimiter=";")
    path.write_bytes(path.read_text().replace("cat", "café").encode("cp1252") + b";none\nred thing;\n")
    arguments = ["train", "--data", "a.csv", "--out", "plan", "--dry-run", *settings(**SMALL, max_length=4)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    for note in (
        'encoding = "cp1252" (Western European): line',
        "delimiter = semicolon",
        'text = "review": a usual name',
        'label = "first": the only other column',
        "1 blank texts left out, the first: row 122",
        "1 texts without a label left out, the first: row 123",
        "120 of 120 texts were cut to max_length=4 tokens",
    ):
        assert f"\nnotes              {note}" in told or f"\n                   {note}" in told, note
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"].startswith("encoding")


def test_columns_encoding_and_header_can_be_named(folder):
    path = table(folder / "a.csv", "first", "review", "price")
    path.write_bytes("\n".join(path.read_text().splitlines()[1:]).encode("utf-16-le"))
    named = {
        "text_column": "column 2",
        "label_column": "column 3",
        "encoding": "utf-16-le",
        "has_header": False,
    }
    record = run_training(as_training(data=str(path), task="regression", **named), "run", progress=False)
    assert record["data"]["columns"] == {"text": "column 2", "label": "column 3"}
    assert record["data"]["num_train"] + record["data"]["num_validation"] == 120
    again = run_training(
        as_training(data=str(path), task="regression", **named), "run", resume=True, progress=False
    )
    assert again["weights_sha256"] == record["weights_sha256"]


def test_labels_that_are_all_distinct_are_asked_about(folder, capsys):
    (folder / "a.csv").write_text("review,id\n" + "".join(f"text number {i},x{i * i}\n" for i in range(50)))
    assert main(["train", "--data", "a.csv", "--out", "run"]) == 2
    stderr = capsys.readouterr().err
    assert "every row has a label of its own: is 'id' the right column?" in stderr
    assert not (folder / "run").exists()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_is_trained_on_and_known_by_its_content(folder, kind):
    frames = pytest.importorskip(kind)
    frame = frames.read_csv(table(folder / "a.csv", "review", "first"))
    test = frames.read_csv(table(folder / "b.csv", "review", "first", num=30, seed=1))
    config = as_training(data="frame", test_data="frame")
    record = run_training(config, "run", progress=False, data=frame, test_data=test)
    assert read_config("run/config.yaml")["data"] == record["config"]["data"] == "frame"
    by_file = run_training(as_training(data="a.csv", test_data="b.csv"), "file", progress=False)
    assert record["data"]["fingerprint"] == by_file["data"]["fingerprint"]
    assert record["weights_sha256"] == by_file["weights_sha256"] and record["test"] == by_file["test"]
    with pytest.raises(
        UserError, match=r"data=frame stands for a frame: call run_training\(config, out, data=the_frame"
    ):
        run_training(config, "other", progress=False)
    with pytest.raises(UserError, match=r"data= is a frame and the config names a\.csv: set data='frame'"):
        run_training(as_training(data="a.csv"), "other", progress=False, data=frame)
    assert not (folder / "other").exists()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"task": "regression", "monitor": "macro_f1"},
            "regression has no macro_f1: monitor loss or mae or rmse or r2",
        ),
        (
            {"task": "classification", "monitor": "r2"},
            "classification has no r2: monitor loss or accuracy or macro_f1",
        ),
        (
            {"task": "multi-label", "label_smoothing": 0.1},
            "label_smoothing belongs to classes, not to task=multi-label",
        ),
    ],
)
def test_what_a_task_does_not_have_is_refused(values, says):
    with pytest.raises(UserError, match=says):
        TrainConfig(data="a.csv", **values)


def test_errors_are_to_be_low_and_shares_high():
    better = {
        monitor: TrainConfig(data="a", task="regression", monitor=monitor).higher_is_better
        for monitor in ("loss", "mae", "rmse", "r2")
    }
    assert better == {"loss": False, "mae": False, "rmse": False, "r2": True}


def test_built_in_data_have_one_label_a_text(capsys):
    assert main(["train", "--data", "docstrings", "--set", "task=regression", "--out", "run"]) == 2
    assert "task=regression has no data in docstrings: give a table" in capsys.readouterr().err


def test_a_key_that_stands_twice_in_a_config_is_refused(folder, capsys):
    config = folder / "config.yaml"
    config.write_text("max_steps: 3\n# again\nseed: 1\nmax_steps: 4\n")
    assert main(["train", "--data", "a.csv", "--config", str(config), "--out", "run"]) == 2
    stderr = capsys.readouterr().err
    assert stderr == (
        f"course-lib: {config}, line 4: 'max_steps' stands in line 1 already; keep one of them\n"
    )
    config.write_text(json.dumps({"seed": 1})[:-1] + ', "seed": 2}')
    with pytest.raises(UserError, match="'seed' stands in line 1 already"):
        read_config(config)
    config.write_text(yaml.safe_dump({"seed": 1, "max_steps": 4}))
    assert read_config(config) == {"seed": 1, "max_steps": 4}
