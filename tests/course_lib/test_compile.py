"""`compile: auto | on | off`: what old configs say still counts; a short run is not compiled, a long one if it pays."""

from functools import partial

import pytest
import torch
import yaml
from torch._dynamo.testing import CompileCounter

from course_lib.base import UserError
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import plan_training, run_training
from course_lib.training.callbacks import Callback
from course_lib.training.checkpoint import load_checkpoint, save_checkpoint
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import train_step
from course_lib.training.memory import MIN_COMPILE_SECONDS, compile_model
from course_lib.training.optim import make_optimizer
from tests.benchmarks.made_csv import make_csv
from tests.course_lib.test_memory import make, make_batch

SMALL = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 32, "precision": "32-true"}


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    make_csv(tmp_path / "t.csv", num_rows=120)
    return TrainConfig(data=str(tmp_path / "t.csv"), max_steps=6, log_every_steps=1, **SMALL)


@pytest.mark.parametrize(
    ("text", "means"),
    [("true", "on"), ("false", "off"), ("on", "on"), ("off", "off"), ("auto", "auto"), ("'on'", "on")],
)
def test_what_yaml_reads_as_true_and_false_is_on_and_off(text, means):
    assert TrainConfig(data="docstrings", compile=yaml.safe_load(text)).compile == means


@pytest.mark.parametrize("value", ["yes it is", 1, None])
def test_anything_else_is_refused_in_one_line(value):
    with pytest.raises(UserError, match=r"^compile must be [^\n]+$"):
        TrainConfig(data="docstrings", compile=value)


def test_a_run_of_a_few_seconds_is_not_compiled_and_says_why(config, tmp_path):
    auto = TrainConfig(**{**config.to_dict(), "compile": "auto"})
    plan = plan_training(auto, tmp_path / "plan")
    assert plan["compile"].startswith("not compiled: the steps take about 0 s, too few to bring in the 30 s")
    record = run_training(auto, tmp_path / "auto", progress=False)
    assert record["resolved"]["compile"] == plan["compile"]
    settled = load_checkpoint(RunFolder(tmp_path / "auto").last)["extra"]["settled"]
    assert (settled["compile"], settled["optimizer"]) == ("off", "muon")
    assert record["resolved"]["optimizer"].endswith("; auto: it needs fewer steps than adamw")
    plain = run_training(config, tmp_path / "off", progress=False)
    assert "compile" not in plain["resolved"]
    assert record["weights_sha256"] == plain["weights_sha256"]  # that it was looked at changes nothing


def test_a_model_that_is_not_compiled_is_left_as_it_was():
    model, batch = make(), make_batch()
    forward, before = model.forward, torch.get_rng_state()
    _, report = compile_model(model, batch, num_micro_steps=10)
    assert not report["is_compiled"] and "compile_seconds" not in report
    assert model.forward == forward and torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("num_micro_steps", [10**6, 10**9])
def test_it_stays_compiled_only_if_that_was_measured_to_save_more_than_it_took(num_micro_steps):
    model = make(d_model=16, num_layers=1, dropout=0.0)
    forward = model.forward
    _, report = compile_model(
        model, make_batch(), num_micro_steps=num_micro_steps, blocks=2, min_seconds=0.01
    )
    if "compile_seconds" not in report:
        assert "too few" in report["reason"] and num_micro_steps < 10**9
        return
    found = report["speedup"]
    pays = (found["low"] or 0.0) > 1.0
    assert report["is_compiled"] == (model.forward != forward) == report["reason"].endswith(": kept")
    assert pays or not report["is_compiled"]
    assert report["reason"].startswith(f"compiled in {report['compile_seconds']:.1f} s, then ")
    assert MIN_COMPILE_SECONDS > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", [(8, 24), (24, 24)])  # as many rows as columns, too
def test_batches_of_any_width_are_compiled_once_to_train_and_once_to_judge(monkeypatch, first):
    torch._dynamo.reset()
    frames = CompileCounter()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=frames))
    model = make(d_model=16, num_layers=1)

    def batch_of(rows, width):
        ids = torch.randint(1, 40, (rows, width))
        return {"input_ids": ids, "attention_mask": ids > 5, "labels": ids[:, 0] % 3}

    _, report = compile_model(model, batch_of(*first), blocks=1, min_seconds=0.001)
    assert report["is_compiled"] and frames.frame_count == 1
    optimizer = make_optimizer(model)
    widths = (7, 9, 11, 12, 13, 16, 18)
    for rows, width in [(8, width) for width in widths] + [(3, 8)]:
        train_step(model, batch_of(rows, width), optimizer)
    assert frames.frame_count == 1
    evaluate(model, [batch_of(16, width) for width in widths])
    assert frames.frame_count == 2


class StopAt(Callback):
    def on_safe_point(self, state):
        if state.step == 3:
            raise KeyboardInterrupt


def test_a_run_that_wrote_true_or_false_goes_on(config, tmp_path):
    whole = run_training(config, tmp_path / "whole", progress=False)
    with pytest.raises(KeyboardInterrupt):
        cut = TrainConfig(**{**config.to_dict(), "checkpoint_every_steps": 1})
        run_training(cut, tmp_path / "cut", progress=False, callbacks=[StopAt()])
    folder = RunFolder(tmp_path / "cut")
    checkpoint = load_checkpoint(folder.last)
    assert checkpoint["state"]["step"] < 6
    # As the version before wrote them.
    for values in (checkpoint["config"], checkpoint["extra"]["settled"]):
        assert values["compile"] == "off"
        values["compile"] = False
    save_checkpoint(folder.last, checkpoint)
    old = {**yaml.safe_load(folder.config.read_text()), "compile": False}
    folder.config.write_text(yaml.safe_dump(old))
    resumed = run_training(TrainConfig(**old), folder.directory, resume=True, progress=False)
    assert resumed["weights_sha256"] == whole["weights_sha256"]
