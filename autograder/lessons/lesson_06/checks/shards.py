"""The check of exercise 6.1: which samples each rank takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_each_once, require_repeatable
from autograder.lessons.lesson_06.checks.orders import (
    Ranks,
    require_others,
    require_shuffled,
    require_shuffled_first,
    require_spread,
)
from autograder.lessons.lesson_06.checks.shard_filling import require_filling

ENOUGH_TO_TELL = 15  # of so many samples the first ones are a permutation in no layout by chance
MANY = 50
BROKEN_OFF, TWICE = 1, 2  # the pass that was begun once before; the one that was made a second time
FAR = 1000  # times the ranks, between two epochs: no period that anybody thinks of tells them apart


def check_shard_sampler(job: Job) -> None:
    """6.1: every sample on some rank, equal lengths, repeats only to fill up, and new shards each epoch."""
    rng = job.rng
    cases = [(1003, 4), (96, 3), (int(rng.integers(200, 700)), int(rng.integers(5, 9)))]
    # More ranks than samples, as many, one less; one rank; one sample.
    cases += [(3, 8), (20, 73), (24, 24), (25, 24), (17, 1), (1, int(rng.integers(2, 5)))]
    for num_samples, world_size in cases:
        first = 10 * int(rng.integers(1, 40))
        second, neighbour = first + 100 * int(rng.integers(1, 6)), first + 1
        later = 2 + world_size * int(rng.integers(1, 6))  # neither 0 nor 1 where shards change places in turn
        epochs = [0, 1, later, later + FAR * world_size, later, 1, 0]  # a resumed run comes back to an epoch
        of_seeds = job.learner().call(
            "shard_epochs",
            num_samples=num_samples,
            world_size=world_size,
            seeds=[first, second, first, 0, None, neighbour],
            epochs=epochs,
        )
        for ranks in of_seeds:
            _require_lengths(job, ranks, num_samples, world_size)
        if num_samples >= ENOUGH_TO_TELL:
            _require_what_seed_and_epoch_decide(job, of_seeds, epochs, by_rank=num_samples > MANY)
        if num_samples > MANY:
            for ranks in of_seeds:
                require_shuffled(job, ranks, in_turn=False)
        for ranks in of_seeds:
            for number, epoch in enumerate(epochs):
                _require_shards(job, ranks, number, epoch, num_samples, world_size)
            _require_own_order(job, ranks, num_samples)
        if num_samples > MANY:
            for ranks in of_seeds:
                require_shuffled_first(job, ranks, world_size)
                require_shuffled(job, ranks, in_turn=True)
                require_spread(job, ranks, num_samples)
        if num_samples >= ENOUGH_TO_TELL:
            for ranks in of_seeds:
                for number, epoch in enumerate(epochs):
                    who = f"{num_samples} samples on {world_size} ranks, epoch {epoch}: "
                    require_filling(job, ranks, number, who, num_samples)
                _require_other_epochs(job, ranks, epochs)
    require_others(job)
    _require_the_same_in_each_process(job)
    job.counts["world_sizes_tried"] = len({world_size for _, world_size in cases})


def _require_lengths(job: Job, ranks: Ranks, num_samples: int, world_size: int) -> None:
    share = math.ceil(num_samples / world_size)
    who = f"{num_samples} samples on {world_size} ranks: "
    orders = [order for rank in ranks for order in [*rank["orders"], rank["again"], rank["amid"]]]
    odd = [order for order in orders if isinstance(order, str)]
    job.require(
        not odd,
        expected=f"{who}indices that are ints of Python's own",
        got=f"a {odd[0] if odd else '-'}",
        likely="another type than int is yielded: floats are no index, and tensors or NumPy's numbers are odd ones",
        look="print the type of what your `__iter__` yields; `.tolist()` makes ints",
    )
    sizes = [len(order) for order in orders]
    likely = "ranks get different numbers of samples: the last steps would wait for one that never comes"
    if world_size > 1 and max(sizes) >= num_samples > share:
        likely = "no sampler: every rank goes over all the samples, so nothing is shared out"
    elif max(sizes) == num_samples // world_size:
        likely = "the tail is dropped: what does not divide by the number of ranks is never seen"
    elif any(len(set(map(len, rank["orders"]))) > 1 for rank in ranks):
        likely = "a pass that was broken off is not begun anew: what it had yielded is missing"
    elif world_size > 2 * num_samples and max(sizes) == share:
        likely = "the filling ends too early: with so many ranks one repetition of the order is not enough"
    job.require(
        set(sizes) == {share},
        expected=f"{who}{share} indices on every rank",
        got=f"{sizes[BROKEN_OFF :: len(ranks[0]['orders'])][:8]}",
        likely=likely,
        look="ceil(N / world_size) each; the missing ones are filled up from the start of the order, again and again",
    )
    job.require(
        all(set(rank["len"]) == {share} for rank in ranks),
        expected=f"{who}len(sampler) = {share}, before and after each pass",
        got=f"{[next((n for n in rank['len'] if n != share), share) for rank in ranks][:8]}",
        likely="`__len__` counts all samples, or without the filling"
        if any(rank["len"][0] != share for rank in ranks)
        else "`__len__` counts what is left, and not what one rank yields in a pass",
        look="it is the number of indices that one rank yields",
    )


def _whole(ranks: Ranks) -> Ranks:
    """All ranks' indices as those of one: where a rank has few, two orders may look alike to it by chance."""
    orders = zip(*[rank["orders"] for rank in ranks], strict=True)
    return [
        {"orders": list(map(np.concatenate, orders))}
        | {name: np.concatenate([rank[name] for rank in ranks]) for name in ("again", "amid")}
    ]


def _require_what_seed_and_epoch_decide(
    job: Job, of_seeds: list[Ranks], epochs: list[int], *, by_rank: bool
) -> None:
    first, second, again, zero, default, neighbour = (
        of_seeds if by_rank else [_whole(ranks) for ranks in of_seeds]
    )
    for number, rank in enumerate(first):
        orders = rank["orders"]
        back = len(epochs) - 1
        require_repeatable(
            job,
            what="order",
            is_same=all(np.array_equal(orders[n], orders[back - n]) for n in range(back)),
            when="for the same seed and epoch",
            unseeded="an unseeded generator, or one that carries on, or a list that is shuffled once more: ranks "
            "could not agree on an order",
            look_unseeded="make the generator anew in `__iter__`",
            is_another=not np.array_equal(orders[0], orders[1]),
            another=f"on rank {number} after set_epoch with another epoch",
            fixed="forgot set_epoch: the order does not depend on the epoch, so every epoch is the same",
            look_fixed="make the generator from seed and epoch",
        )
        require_repeatable(
            job,
            what="order",
            is_same=np.array_equal(orders[TWICE], rank["again"]),
            when="for a second pass without a `set_epoch` between",
            unseeded="the passes are counted by the sampler itself: only `set_epoch` may choose another epoch",
            look_unseeded="`__iter__` reads the epoch, and leaves it as it is",
        )
        job.require(
            np.array_equal(orders[TWICE], rank["amid"]),
            expected="the same order when somebody else draws random numbers during the pass",
            got="another order",
            likely="numbers are drawn from a generator that belongs to all, while the pass goes on: a training draws "
            "from it too, on each rank other numbers",
            look="a generator of your own, or the whole order before the first index is yielded",
        )
        require_repeatable(
            job,
            what="order",
            is_same=_are_same(rank, again[number]),
            when="from another sampler of the same seed and epoch",
            unseeded="an unseeded generator, or a state that samplers of one process share: ranks could not agree",
            look_unseeded="make the generator anew in `__iter__`, from this sampler's own seed and epoch",
            is_another=not any(map(np.array_equal, orders, second[number]["orders"]))
            and not any(map(np.array_equal, orders, neighbour[number]["orders"]))
            and not any(map(np.array_equal, orders, zero[number]["orders"])),
            another=f"on rank {number} for another seed",
            fixed="the seed is ignored: every run sees the samples in the same order",
            look_fixed="make the generator from seed *and* epoch",
        )
        job.require(
            _are_same(zero[number], default[number]),
            expected="without a seed the shards of seed 0",
            got="others",
            likely="another default than `seed=0`, or the sampler draws one of its own when none is given",
            look="the signature says what the seed is when nobody gives one",
        )


def _require_own_order(job: Job, ranks: Ranks, num_samples: int) -> None:
    found = np.unique(np.concatenate([rank["beside"] for rank in ranks]))
    job.require(
        np.array_equal(found, np.arange(num_samples)),
        expected=f"indices 0 … {num_samples - 1} where another sampler, for more samples, was gone through before",
        got=f"{len(found)} indices, up to {found.max()}",
        likely="an order is kept for all samplers of a process by seed and epoch alone: one made for another number "
        "of samples is taken for this one",
        look="keep the order in `self`, or make it anew in `__iter__`",
    )


def _require_other_epochs(job: Job, ranks: Ranks, epochs: list[int]) -> None:
    (whole,) = _whole(ranks)
    found = {tuple(order) for order in whole["orders"]}
    job.require(
        len(found) == len(set(epochs)),
        expected=f"another order for each of the epochs {sorted(set(epochs))}",
        got=f"{len(found)} orders",
        likely="the epochs repeat: after some of them the orders of the first ones come back",
        look="make the generator from the whole number of the epoch, not from a remainder of it",
    )


def _require_the_same_in_each_process(job: Job) -> None:
    num_samples, world_size, seed, epoch = request = [103, 4, int(job.rng.integers(1000)), 3]
    (here,) = job.learner().call(
        "shard_epochs", num_samples=num_samples, world_size=world_size, seeds=[seed], epochs=[epoch]
    )
    there = job.learner().call(
        "shards_elsewhere", source=job.source, entry=job.entry, request=request, hash_seed=1 + job.seed()
    )
    job.require(
        all(np.array_equal(rank["orders"][0], order) for rank, order in zip(here, there, strict=True)),
        expected="the same shards for the same seed and epoch in another process: each rank is one",
        got="others",
        likely="what decides the order differs between processes, as `hash()` of a text does: ranks could not agree",
        look="make the generator from the numbers themselves",
    )


def _are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(map(np.array_equal, one["orders"], other["orders"]))


def _require_shards(
    job: Job, ranks: Ranks, number: int, epoch: int, num_samples: int, world_size: int
) -> None:
    who = f"{num_samples} samples on {world_size} ranks, epoch {epoch}: "
    orders = [rank["orders"][number] for rank in ranks]
    most = math.ceil(world_size * len(orders[0]) / num_samples)
    likely = (
        "each rank shuffles for itself (its rank is in the seed), so that the shards overlap and leave gaps"
    )
    look = "all ranks make the *same* order from seed and epoch; then each takes its part of it"
    if len(orders) > 1 and all(np.array_equal(order, orders[0]) for order in orders):
        likely = "the rank is not used: all ranks take the same part of the order"
        look = "where in your code does the number of the rank decide which part is taken?"
    require_each_once(
        job,
        np.concatenate(orders),
        range(num_samples),
        most=most,
        expected=f"{who}each index 0 … {num_samples - 1} on some rank, and none more than {most} times",
        likely=likely,
        look=look,
        likely_repeated="the filling repeats one sample over and over: it counts for many",
        look_repeated="fill up with the first samples of the order, each once",
    )
    fewest = int(np.bincount(np.concatenate(orders), minlength=num_samples).min())
    job.require(
        fewest >= world_size * len(orders[0]) // num_samples,
        expected=f"{who}each index at least {world_size * len(orders[0]) // num_samples} times",
        got=f"one that comes {fewest} times",
        likely="the filling repeats some samples more often than others: it does not go through the whole order",
        look="after its last sample the order begins again at its first",
    )
