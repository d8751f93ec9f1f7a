"""What a checkpoint is good for: when it is written, which are kept, who may read it, what it refuses."""

import dataclasses
import threading

import pytest
import torch
from torch import nn

from course_lib.base.errors import UserError
from course_lib.runs.compare import check_same_run
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.training.callbacks import Callback, EarlyStopping, TrainState
from course_lib.training.checkpoint import (
    Checkpointer,
    capture,
    different_conditions,
    load_checkpoint,
    restore,
    save_checkpoint,
)
from tests.benchmarks.made_csv import make_csv
from tests.everyday import first_of


class Run:
    """A model whose only weight is the step: what a checkpoint holds shows when it was taken."""

    def __init__(self, folder, **options):
        self.model, self.state = nn.Linear(1, 1, bias=False), TrainState()
        self.folder = folder
        self.checkpointer = Checkpointer(
            folder / "last.pt", folder / "best.pt", self.capture, **{"every_steps": 4, **options}
        )

    def capture(self, is_best):
        return capture(
            model=self.model, state=self.state, config={}, data_fingerprint="", extra={"is_best": is_best}
        )

    def go(self, num_steps, *, metric=None):
        for _ in range(num_steps):
            self.state.step += 1
            self.state.step_in_epoch += 1
            nn.init.constant_(self.model.weight, self.state.step)
            if metric:
                record = {"kind": "validation", **metric(self.state.step)}
                self.checkpointer.on_record(self.state, record)
            self.checkpointer.on_safe_point(self.state)

    def weight(self, name):
        checkpoint = load_checkpoint(self.folder / name)
        assert checkpoint["state"]["step"] == checkpoint["model"]["weight"].item()
        return checkpoint["state"]["step"]


def test_last_is_written_at_the_cadence_and_at_the_end_of_an_epoch(tmp_path):
    run = Run(tmp_path)
    run.go(3)
    assert not (tmp_path / "last.pt").exists()
    run.go(2)
    assert run.weight("last.pt") == 4
    run.state.epoch, run.state.step_in_epoch = 1, 0
    run.checkpointer.on_safe_point(run.state)
    assert run.weight("last.pt") == 5


def test_by_seconds_nothing_is_written_before_they_are_over(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("course_lib.training.checkpoint.time.perf_counter", lambda: now)
    run = Run(tmp_path, every_steps=1, every_seconds=30.0)
    run.go(50)
    assert not (tmp_path / "last.pt").exists()
    now = 130.0
    run.go(1)
    now = 159.9
    run.go(10)
    assert run.weight("last.pt") == 51
    now = 160.0
    run.go(1)
    assert run.weight("last.pt") == 62


@pytest.mark.parametrize(
    ("monitor", "higher_is_better", "best_step"),
    [("loss", False, 5), ("accuracy", True, 2), ("macro_f1", True, 7)],
)
def test_best_is_by_any_metric(tmp_path, monitor, higher_is_better, best_step):
    values = {
        "loss": [9, 8, 7, 6, 1, 6, 7, 8, 1],
        "accuracy": [0.1, 0.9, 0.9, 0.2, 0.3, 0.9, 0.1, 0.1, 0.1],
        "macro_f1": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.2, 0.1],
    }
    run = Run(tmp_path, monitor=monitor, higher_is_better=higher_is_better)
    run.go(9, metric=lambda step: {name: column[step - 1] for name, column in values.items()})
    assert run.weight("best.pt") == best_step == run.checkpointer.best["step"]
    assert load_checkpoint(tmp_path / "best.pt")["extra"]["is_best"] is True
    assert load_checkpoint(tmp_path / "last.pt")["extra"]["is_best"] is False


def test_a_validation_that_was_nan_is_beaten_by_any_other(tmp_path):
    run, losses = Run(tmp_path), [float("nan"), float("nan"), 9.0, float("nan"), 8.0, float("nan")]
    run.go(2, metric=lambda step: {"loss": losses[step - 1]})
    assert (tmp_path / "best.pt").exists()
    run.go(4, metric=lambda step: {"loss": losses[step - 1]})
    assert run.weight("best.pt") == 5


def test_a_run_that_fails_says_why_in_its_record(tmp_path):
    class Fault(Callback):
        def on_step(self, state):
            raise RuntimeError("you tried to allocate too much")

    make_csv(tmp_path / "texts.csv", num_rows=60)
    config = TrainConfig(data=str(tmp_path / "texts.csv"), d_model=16, max_steps=2, vocab_size=300)
    with pytest.raises(RuntimeError):
        run_training(config, tmp_path / "run", progress=False, callbacks=[Fault()])
    record = RunFolder(tmp_path / "run").read_record()
    assert (record["status"], record["failure"]) == ("failed", "you tried to allocate too much")


def test_the_newest_numbered_copies_stay(tmp_path):
    run = Run(tmp_path, every_steps=2, keep=3)
    run.go(12)
    assert sorted(path.name for path in tmp_path.glob("step-*.pt")) == [
        f"step-{step:08d}.pt" for step in (8, 10, 12)
    ]
    assert [run.weight(f"step-{step:08d}.pt") for step in (8, 10, 12)] == [8, 10, 12]


def test_an_asynchronous_checkpoint_is_of_the_moment_it_was_asked_for(tmp_path, monkeypatch):
    go_on, real_save = threading.Event(), save_checkpoint
    writers = []

    def slow_save(path, checkpoint):
        assert go_on.wait(30)
        writers.append(threading.current_thread().name)
        real_save(path, checkpoint)

    monkeypatch.setattr("course_lib.training.checkpoint.save_checkpoint", slow_save)
    run = Run(tmp_path, is_async=True)
    run.go(7)  # asked for at step 4; three more steps have changed the weights since
    assert not (tmp_path / "last.pt").exists()
    go_on.set()
    run.checkpointer.wait()
    assert run.weight("last.pt") == 4
    assert writers[0].startswith("checkpoint")


def test_a_failed_asynchronous_write_is_told(tmp_path):
    run = Run(tmp_path, is_async=True)
    (tmp_path / "last.pt").mkdir()
    (tmp_path / "last.pt" / "in the way").touch()
    run.go(4)
    with pytest.raises(UserError, match="cannot write"):
        run.checkpointer.wait()


def test_callbacks_with_a_name_are_saved_and_put_back(tmp_path):
    stopping = EarlyStopping("loss", "min", 2, 0.0)
    state, model = TrainState(step=3), nn.Linear(1, 1)
    for loss in (1.0, 2.0):
        stopping.on_record(state, {"kind": "validation", "loss": loss})
    save_checkpoint(
        tmp_path / "a.pt",
        capture(model=model, state=state, config={}, data_fingerprint="", callbacks=[stopping]),
    )
    fresh = EarlyStopping("loss", "min", 2, 0.0)
    again = restore(load_checkpoint(tmp_path / "a.pt"), callbacks=[fresh], model=nn.Linear(1, 1))
    assert (again.step, again.should_stop) == (3, False)
    fresh.on_record(again, {"kind": "validation", "loss": 2.0})
    assert again.should_stop  # the second time in a row: the first was before


def test_what_differs_from_the_interrupted_run_is_said_and_what_is_not_restored(monkeypatch):
    def conditions(gpu, cuda, num_gpus):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: gpu is not None)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: gpu)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
        monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.zeros(1)] * num_gpus)
        monkeypatch.setattr(torch.version, "cuda", cuda)

    conditions("NVIDIA H100", "12.8", 8)
    checkpoint = capture(state=TrainState())
    assert different_conditions(checkpoint) == []
    conditions("NVIDIA A100", "13.0", 4)
    bits = "the result may differ in the last bits"
    lost = "random states of GPUs are not restored, so that dropout draws other numbers there"
    assert different_conditions(checkpoint) == [
        f"gpu: NVIDIA H100 then, NVIDIA A100 now; {bits}",
        f"cuda_version: 12.8 then, 13.0 now; {bits}",
        f"num_gpus: 8 then, 4 now; {lost}",
    ]
    conditions(None, "13.0", 4)  # a CPU run there: CUDA is not asked
    assert f"num_gpus: 8 then, 0 now; {lost}" in different_conditions(checkpoint)
    of_four = {**checkpoint, "num_gpus": 0, "gpu": None, "cuda_version": None, "num_processes": 4}
    said = "num_processes: 4 then, 1 now; random states of 1 are restored, the others draw by their seeds"
    assert different_conditions(of_four) == [said]
    of_before = {name: checkpoint[name] for name in ("num_threads", "torch_version", "rng")}
    assert different_conditions(of_before) == []


class Pickled:
    def __reduce__(self):
        return print, ("this must never run",)


@pytest.mark.parametrize(
    "content",
    [b"", b"not a checkpoint", b"PK\x03\x04 half", {"format_version": 1}, {"model": 3}, [1], Pickled()],
)
def test_what_is_no_checkpoint_is_refused_in_one_line_and_runs_no_code(tmp_path, capsys, content):
    path = tmp_path / "a.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(UserError, match=r"a\.pt") as caught:
        load_checkpoint(path)
    assert "\n" not in str(caught.value)
    assert "never" not in capsys.readouterr().out


def test_another_config_or_other_data_is_refused_by_name(tmp_path):
    config = TrainConfig(data="a.csv")
    checkpoint = {"config": config.to_dict(), "data_fingerprint": "a" * 64}
    same = {"data_fingerprint": "a" * 64, "path": tmp_path / "last.pt"}
    unimportant = dataclasses.replace(config, data="b.csv", log_every_steps=3, price_per_hour=2.0)
    check_same_run(checkpoint, config=unimportant.to_dict(), **same)
    other = dataclasses.replace(config, learning_rate=1.0, optimizer="sgd").to_dict()
    with pytest.raises(UserError, match=r"learning_rate: 0\.\d+ → 1\.0.*|optimizer: adamw → sgd"):
        check_same_run(checkpoint, config=other, **same)
    with pytest.raises(UserError, match="other data"):
        check_same_run(checkpoint, config=config.to_dict(), data_fingerprint="b" * 64, path=tmp_path)


@pytest.mark.parametrize(
    "settings",
    first_of(
        [
            {"precision": "16-mixed", "grad_accum_steps": 2},
            {"optimizer": "sgd", "schedule": "plateau", "validate_every_steps": 4},
            {"schedule": "cosine-restarts", "label_smoothing": 0.1, "use_async_checkpoints": True},
            {"precision": "bf16-mixed", "early_stopping_patience": 9, "layer_decay": 0.8},
        ]
    ),
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_run_stopped_in_the_middle_of_an_epoch_goes_on_to_the_same_weights(tmp_path, monkeypatch, settings):
    """By an exception that no code expects, after any safe point: what is on disk must be enough."""
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    make_csv(tmp_path / "a.csv", num_rows=120)
    small = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "micro_batch_size": 8, "max_epochs": 2}
    cadence = {"log_every_steps": 2, "checkpoint_every_steps": 4, "device": "cpu"}
    config = TrainConfig(
        data=str(tmp_path / "a.csv"), **{"precision": "32-true", **small, **cadence, **settings}
    )
    whole = run_training(config, tmp_path / "whole", progress=False)

    class PowerCut(EarlyStopping):  # a callback; its own state is not saved
        def on_step(self, state):
            if state.step == stop_at:
                raise RuntimeError("power cut")

    for stop_at in (3, whole["step"] - 2):
        out = tmp_path / f"cut {stop_at}"
        cut = PowerCut()
        cut.name = "cut"
        with pytest.raises(RuntimeError, match="power cut"):
            run_training(config, out, progress=False, callbacks=[cut])
        again = run_training(config, out, resume=True, progress=False)
        assert again["weights_sha256"] == whole["weights_sha256"]
        assert again["best_weights_sha256"] == whole["best_weights_sha256"]
        assert again["best"] == whole["best"]


def test_with_a_tolerance_a_later_validation_is_best_unless_it_falls_behind(tmp_path):
    written = []
    keeper = Checkpointer(
        tmp_path / "last.pt",
        tmp_path / "best.pt",
        lambda is_best: {"is_best": is_best},
        every_steps=100,
        monitor="accuracy",
        higher_is_better=True,
        tolerance=0.01,
    )
    for step, value in enumerate((0.90, 0.895, 0.889, 0.92, 0.911, 0.909), start=1):
        keeper.on_record(TrainState(step=step), {"kind": "validation", "accuracy": value})
        written.append(keeper.best["step"])
    assert written == [1, 2, 2, 4, 5, 5]  # behind the best of all, not the one before
    resumed = Checkpointer(tmp_path / "last.pt", tmp_path / "best.pt", dict, every_steps=1)
    resumed.load_state_dict(keeper.state_dict())
    assert resumed.peak == 0.92
