"""Several processes: the same updates as one process, each sample once, one writer. Processes are real ones."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data.batching import BucketBatchSampler, Filler, evaluation_batches
from course_lib.data.sharding import ShardedOrder, shard_evenly
from course_lib.distributed.ranks import Ranks, cleanup, setup, sum_across_ranks, wrap_ddp
from course_lib.training.evaluation import evaluate
from course_lib.training.loop import fit
from course_lib.training.reproducibility import weights_sha256
from tests.course_lib.scripts.small import (
    MAX_NORM,
    SCRIPTS,
    Samples,
    make_batches,
    make_model,
    make_optimizer,
    torchrun,
)


def orders(lengths, micro_batch_size, world_size, grad_accum_steps, seed=0):
    """One `ShardedOrder` per process."""
    return [
        ShardedOrder(
            BucketBatchSampler(lengths, micro_batch_size, seed=seed, pool_batches=8),
            Ranks(rank, rank, world_size),
            grad_accum_steps,
        )
        for rank in range(world_size)
    ]


def updates(order, grad_accum_steps):
    """The micro-batches of one process, by update, as the loop groups them."""
    micro_batches = list(order)
    return [micro_batches[i : i + grad_accum_steps] for i in range(0, len(micro_batches), grad_accum_steps)]


def samples_of(micro_batches):
    return Counter(index for batch in micro_batches if not isinstance(batch, Filler) for index in batch)


sizes = st.fixed_dictionaries(
    {
        "num_samples": st.integers(1, 150),
        "micro_batch_size": st.integers(1, 9),
        "world_size": st.integers(1, 5),
        "grad_accum_steps": st.integers(1, 4),
        "epoch": st.integers(0, 3),
    }
)


def lengths_of(size):
    return np.random.default_rng(size["num_samples"]).integers(1, 90, size["num_samples"])


@settings(max_examples=150, deadline=None)
@given(sizes)
def test_every_update_takes_the_samples_that_one_process_would_take(size):
    world_size, steps = size["world_size"], size["grad_accum_steps"]
    shape = (lengths_of(size), size["micro_batch_size"])
    shards, (alone,) = orders(*shape, world_size, steps), orders(*shape, 1, world_size * steps)
    for order in (*shards, alone):
        order.set_epoch(size["epoch"])
    expected = updates(alone, world_size * steps)
    by_rank = [updates(order, steps) for order in shards]
    assert {len(mine) for mine in by_rank} == {len(expected)}
    for together, whole in zip(zip(*by_rank, strict=True), expected, strict=True):
        assert len({len(mine) for mine in together}) == 1  # no rank waits in a backward of its own
        dealt = [batch for mine in together for batch in mine]
        assert samples_of(dealt) == samples_of(whole)
        assert all(0 < len(batch) <= size["micro_batch_size"] for batch in dealt)
    everything = [batch for mine in by_rank for update in mine for batch in update]
    assert samples_of(everything) == Counter(range(size["num_samples"]))  # each once
    assert sum(isinstance(batch, Filler) for batch in everything) < world_size
    assert [len(order) for order in shards] == [sum(map(len, mine)) for mine in by_rank]
    assert alone.epoch == size["epoch"]


@settings(max_examples=60, deadline=None)
@given(sizes, st.data())
def test_a_position_continues_on_another_number_of_processes(size, data):
    window = size["world_size"] * size["grad_accum_steps"]
    other = data.draw(st.sampled_from([n for n in range(1, window + 1) if window % n == 0]))
    shape = (lengths_of(size), size["micro_batch_size"])
    before = orders(*shape, size["world_size"], size["grad_accum_steps"])
    for order in before:
        order.set_epoch(size["epoch"])
    num_updates = -(-len(before[0]) // size["grad_accum_steps"])
    stop = data.draw(st.integers(1, num_updates))
    done = []
    for order in before:
        micro_batches = iter(order)
        count = min(stop * size["grad_accum_steps"], len(order))
        done += [next(micro_batches) for _ in range(count)]
    state = before[0].state_dict()
    assert all(order.state_dict() == state for order in before)
    after = orders(*shape, other, window // other)
    for order in after:
        order.load_state_dict(state)
        order.set_epoch(size["epoch"])  # as the loop does: it must not forget the position
    rest = [batch for order in after for batch in order]
    assert samples_of(done + rest) == Counter(range(size["num_samples"]))
    again = [batch for order in after for batch in order]  # the next epoch is whole
    assert samples_of(again) == Counter(range(size["num_samples"]))


def test_a_position_of_another_window_or_other_data_is_refused():
    lengths = np.arange(1, 50)
    (order,) = orders(lengths, 4, 1, 4)
    for other in (orders(lengths, 4, 1, 2), orders(lengths, 4, 1, 4, seed=1), orders(lengths[1:], 4, 1, 4)):
        with pytest.raises(UserError, match="grad_accum_steps"):
            other[0].load_state_dict(order.state_dict())


def test_a_window_has_micro_batches_of_one_width_so_that_no_process_waits():
    lengths = np.minimum(np.random.default_rng(0).lognormal(3.6, 1.0, 4000).astype(int) + 1, 256)
    sampler = BucketBatchSampler(lengths, 16)
    costs = np.array([[len(b) * lengths[b].max() for b in order] for order in orders(lengths, 16, 2, 1)])
    waited = 1 - costs.sum() / (2 * costs.max(axis=0).sum())
    as_they_come = [len(b) * lengths[b].max() for b in sampler][: costs.size // 2 * 2]
    pairs = np.array(as_they_come).reshape(-1, 2)
    assert waited < 0.03 < 0.2 < 1 - pairs.sum() / (2 * pairs.max(axis=1).sum())
    wide = costs[0] > np.median(costs[0])  # and the order of windows stays random
    assert 0.3 < (wide[1:] != wide[:-1]).mean() < 0.7


@given(st.integers(1, 40), st.integers(1, 6))
def test_evaluation_batches_are_dealt_once_and_in_equal_numbers(num_batches, world_size):
    batches = [[2 * i, 2 * i + 1] for i in range(num_batches)]
    shards = [shard_evenly(batches, Ranks(rank, rank, world_size)) for rank in range(world_size)]
    assert len({len(shard) for shard in shards}) == 1
    assert samples_of(batch for shard in shards for batch in shard) == Counter(range(2 * num_batches))


def test_one_process_needs_no_group(monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    ranks = setup()
    assert ranks == Ranks() and ranks.is_main_process and not torch.distributed.is_initialized()
    model, tensor = make_model(), torch.ones(3)
    assert wrap_ddp(model) is model and sum_across_ranks(tensor) is tensor
    assert ranks.device("cuda:1") == "cuda:1"
    cleanup()


def test_each_process_has_its_device_and_its_dropout():
    ranks = [Ranks(rank, rank, 2) for rank in range(2)]
    assert ranks[0].device("cpu") == "cpu"
    assert ranks[0].seed(5) == 5 != ranks[1].seed(5)
    with pytest.raises(UserError, match="use cuda or cpu"):
        ranks[1].device("cuda:0")
    if not torch.cuda.is_available():
        assert ranks[1].device("auto") == "cpu"
        with pytest.raises(UserError, match="0 GPUs"):
            ranks[1].device("cuda")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    torchrun(SCRIPTS / "two_processes.py", folder)
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


def train_alone(grad_accum_steps, dtype=torch.float64, num_samples=83, optimizer="adamw", **sizes):
    model = make_model(dtype, **sizes)
    fit(
        model,
        make_batches(Ranks(), grad_accum_steps, num_samples),
        make_optimizer(model, optimizer),
        max_epochs=2,
        max_norm=MAX_NORM,
        grad_accum_steps=grad_accum_steps,
    )
    return model.state_dict()


@pytest.mark.further
@pytest.mark.parametrize(("case", "optimizer"), [("single", "adamw"), ("muon", "muon")])
def test_two_processes_equal_one_that_accumulates_bit_for_bit(two_processes, case, optimizer):
    assert weights_sha256(two_processes[0][case]["weights"]) == weights_sha256(
        train_alone(2, torch.float32, num_samples=80, optimizer=optimizer)
    )


@pytest.mark.parametrize(
    ("case", "arguments"),
    [
        ("plain", {"grad_accum_steps": 2}),  # 11 micro-batches: two processes share the samples of the last
        ("accumulated", {"grad_accum_steps": 6}),
        ("two_buckets", {"grad_accum_steps": 6, "num_samples": 20, "d_model": 128}),
        ("starved", {"grad_accum_steps": 4, "num_samples": 33}),
    ],
)
def test_accumulation_on_two_processes_equals_one(two_processes, case, arguments):
    alone = train_alone(**arguments)
    for key, tensor in two_processes[0][case]["weights"].items():
        torch.testing.assert_close(tensor, alone[key], rtol=0, atol=1e-11)


@pytest.mark.parametrize("case", ["plain", "single", "accumulated", "muon", "two_buckets", "starved"])
def test_all_ranks_end_equal_and_gradients_travel_once_per_update(two_processes, case):
    first, second = (result[case] for result in two_processes)
    assert weights_sha256(first["weights"]) == weights_sha256(second["weights"])
    for result in (first, second):
        ends, num_buckets = result["ends"], result["num_buckets"]
        assert len(ends) == result["num_steps"]  # one backward of each update, whatever grad_accum_steps
        assert {after - before for before, after in itertools.pairwise(ends)} == {num_buckets}
    assert num_buckets == (2 if case == "two_buckets" else 1)  # DDP makes them after the first update


def test_no_sync_ends_when_an_error_leaves_it(two_processes):
    assert all(result["is_synced_after_error"] for result in two_processes)


def test_evaluation_on_two_processes_is_exact(two_processes):
    model, samples = make_model(), Samples(29, seed=1)
    whole = evaluation_batches(samples, 4)
    for case, order in (("even", whole.order), ("uneven", whole.order[:-1])):
        whole.order = order
        alone = evaluate(model, whole, return_predictions=True)
        for result in two_processes:
            scores = result["evaluation"][case]
            assert scores["num_items"] == alone["num_items"] == (29 if case == "even" else 28)
            assert scores["accuracy"] == alone["accuracy"]
            assert scores["loss"] == pytest.approx(alone["loss"], rel=1e-6)
            assert scores["macro_f1"] == pytest.approx(alone["macro_f1"])
            assert scores["predictions"].bincount().tolist() == alone["predictions"].bincount().tolist()


def test_who_is_who_and_what_they_tell_each_other(two_processes):
    first, second = two_processes
    assert (first["ranks"], second["ranks"]) == ((0, 0, 2), (1, 1, 2))
    assert first["gathered"] == second["gathered"] == [{"rank": 0}, {"rank": 1}]
    assert first["from_main"] == second["from_main"] == "rank 0"
    assert first["sum"] == second["sum"] == 3
    assert (first["found_built"], second["found_built"]) == (False, True)  # the main process was first
