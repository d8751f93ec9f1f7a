"""Padding, bucketing and the order of batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.base.errors import UserError
from course_lib.data import BucketBatchSampler, collate, docstring_store, pad_fraction
from course_lib.data.batching import IGNORE, Batches, Filler
from course_lib.training import losses

samples = st.lists(
    st.tuples(
        st.lists(st.integers(1, 60_000), max_size=30).map(lambda ids: np.array(ids, dtype=np.int64)),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(samples, st.integers(0, 5), st.integers(0, 9))
def test_collate_keeps_every_token_and_pads_the_rest(batch, extra, pad_id):
    longest = max(len(ids) for ids, _ in batch)
    for pad_to, width in ((None, longest), (longest + extra, longest + extra)):
        out = collate(batch, pad_id=pad_id, pad_to=pad_to)
        assert out["input_ids"].shape == out["attention_mask"].shape == (len(batch), width)
        assert (out["input_ids"].dtype, out["attention_mask"].dtype) == (torch.int64, torch.bool)
        assert out["labels"].dtype == torch.int64
        assert out["labels"].tolist() == [label for _, label in batch]
        for row, mask, (ids, _) in zip(out["input_ids"], out["attention_mask"], batch, strict=True):
            assert row[: len(ids)].tolist() == ids.tolist()
            assert (row[len(ids) :] == pad_id).all()
            assert mask.tolist() == [True] * len(ids) + [False] * (width - len(ids))


def test_collate_names_what_is_wrong():
    with pytest.raises(UserError, match="empty batch"):
        collate([])
    with pytest.raises(UserError, match="a sample has 3 tokens but pad_to=2"):
        collate([(np.array([1, 2, 3]), 0)], pad_to=2)


def test_collate_does_not_share_memory_with_the_samples():
    ids = np.array([1, 2, 3])
    collate([(ids, 0)])["input_ids"][0, 0] = 99
    assert ids.tolist() == [1, 2, 3]


sampler_arguments = {
    "lengths": st.lists(st.integers(1, 500), max_size=200),
    "micro_batch_size": st.integers(1, 20),
    "seed": st.integers(0, 1000),
    "pool_batches": st.integers(1, 20),
}


@settings(deadline=None)
@given(**sampler_arguments)
def test_every_index_once_and_full_batches_but_one(lengths, micro_batch_size, seed, pool_batches):
    sampler = BucketBatchSampler(lengths, micro_batch_size, seed=seed, pool_batches=pool_batches)
    for epoch in (0, 1, 7):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert len(batches) == len(sampler)
        assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
        assert sum(len(batch) != micro_batch_size for batch in batches) == (
            len(lengths) % micro_batch_size > 0
        )
        assert all(type(i) is int for batch in batches for i in batch)
        assert list(sampler) == batches, "the order is a function of seed and epoch alone"


def test_a_new_epoch_and_a_new_seed_give_a_new_order_and_new_company():
    lengths = np.random.default_rng(0).integers(1, 300, size=2000)
    sampler = BucketBatchSampler(lengths, 16)
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert first != second
    assert first != list(BucketBatchSampler(lengths, 16, seed=1))
    same_company = {frozenset(batch) for batch in first} & {frozenset(batch) for batch in second}
    assert len(same_company) < len(first) // 10


def test_batches_do_not_come_in_order_of_length():
    lengths = np.arange(1, 1601)
    means = [np.mean(lengths[batch]) for batch in BucketBatchSampler(lengths, 16)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.4


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=90), st.integers(1, 9), st.integers(0, 3), st.data())
def test_resumed_equals_uninterrupted(lengths, micro_batch_size, epoch, data):
    def fresh():
        sampler = BucketBatchSampler(lengths, micro_batch_size, seed=3, pool_batches=4)
        sampler.set_epoch(epoch)
        return sampler

    whole = list(fresh())
    interrupted = fresh()
    stop = data.draw(st.integers(0, len(whole)))
    running = iter(interrupted)
    seen = [next(running) for _ in range(stop)]
    resumed = BucketBatchSampler(lengths, micro_batch_size, seed=3, pool_batches=4)
    resumed.load_state_dict(interrupted.state_dict())
    resumed.set_epoch(epoch)  # a loop that calls it anyway must not lose the place
    assert seen + list(resumed) == whole
    assert list(resumed) == whole, "the place counts once; after it the epoch is whole again"
    resumed.load_state_dict(interrupted.state_dict())
    resumed.set_epoch(epoch + 1)
    assert len(list(resumed)) == len(whole)


def test_a_position_of_another_run_is_refused():
    state = BucketBatchSampler([1, 2, 3], 2).state_dict()
    for other in (BucketBatchSampler([1, 2, 4], 2), BucketBatchSampler([1, 2, 3], 1)):
        with pytest.raises(UserError, match="other data, micro_batch_size or seed"):
            other.load_state_dict(state)
    with pytest.raises(UserError, match="other data, micro_batch_size or seed"):
        BucketBatchSampler([1, 2, 3], 2, seed=1).load_state_dict(state)
    with pytest.raises(UserError, match="micro_batch_size=0 and pool_batches=100 must be at least 1"):
        BucketBatchSampler([1], 0)


@settings(deadline=None)
@given(samples, st.integers(1, 5))
def test_pad_fraction_is_what_collate_pads(batch, micro_batch_size):
    lengths = [len(ids) for ids, _ in batch]
    batches = list(BucketBatchSampler(lengths, micro_batch_size))
    masks = [collate([batch[i] for i in chosen])["attention_mask"] for chosen in batches]
    places, real = sum(mask.numel() for mask in masks), sum(int(mask.sum()) for mask in masks)
    assert pad_fraction(lengths, batches) == pytest.approx(1 - real / places if places else 0.0)


def test_pad_fraction_by_hand():
    assert pad_fraction([2, 4, 1], [[0, 1], [2]]) == pytest.approx(1 - 7 / 9)
    assert pad_fraction([2, 4, 1], []) == 0.0


@pytest.mark.parametrize("micro_batch_size", [16, 64])
def test_bucketing_pads_at_most_five_percent_on_the_corpus(micro_batch_size):
    train, _ = docstring_store(progress=False)
    order = np.random.default_rng(0).permutation(len(train))
    unsorted = [order[i : i + micro_batch_size] for i in range(0, len(order), micro_batch_size)]
    assert pad_fraction(train.lengths, BucketBatchSampler(train.lengths, micro_batch_size)) <= 0.05
    assert pad_fraction(train.lengths, unsorted) > 0.5, "without a long tail there is nothing to teach"


@settings(deadline=None)
@given(samples, st.integers(0, 5))
def test_collate_pads_labels_per_token_with_ignore(batch, extra):
    tagged = [(ids, ids % 7) for ids, _ in batch]
    width = max(len(ids) for ids, _ in batch) + extra
    out = collate(tagged, pad_id=9, pad_to=width)
    assert out["labels"].shape == out["input_ids"].shape and out["labels"].dtype == torch.int64
    for row, (ids, labels) in zip(out["labels"], tagged, strict=True):
        assert row.tolist() == labels.tolist() + [IGNORE] * (width - len(ids))
    assert IGNORE == losses.IGNORE


def test_batches_of_a_store_are_those_that_collate_makes():
    train, _ = docstring_store(progress=False)
    some = train.subset(np.random.default_rng(0).permutation(len(train))[:300])
    sampler = BucketBatchSampler(some.lengths, 16)
    made = list(Batches(some, sampler))
    assert len(made) == len(sampler) == 19
    for batch, indices in zip(made, sampler, strict=True):
        wanted = collate([some[i] for i in indices])
        assert all(torch.equal(batch[name], wanted[name]) for name in wanted)
    filler = next(iter(Batches(some, [Filler([0, 1])])))
    assert filler["labels"].tolist() == [IGNORE, IGNORE]
    assert some[0][1] != IGNORE, "the store's own labels are not written to"


def test_a_position_set_from_outside_is_where_it_goes_on():
    sampler = BucketBatchSampler(range(1, 50), 8)
    whole = list(sampler)
    state = sampler.state_dict() | {"position": 3}
    sampler.load_state_dict(state)
    assert list(sampler) == whole[3:]


def test_widths_are_rounded_up_but_not_beyond_the_longest_allowed():
    class Plain:
        max_length = 21
        lengths = np.array([3, 8, 9, 21])

        def __getitem__(self, index):
            return np.full(self.lengths[index], index + 1), index

    samples = Plain()
    order = [[0], [0, 1], [2], [3]]
    batches = list(Batches(samples, order, width_multiple=8))
    assert [batch["input_ids"].shape[1] for batch in batches] == [8, 8, 16, 21]
    for batch, exact in zip(batches, Batches(samples, order), strict=True):
        width = exact["input_ids"].shape[1]
        assert torch.equal(batch["input_ids"][:, :width], exact["input_ids"])
        assert batch["attention_mask"].sum() == exact["attention_mask"].sum()
