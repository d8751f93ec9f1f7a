"""The one implementation of blocks and estimates, on clocks that the test owns."""

import json
import math
import statistics
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pytest

from course_lib.measuring.bench import (
    Block,
    bootstrap_interval,
    choose_num_steps,
    estimate_speedup,
    hodges_lehmann,
    measure_block,
    paired_speedup,
)


def recorder(log, side, seconds_per_step, drift=None):
    def run(seed, num_steps):
        log.append((side, seed, num_steps))
        return seconds_per_step * num_steps * (drift(len(log)) if drift else 1.0)

    return run


def test_a_block_runs_abba_or_baab_and_gives_both_sides_the_same_seeds():
    seen = set()
    rng = np.random.default_rng(0)
    for _ in range(20):
        log = []
        block = measure_block(recorder(log, "A", 2.0), recorder(log, "B", 1.0), rng, count(), num_steps=5)
        assert "".join(side for side, _, _ in log) == block.order
        seen.add(block.order)
        seeds = {side: sorted(seed for s, seed, _ in log if s == side) for side in "AB"}
        assert seeds["A"] == seeds["B"] == list(block.seeds)
        assert {num_steps for _, _, num_steps in log} == {5}
        assert math.exp(block.y) == pytest.approx(2.0)
    assert seen == {"ABBA", "BAAB"}


def test_exponential_drift_cancels_in_either_order():
    for seed in range(4):
        log = []

        def drift(k):
            return 1.3**k

        block = measure_block(
            recorder(log, "A", 3.0, drift),
            recorder(log, "B", 1.0, drift),
            np.random.default_rng(seed),
            count(),
            num_steps=3,
        )
        assert math.exp(block.y) == pytest.approx(3.0)


def test_choose_num_steps_reaches_the_minimum_on_the_faster_side():
    log = []
    slow, fast = recorder(log, "A", 0.1), recorder(log, "B", 0.002)
    num_steps = choose_num_steps(slow, fast, count(), min_seconds=0.25, min_steps=3)
    assert num_steps * 0.002 >= 0.25
    assert num_steps < 2 * 0.25 / 0.002
    assert len({seed for _, seed, _ in log}) * 2 == len(log)  # each try on fresh input, both sides alike
    assert choose_num_steps(slow, recorder([], "B", 10.0), count()) == 3


def test_hodges_lehmann_is_the_median_of_walsh_averages_and_shrugs_off_an_outlier():
    y = [0.3, 0.1, 0.2, 0.25, 9.0]
    walsh = [(a + b) / 2 for i, a in enumerate(y) for b in y[i:]]
    assert hodges_lehmann(y) == pytest.approx(statistics.median(walsh))
    assert hodges_lehmann(y) < 0.4
    stacked = np.array([y, y[::-1]])
    assert hodges_lehmann(stacked) == pytest.approx([hodges_lehmann(y)] * 2)
    with pytest.raises(ValueError, match="at least one"):
        hodges_lehmann([])


def test_the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(100):
        low, high = bootstrap_interval(rng.normal(0.5, 0.05, size=12), num_resamples=300)
        hits += low <= 0.5 <= high
    assert 82 <= hits <= 100  # nominal 95; the percentile bootstrap of 12 values is a little narrow


def test_too_few_values_promise_nothing():
    assert bootstrap_interval([0.4]) == (-math.inf, math.inf)
    assert bootstrap_interval([0.4, 0.1, 0.2]) == (0.1, 0.4)
    assert bootstrap_interval([0.4] * 9) == (0.4, 0.4)


def test_an_estimate_goes_to_json():
    blocks = [
        Block(order="ABBA", seconds=(2.0, 1.0, 1.0, 2.0), num_steps=3, seeds=(0, 1)),
        Block(order="BAAB", seconds=(1.0, 2.2, 2.2, 1.0), num_steps=3, seeds=(2, 3)),
    ]
    estimate = estimate_speedup(blocks)
    assert 2.0 <= estimate.low <= estimate.estimate <= estimate.high <= 2.2000001
    first = json.loads(json.dumps(estimate.to_dict()))["blocks"][0]
    assert first == {
        "order": "ABBA",
        "seconds": [2, 1, 1, 2],
        "num_steps": 3,
        "seeds": [0, 1],
        "y": blocks[0].y,
    }
    alone = estimate_speedup(blocks[:1]).to_dict()
    assert (alone["low"], alone["high"]) == (None, None)


@pytest.mark.parametrize("seconds", [(1.0, 0.0, 1.0, 1.0), (1.0, math.nan, 1.0, 1.0)])
def test_an_impossible_time_is_refused(seconds):
    with pytest.raises(ValueError, match="positive"):
        Block(order="ABBA", seconds=seconds, num_steps=1, seeds=(0, 1))


def test_paired_speedup_finds_the_ratio_of_two_sleeps():
    seen = []
    estimate = paired_speedup(
        lambda: time.sleep(0.004), lambda: time.sleep(0.002), blocks=5, min_seconds=0.02, on_block=seen.append
    )
    assert list(estimate.blocks) == seen
    assert 1.5 < estimate.estimate < 2.3  # sleeps overshoot by a little, both alike
    with pytest.raises(ValueError, match="blocks"):
        paired_speedup(lambda: None, lambda: None, blocks=0)


def test_bench_needs_no_torch():
    code = (
        "import sys, course_lib.measuring.bench; sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
