"""The benchmarks still run: the smallest case of each. What they measure is in tests/benchmarks/RESULTS.md."""

import argparse
import copy
import sys
import time

import numpy as np
import pytest
import torch

from course_lib.data.store import split_store
from course_lib.data.tables import load_table
from course_lib.runs.config import TrainConfig
from tests.benchmarks import (
    by_hand,
    overheads,
    peers,
    peers_case,
    peers_systems,
    peers_worker,
    tables,
    time_to_target,
)
from tests.everyday import first_of

LENGTH = 32
SMALL = {"d_model": 16, "num_layers": 1, "max_length": LENGTH}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    topics = {"sea": ["wave", "boat", "tide"], "road": ["wheel", "brake", "fuel"]}
    lines = ["text,label"]
    for number in range(160):
        label = ("sea", "road")[number % 2]
        words = rng.choice([*topics[label], "the", "of", "it"], size=rng.integers(3, 25))
        lines.append(f"{' '.join(words)} {number},{label}")
    path = tmp_path_factory.mktemp("table") / "texts.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def stores(table):
    texts = load_table(table, progress=False)
    return split_store(texts, max_length=LENGTH, vocab_size=300, progress=False)


def test_time_to_target_trains_both_systems_to_the_target(stores):
    config = TrainConfig(data="docstrings", model="transformer", max_steps=6, vocab_size=300, **SMALL)
    arguments = argparse.Namespace(
        config=config, quick=True, target=1e-6, max_seconds=20.0, without_naive=False
    )
    run = time_to_target.race(arguments, 0, *stores)
    for name in ("naive", "ours"):
        steps, seconds, f1 = run["curve"][name][-1]
        assert steps >= 3
        assert seconds > 0
        assert f1 > 0
    assert "| median (range) |" in time_to_target.markdown({"target": 1e-6, "runs": [run]})
    arguments.without_naive, arguments.target = True, 2.0
    alone = time_to_target.race(arguments, 3, *stores)
    table = time_to_target.markdown({"target": 1.0, "config": {"optimizer": "auto"}, "runs": [alone]})
    assert "| 3 | auto | 6 |" in table


@pytest.mark.parametrize("system", first_of(peers_systems.SYSTEMS))
def test_each_peer_takes_every_step_of_its_job(stores, system, monkeypatch):
    package = {"fabric": "lightning", "lightning": "lightning", "accelerate": "accelerate"}
    pytest.importorskip({"hf-trainer": "transformers", **package}.get(system, "torch"))
    if system == "hf-trainer":
        pytest.importorskip("accelerate")
    monkeypatch.setitem(peers_case._stores, LENGTH, stores)
    case = {"micro_batch_size": 8, **SMALL}
    answer = peers_worker.time_steps(
        peers_systems.SYSTEMS[system],
        case=case,
        order=[list(range(start, start + 8)) for start in range(0, 32, 8)],
        warmup=1,
    )
    assert answer["step_time"] > 0
    raced = peers_worker.race(
        peers_systems.SYSTEMS[system], case={**case, "max_steps": 3}, target=2.0, every=2
    )
    assert [step for step, _, _ in raced["curve"]] == [2, 3]
    assert raced["seconds"] is None and raced["cpu_seconds"] is None
    with_muon = {**case, "max_steps": 2, "optimizer": "muon"}
    order = [list(range(8)), list(range(8, 16))]
    raced = peers_worker.race(peers_systems.SYSTEMS[system], case=with_muon, target=0.0, every=2, order=order)
    assert raced["steps"] == 2 and raced["cpu_seconds"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_is_measured(stores, monkeypatch):
    monkeypatch.setitem(peers_case._stores, LENGTH, stores)
    answer = peers_worker.memory(
        peers_systems.SYSTEMS["course_lib"], case={"micro_batch_size": 8, **SMALL}, order=[list(range(8))] * 3
    )
    assert answer["peak_bytes"] >= 0


def test_the_tables_of_peers():
    ratios = peers.ratios({"a": [2.0, 4.0, 3.0], "b": [1.0, 2.0, 1.0], "c": [1.0, None, 1.0]}, "b")
    assert ratios == [("b", 1.0, 1.0), ("a", 3.0, 2.0), ("c", None, None)]
    assert "| a | 3.0 | 2.00 |" in peers.table("title", "s", ratios, "b", 1.0)
    shares = {"pad_fraction": 0.05, "data_wait_fraction": 0.01}
    answers = {
        peers.OURS: [{"seconds": 4.0, "cpu_seconds": 2.0, **shares}],
        "fabric": [{"seconds": 8.0, "cpu_seconds": 5.0}],
        "lightning": [{"seconds": None, "cpu_seconds": None}],
    }
    race = {"case": {"batches": "ours"}, "target": 0.65, "answers": answers}
    page = peers.markdown({"race": race, "load": [0.5, 1.5]})
    assert "| fabric | 8.0 | 2.00 |" in page and "| fabric | 5.0 | 2.50 |" in page
    assert "| lightning | not reached |" in page and "Load average 0.5 to 1.5" in page


def test_overheads_adds_up_what_is_not_steps(table):
    config = TrainConfig(
        data=str(table),
        max_steps=6,
        log_every_steps=2,
        checkpoint_every_seconds=30.0,
        vocab_size=300,
        **SMALL,
    )
    found = overheads.measure(config, 20.0)
    assert found["steps"] == 6
    assert found["logs and checkpoints"] == pytest.approx(sum(found["of which"].values()))
    assert "| … checkpoints |" in overheads.markdown(found)


@pytest.mark.parametrize("kind", first_of(by_hand.KINDS))
def test_by_hand_times_both_on_the_same_batches(stores, kind, monkeypatch):
    monkeypatch.setitem(peers_case._stores, LENGTH, stores)
    model, loaders = by_hand.KINDS[kind](4, True)
    plain, ours = (list(batches) for batches in loaders(3, 5))
    assert len(plain) == len(ours) == 5
    for one, other in zip(plain, ours, strict=True):
        assert all(map(torch.equal, list_of(one), list_of(other)))

    def as_lists(seed, num_batches):  # a DataLoader draws a random number, which dropout would then not draw
        return tuple(map(list, loaders(seed, num_batches)))

    weights = []
    for make in (by_hand.by_hand, by_hand.with_fit):
        trained = copy.deepcopy(model)
        torch.manual_seed(1)
        assert make(trained, as_lists, time.perf_counter)(3, 4) > 0
        weights.append(torch.nn.utils.parameters_to_vector(trained.parameters()))
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-4)
    found = by_hand.measure(kind, 4, clock="cpu", blocks=1, num_steps=2, is_quick=True)
    rows = [{"kind": kind, "size": 4, "speedup": found.to_dict()}]
    page = by_hand.markdown({"clock": "cpu", "rows": rows, "load": [1.0, 2.0]})
    assert f"| {kind} | 4 |" in page and "Load average 1.0 to 2.0" in page


def test_tables_are_read_split_and_told(tmp_path, capsys, monkeypatch):
    lines = [f"{'ham' if number % 4 else 'spam'},text {number} é" for number in range(40)]
    (tmp_path / "sms_spam.csv").write_text("\n".join(["v1,v2", *lines]), encoding="latin-1")
    (texts, labels), (held_out, truth) = tables.read_parts(tmp_path, tables.TABLES["SMS spam"])
    assert (len(texts), len(held_out)) == (32, 8)
    assert {*texts, *held_out} == {f"text {number} é" for number in range(40)}
    assert (labels.count("spam"), truth.count("spam")) == (8, 2)

    def ran(_folder, _table, model, seed, _settings):
        found = {"accuracy": 0.9 + seed / 100, "cpu_seconds": 4.0 if model == "course_lib" else 2.0}
        return found | ({"whole_seconds": 5.0, "model": "joined"} if model == "course_lib" else {})

    monkeypatch.setattr(tables, "_in_own_process", ran)
    rows = tables.compare(tmp_path, [0, 1], {})
    cells = "| 0.9050 (0.9000 to 0.9100); 4.0 s [5.0] | 0.9000; 2.0 s | 0.9000; 2.0 s | 2.00 |"
    assert f"| SMS spam {cells}" in tables.as_markdown(rows)
    assert "Banking77: banking77_train.csv, banking77_test.csv not in" in capsys.readouterr().err


def list_of(batch):
    return list(batch.values()) if isinstance(batch, dict) else list(batch)
