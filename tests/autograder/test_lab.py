"""Parts of experiments: they must survive the way into a fresh process."""

import pickle
import time

import pytest

from autograder.kernel.lab import OwnNoise, SlowSamples


def test_each_sample_waits_and_arrives() -> None:
    slow = SlowSamples(["a", "b"], seconds=0.02)
    start = time.perf_counter()
    assert [slow[0], slow[1]] == ["a", "b"]
    assert time.perf_counter() - start >= 0.04
    assert len(slow) == 2


def test_it_travels_to_a_worker_process() -> None:
    copy = pickle.loads(pickle.dumps(SlowSamples([1, 2, 3], seconds=0.0)))
    assert [copy[i] for i in range(len(copy))] == [1, 2, 3]


def test_a_negative_wait_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        SlowSamples([], seconds=-1.0)


def test_copies_of_noise_draw_the_same() -> None:
    noise = OwnNoise(3, seed=1)
    copy = pickle.loads(pickle.dumps(noise))
    assert [noise[i] for i in range(len(noise))] == [copy[i] for i in range(len(copy))]
