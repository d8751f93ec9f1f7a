"""Results made for a test, as a check would come to them."""

from __future__ import annotations

from typing import Any

from autograder.common.result import Reason, Result, Speed
from autograder.engine.timing.conditions import Meanwhile


def result_of(record: dict[str, Any]) -> Result:
    """The result in an evidence file, its reason in one piece."""
    found, speed = dict(record["result"]), record["result"]["speedup"]
    return Result(
        **found
        | {
            "reason": Reason(note=found["reason"]),
            "speedup": Speed(**speed | {"ratios": tuple(speed["ratios"])}) if speed else None,
            "review": tuple(found["review"]),
        }
    )


def made_speed(**changed: Any) -> Speed:
    """A measurement of three blocks; `changed` replaces fields."""
    return Speed(
        **{"estimate": 2.0, "low": 1.9, "high": 2.1, "bar": 1.5, "blocks": 3, "spread": 0.03}
        | {"ratios": (1.9, 2.1, 2.0)}
        | changed
    )


def made_meanwhile(**changed: Any) -> Meanwhile:
    """A quiet machine that tells nothing of heat and quota; `changed` replaces fields."""
    quiet = {"load_average": (0.0, 0.0), "busy_share": 0.0, "stolen_share": 0.0, "frequency_mhz": None}
    untold = {"quota_cores": None, "heat_throttled": None, "quota_throttled": None}
    return Meanwhile(**quiet | untold | changed)
