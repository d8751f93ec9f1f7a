"""The check of exercise 7.2: what a run has cost when it reached its target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_close, require_keys

SECONDS_PER = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0}
Record = dict[str, Any]


def check_cost_to_target(job: Job) -> None:
    """7.2: seconds, hours and money up to the first validation at the target, over all sessions and devices."""
    for number in range(8):
        unit = ("h", "day", "min", "s")[number % 4]
        is_reached, higher = number != 5, number % 3 != 2
        options, hourly = _options(job.rng, unit, higher)
        records, seconds = _log(job.rng, options["target"], higher, is_reached, num_sessions=1 + number % 3)
        answer = job.learner().call("cost_of", records=records, options=options)
        _require_cost(job, answer, records, seconds, hourly, options)
    _require_units(job)


def _options(rng: np.random.Generator, unit: str, higher: bool) -> tuple[dict[str, Any], float]:
    """Arguments of the learner's function, and the price of all devices for an hour."""
    per_hour = round(float(rng.uniform(0.5, 9.0)), 2)
    amount = round(per_hour * SECONDS_PER[unit] / 3600.0, 6)
    currency, num_devices = ("EUR", "USD", "CHF")[int(rng.integers(3))], int(rng.integers(1, 9))
    options = {
        "target": 0.8 if higher else 0.5,
        "monitor": "accuracy" if higher else "loss",
        "higher_is_better": higher,
        "price": f"{amount:.6f} {currency}/{unit}",
        "num_devices": num_devices,
    }
    return options, amount / SECONDS_PER[unit] * 3600.0 * num_devices


def _log(
    rng: np.random.Generator, target: float, higher: bool, is_reached: bool, num_sessions: int
) -> tuple[list[Record], float]:
    """A run's records and the seconds that were paid up to the target (of the whole run, if it is never reached)."""
    records: list[Record] = []
    paid, at_target = 0.0, math.nan
    sign = 1.0 if higher else -1.0
    for session in range(num_sessions):
        is_last = session == num_sessions - 1
        start = float(rng.uniform(20.0, 400.0))
        records.append({"kind": "start", "seconds": start})
        clock = 0.0
        for number in range(int(rng.integers(4, 8))):
            clock += float(rng.uniform(30.0, 300.0))
            records.append({"kind": "train", "session_seconds": clock, "loss": float(rng.uniform(0.0, 0.1))})
            clock += float(rng.uniform(5.0, 30.0))
            away = float(rng.uniform(0.02, 0.2))
            reaches = is_reached and is_last and number >= 2 and (number == 2 or rng.random() < 0.6)
            value: Any = target + sign * (away if reaches else -away)
            if math.isnan(at_target) and reaches:
                # At the target itself, or just above it; the best comes later.
                value = target if rng.random() < 0.5 else target + sign * 0.01
                at_target = paid + start + clock
            elif number == 1:
                value = (None, "nan")[int(rng.integers(2))]
            other = "loss" if higher else "accuracy"
            records.append(
                {
                    "kind": "validation",
                    "session_seconds": clock,
                    "accuracy" if higher else "loss": value,
                    other: 0.0 if higher else 1.0,
                }
            )
        clock += float(rng.uniform(10.0, 60.0))
        records.append({"kind": "stop", "session_seconds": clock})
        paid += start + clock
    return records, at_target if is_reached else math.nan


def _require_cost(
    job: Job, answer: Record, records: list[Record], seconds: float, hourly: float, options: Record
) -> None:
    if math.isnan(seconds):
        job.require(
            answer["outcome"] == "none",
            expected="None: the target is never reached",
            got="a cost" if answer["outcome"] == "cost" else answer["outcome"],
            likely="the whole run, or its best value, is taken where the target was not reached",
            look="what does it cost to reach what was not reached?",
        )
        return
    job.require(
        answer["outcome"] == "cost",
        expected=f"the cost of reaching {options['monitor']} {options['target']} at {options['price']}",
        got="None" if answer["outcome"] == "none" else f"a ValueError: {answer.get('message', '')}",
        likely="a value at the target itself counts, and NaN or None is no value"
        if answer["outcome"] == "none"
        else "a price is refused that has a currency and a unit",
        look="print what your function compares, for each validation",
    )
    found = answer["numbers"]
    require_keys(job, found, ("seconds", "hours", "cost"))
    likely = _name_seconds(found["seconds"], seconds, records)
    if math.isclose(found["seconds"], seconds * options["num_devices"], rel_tol=1e-6):
        likely = (
            "seconds of all devices: `seconds` and `hours` are the run's, the devices multiply the cost alone"
        )
    require_close(job, "seconds", found["seconds"], seconds, likely=likely, look="the records in their order")
    likely = "seconds divided by something else than 3600"
    require_close(job, "hours", found["hours"], seconds / 3600.0, likely=likely)
    likely = "the price's unit: a price per day is not one per hour"
    if math.isclose(found["cost"] * options["num_devices"], hourly * seconds / 3600.0, rel_tol=1e-4):
        likely = "one device is paid for, and there are several"
    require_close(job, "cost", found["cost"], hourly * seconds / 3600.0, likely=likely, look=options["price"])
    currency = options["price"].split()[1].partition("/")[0]
    job.require(
        answer["currency"] == currency,
        expected=f"currency {currency!r}",
        got=repr(answer["currency"])[:40],
        likely="a price without unit: a sum of money has a currency",
        look="the text of the price",
    )


def _name_seconds(got: float, right: float, records: list[Record]) -> str:
    """Which known mistake gives this number."""
    starts = [record["seconds"] for record in records if record["kind"] == "start"]
    stops = [record["session_seconds"] for record in records if record["kind"] == "stop"]
    whole = sum(starts) + sum(stops)
    close = {"rel_tol": 1e-6}
    if math.isclose(got, right - sum(starts), **close):
        return (
            "compile time hidden: loading and compiling are paid for, before the first step of each session"
        )
    if math.isclose(got, right - sum(starts[1:]), **close):
        return "compile time counted wrongly: once, but every session compiles again"
    if math.isclose(got, whole, **close):
        return "the whole run, where the time to the target is asked for"
    if len(starts) > 1 and got < right - starts[0]:
        return "only the last session: what the sessions before it took was paid too, also the work that was lost"
    if got > right:
        return "a later validation than the first at the target: the best, or the last"
    return "another record than the first validation at the target, or sessions left out"


def _require_units(job: Job) -> None:
    records, _ = _log(job.rng, 0.8, True, True, 1)
    for price in ("2.40", "2.40 EUR", "2.40/h", "EUR/h"):
        options = {"target": 0.8, "monitor": "accuracy", "higher_is_better": True, "price": price}
        answer = job.learner().call("cost_of", records=records, options=options | {"num_devices": 1})
        job.require(
            answer["outcome"] == "ValueError",
            expected=f"a ValueError for the price {price!r}",
            got="a cost" if answer["outcome"] == "cost" else answer["outcome"],
            likely="a price without unit: 2.40 of what, for how long?",
            look="refuse what is not `amount currency/unit`, with the right form in the message",
        )
