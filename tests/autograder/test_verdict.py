"""The sign e-process against exact probabilities."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.verdict import ALPHA_FAIL, ALPHA_PASS, MAX_BLOCKS, decide, sign_wealth


@given(st.integers(0, 40), st.data())
def test_wealth_is_the_mixture_of_likelihood_ratios(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    # The uniform mixture over p in [1/2, 1] of p^S (1-p)^(n-S) 2^n, by a fine midpoint rule.
    points = 500
    step = 0.5 / points
    mixture = sum(
        (0.5 + (i + 0.5) * step) ** successes * (0.5 - (i + 0.5) * step) ** (trials - successes)
        for i in range(points)
    )
    assert sign_wealth(successes, trials) == pytest.approx(2 * step * mixture * 2.0**trials, rel=2e-3)


@given(st.integers(0, 39), st.data())
def test_a_fair_coin_neither_gains_nor_loses_wealth(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    next_wealth = (sign_wealth(successes, trials + 1) + sign_wealth(successes + 1, trials + 1)) / 2
    assert next_wealth == pytest.approx(sign_wealth(successes, trials))


@pytest.mark.parametrize("alpha", [ALPHA_PASS, ALPHA_FAIL])
def test_wrong_verdicts_are_as_rare_as_promised_exactly(alpha: float) -> None:
    """At the worst case, a coin of probability 1/2, by dynamic programming over all stopping paths."""
    reached = 0.0
    counts = {0: 1.0}  # blocks beyond the threshold so far -> probability to be there, undecided
    for n in range(1, MAX_BLOCKS + 1):
        following: dict[int, float] = {}
        for beyond, probability in counts.items():
            for step in (0, 1):
                following[beyond + step] = following.get(beyond + step, 0.0) + probability / 2
        counts = {}
        for beyond, probability in following.items():
            if sign_wealth(beyond, n) >= 1 / alpha:
                reached += probability
            else:
                counts[beyond] = probability
    assert 0 < reached <= alpha


def test_eight_good_blocks_pass_and_nine_bad_ones_fail() -> None:
    assert decide([1.0] * 7, 1.5).outcome is None
    assert decide([1.0] * 8, 1.5).outcome == "pass"
    assert decide([0.0] * 8, 1.5).outcome is None
    assert decide([0.0] * 9, 1.5).outcome == "fail"


def test_between_margin_and_bar_the_clock_may_give_up_but_not_lie() -> None:
    between = [math.log(1.45)] * 7  # above 0.95 · 1.5 = 1.425, below 1.5
    assert decide(between, 1.5).outcome is None
    around = [math.log(1.6), math.log(1.3)] * 20
    assert decide(around, 1.5).outcome == "inconclusive"
    assert decide(around, 1.5, max_blocks=60).outcome is None
    assert decide(between, 1.5, seconds=90.0).outcome == "inconclusive"


@given(st.lists(st.floats(-2, 2), max_size=40), st.lists(st.floats(-2, 2), max_size=10))
def test_later_blocks_never_undo_a_decision(first: list[float], later: list[float]) -> None:
    before = decide(first, 1.3)
    if before.outcome in ("pass", "fail"):
        assert decide(first + later, 1.3).outcome == before.outcome


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="successes"):
        sign_wealth(3, 2)
    with pytest.raises(ValueError, match="bar"):
        decide([], 0.0)
