"""The sign e-process against exact probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.engine.timing.verdict import (
    ALPHA_FAIL,
    ALPHA_PASS,
    MARGIN,
    MAX_BLOCKS,
    decide,
    sign_wealth,
    successes_needed,
)
from tests.benchmarks.simulate_verdicts import outcomes


@given(st.integers(0, 40), st.data())
def test_wealth_is_the_mixture_of_likelihood_ratios(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    # p^S (1-p)^(n-S) 2^n over p in [1/2, 1], by Jeffreys' prior: even in the angle whose squared sine is p.
    points = 2000
    angles = math.pi / 4 * (1 + (np.arange(points) + 0.5) / points)
    p = np.sin(angles) ** 2
    mixture = np.mean(p**successes * (1 - p) ** (trials - successes)) * 2.0**trials
    assert sign_wealth(successes, trials) == pytest.approx(mixture, rel=1e-4)


@given(st.integers(0, 39), st.data())
def test_a_fair_coin_neither_gains_nor_loses_wealth(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    next_wealth = (sign_wealth(successes, trials + 1) + sign_wealth(successes + 1, trials + 1)) / 2
    assert next_wealth == pytest.approx(sign_wealth(successes, trials))


def probability_to_reject(chance: float, alpha: float, max_blocks: int) -> float:
    """Exact, over all ways that blocks beyond the threshold with probability `chance` can come, at every stop."""
    reached = 0.0
    undecided = {0: 1.0}  # blocks beyond the threshold so far -> probability to be there
    for n in range(1, max_blocks + 1):
        following: dict[int, float] = {}
        for beyond, probability in undecided.items():
            for step, share in ((0, 1 - chance), (1, chance)):
                following[beyond + step] = following.get(beyond + step, 0.0) + probability * share
        undecided = {s: p for s, p in following.items() if s < successes_needed(n, alpha)}
        reached += sum(p for s, p in following.items() if s not in undecided)
    return reached


@pytest.mark.parametrize("alpha", [ALPHA_PASS, ALPHA_FAIL])
def test_wrong_verdicts_are_as_rare_as_promised_exactly(alpha: float) -> None:
    """A fair coin is the worst case; five reruns of an open question, 200 blocks, stay within the promise too."""
    fair = probability_to_reject(0.5, alpha, MAX_BLOCKS)
    assert 0 < fair <= alpha
    assert fair < probability_to_reject(0.5, alpha, 5 * MAX_BLOCKS) <= alpha
    for worse in (0.49, 0.4, 0.25, 0.0):
        assert probability_to_reject(worse, alpha, MAX_BLOCKS) < fair


@given(st.floats(0.0, 0.5), st.floats(0.0, 1.0))
@settings(max_examples=30, deadline=None)
def test_the_whole_rule_is_as_rarely_wrong_exactly(above: float, rest: float) -> None:
    """Both questions asked at once, of blocks that lie above the bar, in the margin or below it, as chance will."""
    low, high = math.log(MARGIN) - 0.01, 0.01  # log speedup / bar: below the margin, above the bar
    shares = {high: above, -0.01: (1 - above) * rest, low: (1 - above) * (1 - rest)}
    beyond_margin = above + shares[-0.01]
    open_states = {(0, 0): 1.0}  # (above the margin, below the bar) -> probability
    wrong_pass = wrong_fail = 0.0
    for n in range(1, MAX_BLOCKS + 1):
        following: dict[tuple[int, int], float] = {}
        for (passing, failing), probability in open_states.items():
            for value, share in shares.items():
                state = (passing + (value > math.log(MARGIN)), failing + (value < 0))
                following[state] = following.get(state, 0.0) + probability * share
        open_states = {}
        for (passing, failing), probability in following.items():
            if passing >= successes_needed(n, ALPHA_PASS):
                wrong_pass += probability
            elif failing >= successes_needed(n, ALPHA_FAIL):
                wrong_fail += probability
            else:
                open_states[passing, failing] = probability
    if beyond_margin <= 0.5:  # the true speedup is at most 0.95 × the bar
        assert wrong_pass <= ALPHA_PASS
    if above >= 0.5:  # it is at least the bar
        assert wrong_fail <= ALPHA_FAIL


@given(st.integers(1, 200), st.sampled_from([ALPHA_PASS, ALPHA_FAIL]))
def test_the_table_is_where_the_wealth_reaches_its_bound(trials: int, alpha: float) -> None:
    needed = successes_needed(trials, alpha)
    assert needed == trials + 1 or sign_wealth(needed, trials) >= 1 / alpha
    assert needed == 0 or sign_wealth(needed - 1, trials) < 1 / alpha
    assert needed <= successes_needed(trials + 1, alpha) <= needed + 1


@given(st.integers(0, 80), st.data())
def test_more_blocks_beyond_the_threshold_never_mean_less_wealth(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    more = data.draw(st.integers(successes, trials))
    assert sign_wealth(successes, trials) <= sign_wealth(more, trials)


_blocks = st.lists(st.floats(-1, 1), min_size=1, max_size=MAX_BLOCKS)


@given(_blocks, st.data(), st.floats(0.5, 4.0))
def test_a_faster_solution_is_never_judged_worse(y: list[float], data: st.DataObject, bar: float) -> None:
    gains = data.draw(st.lists(st.floats(0, 1), min_size=len(y), max_size=len(y)))
    before = decide(y, bar)
    after = decide([a + b for a, b in zip(y, gains, strict=True)], bar)
    if before.outcome == "pass":
        assert after.outcome == "pass"
        assert after.blocks <= before.blocks
    if after.outcome == "fail":
        assert before.outcome == "fail"


@given(st.lists(st.lists(st.floats(-1, 1), min_size=40, max_size=40), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_the_simulation_judges_by_the_same_rule(verdicts: list[list[float]]) -> None:
    judged, used = outcomes(np.array(verdicts))
    for y, outcome, blocks in zip(verdicts, judged, used, strict=True):
        decision = decide(y, 1.0)
        assert {1: "pass", -1: "fail", 0: "inconclusive"}[int(outcome)] == decision.outcome
        assert blocks == decision.blocks


def test_seven_good_blocks_pass_and_eight_bad_ones_fail() -> None:
    assert decide([1.0] * 6, 1.5).outcome is None
    assert decide([1.0] * 7, 1.5).outcome == "pass"
    assert decide([0.0] * 7, 1.5).outcome is None
    assert decide([0.0] * 8, 1.5).outcome == "fail"


def test_between_margin_and_bar_the_clock_may_give_up_but_not_lie() -> None:
    between = [math.log(1.45)] * 6  # above 0.95 · 1.5 = 1.425, below 1.5
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
