"""Where the time of a step goes, read from a trace whose truth is known."""

import json
import time

import pytest
import torch

from course_lib.measuring.stages import STAGES, stage, step_breakdown
from course_lib.training.callbacks import StepProfiler
from course_lib.training.loop import fit
from course_lib.training.reproducibility import seed_everything, weights_sha256


class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, input_ids, attention_mask):
        return self.head(self.embedding(input_ids).mean(dim=1))


class Slow:
    """`num_batches` batches, each after `seconds` of waiting."""

    def __init__(self, num_batches, seconds=0.0):
        self.num_batches, self.seconds = num_batches, seconds

    def __iter__(self):
        for number in range(self.num_batches):
            time.sleep(self.seconds)
            ids = torch.full((4, 5), number % 20)
            yield {"input_ids": ids, "attention_mask": ids >= 0, "labels": torch.arange(4) % 3}


def train(callbacks=(), batches=None, **options):
    seed_everything(0)
    model = Mean()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    fit(model, batches or Slow(30), optimizer, callbacks=callbacks, log_every_steps=4, **options)
    return model


def seconds_of(breakdown):
    return {row["stage"]: row["seconds"] for row in breakdown["stages"]}


def test_a_profiled_run_ends_with_the_weights_of_one_that_is_not(tmp_path):
    plain = train(max_epochs=2, grad_accum_steps=2)
    profiler = StepProfiler(6, tmp_path)
    assert weights_sha256(train([profiler], max_epochs=2, grad_accum_steps=2)) == weights_sha256(plain)
    breakdown = json.loads((tmp_path / "profile.json").read_text())
    assert breakdown == profiler.breakdown
    assert breakdown["num_steps"] == 6
    seconds = seconds_of(breakdown)
    assert list(seconds) == [*STAGES, "other"]
    assert all(value > 0 for name, value in seconds.items() if name != "transfer")
    assert seconds["transfer"] == 0  # the batches are on the model's device already
    assert sum(seconds.values()) == pytest.approx(breakdown["step_time"])
    assert sum(row["share"] for row in breakdown["stages"]) == pytest.approx(1.0)
    text = (tmp_path / "profile.txt").read_text()
    assert all(name in text for name in [*STAGES, "other", "aten::", "Self CPU"])

    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    marks = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    assert marks.count("stage: backward") == 12  # two micro-batches a step
    assert marks.count("stage: optimizer") == 6


def test_waiting_for_data_is_data_and_validating_is_no_part_of_a_step(tmp_path):
    profiler = StepProfiler(5, tmp_path)
    # Steps 5 to 8 of epochs of 6: a log, an epoch's end and two validations fall between them.
    train(
        [profiler],
        Slow(6, 0.01),
        max_epochs=3,
        validation_batches=Slow(2, 0.1),
        validate_every_steps=5,
    )
    seconds = seconds_of(profiler.breakdown)
    assert profiler.breakdown["num_steps"] == 5
    assert 0.01 <= seconds["data"] < 0.1
    assert profiler.breakdown["step_time"] < 0.1


def test_a_run_may_end_before_its_profile(tmp_path):
    profiler = StepProfiler(100, tmp_path)
    train([profiler], max_steps=8)
    assert profiler.breakdown is None
    profiler.close()
    profiler.close()
    assert profiler.breakdown["num_steps"] == 5
    assert stage("forward") is stage("backward")


def test_a_run_of_the_warm_up_alone_has_no_profile(tmp_path):
    profiler = StepProfiler(2, tmp_path)
    train([profiler], max_steps=2)
    profiler.close()
    assert profiler.breakdown is None and not list(tmp_path.iterdir())


def test_stages_cost_nothing_while_nothing_is_profiled():
    assert stage("forward") is stage("data")  # one object for all: nothing is made, nothing is recorded
    with torch.profiler.profile() as profiled, stage("forward"):
        torch.ones(2).sum()
    assert not [event for event in profiled.events() if "stage" in event.name]


def test_a_hand_made_trace(tmp_path):
    def event(name, ts, dur, cat="user_annotation"):
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur}

    step = [
        ("data", 10, 10),
        ("transfer", 20, 5),
        ("forward", 25, 20),
        ("backward", 45, 40),
        ("optimizer", 85, 10),
    ]
    events = [event("ProfilerStep#4", 0, 100), event("ProfilerStep#5", 1000, 200)]
    events += [event(f"stage: {name}", start, duration) for name, start, duration in step]
    events += [
        event(f"stage: {name}", start, duration, "gpu_user_annotation") for name, start, duration in step
    ]
    # Before the second step: the epoch's last request, and a validation that takes 80 µs.
    events += [event("stage: data", 1000, 1), event("stage: transfer", 1010, 70)]
    events += [event(f"stage: {name}", 1090 + start, duration) for name, start, duration in step]
    events += [event("ProfilerStep#6", 2000, 50), event("stage: data", 2000, 50)]  # cut off
    events += [{"ph": "i", "name": "no duration", "ts": 1}, event("aten::mm", 30, 5, "cpu_op")]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    breakdown = step_breakdown(tmp_path / "trace.json")
    assert breakdown["num_steps"] == 2
    assert breakdown["step_time"] == pytest.approx((90 + 100) / 2 * 1e-6)
    expected = {"data": 10, "transfer": 5, "forward": 20, "backward": 40, "optimizer": 10, "other": 10}
    assert seconds_of(breakdown) == pytest.approx({name: value * 1e-6 for name, value in expected.items()})
