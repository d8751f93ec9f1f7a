"""What a run costs, on clocks that the test owns; the arithmetic against its definition."""

import json
import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.measuring.stages import step_breakdown
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.train import run_training
from course_lib.runs.watching.cost import (
    CostMeter,
    cost,
    energy_joules,
    energy_source,
    flops_per_token,
    peak_flops,
    readings,
    time_to_target,
    utilisation,
)
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.checkpoint import load_checkpoint
from course_lib.training.loop import fit

CPU = torch.device("cpu")
money = st.floats(0.01, 1e4)


class Clock:
    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def __call__(self):
        return self.seconds


def meter(clock, **values):
    return CostMeter(TrainConfig(data="docstrings", **values), CPU, clock)


@given(seconds=st.floats(0, 1e7), price=money)
def test_money_is_price_times_hours(seconds, price):
    assert cost(seconds, price) == pytest.approx(price * seconds / 60 / 60)
    assert cost(2 * seconds, price) == pytest.approx(2 * cost(seconds, price))
    assert cost(3600, price) == price
    assert cost(None, price) is None and cost(seconds, None) is None


validations = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 5), st.floats(0, 1)), max_size=20)


@given(values=validations, target=st.floats(0, 1), monitor=st.sampled_from(["loss", "accuracy", "macro_f1"]))
def test_time_to_target_is_that_of_the_first_validation_that_is_good_enough(values, target, monitor):
    records, now = [], 0.0
    for seconds, loss, accuracy in values:
        now += seconds
        scores = {"loss": loss, "accuracy": accuracy, "macro_f1": accuracy / 2}
        # A training loss that is good enough is no validation.
        records.append({"kind": "train", "elapsed_seconds": now - seconds / 2, "loss": -1.0, "accuracy": 2.0})
        records.append({"kind": "validation", "elapsed_seconds": now, **scores})
    config = TrainConfig(data="docstrings", monitor=monitor, target=target, price_per_hour=6.0)
    found = time_to_target(records, config)
    validated = [record for record in records if record["kind"] == "validation"]
    good = [r for r in validated if (r["loss"] <= target if monitor == "loss" else r[monitor] >= target)]
    assert found == (good[0]["elapsed_seconds"] if good else None)
    summary = CostMeter(config, CPU).summary(records)
    assert summary["time_to_target_seconds"] == found
    assert summary["cost_to_target"] == (None if found is None else pytest.approx(found / 600))


def test_a_validation_that_was_nan_reaches_no_target():
    rows = [(1.0, None), (2.0, 0.2)]  # NaN is null in metrics.jsonl
    records = [{"kind": "validation", "elapsed_seconds": seconds, "loss": loss} for seconds, loss in rows]
    assert time_to_target(records, TrainConfig(data="docstrings", monitor="loss", target=0.3)) == 2.0


def test_the_summary_says_units_and_what_is_not_known():
    clock = Clock(100.0)
    measured = meter(clock, price_per_hour=3.0, currency="CHF")
    clock.seconds += 1800
    summary = measured.summary([])
    assert (summary["elapsed_hours"], summary["cost"], summary["currency"]) == (0.5, 1.5, "CHF")
    assert summary["time_to_target_seconds"] is None and summary["cost_to_target"] is None
    assert summary["energy_watt_hours"] >= 0 and "estimated" in summary["energy_source"]
    assert meter(clock).summary([])["cost"] is None


pauses = st.lists(st.floats(0.1, 50), min_size=1, max_size=60)


@given(pauses=pauses, budget=st.floats(0.01, 2), price=st.floats(1, 100))
def test_the_budget_holds_as_long_as_no_pause_is_longer_than_those_before(pauses, budget, price):
    clock, state = Clock(), TrainState()
    guard = meter(clock, price_per_hour=price, budget=budget)
    longest = 0.0
    for pause in pauses:
        longest = max(longest, pause)
        clock.seconds += pause
        guard.on_safe_point(state)
        must_stop = (clock.seconds + longest) / 3600 * price >= budget
        assert state.should_stop == must_stop
        if must_stop:
            break
        # Whatever comes next is paid for, unless it is longer than all before.
        assert (clock.seconds + longest) / 3600 * price < budget
    if state.should_stop:
        assert "budget" in state.stop_reason and "EUR" in state.stop_reason


@given(first=pauses, second=st.floats(0.1, 50))
def test_the_sessions_before_count(first, second):
    clock, state = Clock(), TrainState()
    before = meter(clock, price_per_hour=1.0)
    for pause in first:
        clock.seconds += pause
        before.on_safe_point(state)
    saved = before.state_dict()
    later = Clock(1e6)  # another process, whose clock began elsewhere
    after = meter(later, price_per_hour=1.0)
    after.load_state_dict(saved)
    later.seconds += second
    assert after.state_dict()["elapsed_seconds"] == pytest.approx(sum(first) + second)
    assert after.state_dict()["energy_joules"] >= saved["energy_joules"]
    assert after.summary([])["cost"] == pytest.approx((sum(first) + second) / 3600)


class Ticks(Callback):
    """Each step takes a second of the test's clock."""

    def __init__(self, clock):
        self.clock, self.safe_points = clock, []

    def on_step(self, state):
        self.clock.seconds += 1.0

    def on_safe_point(self, state):
        self.safe_points.append((state.step, state.should_stop))


def batches(num_batches):
    ids = torch.randint(3, 60, (4, 8), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": ids, "attention_mask": ids > 0, "labels": torch.arange(4)}] * num_batches


def small_model(**values):
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "num_classes": 4, "max_length": 64, "d_model": 16, "num_layers": 2}
    return make_model(ModelConfig(**{**sizes, **values}))


def test_a_run_stops_at_a_safe_point_before_its_budget_and_its_records_are_priced():
    clock = Clock()
    guard, ticks = meter(clock, price_per_hour=3600.0, budget=20.0), Ticks(clock)
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters())
    records = fit(
        model,
        batches(100),
        optimizer,
        log_every_steps=3,
        validation_batches=batches(1),
        callbacks=[guard, ticks],
    )
    # A second costs 1, a log is due every 3: at step 18 three more seconds would be more than 20.
    assert ticks.safe_points[-1] == (18, True)
    assert clock.seconds <= 20
    assert [r["elapsed_seconds"] for r in records if r["kind"] == "train"] == [
        3.0,
        6.0,
        9.0,
        12.0,
        15.0,
        18.0,
    ]
    assert all("energy_joules" in record for record in records)
    assert {"cpu_load", "process_memory_bytes"} <= records[0].keys()
    resumed = meter(clock, price_per_hour=3600.0, budget=20.0)
    resumed.load_state_dict(guard.state_dict())
    state = TrainState()
    clock.seconds += 1.0
    resumed.on_safe_point(state)
    assert state.should_stop  # what stopped it says so again


def analytic_flops(config, width):
    """Matrix products of a pre-norm block, by hand: 2 FLOPs per multiply-add, forward once, backward twice."""
    d, t = config.d_model, width
    block = 2 * t * (3 * d * d + d * d + 8 * d * d) + 2 * 2 * t * t * d
    pool_and_head = 2 * t * d + 2 * d * config.num_classes
    return 3 * (config.num_layers * block + pool_and_head) / t


@pytest.mark.parametrize("width", [1, 7, 64])
def test_flops_are_those_of_the_formula(width):
    model = small_model()
    counted = flops_per_token(model, [width])
    # Nothing flows back into an embedding's ids, and into the attention mask's weights: a little less than 3×.
    assert counted == pytest.approx(analytic_flops(model.config, width), rel=0.03)


@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(st.integers(1, 64), min_size=1, max_size=5))
def test_flops_per_token_of_many_texts_are_their_sum_over_their_tokens(lengths):
    model = small_model()
    one_by_one = sum(flops_per_token(model, [n]) * n for n in lengths) / sum(lengths)
    assert flops_per_token(model, lengths) == pytest.approx(one_by_one, rel=0.05)


def test_counting_leaves_the_model_and_the_generator_alone():
    model = small_model(dropout=0.5).train()
    before, state = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
    flops_per_token(model, [5, 9])
    peak_flops(CPU, torch.bfloat16)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training and all(p.grad is None for p in model.parameters())
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())


def test_frozen_weights_cost_less():
    model = small_model()
    everything = flops_per_token(model, [16])
    for parameter in model.blocks[0].parameters():
        parameter.requires_grad_(False)
    model.token_embedding.weight.requires_grad_(False)
    model.position_embedding.weight.requires_grad_(False)
    assert flops_per_token(model, [16]) < 0.75 * everything


def test_utilisation_is_arithmetic_done_over_arithmetic_possible_without_the_warm_up():
    model = small_model()
    flops = flops_per_token(model, [10])
    records = [{"kind": "train", "num_tokens": 10, "seconds": 100.0}]
    records += [{"kind": "train", "num_tokens": 1000, "seconds": 1.0}, {"kind": "validation", "loss": 1.0}]
    records += [{"kind": "train", "num_tokens": 1000, "seconds": 3.0}]
    found = utilisation(records, model, [10], (flops * 1000, "measured: here"))
    assert found["matmul_peak_share"] == pytest.approx(0.5)
    assert found["flops_per_token"] == flops and found["peak_source"] == "measured: here"
    assert utilisation(records, model, [10], (flops * 1000, "data sheet: X"))["mfu"] == pytest.approx(0.5)
    assert utilisation(records[:1], model, [10], (flops, "measured: here"))["matmul_peak_share"] == 0.1
    assert utilisation([], model, [10], (1.0, "measured: here")) == {}


def test_readings_of_a_machine_without_a_gpu():
    found = readings(CPU)
    assert 0.0 <= found["cpu_load"] <= 1.0 and found["process_memory_bytes"] > 1e6
    first = energy_joules(CPU)
    sum(i * i for i in range(200_000))
    assert energy_joules(CPU) > first


def test_energy_that_was_not_measured_is_not_called_so():
    gpu = torch.device("cuda")
    assert energy_source(gpu, 5.0).startswith("measured: NVML")
    assert energy_source(CPU, 5.0).startswith("estimated: ")
    assert energy_source(gpu, math.nan).startswith("not known: NVML") and "[gpu]" in energy_source(
        gpu, math.nan
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_run_on_a_gpu_without_nvml_says_that_its_energy_is_not_known():
    gpu = torch.device("cuda")
    assert readings(gpu) == {} and math.isnan(energy_joules(gpu))
    summary = CostMeter(TrainConfig(data="docstrings"), gpu).summary([])
    assert math.isnan(summary["energy_watt_hours"]) and summary["energy_source"].startswith("not known")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_readings_of_a_gpu():
    pytest.importorskip("pynvml")
    found = readings(torch.device("cuda"))
    assert 0 <= found["gpu_utilisation"] <= 1 and found["gpu_power_watts"] > 1
    assert energy_joules(torch.device("cuda")) > 0 or math.isnan(energy_joules(torch.device("cuda")))


def test_run_training_saves_before_the_money_is_spent_and_says_what_it_cost(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "cache"))
    rows = [f"{'good' if i % 2 else 'bad'} text number {i},{i % 2}" for i in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *rows]))
    sizes = {"d_model": 16, "num_layers": 1, "vocab_size": 300, "max_length": 16, "micro_batch_size": 8}
    config = TrainConfig(
        data=str(tmp_path / "t.csv"),
        **sizes,
        max_epochs=10_000,
        log_every_steps=3,
        target=0.0,
        monitor="accuracy",
        profile_steps=4,
        price_per_hour=3600.0,
        currency="CHF",
        budget=4.0,
    )
    record = run_training(config, tmp_path / "run", progress=False)
    assert record["stop_reason"].startswith("budget: ") and "CHF" in record["stop_reason"]
    assert record["step"] < record["max_steps"]
    checkpoint = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.pt")
    assert checkpoint["state"]["step"] == record["step"]
    # A pause longer than all before it is not foreseen: on a busy machine the last one may be it.
    longest = float(re.search(r"the next ([\d.]+) s", record["stop_reason"]).group(1))
    assert 0 < checkpoint["callbacks"]["cost"]["elapsed_seconds"] < 4.0 + longest
    found = record["cost"]
    assert found["cost"] == pytest.approx(found["elapsed_hours"] * 3600)
    validations = [r for r in RunFolder(tmp_path / "run").read_metrics() if r["kind"] == "validation"]
    first = validations[0]
    assert found["cost_to_target"] == pytest.approx(first["elapsed_seconds"])
    assert 0 < found["matmul_peak_share"] < 1.5 and found["peak_source"].startswith("measured")
    breakdown = json.loads((tmp_path / "run" / "profile.json").read_text())
    assert breakdown == step_breakdown(tmp_path / "run" / "trace.json")
    assert breakdown["num_steps"] == 4
