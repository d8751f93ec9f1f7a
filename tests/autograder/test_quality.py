"""Equal numbers, and models that are as good: what passes, what fails and says why, and how often each is wrong."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from autograder.engine.job import CheckFailed, Job
from autograder.lessons.checking.quality import (
    HEAD_START,
    TOLERANCES,
    are_equal,
    compare_paired,
    relative_difference,
    require_equal,
    require_no_worse,
)


def make_job(source="", harness="", entry="train"):
    return Job(exercise_id="9.9", entry=entry, source=source, harness=harness, rng=np.random.default_rng(7))


def compare(got, expected, dtype="float32"):
    require_equal(
        make_job(), got, expected, dtype=dtype, what="logits", likely="another loss", look="at one batch"
    )


EXPECTED = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (EXPECTED.T, r"shape \[4, 5\][\s\S]*shape \[5, 4\][\s\S]*swapped"),
        (EXPECTED[:3], r"shape \[3, 5\][\s\S]*rows are missing"),
        (EXPECTED.astype(np.float64), r"dtype float32[\s\S]*Got: float64"),
        (EXPECTED * np.float32(1.01), r"within|rounding[\s\S]*differ by up to 0\.0[\s\S]*another loss"),
        (np.where(EXPECTED > 1, np.nan, EXPECTED), r"NaN or infinity in \d+ of 20 places"),
        (np.where(EXPECTED > 1, np.float32(np.inf), EXPECTED), r"finite numbers"),
        (np.full_like(EXPECTED, -np.inf), r"NaN or infinity in 20 of 20"),
    ],
    ids=["transposed", "rows missing", "dtype", "values", "nan", "inf", "all inf"],
)
def test_a_difference_says_of_which_kind_it_is(got, says):
    with pytest.raises(CheckFailed, match=says):
        compare(got, EXPECTED)
    assert not are_equal(got, EXPECTED, "float32")


@given(
    dtype=st.sampled_from(sorted(TOLERANCES)),
    exponent=st.integers(-8, 8),
    seed=st.integers(0, 2**20),
    place=st.integers(0, 29),
)
def test_the_tolerance_is_relative_to_the_size_of_the_numbers_and_holds_for_each_of_them(
    dtype, exponent, seed, place
):
    expected = np.random.default_rng(seed).normal(size=30) * 10.0**exponent
    scale = abs(expected[place]) + np.sqrt(np.mean(expected**2))
    for share, is_equal in ((0.9, True), (1.1, False)):
        got = expected.copy()
        got[place] += share * TOLERANCES[dtype] * scale
        assert are_equal(got, expected, dtype) is is_equal
        assert relative_difference(got, expected) == pytest.approx(share * TOLERANCES[dtype], rel=1e-3)


def test_whole_numbers_and_truth_values_must_be_equal_to_the_bit():
    numbers = np.array([2**53 - 1, 5])
    assert are_equal(numbers.copy(), numbers, "int64")
    assert not are_equal(numbers + np.array([0, 1]), numbers, "int64")
    assert not are_equal(np.array([True, False]), np.array([True, True]), "bool")
    compare(np.zeros((0, 3), dtype=np.float32), np.zeros((0, 3), dtype=np.float32))
    compare(np.zeros(3), np.zeros(3))
    assert not are_equal(np.array([0.0, 1e-3]), np.zeros(2), "float32")


def test_nan_is_equal_to_nothing_not_even_where_it_is_expected():
    assert not are_equal(np.array([np.nan]), np.array([np.nan]), "float32")
    assert not are_equal(np.array([np.inf]), np.array([np.inf]), "bfloat16")


def test_the_same_layer_in_another_order_passes_and_in_half_precision_fails():
    torch.manual_seed(0)
    x, weight = torch.randn(64, 300), torch.randn(40, 300)
    expected = F.linear(x, weight).numpy()
    parts = [F.linear(x[:, i : i + 50], weight[:, i : i + 50]) for i in range(250, -50, -50)]
    compare(torch.stack(parts).sum(0).numpy(), expected)
    for dtype in (torch.bfloat16, torch.float16):
        low = F.linear(x.to(dtype), weight.to(dtype)).float().numpy()
        with pytest.raises(CheckFailed, match="differ by up to"):
            compare(low, expected)
        compare(low, expected, dtype=str(dtype).removeprefix("torch."))


def rates(true_difference, *, spread=3.5, noise=None, number=20_000):
    """Shares of the outcomes for solutions whose true difference, in points, is this."""
    rng = np.random.default_rng(int(100 * true_difference) % 1000)
    draw = noise or (lambda: rng.normal(0.0, spread))
    found = [
        compare_paired(lambda: true_difference + draw(), margin=0.5, spread=spread)[0] for _ in range(number)
    ]
    return {outcome: found.count(outcome) / number for outcome in ("worse", "level", "ahead")}


def test_error_rates_of_the_comparison_with_the_baseline():
    assert rates(0.0)["worse"] < 1e-3
    assert rates(-0.5)["worse"] < 1e-3  # exactly at the margin
    # The power: what a worse solution risks.
    assert rates(-2.0)["worse"] > 0.1
    assert rates(-3.0)["worse"] > 0.55
    assert rates(-5.0)["worse"] > 0.94


def test_a_right_solution_is_rarely_looked_at_twice():
    rng = np.random.default_rng(5)
    looks = [len(compare_paired(lambda: rng.normal(0, 3.5), margin=0.5, spread=3.5)[1]) for _ in range(5000)]
    assert np.mean(np.array(looks) == 3) > 0.7
    assert np.mean(looks) < 6


def test_error_rates_of_the_leak_detector():
    for honest in (-0.5, 0.0, 0.5, HEAD_START):  # the last one is as lucky as right solutions can be
        assert rates(honest)["ahead"] < 1e-3
    assert rates(HEAD_START + 3)["ahead"] > 0.7
    assert rates(HEAD_START + 5)["ahead"] > 0.93


@pytest.mark.parametrize("name", ["heavy tails", "skewed"])
def test_error_rates_where_noise_is_not_normal(name):
    rng = np.random.default_rng(3)
    draws = {
        "heavy tails": lambda: 3.5 * rng.standard_t(4) / np.sqrt(2),
        "skewed": lambda: 3.5 * (rng.exponential() - 1),
    }
    found = rates(0.0, noise=draws[name])
    assert found["worse"] < 2e-3
    assert found["ahead"] < 2e-3


HARNESS = """
import math

def quality(seed, bonus=0.0):
    return 60.0 + seed % 7 / 10 + learner(seed) + bonus
"""
BASELINE = "def train(seed):\n    return 0.0\n"


def learn(body, **options):
    job = make_job(f"import math\n\ndef train(seed):\n    return {body}\n", HARNESS)
    try:
        require_no_worse(
            job,
            baseline=BASELINE,
            function="quality",
            arguments={},
            margin=0.5,
            spread=3.5,
            likely="it learns less",
            look="at the loss",
            **options,
        )
    finally:
        job.close()
    return job


def test_a_solution_as_good_as_the_baseline_passes_after_three_seeds():
    job = learn("(seed % 3 - 1) / 2")
    assert job.review == []
    assert abs(job.counts["accuracy_difference_points"]) <= 0.5


def test_a_worse_one_fails_and_says_what_noise_was_allowed():
    with pytest.raises(CheckFailed, match=r"within 0\.5 points[\s\S]*3 paired seeds[\s\S]*-20\.0 points"):
        learn("-20.0")


def test_the_baseline_may_have_arguments_of_its_own():
    with pytest.raises(CheckFailed, match=r"-20\.0 points"):
        learn("0.0", baseline_arguments={"bonus": 20.0})


def test_a_much_better_one_passes_and_is_flagged_for_a_person():
    job = learn("15.0")
    assert len(job.review) == 1
    assert "3 equal seeds" in job.review[0] and "+15.0 points" in job.review[0]


def test_an_accuracy_that_is_no_number_fails():
    with pytest.raises(CheckFailed):
        learn("math.nan")
