"""The simulation behind docs/scale.md, where the answer is known without it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.class_plan import (
    HANDED_IN,
    HOUR,
    arrivals,
    last_result,
    least,
    needed,
    plan,
    read_costs,
    served,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_a_single_server_makes_wait_as_long_as_theory_says(rng: np.random.Generator, load: float) -> None:
    """M/M/1: a job is there for 1 / (1 - load) of a service, on average, and the server is busy `load` of the time."""
    number = 400_000
    ready, work = rng.exponential(1 / load, number).cumsum(), rng.exponential(1.0, number)
    ends = served(ready, work, 1)
    assert (ends - ready).mean() == pytest.approx(1 / (1 - load), rel=0.05)
    assert work.sum() / ends[-1] == pytest.approx(load, rel=0.01)


def test_many_servers_keep_within_the_bounds_of_any_list_schedule(rng: np.random.Generator) -> None:
    """Graham: no schedule ends before the work is shared evenly, and this one at most one job after that."""
    work = rng.exponential(10.0, 5_000)
    for lanes in (1, 3, 64):
        end = served(np.zeros(len(work)), work, lanes).max()
        assert max(work.sum() / lanes, work.max()) <= end * (1 + 1e-9)
        assert end <= work.sum() / lanes + work.max()
    assert served(np.zeros(5), np.ones(5), 5).tolist() == [1.0] * 5


def test_the_last_grade_waits_for_the_one_writer(rng: np.random.Generator) -> None:
    work = np.full(1_000, 2.0)
    assert last_result(np.zeros(1_000), work, 1_000, 1.0, 1) == pytest.approx(1_002)
    assert last_result(np.zeros(1_000), work, 2, 0.1, 1) == pytest.approx(1_000.2)


def test_needed_is_the_smallest_that_suffices(rng: np.random.Generator) -> None:
    ready, work = arrivals(2_000, rng), rng.exponential(30.0, 2_000)
    writers, lanes = needed(ready, work, 1.0, HOUR)
    assert last_result(ready, work, lanes, 1.0, writers) <= HOUR
    assert last_result(ready, work, lanes - 1, 1.0, writers) > HOUR
    assert [least(lambda n: n >= 37, begin) for begin in (1, 20, 37)] == [37, 37, 37]


def test_students_hand_in_when_they_are_said_to(rng: np.random.Generator) -> None:
    before = -arrivals(100_000, rng) / HOUR
    for hours, share in HANDED_IN:
        assert (before <= hours).mean() == pytest.approx(share, abs=0.01)


def test_one_machine_grades_a_hundred_within_a_day_and_work_grows_with_the_class(
    rng: np.random.Generator,
) -> None:
    costs = read_costs()
    assert costs.draw(20_000, rng).mean() == pytest.approx(costs.work_seconds, rel=0.05)
    few, many = plan(costs, 100, 1.0, 1.0, rng), plan(costs, 10_000, 1.0, 1.0, rng)
    assert few["after_24"] == (1, 1)
    lanes = many["after_24"][1]
    assert many["core_hours"] / 24 <= lanes * 1.05, "no lane works more than 24 hours a day"
    assert many["core_hours"] == pytest.approx(100 * few["core_hours"])
    assert many["as_they_come_24"][1] <= lanes, "what came before the deadline need not be checked after it"
