"""An open verdict says whose doing it is, and never what the numbers beside it contradict."""

from __future__ import annotations

import pytest

from autograder.engine.timing.conditions import disturbance
from autograder.show.speed_words import undecided
from tests.autograder.results import made_meanwhile, made_speed


@pytest.mark.parametrize(
    ("low", "high", "spread", "says"),
    [
        (2.1, 2.5, 0.05, "blocks are too few to be sure"),
        (1.0, 1.2, 0.05, "blocks are too few to be sure"),
        (1.4, 1.6, 0.05, "too close to 1.5×"),
        (1.4, 1.6, 0.50, "too restless"),
    ],
)
def test_the_reason_fits_the_interval(low: float, high: float, spread: float, says: str) -> None:
    speed = made_speed(estimate=(low * high) ** 0.5, low=low, high=high, blocks=6, spread=spread)
    reason = str(undecided(speed, disturbance(made_meanwhile(), 1.0)))
    assert says in reason
    assert "goes on from these 6 blocks" in reason
