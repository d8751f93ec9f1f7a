"""A noisier machine pays no more than a quiet one: what a solution earns by blocks of either, in either order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.engine.check import check_source
from autograder.engine.measure.speedup import goes_on, slowest_that_earns
from autograder.engine.timing.blocks import KeptBlock, are_surely_below, decide_on
from autograder.engine.timing.verdict import ALPHA_FAIL, MAX_BLOCKS, is_surely_below
from autograder.lessons.lesson_01.references import MAKE_LOADER

ALL, CLOCK_FREE = 10, 6  # points, as of 1.1
QUIET, NOISY = 0.02, 0.6  # standard deviation of a block's log speedup


def earned(log_speedups: Sequence[float], bar: float = 1.5) -> int:
    """What a right solution with these blocks earns, measured as long as `measure_speedup` would."""
    blocks: list[KeptBlock] = []
    decision = decide_on(blocks, bar)
    for y in log_speedups:
        blocks.append(KeptBlock(order="ABBA", seconds=(1.0,) * 4, num_steps=1, y=y))
        decision = decide_on(blocks, bar, max_blocks=len(log_speedups))
        if not goes_on(decision, blocks, bar, 0.0, len(log_speedups)):
            break
    if decision.outcome == "fail" and are_surely_below(blocks, slowest_that_earns(bar)):
        return 0
    return ALL if decision.outcome == "pass" else CLOCK_FREE


def drawn(rng: np.random.Generator, speedup: float, noise: float, number: int = MAX_BLOCKS) -> list[float]:
    return [float(value) for value in rng.normal(math.log(speedup), noise, number)]


@pytest.mark.parametrize(
    ("speedup", "quiet"), [(0.6, 0), (0.9, 0), (1.2, CLOCK_FREE), (1.4, CLOCK_FREE), (1.7, ALL)]
)
def test_noise_takes_and_does_not_give(speedup: float, quiet: int) -> None:
    rng = np.random.default_rng(0)

    def mean(noise: float, number: int = MAX_BLOCKS) -> float:
        return float(np.mean([earned(drawn(rng, speedup, noise, number)) for _ in range(40)]))

    assert mean(QUIET) == pytest.approx(quiet, abs=0.2)
    if speedup > 1:
        assert max(mean(0.2), mean(NOISY)) <= quiet + 0.2, "but for the clock's two in a hundred"
    else:  # what noise hides comes out in most cases, if it is measured longer
        assert mean(0.2, 300) <= CLOCK_FREE / 3


@pytest.mark.parametrize("noises", [(NOISY, QUIET), (QUIET, NOISY)])
def test_the_order_of_noise_and_quiet_changes_nothing(noises: tuple[float, float]) -> None:
    """Right and below the bar, or slower than the baseline: begun on the one machine, and gone on with on the other."""
    rng = np.random.default_rng(1)
    points = {}
    for speedup in (0.8, 1.2):
        runs = [[y for noise in noises for y in drawn(rng, speedup, noise)] for _ in range(40)]
        points[speedup] = [earned(run) for run in runs]
    assert np.mean([each == CLOCK_FREE for each in points[1.2]]) >= 0.9
    assert np.mean([each == 0 for each in points[0.8]]) >= 0.9


@settings(max_examples=200)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=60), st.floats(0.3, 3))
def test_who_is_below_the_baseline_is_below_the_bar(blocks: list[float], bar: float) -> None:
    """So nothing that is measured can take points from a solution that the clock passes."""
    floor = slowest_that_earns(bar)
    assert floor <= bar
    if is_surely_below(blocks, floor):
        assert is_surely_below(blocks, bar)


def test_the_baseline_itself_is_rarely_called_slower() -> None:
    rng = np.random.default_rng(2)
    called = [is_surely_below(drawn(rng, 1.0, 0.1), 1.0) for _ in range(2000)]
    assert np.mean(called) <= ALPHA_FAIL + 0.005


def test_a_bar_below_one_asks_for_no_more_than_its_half() -> None:
    assert [slowest_that_earns(bar) for bar in (3.0, 1.0, 0.625)] == [1.0, 1.0, 0.3125]


@pytest.mark.measures
@pytest.mark.further
def test_a_loader_that_fetches_ahead_by_one_thread_has_what_its_counts_earn_or_is_told_that_it_is_slower() -> (
    None
):
    """It is about as fast as the baseline. Surely below the bar and undecided pay the same; surely slower than the
    baseline pays nothing, and says so."""
    source = MAKE_LOADER.replace("ThreadPoolExecutor(16)", "ThreadPoolExecutor(1)")
    result = check_source("1.5", source.replace("\ndef make_loader", '\n@exercise("1.5")\ndef make_loader'))
    is_slower = "Slower than the baseline" in str(result.reason)
    assert result.verdict in ("fail", "inconclusive") and result.score == (0 if is_slower else 4), (
        result.reason
    )
    assert is_slower or "points that need no clock are yours" in str(result.reason)
