"""MLflow and Weights & Biases are run for real, without a network, and what they wrote is read back."""

import contextlib
import io
import json
import struct
import sys

import pytest

from course_lib.base.errors import UserError
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.record import RecordWriter
from course_lib.runs.trackers import PROJECT, make_trackers
from course_lib.runs.train import run_training
from course_lib.training.callbacks import TrainState

CONFIG = {"learning_rate": 1e-3, "max_steps": None, "data": "x.csv"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my run").mkdir()
    return RunFolder(tmp_path / "my run")


def log(folder, names, steps, *, keep, status):
    """A run, or its resumption after `keep` records: as `run_training` does it."""
    trackers = make_trackers(names, folder, CONFIG)
    writer = RecordWriter(folder, num_records=keep, trackers=trackers)
    for step in steps:
        writer.on_record(TrainState(), {"kind": "train", "step": step, "loss": 1 / step, "num_steps": 1})
    writer.on_record(TrainState(), {"kind": "validation", "step": step, "loss": 2.0, "accuracy": None})
    writer.close()
    for tracker in trackers:
        tracker.close(status)


def mlflow_run(folder):
    mlflow = pytest.importorskip("mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{folder.directory}/mlflow.db")
    experiment = client.get_experiment_by_name(PROJECT)
    (run,) = client.search_runs([experiment.experiment_id])
    points = {key: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, key)]
              for key in run.data.metrics}  # fmt: skip
    return run, points


def wandb_rows(path):
    """The history in a `.wandb` file: LevelDB's log format, each record a protocol buffer."""
    from wandb.proto import wandb_internal_pb2

    data, position, whole, records = path.read_bytes(), 7, b"", []
    while position + 7 <= len(data):
        left = 32768 - position % 32768
        if left < 7:
            position += left
            continue
        _checksum, length, kind = struct.unpack("<IHB", data[position : position + 7])
        whole += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # full, or the last part
            records.append(wandb_internal_pb2.Record.FromString(whole))
            whole = b""
    rows = [
        {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    return records, rows


def test_mlflow_holds_the_records_and_goes_on_after_a_resumption(folder):
    pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    log(folder, "mlflow", [1, 2, 3], keep=0, status="interrupted")
    run, points = mlflow_run(folder)
    assert run.info.status == "KILLED" and run.info.run_name == "my run"
    assert run.data.params == {"learning_rate": "0.001", "max_steps": "None", "data": "x.csv"}
    assert points["train/loss"] == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]

    # The checkpoint was made after step 1: steps 2 and 3 are run again, but not tracked twice.
    log(folder, "mlflow", [2, 3, 4], keep=1, status="finished")
    again, points = mlflow_run(folder)
    assert again.info.run_id == run.info.run_id and again.info.status == "FINISHED"
    assert [step for step, _ in points["train/loss"]] == [1, 2, 3, 4]
    assert points["validation/loss"] == [(3, 2.0), (4, 2.0)]
    assert "validation/accuracy" not in points


@pytest.mark.further
def test_wandb_offline_holds_the_records_under_one_id(folder):
    wandb = pytest.importorskip("wandb")
    log(folder, "wandb", [1, 2, 3], keep=0, status="interrupted")
    log(folder, "wandb", [2, 3, 4], keep=1, status="finished")
    wandb.teardown()  # its process writes on for a moment; at the end of a program it is waited for
    files = sorted(folder.directory.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2 and files[0].name == files[1].name  # one id
    (first, rows), (second, more) = map(wandb_rows, files)
    assert [row["_step"] for row in rows + more if "train/loss" in row] == [1, 2, 3, 4]
    assert [row["train/loss"] for row in more if "train/loss" in row] == [0.25]
    assert rows[-1]["validation/loss"] == 2.0
    started = next(record.run for record in first if record.WhichOneof("record_type") == "run")
    values = {item.key: json.loads(item.value_json) for item in started.config.update}
    assert values.items() >= CONFIG.items()
    exits = [r.exit.exit_code for r in first + second if r.WhichOneof("record_type") == "exit"]
    assert exits == [1, 0]


def test_trackers_say_nothing_and_write_in_the_run_folder_alone(folder, capfd, monkeypatch, tmp_path):
    pytest.importorskip("mlflow")
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    log(folder, "mlflow, wandb", [1, 2], keep=0, status="finished")
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    assert set(tmp_path.iterdir()) == before


def test_a_tracker_that_fails_is_left_out_and_the_run_goes_on(folder):
    pytest.importorskip("mlflow")
    (tracker,) = make_trackers("mlflow", folder, CONFIG)
    (folder.directory / "mlflow.db").write_bytes(b"not a database")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        for step in (1, 2):
            tracker.log({"kind": "train", "step": step, "loss": 1.0})
        tracker.close("finished")
    assert said.getvalue().count("warning: mlflow failed") == 1


def test_names_are_checked(folder):
    assert make_trackers("", folder, CONFIG) == []
    assert not list(folder.directory.iterdir())
    with pytest.raises(
        UserError, match="trackers must be of mlflow, tensorboard, wandb, several with a comma; got 'neptune'"
    ):
        TrainConfig(data="a.csv", trackers="mlflow,neptune")


@pytest.mark.parametrize(("package", "extra"), [("mlflow", "trackers"), ("tensorboard", "tensorboard")])
def test_an_absent_package_is_told_before_anything_is_made(folder, monkeypatch, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    out = folder.directory / "run"
    with pytest.raises(
        UserError, match=rf'needs the package {package}: pip install "training-workbook\[{extra}\]"'
    ):
        run_training(TrainConfig(data="docstrings", trackers=f"wandb,{package}"), out, progress=False)
    assert not out.exists()


def test_tensorboard_has_its_events_from_the_records_alone(folder):
    assert make_trackers("tensorboard", folder, CONFIG) == []
